/* support.c -- see support.h. */
#include "tests/support.h"

#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char temp_dir[64];

bool shared_present(void)
{
    struct stat st;
    return stat(SHARED, &st) == 0;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void remove_temp_dir(void)
{
    nftw(temp_dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *temp_path(const char *name)
{
    static char path[8][160];
    static unsigned turn;
    if (!*temp_dir) {
        strcpy(temp_dir, "/tmp/memwall-test-XXXXXX");
        assert_non_null(mkdtemp(temp_dir));
        atexit(remove_temp_dir);
    }
    char *p = path[turn++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", temp_dir, name);
    return p;
}

void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

char *read_whole(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s: cannot be read", path);
    size_t used = 0, room = 4096;
    char *text = malloc(room + 1);
    for (size_t got; (got = fread(text + used, 1, room - used, f)) > 0;) {
        used += got;
        if (used == room)
            text = realloc(text, (room *= 2) + 1);
    }
    fclose(f);
    text[used] = 0;
    if (bytes)
        *bytes = used;
    return text;
}

struct run run_shell(const char *command)
{
    char out[160], err[160], *line;
    strcpy(out, temp_path("stdout"));
    strcpy(err, temp_path("stderr"));
    if (!getenv("MEMWALL"))
        setenv("MEMWALL", "./memwall", 1);
    if (asprintf(&line, "(%s) >%s 2>%s </dev/null", command, out, err) < 0)
        fail_msg("asprintf");
    int code = system(line);
    free(line);
    struct run r = {.exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : -1};
    r.out = read_whole(out, &r.out_bytes);
    r.err = read_whole(err, &r.err_bytes);
    return r;
}

struct run run_memwall(const char *arguments)
{
    char *line;
    if (asprintf(&line, "$MEMWALL %s", arguments) < 0)
        fail_msg("asprintf");
    struct run r = run_shell(line);
    free(line);
    return r;
}

void run_free(struct run *r)
{
    free(r->out);
    free(r->err);
}
