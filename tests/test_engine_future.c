/* test_engine_future.c -- with forced routing the engine knows the future: Belady and the oracle decide as replay does on
 * the trace of the run, and their logs give every command again. */
#include "tests/engine_rig.h"
#include "tests/support.h"

#include "kernels/graph/forced_route.h"
#include "sim/policy/decision_log.h"
#include "sim/replay/replay_run.h"

#define MODEL  "../shared/data/golden/qwen3moe-q4_0.gguf"
#define PROMPT 12
#define STEPS  24

struct outcome {
    uint32_t tokens[STEPS];
    struct decide_counts counts;
    struct replay_result replay;
};

static void replay(struct outcome *o, struct engine_rig *r)
{
    struct diag dg = {0};
    struct trace *t;
    const struct decide_setup *d = experts_decisions(r->experts);
    struct replay_setup s = {.policy = d->policy,
                             .prefetch = d->prefetch,
                             .scope = d->scope,
                             .evict = d->evict,
                             .budget_bytes = d->budget_bytes,
                             .prefetch_distance = d->prefetch_distance,
                             .prefetch_experts_max = d->prefetch_experts_max};
    assert_ok(trace_builder_finish(r->record.trace, &t, &dg));
    r->record.trace = NULL;
    assert_ok(replay_run(&o->replay, t, &s, &dg));
    trace_free(t);
}

static void run_tokens(struct outcome *o, struct engine_rig *r)
{
    struct diag dg = {0};
    uint32_t prompt[GOLDEN_TOKENS];
    golden_prompt(prompt);
    assert_ok(engine_rig_prompt(r, prompt, PROMPT, NULL, &dg));
    assert_ok(engine_rig_greedy(r, prompt[PROMPT], o->tokens, STEPS, &dg));
    o->counts = *experts_counts(r->experts);
}

/* A free run, whose trace is saved: the routing that is forced later. */
static const char *recorded(struct outcome *o)
{
    struct diag dg = {0};
    struct trace *t;
    struct engine_rig r = {.path = MODEL, .trace = true};
    const char *path = temp_path("route.csv");
    assert_ok(engine_rig_open(&r, &dg));
    run_tokens(o, &r);
    assert_ok(trace_builder_finish(r.record.trace, &t, &dg));
    r.record.trace = NULL;
    assert_ok(trace_save(t, path, &dg));
    trace_free(t);
    engine_rig_close(&r);
    return path;
}

static struct forced_route *load_route(const char *path)
{
    struct engine_rig r = {.path = MODEL};
    struct diag dg = {0};
    struct forced_route *f;
    assert_ok(engine_rig_open(&r, &dg));
    assert_ok(forced_route_load(&f, path, r.weights->model, &dg));
    engine_rig_close(&r);
    return f;
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

static void belady_and_the_oracle_decide_in_the_engine_as_in_replay(void **state)
{
    (void)state;
    NEED_SHARED();
    static const char *const policies[] = {"belady", "lru", "belady"};
    struct outcome plain, o;
    struct diag dg = {0};
    struct forced_route *f = load_route(recorded(&plain));
    const char *log = temp_path("log.csv");
    uint64_t expert = expert_bytes(), hits[8];
    for (unsigned i = 0; i < 8; i++) {
        struct decision_log_result again;
        struct engine_rig r = {.path = MODEL,
                               .trace = true,
                               .chunk = i < 2 ? PROMPT : 5,
                               .route = forced_route_of(f),
                               .prompt = PROMPT,
                               .steps = STEPS,
                               .prefetch_timed = i == 7,
                               .decisions = log};
        r.decide.policy = cache_policy_find(policies[i % 3]);
        r.decide.prefetch = i < 3 ? NULL : prefetch_policy_find("oracle");
        r.decide.scope = i == 5 ? SCOPE_LAYER : SCOPE_GLOBAL;
        r.decide.prefetch_experts_max = 2;
        r.decide.budget_bytes = (i == 5 ? 40 : 12) * expert;
        assert_ok(engine_rig_open(&r, &dg));
        run_tokens(&o, &r);
        hits[i] = o.counts.hits;
        assert_memory_equal(o.tokens, plain.tokens, sizeof o.tokens);
        assert_ok(experts_save_decisions(r.experts, &dg));
        assert_ok(decision_log_replay(log, &again, &dg));
        assert_true(again.equal);
        assert_int_equal(again.counts.command_hash, o.counts.command_hash);
        replay(&o, &r);
        if (i != 7) /* a timed run equals its log alone */
            assert_int_equal(o.replay.counts.command_hash, o.counts.command_hash);
        assert_int_equal(r.decide.prefetch == NULL, o.counts.prefetches == 0);
        engine_rig_close(&r);
    }
    assert_true(hits[0] >= hits[1]); /* no prefetch, the same batches: Belady is the bound */
    forced_route_free(f);
}

static void the_future_needs_forced_routing_and_the_run_that_was_announced(void **state)
{
    (void)state;
    NEED_SHARED();
    struct outcome plain;
    struct diag dg = {0};
    uint32_t prompt[GOLDEN_TOKENS];
    golden_prompt(prompt);
    struct engine_rig r = {.path = MODEL, .prompt = PROMPT, .steps = 1};
    r.decide.policy = cache_policy_find("belady");
    assert_int_equal(engine_rig_open(&r, &dg), ST_UNSUPPORTED);
    struct forced_route *f = load_route(recorded(&plain));
    r.route = forced_route_of(f);
    assert_ok(engine_rig_open(&r, &dg));
    assert_int_equal(engine_rig_prompt(&r, prompt, PROMPT - 1, NULL, &dg), ST_MISFIT);
    assert_string_equal(dg.text, "the run is not the one whose future was foretold");
    engine_rig_close(&r);
    forced_route_free(f);
}

static void the_program_runs_them_with_route_alone(void **state)
{
    (void)state;
    NEED_SHARED();
    struct outcome plain;
    char command[900];
    const char *route = recorded(&plain);
    snprintf(
        command, sizeof command,
        "$MEMWALL engine run " MODEL " --route %s --cache 700kB --policy belady --prefetch "
        "oracle --prefetch-experts 1 --decisions-out %s --trace-out %s --format csv "
        "| tail -1 | grep -o ',[0-9a-f]\\{16\\},'; $MEMWALL replay --decisions %s --format csv "
        "| tail -1 | grep -o ',[0-9a-f]\\{16\\},'; $MEMWALL replay --trace %s --cache 700kB "
        "--policy belady --prefetch oracle --prefetch-experts 1 --format csv | tail -1 "
        "| sed 's/.*\\(,[^,]*\\)$/\\1,/'",
        route, temp_path("d.csv"), temp_path("t.csv"), temp_path("d.csv"), temp_path("t.csv"));
    struct run r = run_shell(command);
    assert_int_equal(r.out_bytes, 3 * 19);
    assert_memory_equal(r.out, r.out + 19, 19);
    assert_memory_equal(r.out, r.out + 38, 19);
    run_free(&r);
    r = run_memwall("engine run " MODEL " --tokens 1 --policy belady");
    assert_int_equal(r.exit_code, 2);
    assert_non_null(strstr(r.err, "which only a run with --route has"));
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(belady_and_the_oracle_decide_in_the_engine_as_in_replay),
        cmocka_unit_test(the_future_needs_forced_routing_and_the_run_that_was_announced),
        cmocka_unit_test(the_program_runs_them_with_route_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
