/* test_engine_memory.c -- what the engine holds: at its peak never more than dense weights, cache budget, state and
 * ENGINE_OVERHEAD_BYTES; and within a limit of just that it runs.
 *
 * A peak is of a process and never sinks, so each run is a process of its own: this program again, with the
 * arguments of a run. Sanitizers hold memory of their own, so nothing is measured under them. */
#include "tests/allocations.h"
#include "tests/lora_rig.h"
#include "tests/synth_file.h"

#include "kernels/graph/engine.h"
#include "kernels/graph/memory_limit.h"

#include <inttypes.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* ---- the run ---- */

static int report(const struct engine *e, uint64_t budget)
{
    struct host_meter h;
    host_meter_read(&h);
    printf("dense %zu budget %" PRIu64 " state %zu peak %" PRIu64 " arena %zu\n",
           engine_weights(e)->dense_bytes, budget, graph_state_bytes(engine_graph(e)),
           h.peak_rss_bytes, experts_arena_bytes(engine_experts(e)));
    return 0;
}

/* MODEL BUDGET MEMORY CONTEXT CHOICE CHUNK ADAPTER: a prompt of a chunk, 64 tokens at least, and some tokens; what was held
 * to stdout, or a reason. */
static int run_once(char **argument)
{
    static uint32_t prompt[4096];
    struct diag dg;
    struct engine *e;
    unsigned choice = (unsigned)strtoul(argument[4], NULL, 10);
    const char *adapter = argument[6];
    size_t chunk = strtoul(argument[5], NULL, 10), tokens = chunk > 64 ? chunk : 64;
    struct engine_setup s = {
        .model = argument[0],
        .adapters = &adapter,
        .adapter_count = *adapter != 0,
        .chunk = chunk,
        .isa = "auto",
        .threads = 2,
        .context = strtoul(argument[3], NULL, 10),
        .overlap = true,
        .direct = !(choice & 1),
        .decide = {.policy = cache_policy_find("lru"), .prefetch_distance = 1},
        .memory_bytes = strtoull(argument[2], NULL, 10),
        .loader = {.backend = choice & 2 ? LOADER_THREADS : LOADER_URING, .depth = 8},
        .predict_distance = choice & 4 ? 1 : 0,
    };
    s.decide.budget_bytes = strtoull(argument[1], NULL, 10);
    s.decide.evict = choice & 8 ? EVICT_AFTER : EVICT_BEFORE;
    s.decide.prefetch = choice & 4 ? prefetch_policy_find("gate") : NULL;
    enum status st = engine_open(&e, &s, &dg);
    for (uint32_t i = 0; i < tokens; i++)
        prompt[i] = 7 * i % 256;
    float *logits = st == ST_OK ? calloc(engine_weights(e)->model->vocab, sizeof *logits) : NULL;
    if (st == ST_OK)
        st = engine_prompt(e, prompt, tokens, NULL, logits, &dg);
    for (uint32_t i = 0; st == ST_OK && i < 16; i++)
        st = engine_step(e, 5 * i, logits, &dg);
    if (st == ST_OK)
        st = (enum status)report(e, experts_decisions(engine_experts(e))->budget_bytes);
    else
        printf("status %d: %s\n", st, dg.text);
    if (logits)
        engine_close(e);
    free(logits);
    return st != ST_OK;
}

/* ---- the law ---- */

struct held {
    uint64_t dense, budget, state, peak, arena;
};

static uint64_t law_bytes(const struct held *h)
{
    return h->dense + h->budget + h->state + ENGINE_OVERHEAD_BYTES;
}

/* What only some runs have. */
static struct {
    unsigned chunk; /* 0: the usual one */
    const char *adapter;
} more = {0, ""};

/* `limit` in bytes of private memory; 0: none. */
static struct run run_child(const char *model, uint64_t budget, uint64_t memory, unsigned context,
                            unsigned choice, uint64_t limit)
{
    char self[512], command[2048], ulimit[64] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    if (limit)
        snprintf(ulimit, sizeof ulimit, "ulimit -d %" PRIu64 "; ", limit / 1024);
    snprintf(command, sizeof command, "%sexec '%s' '%s' %" PRIu64 " %" PRIu64 " %u %u %u '%s'",
             ulimit, self, model, budget, memory, context, choice, more.chunk, more.adapter);
    return run_shell(command);
}

static struct held run_held(const char *model, uint64_t budget, uint64_t memory, unsigned context,
                            unsigned choice, uint64_t limit)
{
    struct held h;
    struct run r = run_child(model, budget, memory, context, choice, limit);
    int n = sscanf(r.out,
                   "dense %" SCNu64 " budget %" SCNu64 " state %" SCNu64 " peak %" SCNu64
                   " arena %" SCNu64,
                   &h.dense, &h.budget, &h.state, &h.peak, &h.arena);
    if (n != 5 || r.exit_code != 0)
        fail_msg("budget %" PRIu64 ", limit %" PRIu64 ": %s%s", budget, limit, r.out, r.err);
    run_free(&r);
    return h;
}

/* 24 experts of 1.6 MiB in each of 4 layers, 29 MB of dense weights. */
static const struct synth_figures figures = {.layers = 4,
                                             .hidden = 1024,
                                             .experts = 24,
                                             .top_k = 4,
                                             .expert_width = 512,
                                             .heads = 16,
                                             .kv_heads = 4,
                                             .head_dim = 64,
                                             .vocab = 8192};
static char *model_path;

static int make_model(void **state)
{
    struct diag dg;
    const struct synth_architecture *a;
    struct model *m;
    (void)state;
    assert_ok(synth_architecture_named(&a, "qwen3moe", &dg));
    assert_ok(synth_model_new(&m, a, &figures, &dg));
    model_path = strdup(temp_path("memory.gguf"));
    assert_non_null(model_path);
    write_synth(m, "qwen3moe", "q8_0", 1, model_path);
    model_free(m);
    return 0;
}

static int drop_model(void **state)
{
    (void)state;
    unlink(model_path);
    free(model_path);
    return 0;
}

/* A long context is state that is asked for and, as few tokens come, not touched: then the peak may be far lower. */
static void the_peak_is_dense_weights_cache_state_and_64_MiB_at_most(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const uint64_t budgets[] = {16 * MIB, 40 * MIB, 100 * MIB};
    for (unsigned choice = 0; choice < 8; choice++) {
        struct held h =
            run_held(model_path, budgets[choice % 3], 0, choice & 1 ? 96 : 8192, choice, 0);
        if (h.peak > law_bytes(&h))
            fail_msg("choice %u: %" PRIu64 " bytes held, %" PRIu64 " allowed", choice, h.peak,
                     law_bytes(&h));
        assert_true(h.arena <= h.budget + MIB);
        if (choice & 1)
            assert_in_range(h.peak, h.dense + h.budget, law_bytes(&h) - 32 * MIB);
    }
}

static void it_runs_within_a_limit_of_just_that(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (unsigned choice = 0; choice < 4; choice++) {
        struct held h = run_held(model_path, 48 * MIB, 0, 4096, choice, 0);
        run_held(model_path, 48 * MIB, 0, 4096, choice, law_bytes(&h));
    }
}

static void a_limit_below_that_is_a_reason_and_no_crash(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    size_t refused = 0;
    for (uint64_t limit = 2 * MIB; limit < 160 * MIB; limit += 13 * MIB) {
        struct run r = run_child(model_path, 48 * MIB, 0, 4096, 0, limit);
        bool ran = r.exit_code == 0, told = strstr(r.out, "memory") || strstr(r.out, "started");
        if (!ran && (r.exit_code != 1 || !told))
            fail_msg("limit %" PRIu64 ": exit %d: %s%s", limit, r.exit_code, r.out, r.err);
        refused += !ran;
        run_free(&r);
    }
    assert_true(refused >= 5);
}

static void the_memory_given_is_never_exceeded(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (uint64_t memory = 160 * MIB; memory <= 256 * MIB; memory += 32 * MIB) {
        struct held h = run_held(model_path, 0, memory, 256, memory % (64 * MIB) ? 4 : 8, 0);
        assert_true(h.budget > 0);
        assert_true(h.peak <= memory);
    }
}

/* Rows of a pass grow with its tokens, and must not be taken from what the cache was promised. */
static void the_memory_given_holds_for_chunks_of_any_length(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const unsigned chunks[] = {512, 1024};
    for (size_t i = 0; i < 2; i++) {
        more.chunk = chunks[i];
        struct held h = run_held(model_path, 0, 160 * MIB, 4096, 0, 0);
        assert_true(h.peak <= 160 * MIB);
        h = run_held(model_path, 0, 152 * MIB, 4096, 0, 0); /* the cache still holds a layer's 24 */
        assert_true(h.peak <= 152 * MIB);
        assert_true(h.budget >= 38 * MIB);
    }
    more.chunk = 0;
}

static void the_memory_given_holds_with_adapters_of_a_high_rank(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    char *adapter = strdup(temp_path("memory-adapter.gguf"));
    assert_non_null(adapter);
    lora_write(adapter, model_path, lora_pick_all, 64, 64, 0.1F, 1);
    more.adapter = adapter;
    struct held h = run_held(model_path, 0, 256 * MIB, 256, 0, 0);
    more.adapter = "";
    unlink(adapter);
    free(adapter);
    assert_true(h.peak <= 256 * MIB);
    assert_true(h.peak > h.dense + h.budget + 40 * MIB); /* it is one that matters */
}

/* A window's cache has room for two chunks beside the window. */
static void the_state_of_a_window_is_counted_as_it_is_held(void **state)
{
    (void)state;
    NEED_SHARED();
    struct graph_weights *w;
    struct kv_cache *kv;
    struct diag dg;
    assert_ok(graph_weights_load(&w, SHARED "golden/gptoss-f16.gguf", NULL, NULL, &dg));
    for (size_t chunk = 1; chunk <= 512; chunk *= 8) {
        assert_ok(kv_cache_new(&kv, w->model, 1000, chunk, &dg));
        assert_int_equal(kv->bytes, kv_cache_bytes(w->model, 1000, chunk));
        kv_cache_free(kv);
    }
    assert_true(kv_cache_bytes(w->model, 1000, 64) > kv_cache_bytes(w->model, 1000, 8));
    graph_weights_free(w);
}

static uint64_t limit_with(const char *groups)
{
    write_file(temp_path("groups"), groups);
    char *list = strdup(temp_path("groups")), *root = strdup(temp_path("mount"));
    assert_true(list && root);
    uint64_t limit = memory_limit_of(list, root);
    free(list);
    free(root);
    return limit;
}

static void the_least_limit_of_the_control_groups_counts(void **state)
{
    (void)state;
    char command[2048], *root = strdup(temp_path("mount"));
    assert_non_null(root);
    snprintf(command, sizeof command,
             "mkdir -p '%s/a/b' '%s/memory/old' && cd '%s' && echo max >a/b/memory.max && "
             "echo 3000000 >a/memory.max && echo 5000000 >memory/memory.limit_in_bytes && "
             "echo 4000000 >memory/old/memory.limit_in_bytes",
             root, root, root);
    struct run r = run_shell(command);
    assert_int_equal(r.exit_code, 0);
    run_free(&r);
    assert_true(limit_with("0::/\n") == UINT64_MAX);
    assert_true(limit_with("0::/a/b\n") == 3000000);
    assert_true(limit_with("5:cpu,memory:/old\n3:cpuset:/a\n") == 4000000);
    assert_true(limit_with("5:memory:/seen/from/outside\n") == 5000000);
    assert_true(limit_with("5:memory:/old\n0::/a\n") == 3000000);
    assert_true(limit_with("nonsense\n") == UINT64_MAX);
    snprintf(command, sizeof command, "rm -r '%s'", root);
    r = run_shell(command);
    run_free(&r);
    free(root);
    assert_true(memory_limit() > 0);
}

/* The number behind `word` in a reason. */
static uint64_t figure_in(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    if (!at)
        fail_msg("no '%s' in: %s", word, text);
    return strtoull(at + strlen(word), NULL, 10);
}

static void too_little_memory_is_refused_with_what_is_needed(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct run r = run_child(model_path, 0, 64 * MIB, 256, 0, 0);
    assert_int_equal(r.exit_code, 1);
    uint64_t least = figure_in(r.out, "at least ");
    run_free(&r);
    struct held h = run_held(model_path, 0, least, 256, 0, 0);
    assert_true(h.peak <= least);
    r = run_child(model_path, 0, least - 1, 256, 0, 0);
    assert_int_equal(r.exit_code, 1);
    assert_int_equal(figure_in(r.out, "at least "), least);
    run_free(&r);
}

int main(int argc, char **argv)
{
    if (argc == 8)
        return run_once(argv + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_is_dense_weights_cache_state_and_64_MiB_at_most),
        cmocka_unit_test(it_runs_within_a_limit_of_just_that),
        cmocka_unit_test(a_limit_below_that_is_a_reason_and_no_crash),
        cmocka_unit_test(the_memory_given_is_never_exceeded),
        cmocka_unit_test(the_memory_given_holds_for_chunks_of_any_length),
        cmocka_unit_test(the_memory_given_holds_with_adapters_of_a_high_rank),
        cmocka_unit_test(the_state_of_a_window_is_counted_as_it_is_held),
        cmocka_unit_test(the_least_limit_of_the_control_groups_counts),
        cmocka_unit_test(too_little_memory_is_refused_with_what_is_needed),
    };
    return cmocka_run_group_tests(tests, make_model, drop_model);
}
