/* test_decision_log.c -- the log of a run's decisions: what is written is read, made again it gives every command (tier E2),
 * and no part of it can change unnoticed. */
#include "tests/engine_rig.h"
#include "tests/mutate.h"
#include "tests/support.h"

#include "base/pcg.h"
#include "sim/policy/decision_log.h"

#define MODEL    "../shared/data/golden/qwen3moe-q4_0.gguf"
#define GENERATE 32

/* ---- a made-up driver ---- */

#define LAYERS  3
#define EXPERTS 8
static const uint64_t bytes_by_layer[LAYERS] = {100, 0, 60};

static struct decide_setup small_setup(const char *policy, const char *prefetch)
{
    return (struct decide_setup){.policy = cache_policy_find(policy),
                                 .prefetch = prefetch_policy_find(prefetch),
                                 .layers = LAYERS,
                                 .experts = EXPERTS,
                                 .expert_bytes = bytes_by_layer,
                                 .budget_bytes = 800,
                                 .prefetch_distance = 2,
                                 .prefetch_experts_max = 2,
                                 .seed = 7};
}

/* Runs and logs `passes` passes of two tokens that choose two experts each; returns what was counted. */
static struct decide_counts write_log(const char *path, const struct decide_setup *s,
                                      uint32_t passes)
{
    struct diag dg = {0};
    struct decision_log *l;
    struct decide *d;
    struct pcg p;
    pcg_stream(&p, 5, "choices");
    assert_ok(decide_new(&d, s, 400, &dg));
    assert_ok(decision_log_open(&l, path, s, 400, false, &dg));
    for (uint32_t pass = 0; pass < passes; pass++)
        for (uint32_t layer = 0; layer < LAYERS; layer += 2) {
            uint16_t ids[4], guess[2];
            size_t count;
            for (int i = 0; i < 4; i++)
                ids[i] = (uint16_t)(pcg_u32(&p) % EXPERTS);
            for (int i = 0; i < 2; i++)
                guess[i] = (uint16_t)(pcg_u32(&p) % EXPERTS);
            const struct decision *c = decide_batch(d, pass, layer, ids, 4, &count);
            decision_log_batch(l, pass, layer, ids, 4, c, count);
            if (layer == 0 && s->prefetch && s->prefetch->from_outside) {
                c = decide_predict(d, pass, layer, 2, guess, NULL, 2, &count);
                decision_log_predict(l, pass, layer, 2, guess, 2, c, count);
            }
            c = decide_layer_end(d, pass, layer, &count);
            decision_log_layer_end(l, pass, layer, c, count);
            if (pass == 3 && layer == 2) {
                c = decide_resize(d, 700, &count);
                decision_log_resize(l, 700, c, count);
            }
        }
    struct decide_counts counts = *decide_counts(d);
    assert_ok(decision_log_close(l, counts.command_hash, &dg));
    decide_free(d);
    return counts;
}

static void every_policy_and_prefetcher_gives_its_commands_again(void **state)
{
    (void)state;
    const char *path = temp_path("ordered.csv");
    for (size_t p = 0; cache_policies[p]; p++)
        for (size_t f = 0; f == 0 || prefetch_policies[f - 1]; f++) {
            if (cache_policies[p]->clairvoyant || (p + f) % 4 != 0)
                continue; /* each policy and each prefetcher several times */
            struct diag dg = {0};
            struct decision_log_result r;
            struct decide_setup s =
                small_setup(cache_policies[p]->name, f ? prefetch_policies[f - 1]->name : "none");
            s.scope = f % 2 ? SCOPE_LAYER : SCOPE_GLOBAL;
            s.evict = p / 2 % 2 ? EVICT_AFTER : EVICT_BEFORE;
            if (s.scope == SCOPE_LAYER)
                s.budget_bytes = 3 * 700;
            struct decide_counts counts = write_log(path, &s, 3);
            assert_ok(decision_log_replay(path, &r, &dg));
            assert_true(r.equal);
            assert_ptr_equal(r.policy, s.policy);
            assert_ptr_equal(r.prefetch, s.prefetch);
            assert_int_equal(r.counts.command_hash, counts.command_hash);
            assert_int_equal(r.counts.lookups, counts.lookups);
            assert_int_equal(r.counts.prefetches, counts.prefetches);
        }
}

static void a_log_looks_like_this(void **state)
{
    (void)state;
    struct decide_setup s = small_setup("lru", "gate");
    const char *path = temp_path("look.csv");
    write_log(path, &s, 1);
    size_t n;
    char *text = read_whole(path, &n);
    const char *expected = "# memwall-decisions 1\n# policy=lru\n# prefetch=gate\n# when=ordered\n"
                           "# scope=global\n# evict=before\n# layers=3\n# experts=8\n"
                           "# cache_bytes=800\n# batch_bytes_max=400\n# prefetch_distance=2\n"
                           "# prefetch_experts_max=2\n# prefetch_bytes_max=0\n# seed=7\n"
                           "# layer=0 expert_bytes=100\n# layer=1 expert_bytes=0\n"
                           "# layer=2 expert_bytes=60\ncall,pass,layer,argument,commands\n"
                           "batch,0,0,";
    assert_memory_equal(text, expected, strlen(expected));
    assert_non_null(strstr(text, "\npredict,0,0,2 "));
    assert_non_null(strstr(text, "\nlayer_end,0,2,,\n# end rows=5 arguments="));
    free(text);
}

static void a_changed_byte_is_found(void **state)
{
    (void)state;
    struct decide_setup s = small_setup("s3fifo", "gate");
    const char *path = temp_path("whole.csv"), *other = temp_path("changed.csv");
    write_log(path, &s, 5);
    size_t n, found = 0;
    char *text = read_whole(path, &n);
    static const char marks[] = "0123456789abcdpx ,:=#-";
    struct pcg p;
    pcg_stream(&p, 1, "damage");
    for (size_t i = 0; i < n; i++) {
        char was = text[i], mark = marks[pcg_u32(&p) % (sizeof marks - 1)];
        if (was == mark)
            continue;
        struct diag dg = {0};
        struct decision_log_result r;
        text[i] = mark;
        write_file(other, text);
        text[i] = was;
        enum status st = decision_log_replay(other, &r, &dg);
        if (st == ST_OK && r.equal)
            fail_msg("byte %zu of %zu: '%c' instead of '%c' passed", i, n, mark, was);
        const char *where = st == ST_OK ? r.difference.text : dg.text;
        if (strncmp(where, other, strlen(other)) != 0 || where[strlen(other)] != ':')
            fail_msg("no file and line in: %s", where);
        found++;
    }
    assert_true(found > n / 2);
    free(text);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct decide_setup s = small_setup("lru", "frequency");
    const char *path = temp_path("long.csv"), *other = temp_path("short.csv");
    write_log(path, &s, 5);
    size_t n;
    char *text = read_whole(path, &n);
    for (size_t cut = 1; cut < n; cut += 7) {
        struct diag dg = {0};
        struct decision_log_result r;
        char was = text[n - cut];
        text[n - cut] = 0;
        write_file(other, text);
        text[n - cut] = was;
        if (cut > 1) /* the last line end is no loss */
            assert_int_not_equal(decision_log_replay(other, &r, &dg), ST_OK);
    }
    free(text);
}

static void expect_refused(const char *text, const char *from, const char *to, const char *reason)
{
    struct diag dg = {0};
    struct decision_log_result r;
    const char *at = strstr(text, from), *path = temp_path("refused.csv");
    assert_non_null(at);
    char *other = calloc(1, strlen(text) + strlen(to) + 1);
    sprintf(other, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_file(path, other);
    free(other);
    assert_int_not_equal(decision_log_replay(path, &r, &dg), ST_OK);
    if (!strstr(dg.text, reason))
        fail_msg("'%s' expected in: %s", reason, dg.text);
}

static void calls_that_no_driver_makes_are_refused_with_a_reason(void **state)
{
    (void)state;
    struct decide_setup s = small_setup("lru", "gate");
    const char *path = temp_path("right.csv");
    write_log(path, &s, 2);
    size_t n;
    char *text = read_whole(path, &n);
    expect_refused(text, "decisions 1", "decisions 2", ":1: expected '# memwall-decisions 1'");
    expect_refused(text, "policy=lru", "policy=lur", ":2: expected '# policy='");
    expect_refused(text, "when=ordered", "when=later", ":4: expected '# when='");
    expect_refused(text, "layers=3", "layers=2", "rows after the last layer");
    expect_refused(text, "layers=3", "layers=4", "the whole preamble");
    expect_refused(text, "cache_bytes=800", "cache_bytes=100", "too small");
    expect_refused(text, "batch_bytes_max=400", "batch_bytes_max=50", "of at most batch_bytes_max");
    expect_refused(text, "batch,0,0", "batch,0,2", "expected layer 0");
    expect_refused(text, "batch,0,2", "batch,1,2", "all layers of a pass");
    expect_refused(text, "predict,0,0,2", "predict,0,0,3", "a target at most");
    expect_refused(text, "layer_end,0,0", "layer_end,0,2", "layer_end of the batch before it");
    expect_refused(text, "layer_end,0,0,,\n", "", "layer_end before the next batch");
    expect_refused(text, "layer_end,0,0,,\n", "layer_end,0,0,,\nlanded,0,0,1,\n", "when=ordered");
    expect_refused(text, "layer_end,0,0,,\n", "layer_end,0,0,,\nresize,0,0,1,\n",
                   "holds one batch");
    expect_refused(text, "# end", "# seed=1\n# end", "expected rows or");
    free(text);
}

static void a_damaged_file_is_never_more_than_an_error(void **state)
{
    (void)state;
    static const char *const policies[] = {"lru", "none", "arc", "belady", "least-stale"};
    const char *path = temp_path("base.csv"), *other = temp_path("damaged.csv");
    struct pcg p;
    pcg_stream(&p, 3, "fuzz");
    for (size_t i = 0; i < 5; i++) {
        struct decide_setup s =
            small_setup(i == 3 ? "lru" : policies[i], i % 2 ? "gate" : "oracle");
        s.evict = i == 2 ? EVICT_AFTER : EVICT_BEFORE;
        write_log(path, &s, 4);
        size_t n;
        char *text = read_whole(path, &n), *damaged = malloc(n + MUTATE_ROOM + 8);
        for (int round = 0; round < 600; round++) {
            struct diag dg = {0};
            struct decision_log_result r;
            memcpy(damaged, text, n + 1);
            if (i == 3) { /* its commands differ, which is found later than a wrong call */
                char *at = strstr(damaged, "policy=");
                sprintf(at, "policy=belady%s", text + (at - damaged) + strlen("policy=lru"));
            }
            mutate(damaged, &p);
            write_file(other, damaged);
            enum status st = decision_log_replay(other, &r, &dg);
            assert_true(st == ST_OK || dg.text[0] != 0);
        }
        free(text);
        free(damaged);
    }
}

/* ---- the engine ---- */

struct timed_run {
    uint32_t tokens[GENERATE];
    struct decide_counts counts;
};

static void run(struct timed_run *o, struct engine_rig r)
{
    struct diag dg = {0};
    uint32_t prompt[GOLDEN_TOKENS];
    golden_prompt(prompt);
    r.path = MODEL;
    assert_ok(engine_rig_open(&r, &dg));
    assert_ok(engine_rig_prompt(&r, prompt, 12, NULL, &dg));
    assert_ok(engine_rig_greedy(&r, prompt[12], o->tokens, GENERATE, &dg));
    o->counts = *experts_counts(r.experts);
    if (r.decisions)
        assert_ok(experts_save_decisions(r.experts, &dg));
    engine_rig_close(&r);
}

static uint64_t expert_bytes(void)
{
    struct engine_rig r = {.path = MODEL};
    struct diag dg = {0};
    assert_ok(engine_rig_open(&r, &dg));
    uint64_t bytes = experts_decisions(r.experts)->expert_bytes[0];
    engine_rig_close(&r);
    return bytes;
}

static struct engine_rig gate_rig(const char *path, bool timed, unsigned choice, uint64_t expert)
{
    struct engine_rig r = {.decisions = path,
                           .prefetch_timed = timed,
                           .predict_distance = 1 + choice % 2,
                           .chunk = 5,
                           .threads = 1 + choice % 2,
                           .serial = choice % 3 == 2,
                           .backend = choice % 4 == 3 ? LOADER_THREADS : LOADER_URING};
    r.decide.policy = cache_policies[choice % 3 == 0 ? 2 : choice % 3 == 1 ? 8 : 0];
    r.decide.prefetch = prefetch_policy_find("gate");
    r.decide.prefetch_experts_max = 2;
    r.decide.budget_bytes = (9 + choice) * expert;
    r.decide.evict = choice % 4 == 1 ? EVICT_AFTER : EVICT_BEFORE;
    return r;
}

static void a_timed_run_is_made_again_command_by_command_and_has_the_same_tokens(void **state)
{
    (void)state;
    NEED_SHARED();
    struct timed_run plain, o;
    run(&plain, (struct engine_rig){0});
    const char *path = temp_path("timed.csv");
    uint64_t expert = expert_bytes(), prefetches = 0;
    for (unsigned choice = 0; choice < 12; choice++) {
        struct diag dg = {0};
        struct decision_log_result r;
        run(&o, gate_rig(path, true, choice, expert));
        assert_memory_equal(o.tokens, plain.tokens, sizeof o.tokens);
        assert_ok(decision_log_replay(path, &r, &dg));
        if (!r.equal)
            fail_msg("%s", r.difference.text);
        assert_true(r.timed);
        assert_int_equal(r.counts.command_hash, o.counts.command_hash);
        assert_int_equal(r.counts.hits, o.counts.hits);
        assert_int_equal(r.counts.prefetches, o.counts.prefetches);
        prefetches += o.counts.prefetches;
    }
    assert_true(prefetches > 0);
}

static void the_log_of_an_ordered_run_does_not_depend_on_how_experts_are_read(void **state)
{
    (void)state;
    NEED_SHARED();
    struct timed_run o;
    uint64_t expert = expert_bytes();
    const char *path = temp_path("a.csv"), *other = temp_path("b.csv");
    struct engine_rig a = gate_rig(path, false, 0, expert), b = a;
    b.decisions = other;
    b.threads = 3;
    b.serial = true;
    b.backend = LOADER_THREADS;
    run(&o, a);
    run(&o, b);
    size_t n, m;
    char *first = read_whole(path, &n), *second = read_whole(other, &m);
    assert_int_equal(n, m);
    assert_memory_equal(first, second, n);
    free(first);
    free(second);
}

static void the_program_says_which_command_differs(void **state)
{
    (void)state;
    struct decide_setup s = small_setup("lru", "gate");
    const char *path = temp_path("said.csv");
    write_log(path, &s, 2);
    char arguments[300], *text = read_whole(path, NULL);
    snprintf(arguments, sizeof arguments, "replay --format csv --decisions %s", path);
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, ",yes\n"));
    run_free(&r);
    *strstr(text, ":0 ") = ';';
    write_file(path, text);
    free(text);
    r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 1);
    assert_non_null(strstr(r.out, ",no\n"));
    assert_non_null(strstr(r.err, "said.csv:19: command 1 of this batch is d"));
    run_free(&r);
}

/* What stands in the first row under `name`. */
static void cell(char out[64], const char *csv, const char *name)
{
    size_t at = 0;
    const char *row = strchr(csv, '\n') + 1, *header = strstr(csv, name);
    assert_non_null(header);
    for (const char *c = csv; c < header; c++)
        at += *c == ',';
    while (at-- > 0)
        row = strchr(row, ',') + 1;
    snprintf(out, 64, "%.*s", (int)strcspn(row, ",\n"), row);
}

static void a_timed_run_of_the_program_is_marked_as_such_and_replays(void **state)
{
    (void)state;
    NEED_SHARED();
    char arguments[400], prefetch[64], hash[64], again[64];
    const char *path = temp_path("run.csv");
    snprintf(arguments, sizeof arguments,
             "engine run " MODEL " --tokens 1,2,3,4,5 --generate 20 --cache 700kB --prefetch gate "
             "--prefetch-experts 1 --prefetch-when idle --format csv --decisions-out %s",
             path);
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    cell(prefetch, r.out, "prefetch,");
    cell(hash, r.out, "command_hash,");
    assert_string_equal(prefetch, "gate (timed)");
    run_free(&r);
    snprintf(arguments, sizeof arguments, "replay --format csv --decisions %s", path);
    r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    cell(again, r.out, "command_hash,");
    assert_string_equal(hash, again);
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_and_prefetcher_gives_its_commands_again),
        cmocka_unit_test(a_log_looks_like_this),
        cmocka_unit_test(a_changed_byte_is_found),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(calls_that_no_driver_makes_are_refused_with_a_reason),
        cmocka_unit_test(a_damaged_file_is_never_more_than_an_error),
        cmocka_unit_test(a_timed_run_is_made_again_command_by_command_and_has_the_same_tokens),
        cmocka_unit_test(the_log_of_an_ordered_run_does_not_depend_on_how_experts_are_read),
        cmocka_unit_test(the_program_says_which_command_differs),
        cmocka_unit_test(a_timed_run_of_the_program_is_marked_as_such_and_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
