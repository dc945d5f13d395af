/* test_heads.c -- trained heads begin at the early router and get better than it; their file is
 * read back or refused; and whatever they say, the tokens stay. */
#include "tests/support.h"

#include "base/hash.h"
#include "kernels/heads/heads_fit.h"
#include "tests/allocations.h"
#include "tests/cli_expect.h"

#include <math.h>

#define TINY   SHARED "tiny/"
#define MODEL  TINY "tiny-q4_0.gguf"
#define WINDOW 256

static struct diag dg;

/* Ten windows of each held-out text in turn, so that each of them is learnt from and measured
 * on. */
static struct token_bytes {
    uint32_t ids[10 * 3 * WINDOW];
    size_t count;
} text;

static void read_text(void)
{
    static const char *const names[] = {"jargon", "kjv", "tinyshakespeare"};
    char path[100], *bytes[3];
    size_t length;
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, TINY "heldout-%s.bin", names[i]);
        bytes[i] = read_whole(path, &length);
    }
    for (size_t window = 0; window < 10; window++)
        for (size_t i = 0; i < 3; i++)
            for (size_t k = 0; k < WINDOW; k++)
                text.ids[text.count++] = (uint8_t)bytes[i][window * (WINDOW + 1) + k];
    for (size_t i = 0; i < 3; i++)
        free(bytes[i]);
}

static struct engine_setup setup(void)
{
    return (struct engine_setup){
        .model = MODEL,
        .isa = "auto",
        .threads = 2,
        .context = WINDOW,
        .overlap = true,
        .decide = {.policy = cache_policy_find("lru"), .prefetch_distance = 1},
        .loader = {.backend = LOADER_THREADS, .depth = 4},
    };
}

/* One recording serves all tests. */
static struct engine *engine;
static struct recording recording;

static int record(void **state)
{
    (void)state;
    if (!shared_present())
        return 0;
    struct engine_setup s = setup();
    read_text();
    recording_attach(&recording, &s, 1);
    assert_ok(engine_open(&engine, &s, &dg));
    assert_ok(recording_run(&recording, engine, text.ids, text.count, WINDOW, NULL, NULL, &dg));
    return 0;
}

static int forget(void **state)
{
    (void)state;
    recording_free(&recording);
    engine_close(engine);
    return 0;
}

static struct heads *fit(double ridge)
{
    struct heads *h;
    assert_ok(heads_fit(&h, &recording, engine_compute(engine), ridge, NULL, NULL, &dg));
    assert_int_equal(h->count, 7);
    return h;
}

static struct heads_recall recall_of(struct heads *h)
{
    struct heads_recall all = {0}, one;
    for (size_t i = 0; i < h->count; i++) {
        assert_ok(
            heads_measure(h, &recording, engine_compute(engine), h->head[i].source, &one, &dg));
        assert_close((double)one.found / (double)one.wanted, (double)h->head[i].recall, 1e-6);
        all.wanted += one.wanted;
        all.early += one.early;
        all.found += one.found;
    }
    return all;
}

static double share(uint64_t part, uint64_t whole)
{
    return (double)part / (double)whole;
}

static void the_early_router_finds_two_thirds_of_the_next_layers_experts(void **state)
{
    (void)state;
    NEED_SHARED();
    struct heads *h = fit(0.01);
    struct heads_recall r = recall_of(h);
    assert_int_equal(r.wanted, 7 * 4 * 6 * WINDOW);
    assert_close(share(r.early, r.wanted), 0.67, 0.02);
    heads_free(h);
}

static void heads_learn_what_the_early_router_misses(void **state)
{
    (void)state;
    NEED_SHARED();
    struct heads *h = fit(0.01);
    struct heads_recall r = recall_of(h);
    assert_true(share(r.found, r.wanted) > share(r.early, r.wanted) + 0.06);
    heads_free(h);
}

static void with_a_large_ridge_heads_are_the_early_router(void **state)
{
    (void)state;
    NEED_SHARED();
    struct heads *h = fit(1e9);
    struct heads_recall r = recall_of(h);
    assert_close(share(r.found, r.wanted), share(r.early, r.wanted), 0.002);
    heads_free(h);
}

/* The state that the target's router itself saw is the next source's; only F16 stands between. */
static void fed_with_the_true_input_a_predictor_names_every_expert(void **state)
{
    uint64_t wanted = 0, found = 0;
    (void)state;
    NEED_SHARED();
    struct heads *h = fit(1e9);
    for (size_t source = 0; source < 6; source++) {
        struct recording shifted = recording;
        struct recorded_layer layer[8];
        struct heads_recall r;
        memcpy(layer, recording.layer, sizeof layer);
        layer[source].state = recording.layer[source + 1].state;
        shifted.layer = layer;
        assert_ok(heads_measure(h, &shifted, engine_compute(engine), source, &r, &dg));
        wanted += r.wanted;
        found += r.found;
    }
    assert_true(share(found, wanted) > 0.998);
    heads_free(h);
}

static void a_text_of_few_windows_is_refused(void **state)
{
    struct heads *h;
    (void)state;
    NEED_SHARED();
    struct recording few = recording;
    few.tokens = 4 * WINDOW;
    assert_int_equal(heads_fit(&h, &few, engine_compute(engine), 0.01, NULL, NULL, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "at least 1025 are needed"));
}

/* ---- the file ---- */

static void expect_load(const char *path, const struct graph_weights *w, enum status expected,
                        const char *reason)
{
    struct heads *h;
    enum status st = heads_load(&h, path, w, &dg);
    if (st != expected || !strstr(dg.text, reason))
        fail_msg("status %d: %s", st, dg.text);
}

static void write_bytes(const char *path, const char *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void heads_are_read_back_as_they_were_written(void **state)
{
    char first[300], second[300];
    struct heads *again;
    size_t a_bytes, b_bytes;
    (void)state;
    NEED_SHARED();
    snprintf(first, sizeof first, "%s", temp_path("first.heads"));
    snprintf(second, sizeof second, "%s", temp_path("second.heads"));
    struct heads *h = fit(0.1);
    assert_ok(heads_save(h, first, &dg));
    assert_ok(heads_load(&again, first, engine_weights(engine), &dg));
    assert_int_equal(again->distance, 1);
    assert_int_equal(again->tokens, 24 * WINDOW);
    assert_close(again->ridge, 0.1, 0);
    assert_int_equal(recall_of(again).found, recall_of(h).found);
    assert_ok(heads_save(again, second, &dg));
    char *a = read_whole(first, &a_bytes), *b = read_whole(second, &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(a, b, a_bytes);
    heads_free(h);
    heads_free(again);
    free(a);
    free(b);
}

static void truncated_altered_and_foreign_files_are_refused(void **state)
{
    const char *path = temp_path("bad.heads");
    struct graph_weights *other;
    size_t bytes;
    (void)state;
    NEED_SHARED();
    struct heads *h = fit(0.1);
    assert_ok(heads_save(h, path, &dg));
    heads_free(h);
    char *good = read_whole(path, &bytes);
    assert_ok(graph_weights_load(&other, SHARED "golden/qwen3moe-f16.gguf", NULL, NULL, &dg));
    expect_load(path, other, ST_MISFIT, "another model than " SHARED "golden/qwen3moe-f16.gguf");
    graph_weights_free(other);
    for (size_t cut = 0; cut < bytes; cut += 997) {
        write_bytes(path, good, cut);
        expect_load(path, engine_weights(engine), ST_PARSE, path);
    }
    for (size_t at = 0; at < bytes; at += 4001) {
        good[at] ^= 4;
        write_bytes(path, good, bytes);
        expect_load(path, engine_weights(engine), at == 8 ? ST_UNSUPPORTED : ST_PARSE, path);
        good[at] ^= 4;
    }
    /* A file whose hash is right may still lie about its heads. */
    good[20] = 3;
    uint64_t hash = hash_bytes(good, bytes - 8);
    for (size_t i = 0; i < 8; i++)
        good[bytes - 8 + i] = (char)(hash >> 8 * i);
    write_bytes(path, good, bytes);
    expect_load(path, engine_weights(engine), ST_MISFIT, "another model");
    free(good);
}

/* Small windows, so that a regression takes milliseconds. */
static void an_allocation_that_fails_is_said_and_leaves_nothing_behind(void **state)
{
    char path[300];
    struct recording few;
    (void)state;
    NEED_SHARED();
    NEED_ALLOCATIONS();
    snprintf(path, sizeof path, "%s", temp_path("memory.heads"));
    few = recording;
    few.window = 8;
    few.tokens = 40;
    enum status st = ST_NO_MEMORY;
    for (size_t n = 1; st != ST_OK; n += 1 + n / 8) {
        struct heads *h = NULL, *again = NULL;
        allocations_fail_at(n);
        st = heads_fit(&h, &few, engine_compute(engine), 0.1, NULL, NULL, &dg);
        if (st == ST_OK)
            st = heads_save(h, path, &dg);
        if (st == ST_OK)
            st = heads_load(&again, path, engine_weights(engine), &dg);
        allocations_fail_at(0);
        bool said = st == ST_NO_MEMORY || strstr(dg.text, "Cannot allocate memory");
        assert_true(st == ST_OK || said);
        heads_free(h);
        heads_free(again);
    }
}

/* ---- a wrong guess costs time ---- */

static uint64_t greedy(struct heads *h, uint32_t *out, size_t n)
{
    struct engine *e;
    struct engine_setup s = setup();
    float logits[256];
    s.decide.budget_bytes = 40 * 55296; /* 40 of 256 experts */
    if (h) {
        s.decide.prefetch = prefetch_policy_find("heads");
        s.predict_distance = 1;
        s.predict = heads_predict;
        s.predict_self = h;
    }
    assert_ok(engine_open(&e, &s, &dg));
    assert_ok(engine_prompt(e, text.ids, 40, NULL, logits, &dg));
    for (size_t i = 0; i < n; i++) {
        out[i] = 0;
        for (uint32_t v = 1; v < 256; v++)
            if (logits[v] > logits[out[i]])
                out[i] = v;
        assert_ok(engine_step(e, out[i], logits, &dg));
    }
    uint64_t prefetches = experts_counts(engine_experts(e))->prefetches;
    engine_close(e);
    return prefetches;
}

static void tokens_are_the_same_with_good_heads_with_garbage_and_without(void **state)
{
    enum { COUNT = 48 };
    uint32_t without[COUNT], good[COUNT], garbage[COUNT];
    (void)state;
    NEED_SHARED();
    struct heads *h = fit(0.01);
    assert_int_equal(greedy(NULL, without, COUNT), 0);
    assert_true(greedy(h, good, COUNT) > 0);
    for (size_t i = 0; i < h->count; i++)
        memset(h->head[i].packed, (int)(0x35 + i), 32 * 256 * 2);
    assert_true(greedy(h, garbage, COUNT) > 0);
    assert_memory_equal(without, good, sizeof without);
    assert_memory_equal(without, garbage, sizeof without);
    heads_free(h);
}

/* ---- the command ---- */

static void the_command_trains_and_tells_the_recall_of_each_layer(void **state)
{
    char arguments[500], out[300];
    (void)state;
    NEED_SHARED();
    snprintf(out, sizeof out, "%s", temp_path("model.heads"));
    snprintf(arguments, sizeof arguments,
             "engine heads " MODEL " --text " TINY
             "heldout-kjv.bin --window 128 --tokens-max 1280 --format csv --out %s",
             out);
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, "layer,target,tokens,held_out_tokens,recall_gate_ratio,"
                                  "recall_heads_ratio\n0,1,1024,256,0."));
    assert_non_null(strstr(r.out, "\nall,all,1024,256,0."));
    run_free(&r);
    struct heads *h;
    assert_ok(heads_load(&h, out, engine_weights(engine), &dg));
    heads_free(h);
}

static void a_run_takes_heads_and_refuses_those_of_another_distance(void **state)
{
    char heads[300], arguments[700];
    (void)state;
    NEED_SHARED();
    snprintf(heads, sizeof heads, "%s", temp_path("run.heads"));
    struct heads *h = fit(0.01);
    assert_ok(heads_save(h, heads, &dg));
    heads_free(h);
    snprintf(arguments, sizeof arguments,
             "engine run " MODEL " --tokens 72,101,32 --generate 8 --cache 3MiB --prefetch heads "
             "--format csv --heads %s",
             heads);
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, ",lru,heads,3145728,3,8,"));
    run_free(&r);
    strcat(arguments, " --prefetch-distance 2");
    expect_refusal(arguments, EXIT_FAILED, "heads for a distance of 1 layers, not 2");
    expect_refusal("engine run " MODEL " --tokens 1 --heads x", EXIT_MISUSE,
                   "is for --prefetch heads");
    expect_refusal("engine run " MODEL " --tokens 1 --prefetch heads", EXIT_FAILED,
                   "tiny-q4_0.heads: cannot be opened");
}

static void the_command_refuses_in_one_line(void **state)
{
    (void)state;
    NEED_SHARED();
    expect_refusal("engine heads " MODEL, EXIT_MISUSE, "one of --text and --tokens is expected");
    expect_refusal("engine heads " MODEL " --text x --ridge 0", EXIT_MISUSE, "above 0");
    expect_refusal("engine heads " MODEL " --text /nowhere", EXIT_FAILED, "/nowhere");
    expect_refusal("engine heads " MODEL " --tokens 1,b", EXIT_MISUSE, "not 'b'");
    expect_refusal("engine heads " MODEL " --tokens 1,2,3", EXIT_FAILED, "at least");
    expect_refusal("engine heads " MODEL " --tokens 1,300", EXIT_FAILED, "token 300");
    expect_refusal("engine heads " MODEL " --tokens 1,2 --window 300", EXIT_FAILED,
                   "context has 256");
    expect_refusal("engine heads " MODEL " --tokens 1,2 --distance 8", EXIT_FAILED, "8 further on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_early_router_finds_two_thirds_of_the_next_layers_experts),
        cmocka_unit_test(heads_learn_what_the_early_router_misses),
        cmocka_unit_test(with_a_large_ridge_heads_are_the_early_router),
        cmocka_unit_test(fed_with_the_true_input_a_predictor_names_every_expert),
        cmocka_unit_test(a_text_of_few_windows_is_refused),
        cmocka_unit_test(heads_are_read_back_as_they_were_written),
        cmocka_unit_test(truncated_altered_and_foreign_files_are_refused),
        cmocka_unit_test(an_allocation_that_fails_is_said_and_leaves_nothing_behind),
        cmocka_unit_test(tokens_are_the_same_with_good_heads_with_garbage_and_without),
        cmocka_unit_test(the_command_trains_and_tells_the_recall_of_each_layer),
        cmocka_unit_test(a_run_takes_heads_and_refuses_those_of_another_distance),
        cmocka_unit_test(the_command_refuses_in_one_line),
    };
    return cmocka_run_group_tests(tests, record, forget);
}
