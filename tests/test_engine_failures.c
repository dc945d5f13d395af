/* test_engine_failures.c -- when reads or allocations fail under the engine it says what and where, and until then, or
 * where it can go on, its tokens are those of a sound run. Never others: that is the law of all tests here.
 *
 * Every read of the program is seen: this program's pread() takes the place of the C library's, and completions of
 * the ring pass the loader's table of operations. */
#include "tests/allocations.h"
#include "tests/engine_rig.h"
#include "tests/support.h"

#include "kernels/graph/forced_route.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MODEL    SHARED "golden/qwen3moe-q4_0.gguf"
#define PROMPT   5
#define GENERATE 3
#define NO_TOKEN UINT32_MAX

/* ---- reads that fail ---- */

enum fault { FAULT_NONE, FAULT_EIO, FAULT_END, FAULT_EINTR, FAULT_SHORT, FAULT_DEED };
static struct {
    enum fault fault;
    atomic_int reads, fatal; /* the fatal-th read from now; 0: none */
    void (*deed)(void);      /* what is done to the file just then */
} world;

static bool is_fatal(void)
{
    return ++world.reads == world.fatal && world.fault != FAULT_NONE;
}

/* What a read of `bytes` that wanted to end with `result` ends with: -errno or a number of bytes. */
static int64_t spoilt(int64_t result)
{
    switch (world.fault) {
    case FAULT_EIO:
        return -EIO;
    case FAULT_END:
        return 0;
    case FAULT_EINTR:
        return -EINTR;
    case FAULT_SHORT:
        return result / 2;
    default:
        world.deed();
        return result;
    }
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    bool fatal = is_fatal();
    int64_t n = fatal ? spoilt((int64_t)bytes) : (int64_t)bytes;
    if (n <= 0 || !fatal || world.fault == FAULT_SHORT || world.fault == FAULT_DEED) {
        errno = n < 0 ? (int)-n : 0;
        return n < 0 ? -1 : syscall(SYS_pread64, fd, to, (size_t)n, offset);
    }
    return n;
}

static int ring_result(void *self, uint64_t offset, size_t bytes, int result)
{
    (void)self;
    (void)offset;
    (void)bytes;
    return is_fatal() && result > 0 ? (int)spoilt(result) : result;
}

/* ---- runs ---- */

struct outcome {
    enum status status;
    struct diag dg;
    uint32_t tokens[GENERATE]; /* as many as came out, then NO_TOKEN */
    int reads, expert_reads;
};

static void generate(struct engine_rig *r, struct outcome *o)
{
    uint32_t prompt[GOLDEN_TOKENS];
    golden_prompt(prompt);
    int before = world.reads;
    o->status = engine_rig_prompt(r, prompt, PROMPT, NULL, &o->dg);
    if (o->status == ST_OK)
        o->status = engine_rig_greedy(r, prompt[PROMPT], o->tokens, GENERATE, &o->dg);
    o->expert_reads = world.reads - before;
    struct diag again = {0};
    if (o->status == ST_IO) { /* what broke stays broken */
        assert_int_equal(engine_rig_prompt(r, prompt, 1, NULL, &again), o->status);
        assert_string_equal(again.text, o->dg.text);
    }
}

/* The `fatal`-th read fails; 0: none does. */
static struct outcome run(struct engine_rig r, enum fault fault, int fatal)
{
    struct loader_ops ops = loader_ops_system;
    struct outcome o = {.tokens = {NO_TOKEN, NO_TOKEN, NO_TOKEN}};
    ops.ring_result = ring_result;
    r.ops = &ops;
    world.fault = fault;
    world.reads = 0;
    world.fatal = fatal;
    o.status = engine_rig_open(&r, &o.dg);
    if (o.status == ST_OK)
        generate(&r, &o);
    engine_rig_close(&r);
    o.reads = world.reads;
    world.fatal = 0;
    return o;
}

/* Two ways to read: the usual one, and the one that differs in all. */
static struct engine_rig rig(bool other)
{
    struct engine_rig r = {.path = MODEL, .chunk = 3, .threads = 1 + other};
    r.backend = other ? LOADER_THREADS : LOADER_URING;
    r.buffered = r.serial = other;
    r.decide.prefetch = other ? prefetch_policy_find("previous-token") : NULL;
    r.decide.prefetch_experts_max = 2;
    return r;
}

static void expect_no_wrong_token(const struct outcome *o, const struct outcome *plain, int read)
{
    for (size_t i = 0; i < GENERATE; i++)
        if (o->tokens[i] != plain->tokens[i] && (o->status == ST_OK || o->tokens[i] != NO_TOKEN))
            fail_msg("read %d: token %zu is %u, not %u", read, i, o->tokens[i], plain->tokens[i]);
    if (o->status != ST_OK && (!o->dg.text[0] || strchr(o->dg.text, '\n')))
        fail_msg("read %d: no reason in one line: '%s'", read, o->dg.text);
}

static struct outcome plain_run(struct engine_rig r)
{
    struct outcome o = run(r, FAULT_NONE, 0);
    if (o.status != ST_OK)
        fail_msg("%s", o.dg.text);
    return o;
}

static void every_read_fails(enum fault fault, bool other)
{
    struct engine_rig r = rig(other);
    struct outcome plain = plain_run(r);
    int failures = 0, with_expert = 0;
    for (int k = 1; k <= plain.reads; k++) {
        struct outcome o = run(r, fault, k);
        expect_no_wrong_token(&o, &plain, k);
        if (o.status == ST_OK)
            continue;
        failures++;
        assert_int_equal(o.status, ST_IO);
        with_expert += strstr(o.dg.text, "expert ") && strstr(o.dg.text, "offset ");
        if (!strstr(o.dg.text, MODEL))
            fail_msg("read %d: the file is not named: %s", k, o.dg.text);
    }
    /* What was prefetched and never asked for may fail without harm, and the first read of a file only
     * tries whether direct reads go. */
    if (!other && (with_expert != plain.expert_reads || failures < plain.reads - 2))
        fail_msg("%d reads, %d of experts: %d failed, %d naming one", plain.reads,
                 plain.expert_reads, failures, with_expert);
    assert_true(with_expert > 10);
}

static void every_read_that_fails_is_named_with_its_offset_and_expert(void **state)
{
    (void)state;
    NEED_SHARED();
    every_read_fails(FAULT_EIO, false);
    every_read_fails(FAULT_EIO, true);
}

static void every_read_that_ends_too_early_is_named_too(void **state)
{
    (void)state;
    NEED_SHARED();
    every_read_fails(FAULT_END, false);
    every_read_fails(FAULT_END, true);
}

static void a_read_that_is_interrupted_or_short_is_read_on(void **state)
{
    (void)state;
    NEED_SHARED();
    for (int choice = 0; choice < 4; choice++) {
        struct engine_rig r = rig(choice & 1);
        struct outcome plain = plain_run(r);
        for (int k = 1 + choice; k <= plain.reads; k += 4) {
            struct outcome o = run(r, choice & 2 ? FAULT_SHORT : FAULT_EINTR, k);
            if (o.status != ST_OK)
                fail_msg("read %d: %s", k, o.dg.text);
            expect_no_wrong_token(&o, &plain, k);
        }
    }
}

/* ---- a file that changes under the run ---- */

static const char *victim; /* the model's copy */
static const char *other_file;
static char *sound, *wrong; /* the model, and one of the same shape with other weights */
static size_t file_bytes;

static void write_bytes(const char *path, int flags, const char *bytes)
{
    int fd = open(path, O_WRONLY | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, file_bytes), file_bytes);
    assert_int_equal(close(fd), 0);
}

static void replace_it(void)
{
    write_bytes(other_file, O_CREAT | O_TRUNC, wrong);
    assert_int_equal(rename(other_file, victim), 0);
}

static void overwrite_it(void)
{
    write_bytes(victim, 0, wrong);
}

static void cut_it(void)
{
    assert_int_equal(truncate(victim, (off_t)file_bytes / 3), 0);
}

static void remove_it(void)
{
    unlink(victim);
}

/* A sound copy that is an hour old, so that any change shows in its time. */
static void renew_victim(void)
{
    struct timespec old[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
    unlink(victim);
    write_bytes(victim, O_CREAT | O_TRUNC, sound);
    assert_int_equal(utimensat(AT_FDCWD, victim, old, 0), 0);
}

static void make_victim(void)
{
    victim = temp_path("victim.gguf");
    other_file = temp_path("other.gguf");
    sound = read_whole(MODEL, &file_bytes);
    wrong = malloc(file_bytes);
    assert_non_null(wrong);
    memcpy(wrong, sound, file_bytes);
    for (size_t i = file_bytes / 2; i < file_bytes; i++)
        wrong[i] = (char)(wrong[i] ^ 0x08); /* quants and scales stay numbers */
}

static void a_file_that_changes_under_the_run_gives_no_token_of_the_other(void **state)
{
    (void)state;
    NEED_SHARED();
    void (*const deeds[])(void) = {replace_it, overwrite_it, cut_it, remove_it};
    make_victim();
    renew_victim();
    for (int choice = 0; choice < 8; choice++) {
        struct engine_rig r = rig(choice & 1);
        r.path = victim;
        struct outcome plain = plain_run(r);
        int failures = 0;
        world.deed = deeds[choice / 2];
        for (int k = 1; k <= plain.reads; k += 3 + choice % 5) {
            struct outcome o = run(r, FAULT_DEED, k);
            renew_victim();
            expect_no_wrong_token(&o, &plain, k);
            failures += o.status != ST_OK;
            if (o.status != ST_OK && !strstr(o.dg.text, victim))
                fail_msg("read %d: the file is not named: %s", k, o.dg.text);
        }
        assert_true(failures > plain.reads / 20);
    }
    unlink(victim);
    free(sound);
    free(wrong);
}

/* ---- allocations that fail ---- */

static void every_allocation_fails_once_and_leaves_nothing_behind(void **state)
{
    (void)state;
    NEED_SHARED();
    NEED_ALLOCATIONS();
    for (int other = 0; other < 2; other++) {
        struct engine_rig r = rig(other);
        r.trace = true;
        struct outcome plain = plain_run(r);
        int failures = 0;
        for (size_t n = 1;; n++) {
            size_t before = allocations_count(), alive = allocations_alive();
            allocations_fail_at(n);
            struct outcome o = run(r, FAULT_NONE, 0);
            bool reached = allocations_count() - before >= n;
            allocations_fail_at(0);
            expect_no_wrong_token(&o, &plain, (int)n);
            if (allocations_alive() != alive)
                fail_msg("allocation %zu: %td blocks are left", n,
                         (ptrdiff_t)(allocations_alive() - alive));
            if (!reached)
                break;
            failures += o.status == ST_NO_MEMORY;
            if (o.status != ST_NO_MEMORY && !strstr(o.dg.text, "cannot be started"))
                fail_msg("allocation %zu: status %d: %s", n, o.status, o.dg.text);
        }
        assert_true(failures > 100);
    }
}

/* The routing of a sound run, in a file. */
static void save_route(const char *path)
{
    struct diag dg = {0};
    struct trace *t;
    struct outcome o = {0};
    struct engine_rig r = rig(false);
    r.trace = true;
    assert_ok(engine_rig_open(&r, &dg));
    generate(&r, &o);
    assert_int_equal(o.status, ST_OK);
    assert_ok(trace_builder_finish(r.record.trace, &t, &dg));
    r.record.trace = NULL;
    assert_ok(trace_save(t, path, &dg));
    trace_free(t);
    engine_rig_close(&r);
}

/* The future is made of the forced routing before anything runs. */
static void every_allocation_of_a_forced_run_fails_once_and_leaves_nothing_behind(void **state)
{
    (void)state;
    NEED_SHARED();
    NEED_ALLOCATIONS();
    struct diag dg;
    struct engine_rig r = rig(false);
    struct graph_weights *w;
    const char *path = temp_path("route.csv");
    size_t failures = 0;
    save_route(path);
    assert_ok(graph_weights_load(&w, MODEL, NULL, NULL, &dg));
    r.decide.policy = cache_policy_find("belady");
    r.prompt = PROMPT;
    r.steps = GENERATE;
    struct outcome plain = plain_run(rig(false));
    for (size_t n = 1;; n += 1 + n / 40) { /* the first each, then fewer */
        struct forced_route *f = NULL;
        struct outcome o = {.tokens = {NO_TOKEN, NO_TOKEN, NO_TOKEN}};
        size_t before = allocations_count(), alive = allocations_alive();
        allocations_fail_at(n);
        o.status = forced_route_load(&f, path, w->model, &o.dg);
        if (o.status == ST_OK) {
            r.route = forced_route_of(f);
            o = run(r, FAULT_NONE, 0);
        }
        forced_route_free(f);
        bool reached = allocations_count() - before >= n;
        allocations_fail_at(0);
        expect_no_wrong_token(&o, &plain, (int)n);
        assert_int_equal(allocations_alive(), alive);
        if (!reached)
            break;
        failures += o.status == ST_NO_MEMORY;
    }
    assert_true(failures > 60);
    graph_weights_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_read_that_fails_is_named_with_its_offset_and_expert),
        cmocka_unit_test(every_read_that_ends_too_early_is_named_too),
        cmocka_unit_test(a_read_that_is_interrupted_or_short_is_read_on),
        cmocka_unit_test(a_file_that_changes_under_the_run_gives_no_token_of_the_other),
        cmocka_unit_test(every_allocation_fails_once_and_leaves_nothing_behind),
        cmocka_unit_test(every_allocation_of_a_forced_run_fails_once_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
