/* fuzz_engine.c -- model files with random damage, opened and run: what is refused must be refused with a reason, and
 * nothing may crash, hang or touch memory that is not its own.
 *
 *     fuzz_engine SECONDS SEED FILE...
 *
 * Build it with sanitizers (make fuzz-engine does). A child process runs trials; each draws from a stream of the seed
 * and its number, so a trial that killed its child is found again: `fuzz_engine 0 SEED+NUMBER FILE...` runs just it.
 * Damage: header bits and bytes, the numbers of a key or a tensor, a file that ends early, weights. Prints one CSV row.
 */
#include "tests/engine_rig.h"

#include "base/pcg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX     16
#define HEADER_BYTES  4096u /* of the golden files: keys and table, and the first weights */
#define TRIAL_SECONDS 60
#define TRIALS_CHILD  500

/* Trials may ask for more than there is: that is a refusal, not the sanitizer's end of the program. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=2048:detect_leaks=1";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:print_stacktrace=1";
}

/* A file of the golden ones, and one in memory that a trial damages and then mends. */
struct model_file {
    unsigned char *bytes;
    size_t size;
    int fd;
    char path[32];
};

/* What the parent sees of its child. */
struct tally {
    uint64_t trial, trials, refused, ran, failed_later;
};

static struct model_file load(const char *path)
{
    struct model_file m = {0};
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        exit(2);
    m.size = (size_t)ftell(f);
    m.bytes = malloc(m.size);
    rewind(f);
    if (!m.bytes || fread(m.bytes, 1, m.size, f) != m.size)
        exit(2);
    fclose(f);
    m.fd = memfd_create("fuzz-engine", 0);
    if (m.fd < 0 || write(m.fd, m.bytes, m.size) != (ssize_t)m.size)
        exit(2);
    snprintf(m.path, sizeof m.path, "/proc/self/fd/%d", m.fd);
    return m;
}

/* Makes the file in memory what `to` is, `size` long, where it was `from`. */
static void patch(const struct model_file *m, const unsigned char *from, const unsigned char *to,
                  size_t size)
{
    if (ftruncate(m->fd, (off_t)size) != 0)
        abort();
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < HEADER_BYTES ? size - at : HEADER_BYTES;
        if ((!from || memcmp(from + at, to + at, n) != 0) &&
            pwrite(m->fd, to + at, n, (off_t)at) != (ssize_t)n)
            abort();
    }
}

/* A number as hostile files have them. */
static uint64_t odd_number(struct pcg *p)
{
    static const uint64_t odd[] = {0,          1,          2,          3,       7,
                                   63,         255,        257,        65535,   65536,
                                   0x7fffffff, 0xffffffff, 0x80000000, 1 << 24, UINT64_MAX,
                                   0x7fc00000, 0x7f800000, 0x3f800000, 31,      32};
    return odd[pcg_below(p, sizeof odd / sizeof *odd)];
}

static void damage(unsigned char *b, size_t *size, struct pcg *p)
{
    uint32_t header = *size < HEADER_BYTES ? (uint32_t)*size : HEADER_BYTES;
    for (uint32_t n = 1 + pcg_below(p, 3); n > 0; n--) {
        uint32_t at = pcg_below(p, header - 8);
        uint64_t number = odd_number(p);
        switch (pcg_below(p, 8)) {
        case 0:
            b[at] ^= (unsigned char)(1u << pcg_below(p, 8));
            break;
        case 1:
            b[at] = (unsigned char)pcg_u32(p);
            break;
        case 2:
        case 3:
            memcpy(b + at, &number, 4);
            break;
        case 4:
            memcpy(b + at, &number, 8);
            break;
        case 5: /* one step up or down, which keeps most of a file's sense */
            b[at] = (unsigned char)(b[at] + (pcg_below(p, 2) ? 1 : 255));
            break;
        case 6:
            b[header + pcg_below(p, (uint32_t)(*size - header))] = (unsigned char)pcg_u32(p);
            break;
        default:
            if (pcg_below(p, 8) == 0)
                *size = pcg_below(p, (uint32_t)*size) + 16;
        }
    }
}

static enum status run_model(const char *path, struct pcg *p, bool *opened, struct diag *dg)
{
    uint32_t tokens[4] = {1, 2, 3, 0}, out[2];
    struct engine_rig r = {.path = path,
                           .context = 16,
                           .chunk = 1 + pcg_below(p, 4),
                           .threads = 1 + pcg_below(p, 2),
                           .buffered = true,
                           .serial = pcg_below(p, 2),
                           .activations_f32 = pcg_below(p, 2)};
    r.isa = pcg_below(p, 4) ? "auto" : "scalar";
    enum status st = engine_rig_open(&r, dg);
    *opened = st == ST_OK;
    if (st == ST_OK)
        st = engine_rig_prompt(&r, tokens, 3, NULL, dg);
    if (st == ST_OK)
        st = engine_rig_greedy(&r, tokens[0], out, 2, dg);
    engine_rig_close(&r);
    return st;
}

static void run_trial(const struct model_file *file, uint64_t number, struct tally *t)
{
    struct pcg p;
    struct diag dg = {0};
    bool opened;
    size_t size = file->size;
    unsigned char *b = malloc(size);
    pcg_seed(&p, number, 1);
    if (!b)
        abort();
    memcpy(b, file->bytes, size);
    damage(b, &size, &p);
    patch(file, file->bytes, b, size);
    alarm(TRIAL_SECONDS);
    enum status st = run_model(file->path, &p, &opened, &dg);
    alarm(0);
    patch(file, size == file->size ? b : NULL, file->bytes, file->size);
    free(b);
    if (st != ST_OK && (!dg.text[0] || strchr(dg.text, '\n')))
        abort(); /* no reason, or more than a line */
    t->trials++;
    t->ran += st == ST_OK;
    t->refused += !opened;
    t->failed_later += opened && st != ST_OK;
}

/* Trials in a child; false: one of them ended it. */
static bool run_child(const struct model_file *file, size_t files, uint64_t first, uint64_t count,
                      struct tally *t)
{
    pid_t child = fork();
    if (child == 0) {
        for (t->trial = first; t->trial < first + count; t->trial++)
            run_trial(&file[t->trial % files], t->trial, t);
        exit(0); /* where leaks are looked for */
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    fprintf(stderr, "trial %" PRIu64 ": child ended with %s %d\n", t->trial,
            WIFSIGNALED(status) ? "signal" : "code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

int main(int argc, char **argv)
{
    struct model_file file[FILES_MAX];
    size_t files = 0;
    if (argc < 4 || argc > 3 + FILES_MAX)
        return 2;
    time_t end = time(NULL) + strtol(argv[1], NULL, 10);
    uint64_t seed = strtoull(argv[2], NULL, 10), crashes = 0;
    bool one = strtol(argv[1], NULL, 10) == 0;
    for (int i = 3; i < argc; i++)
        file[files++] = load(argv[i]);
    struct tally *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED)
        return 2;
    do {
        bool sound = run_child(file, files, seed, one ? 1 : TRIALS_CHILD, t);
        for (size_t i = 0; !sound && i < files; i++)
            patch(&file[i], NULL, file[i].bytes, file[i].size);
        crashes += !sound;
        seed = t->trial + (sound ? 0 : 1);
    } while (time(NULL) < end && crashes < 20);
    for (size_t i = 0; i < files; i++) {
        close(file[i].fd);
        free(file[i].bytes);
    }
    printf("trials,refused,ran,failed_later,crashes\n%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
           ",%" PRIu64 "\n",
           t->trials, t->refused, t->ran, t->failed_later, crashes);
    return crashes > 0;
}
