/* test_engine_decisions.c -- the engine executes the commands of sim/policy unchanged (tier E1), and whatever they are,
 * the tokens are the same. */
#include "tests/engine_rig.h"
#include "tests/support.h"
#include "tests/synth_file.h"

#include "kernels/pack/pack_write.h"
#include "sim/replay/replay_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODEL    "../shared/data/golden/qwen3moe-q4_0.gguf"
#define GENERATE 24

/* A run of the model, what came out, and the same decisions replayed on the trace that it wrote. */
struct outcome {
    uint32_t tokens[GENERATE];
    struct decide_counts counts;
    struct record_sums sums;
    struct replay_result replay;
};

static enum status replay(struct outcome *o, struct engine_rig *r, struct diag *dg)
{
    struct trace *t;
    const struct decide_setup *d = experts_decisions(r->experts);
    struct replay_setup s = {.policy = d->policy,
                             .prefetch = d->prefetch,
                             .scope = d->scope,
                             .evict = d->evict,
                             .budget_bytes = d->budget_bytes,
                             .prefetch_bytes_max = d->prefetch_bytes_max,
                             .prefetch_distance = d->prefetch_distance,
                             .prefetch_experts_max = d->prefetch_experts_max,
                             .seed = d->seed};
    enum status st = trace_builder_finish(r->record.trace, &t, dg);
    r->record.trace = NULL;
    if (st == ST_OK) {
        st = replay_run(&o->replay, t, &s, dg);
        trace_free(t);
    }
    return st;
}

static enum status run(struct outcome *o, struct engine_rig r, struct diag *dg)
{
    uint32_t prompt[GOLDEN_TOKENS];
    golden_prompt(prompt);
    r.path = r.path ? r.path : MODEL;
    r.trace = true;
    enum status st = engine_rig_open(&r, dg);
    if (st != ST_OK)
        return st;
    st = engine_rig_prompt(&r, prompt, 12, NULL, dg);
    if (st == ST_OK)
        st = engine_rig_greedy(&r, prompt[12], o->tokens, GENERATE, dg);
    o->counts = *experts_counts(r.experts);
    if (st == ST_OK)
        st = experts_settle(r.experts, dg);
    o->sums = r.record.sums;
    if (st == ST_OK)
        st = replay(o, &r, dg);
    engine_rig_close(&r);
    return st;
}

static void expect_equal(const struct outcome *o, const struct outcome *plain, const char *what)
{
    const struct decide_counts *e = &o->counts, *r = &o->replay.counts;
    if (memcmp(o->tokens, plain->tokens, sizeof o->tokens) != 0)
        fail_msg("%s: other tokens", what);
    if (e->lookups != r->lookups || e->hits != r->hits || e->misses != r->misses ||
        e->prefetches != r->prefetches || e->prefetch_used != r->prefetch_used ||
        e->prefetch_wasted != r->prefetch_wasted || e->evictions != r->evictions ||
        e->demand_bytes != r->demand_bytes || e->prefetch_bytes != r->prefetch_bytes ||
        e->command_hash != r->command_hash)
        fail_msg("%s: replay decides otherwise", what);
    if (o->replay.cut)
        fail_msg("%s: replay had to cut a chunk that the engine did not", what);
    assert_int_equal(o->sums.payload_bytes, e->demand_bytes + e->prefetch_bytes);
    assert_int_equal(o->sums.reads, e->misses + e->prefetches);
}

static struct outcome plain_run(void)
{
    struct outcome o = {0};
    struct diag dg = {0};
    if (run(&o, (struct engine_rig){0}, &dg) != ST_OK)
        fail_msg("%s", dg.text);
    return o;
}

/* One expert of the model, as stored. */
static uint64_t expert_bytes(void)
{
    struct engine_rig r = {.path = MODEL};
    struct diag dg = {0};
    assert_int_equal(engine_rig_open(&r, &dg), ST_OK);
    uint64_t bytes = experts_decisions(r.experts)->expert_bytes[0];
    engine_rig_close(&r);
    return bytes;
}

static void replay_decides_as_the_engine_did_for_every_policy_and_prefetcher(void **state)
{
    (void)state;
    struct outcome plain = plain_run();
    uint64_t expert = expert_bytes();
    const uint64_t budgets[] = {9, 13, 24};
    size_t runs = 0;
    for (size_t p = 0; cache_policies[p]; p++)
        for (size_t f = 0; f == 0 || prefetch_policies[f - 1]; f++) {
            size_t b = (p + f) % 3;
            const struct prefetch_policy *prefetch = f ? prefetch_policies[f - 1] : NULL;
            if (cache_policies[p]->clairvoyant || (prefetch && prefetch->needs_future))
                continue;
            struct outcome o = {0};
            struct diag dg = {0};
            struct engine_rig r = {.threads = 1 + b % 2, .chunk = 5};
            r.decide.policy = cache_policies[p];
            r.decide.prefetch = prefetch;
            r.decide.budget_bytes = budgets[b] * expert;
            r.decide.evict = b == 1 ? EVICT_AFTER : EVICT_BEFORE;
            r.decide.scope = b == 2 ? SCOPE_LAYER : SCOPE_GLOBAL;
            r.decide.prefetch_experts_max = 2;
            r.predict_distance = prefetch && prefetch->from_outside ? 1 : 0;
            char what[96];
            snprintf(what, sizeof what, "%s, %s, %u experts", cache_policies[p]->name,
                     prefetch ? prefetch->name : "none", (unsigned)budgets[b]);
            if (run(&o, r, &dg) != ST_OK)
                fail_msg("%s: %s", what, dg.text);
            expect_equal(&o, &plain, what);
            runs++;
        }
    assert_true(runs >= 13 * 5);
}

static void tokens_do_not_depend_on_how_experts_are_read_or_computed(void **state)
{
    (void)state;
    struct outcome plain = plain_run();
    uint64_t expert = expert_bytes();
    for (unsigned choice = 0; choice < 64; choice += 3) {
        struct outcome o = {0};
        struct diag dg = {0};
        struct engine_rig r = {
            .threads = choice & 1 ? 3 : 1,
            .backend = choice & 2 ? LOADER_THREADS : LOADER_URING,
            .buffered = choice & 4,
            .serial = choice & 8,
            .chunk = choice & 16 ? 1 : 12,
            .isa = choice & 32 ? "scalar" : "auto",
        };
        r.decide.budget_bytes = (choice % 5 + 3) * expert;
        if (run(&o, r, &dg) != ST_OK)
            fail_msg("choice %u: %s", choice, dg.text);
        expect_equal(&o, &plain, "a way to read");
    }
}

/* ---- packs ---- */

/* Returns the bytes of its largest record. */
static uint64_t write_pack(const char *model, const char *path)
{
    struct opened o = open_gguf(model);
    struct pack_order order;
    struct pack_write *w;
    struct pack *p;
    struct diag dg = {0};
    uint64_t bytes;
    assert_ok(pack_order_plain(&order, o.m, &dg));
    assert_ok(pack_write_new(&w, path, o.g, o.m, &order, 2, &dg));
    while (pack_write_left(w))
        assert_ok(pack_write_step(w, &bytes, &dg));
    assert_ok(pack_write_commit(w, &dg));
    pack_order_free(&order);
    assert_ok(pack_open(&p, path, o.g, o.m, &dg));
    bytes = pack_record_bytes_max(p);
    pack_close(p);
    close_gguf(&o);
    return bytes;
}

static void expect_same_packed(const char *model, const char *pack)
{
    struct diag dg = {0};
    struct outcome plain = {0};
    uint64_t record = write_pack(model, pack);
    assert_ok(run(&plain, (struct engine_rig){.path = model}, &dg));
    for (unsigned choice = 0; choice < 4; choice++) {
        struct outcome o = {0};
        struct engine_rig r = {.path = model,
                               .pack = pack,
                               .threads = 1 + choice % 2,
                               .backend = choice & 1 ? LOADER_THREADS : LOADER_URING,
                               .buffered = choice & 2,
                               .chunk = 3};
        r.decide.prefetch = choice & 2 ? prefetch_policy_find("previous-token") : NULL;
        r.decide.prefetch_experts_max = 2;
        r.decide.budget_bytes = choice < 3 ? 16 * record : 0; /* some, and all */
        if (run(&o, r, &dg) != ST_OK)
            fail_msg("%s: %s", model, dg.text);
        expect_equal(&o, &plain, model);
    }
    unlink(pack);
}

static void tokens_do_not_depend_on_whether_experts_are_packed(void **state)
{
    (void)state;
    static const char *const models[] = {"qwen3moe-q4_0", "qwen3moe-q4_k_m", "gptoss-f16",
                                         "deepseek3-f16", "qwen2moe-f16",    "mixtral-q4_k_m"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[100];
        snprintf(path, sizeof path, "../shared/data/golden/%s.gguf", models[i]);
        expect_same_packed(path, temp_path("model.pack"));
    }
}

/* Records that are read in several pieces. */
static void tokens_do_not_depend_on_whether_large_experts_are_packed(void **state)
{
    (void)state;
    static const struct synth_figures large = {.layers = 2,
                                               .hidden = 512,
                                               .experts = 6,
                                               .top_k = 2,
                                               .expert_width = 448,
                                               .heads = 8,
                                               .kv_heads = 2,
                                               .head_dim = 64,
                                               .vocab = 320};
    struct diag dg = {0};
    const struct synth_architecture *a;
    struct model *m;
    char *path = strdup(temp_path("large.gguf"));
    assert_non_null(path);
    assert_ok(synth_architecture_named(&a, "qwen3moe", &dg));
    assert_ok(synth_model_new(&m, a, &large, &dg));
    write_synth(m, "qwen3moe", "q8_0", 1, path);
    model_free(m);
    expect_same_packed(path, temp_path("large.pack"));
    unlink(path);
    free(path);
}

static void flip_bit(const char *path, uint64_t offset)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    int byte = fgetc(f);
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 4, f), byte ^ 4);
    assert_int_equal(fclose(f), 0);
}

/* A bit of each record in turn: a run that needs it ends, and names it; the others do not change. */
static void nothing_is_computed_with_a_record_that_was_altered(void **state)
{
    (void)state;
    size_t ended = 0;
    struct outcome plain = plain_run();
    struct pack *p;
    struct diag dg = {0};
    char *path = strdup(temp_path("altered.pack"));
    assert_non_null(path);
    write_pack(MODEL, path);
    struct opened o = open_gguf(MODEL);
    assert_ok(pack_open(&p, path, o.g, o.m, &dg));
    for (size_t i = 0; i < o.m->layer_count * model_experts(o.m); i++) {
        size_t layer = i / model_experts(o.m), expert = i % model_experts(o.m);
        uint64_t offset = pack_record(p, layer, expert).offset_bytes + 131 * i;
        struct outcome altered = {0};
        char what[64];
        flip_bit(path, offset);
        enum status st = run(&altered, (struct engine_rig){.pack = path}, &dg);
        flip_bit(path, offset);
        if (st == ST_OK) { /* nobody asked for that expert */
            assert_memory_equal(altered.tokens, plain.tokens, sizeof plain.tokens);
            continue;
        }
        ended++;
        snprintf(what, sizeof what, "layer %zu, expert %zu, does not match", layer, expert);
        if (st != ST_PARSE || !strstr(dg.text, what))
            fail_msg("%s: %s", what, dg.text);
    }
    assert_true(ended > 10);
    pack_close(p);
    close_gguf(&o);
    unlink(path);
    free(path);
}

static void the_least_cache_is_one_token_of_a_layer_and_is_named(void **state)
{
    (void)state;
    struct outcome o = {0};
    struct diag dg = {0};
    uint64_t expert = expert_bytes();
    struct engine_rig r = {0};
    r.decide.budget_bytes = 3 * expert - 1;
    char least[32];
    snprintf(least, sizeof least, "(%llu bytes)", (unsigned long long)(3 * expert));
    assert_int_equal(run(&o, r, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, least));
    r.decide.budget_bytes = 3 * expert;
    assert_int_equal(run(&o, r, &dg), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_decides_as_the_engine_did_for_every_policy_and_prefetcher),
        cmocka_unit_test(tokens_do_not_depend_on_how_experts_are_read_or_computed),
        cmocka_unit_test(tokens_do_not_depend_on_whether_experts_are_packed),
        cmocka_unit_test(tokens_do_not_depend_on_whether_large_experts_are_packed),
        cmocka_unit_test(nothing_is_computed_with_a_record_that_was_altered),
        cmocka_unit_test(the_least_cache_is_one_token_of_a_layer_and_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
