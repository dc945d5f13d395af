/* test_replay.c -- the decisions through their first driver: published curves to the last digit, and the
 * laws that any cache must obey. */
#include "tests/support.h"

#include "base/csv.h"
#include "sim/replay/feed.h"
#include "sim/replay/mattson.h"
#include "sim/replay/replay_run.h"

#define MIB (UINT64_C(1) << 20)

static struct replay_result replay(const struct trace *t, const char *policy, enum scope scope,
                                   enum evict_when evict, uint64_t bytes)
{
    struct diag dg;
    struct replay_result out;
    struct replay_setup s = {.policy = cache_policy_find(policy),
                             .scope = scope,
                             .evict = evict,
                             .budget_bytes = bytes,
                             .seed = 7};
    assert_non_null(s.policy);
    assert_ok(replay_run(&out, t, &s, &dg));
    return out;
}

/* One layer, one expert a token, sizes of 1: the textbook's reference string. */
static struct trace *reference_string(const uint16_t *ids, size_t n, uint32_t experts)
{
    struct diag dg;
    struct trace_layer layer = {.expert_bytes = 1};
    struct trace_builder *b;
    struct trace *t;
    assert_ok(trace_builder_new(&b, "string", 1, experts, 1, &layer, &dg));
    for (size_t i = 0; i < n; i++)
        assert_ok(
            trace_builder_row(b, 0, PHASE_DECODE, (uint32_t)i, (uint32_t)i, 0, 0, ids[i], 0, &dg));
    assert_ok(trace_builder_finish(b, &t, &dg));
    return t;
}

/* Tokens that choose top_k of `experts` uniformly in each layer. */
static struct trace *uniform_trace(uint32_t layers, uint32_t experts, uint32_t top_k,
                                   uint32_t tokens, uint64_t bytes, uint64_t seed)
{
    struct diag dg;
    struct trace_layer layer[16];
    struct trace_builder *b;
    struct trace *t;
    struct pcg chance;
    for (uint32_t l = 0; l < layers; l++)
        layer[l] = (struct trace_layer){.expert_bytes = bytes};
    pcg_stream(&chance, seed, "test/uniform");
    assert_ok(trace_builder_new(&b, "uniform", layers, experts, top_k, layer, &dg));
    for (uint32_t token = 0; token < tokens; token++)
        for (uint32_t l = 0; l < layers; l++) {
            bool taken[256] = {false};
            for (uint32_t k = 0; k < top_k; k++) {
                uint32_t e;
                do
                    e = pcg_below(&chance, experts);
                while (taken[e]);
                taken[e] = true;
                assert_ok(trace_builder_row(b, 0, PHASE_DECODE, token, token, l, k, e, 0, &dg));
            }
        }
    assert_ok(trace_builder_finish(b, &t, &dg));
    return t;
}

/* ---- published curves ---- */

struct curve_check {
    const struct trace *t;
    size_t rows;
};

static enum status check_curve_row(void *self, size_t line, const struct csv_field *f,
                                   struct diag *dg)
{
    struct curve_check *c = self;
    uint64_t mib;
    double cum, decode;
    (void)line, (void)dg;
    assert_true(csv_u64(f[0], &mib) && csv_double(f[2], &cum) && csv_double(f[3], &decode));
    bool layer = csv_equal(f[1], "layer") || csv_equal(f[1], "layerlfu");
    const char *policy = csv_equal(f[1], "belady")                               ? "belady"
                         : csv_equal(f[1], "lfu") || csv_equal(f[1], "layerlfu") ? "lfu"
                         : csv_equal(f[1], "lru") || csv_equal(f[1], "layer")    ? "lru"
                                                                                 : NULL;
    if (!policy) /* random: another generator's draws */
        return ST_OK;
    struct replay_result x =
        replay(c->t, policy, layer ? SCOPE_LAYER : SCOPE_GLOBAL, EVICT_AFTER, mib * MIB);
    char have[64], want[64];
    snprintf(want, sizeof want, "%.3f %.3f", cum, decode);
    snprintf(have, sizeof have, "%.3f %.3f",
             100.0 * (double)x.counts.hits / (double)x.counts.lookups,
             100.0 * (double)x.decode_hits / (double)x.decode_lookups);
    assert_string_equal(have, want);
    if (mib <= 500 && !layer && strcmp(policy, "lru") == 0)
        assert_int_equal(x.counts.hits, 0);
    c->rows++;
    return ST_OK;
}

static void check_curve(const char *trace, const char *curve)
{
    static const struct csv_column columns[] = {
        {"budget_mib", true}, {"policy", true}, {"hit_pct_cum", true}, {"hit_pct_decode", true}};
    struct diag dg;
    struct curve_check c = {0};
    struct trace *t;
    assert_ok(trace_load(&t, trace, &dg));
    c.t = t;
    assert_ok(csv_read(curve, columns, 4, true, check_curve_row, NULL, &c, &dg));
    assert_int_equal(c.rows, 55); /* 11 budgets x lru, belady, lfu, layer, layerlfu */
    trace_free(t);
}

static void replay_of_qwen_gives_the_published_curve_to_the_last_digit(void **state)
{
    (void)state;
    NEED_SHARED();
    check_curve(SHARED "bmoe/qwen.route.csv", SHARED "bmoe/qwen-curve.csv");
}

static void replay_of_gemma_gives_the_published_curve_to_the_last_digit(void **state)
{
    (void)state;
    NEED_SHARED();
    check_curve(SHARED "bmoe/gemma.route.csv", SHARED "bmoe/gemma-curve.csv");
}

/* ---- laws ---- */

static void fifo_shows_beladys_anomaly(void **state)
{
    (void)state;
    static const uint16_t string[] = {1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5};
    struct trace *t = reference_string(string, 12, 6);
    assert_int_equal(replay(t, "fifo", SCOPE_GLOBAL, EVICT_BEFORE, 3).counts.misses, 9);
    assert_int_equal(replay(t, "fifo", SCOPE_GLOBAL, EVICT_BEFORE, 4).counts.misses, 10);
    /* The same string under LRU and MIN, worked out by hand. */
    assert_int_equal(replay(t, "lru", SCOPE_GLOBAL, EVICT_BEFORE, 3).counts.misses, 10);
    assert_int_equal(replay(t, "lru", SCOPE_GLOBAL, EVICT_BEFORE, 4).counts.misses, 8);
    assert_int_equal(replay(t, "belady", SCOPE_GLOBAL, EVICT_BEFORE, 3).counts.misses, 7);
    assert_int_equal(replay(t, "belady", SCOPE_GLOBAL, EVICT_BEFORE, 4).counts.misses, 6);
    trace_free(t);
}

static void belady_is_never_beaten_for_equal_sizes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct trace *t = uniform_trace(3, 24, 3, 300, 10, seed);
        for (uint64_t slots = 3; slots <= 72; slots += 7)
            for (int scope = SCOPE_GLOBAL; scope <= SCOPE_LAYER; scope++)
                for (int evict = EVICT_BEFORE; evict <= EVICT_AFTER; evict++) {
                    uint64_t bytes = 10 * slots * (scope == SCOPE_LAYER ? 3 : 1);
                    uint64_t best =
                        replay(t, "belady", (enum scope)scope, (enum evict_when)evict, bytes)
                            .counts.hits;
                    for (const struct cache_policy *const *p = cache_policies; *p; p++)
                        assert_true(
                            replay(t, (*p)->name, (enum scope)scope, (enum evict_when)evict, bytes)
                                .counts.hits <= best);
                }
        trace_free(t);
    }
}

static void mattson_equals_direct_lru_at_every_size(void **state)
{
    (void)state;
    struct diag dg;
    struct trace *t = uniform_trace(3, 20, 3, 250, 8, 11);
    for (int scope = SCOPE_GLOBAL; scope <= SCOPE_LAYER; scope++) {
        struct mattson m;
        assert_ok(mattson_run(&m, t, (enum scope)scope, &dg));
        assert_true(m.exact);
        assert_int_equal(m.slots, scope == SCOPE_LAYER ? 20 : 60);
        for (size_t c = 0; c <= m.slots; c++) {
            struct replay_result after =
                replay(t, "lru", (enum scope)scope, EVICT_AFTER, c * m.slot_bytes);
            assert_int_equal(m.hits[c], after.counts.hits);
            assert_int_equal(m.decode_hits[c], after.decode_hits);
            if (c < 3)
                continue;
            assert_int_equal(
                m.hits[c],
                replay(t, "lru", (enum scope)scope, EVICT_BEFORE, c * m.slot_bytes).counts.hits);
        }
        mattson_free(&m);
    }
    trace_free(t);
}

static void mattson_equals_direct_lru_on_a_recorded_trace(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct trace *t;
    struct mattson m;
    assert_ok(trace_load(&t, SHARED "bmoe/gemma.route.csv", &dg));
    for (uint32_t l = 0; l < t->layers; l++)
        t->layer[l].expert_bytes = 1000;
    for (int scope = SCOPE_GLOBAL; scope <= SCOPE_LAYER; scope++) {
        assert_ok(mattson_run(&m, t, (enum scope)scope, &dg));
        for (size_t c = 0; c <= m.slots; c += scope == SCOPE_LAYER ? 1 : 97) {
            struct replay_result x =
                replay(t, "lru", (enum scope)scope, EVICT_AFTER, c * m.slot_bytes);
            assert_int_equal(m.hits[c], x.counts.hits);
            assert_int_equal(m.decode_hits[c], x.decode_hits);
        }
        mattson_free(&m);
    }
    trace_free(t);
}

/* Two turns: 0 | prompt 0 1, then 0. Of the two hits with two slots one is the second prompt's. */
static void a_later_prompt_hits_without_decoding(void **state)
{
    (void)state;
    static const struct {
        uint32_t turn, phase, pass, step;
        uint16_t expert;
    } row[] = {{0, PHASE_DECODE, 0, 0, 0},
               {1, PHASE_PREFILL, 1, 0, 0},
               {1, PHASE_PREFILL, 1, 1, 1},
               {1, PHASE_DECODE, 2, 2, 0}};
    struct diag dg;
    struct trace_layer layer = {.expert_bytes = 1};
    struct trace_builder *b;
    struct trace *t;
    assert_ok(trace_builder_new(&b, "turns", 1, 2, 1, &layer, &dg));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_ok(trace_builder_row(b, row[i].turn, row[i].phase, row[i].pass, row[i].step, 0, 0,
                                    row[i].expert, 0, &dg));
    assert_ok(trace_builder_finish(b, &t, &dg));
    struct mattson m;
    assert_ok(mattson_run(&m, t, SCOPE_GLOBAL, &dg));
    struct replay_result x = replay(t, "lru", SCOPE_GLOBAL, EVICT_BEFORE, 2);
    assert_int_equal(m.hits[2], 2);
    assert_int_equal(m.decode_hits[2], 1);
    assert_int_equal(x.counts.hits, 2);
    assert_int_equal(x.decode_hits, 1);
    mattson_free(&m);
    trace_free(t);
}

static void uniform_routing_hits_slots_over_experts_for_every_online_policy(void **state)
{
    (void)state;
    const uint32_t experts = 32, tokens = 40000, slots = 12;
    struct trace *t = uniform_trace(1, experts, 3, tokens, 1, 5);
    double expected = (double)slots / experts;
    /* Hits of different tokens are nearly independent; 4.5 standard errors, plus the cold start. */
    double bar = 4.5 * 0.5 / 346.0 + 0.001;
    for (const struct cache_policy *const *p = cache_policies; *p; p++) {
        if ((*p)->clairvoyant)
            continue;
        struct replay_result x = replay(t, (*p)->name, SCOPE_LAYER, EVICT_BEFORE, slots);
        double ratio = (double)x.counts.hits / (double)x.counts.lookups;
        assert_close(ratio, (*p)->keeps_nothing ? 0.0 : expected, bar);
    }
    trace_free(t);
}

static void budget_is_never_exceeded_when_evicting_before(void **state)
{
    (void)state;
    struct diag dg;
    struct trace *t = uniform_trace(4, 16, 4, 200, 10, 3);
    for (uint32_t l = 0; l < t->layers; l++)
        t->layer[l].expert_bytes = 7 + 5 * l; /* unequal sizes */
    for (const struct cache_policy *const *p = cache_policies; *p; p++)
        for (uint64_t bytes = 88; bytes < 900; bytes += 61) {
            struct replay_result x = replay(t, (*p)->name, SCOPE_GLOBAL, EVICT_BEFORE, bytes);
            assert_true((*p)->keeps_nothing || x.peak_bytes <= bytes);
            assert_int_equal(x.counts.hits + x.counts.misses, x.counts.lookups);
            x = replay(t, (*p)->name, SCOPE_GLOBAL, EVICT_AFTER, bytes);
            assert_true((*p)->keeps_nothing || x.peak_bytes <= bytes + 88);
        }
    struct replay_setup s = {.policy = cache_policy_find("lru"), .budget_bytes = 87};
    struct replay_result x;
    assert_int_equal(replay_run(&x, t, &s, &dg), ST_MISFIT); /* 4 x 22 bytes are needed */
    assert_non_null(strstr(dg.text, "88 bytes"));
    trace_free(t);
}

static void bytes_read_are_the_bytes_of_the_misses(void **state)
{
    (void)state;
    struct trace *t = uniform_trace(2, 16, 2, 100, 123, 9);
    for (const struct cache_policy *const *p = cache_policies; *p; p++) {
        struct replay_result x = replay(t, (*p)->name, SCOPE_GLOBAL, EVICT_BEFORE, 123 * 9);
        assert_int_equal(x.read_bytes, x.counts.misses * 123);
        assert_int_equal(x.counts.lookups, 2 * 2 * 100);
        assert_int_equal(x.decode_read_bytes, x.read_bytes);
    }
    trace_free(t);
}

static void same_seed_gives_the_same_commands_and_another_policy_gives_others(void **state)
{
    (void)state;
    struct trace *t = uniform_trace(2, 16, 2, 200, 1, 9);
    uint64_t seen[32];
    size_t count = 0;
    for (const struct cache_policy *const *p = cache_policies; *p; p++) {
        uint64_t hash = replay(t, (*p)->name, SCOPE_GLOBAL, EVICT_BEFORE, 9).counts.command_hash;
        assert_int_equal(hash,
                         replay(t, (*p)->name, SCOPE_GLOBAL, EVICT_BEFORE, 9).counts.command_hash);
        for (size_t i = 0; i < count; i++)
            assert_int_not_equal(hash, seen[i]);
        seen[count++] = hash;
    }
    trace_free(t);
}

static void renaming_experts_changes_no_count(void **state)
{
    (void)state;
    struct trace *t = uniform_trace(3, 16, 2, 300, 1, 21);
    struct replay_result before[32];
    size_t i = 0;
    for (const struct cache_policy *const *p = cache_policies; *p; p++, i++)
        before[i] = replay(t, (*p)->name, SCOPE_GLOBAL, EVICT_BEFORE, 20);
    for (size_t row = 0; row < t->row_count; row++)
        t->expert[row] = (uint16_t)((t->expert[row] * 5 + 3) % 16);
    i = 0;
    for (const struct cache_policy *const *p = cache_policies; *p; p++, i++) {
        struct replay_result x = replay(t, (*p)->name, SCOPE_GLOBAL, EVICT_BEFORE, 20);
        if (strcmp((*p)->name, "belady") !=
            0) /* its ties go by key; the count is optimal either way */
            assert_int_equal(x.counts.evictions, before[i].counts.evictions);
        assert_int_equal(x.counts.hits, before[i].counts.hits);
    }
    trace_free(t);
}

static void a_prefill_chunk_too_large_for_the_budget_is_cut_into_whole_tokens(void **state)
{
    (void)state;
    struct diag dg;
    struct trace_layer layer[2] = {{.expert_bytes = 10}, {.expert_bytes = 10}};
    struct trace_builder *b;
    struct trace *t;
    struct feed *f;
    assert_ok(trace_builder_new(&b, "prefill", 2, 16, 2, layer, &dg));
    for (uint32_t l = 0; l < 2; l++)
        for (uint32_t token = 0; token < 6; token++)
            for (uint32_t k = 0; k < 2; k++)
                assert_ok(
                    trace_builder_row(b, 0, PHASE_PREFILL, 0, token, l, k, 2 * token + k, 0, &dg));
    assert_ok(trace_builder_finish(b, &t, &dg));
    assert_ok(feed_new(&f, t, 50, &dg)); /* five experts: two tokens of two */
    assert_true(f->cut);
    assert_int_equal(f->pass_count, 3);
    assert_int_equal(f->batch_count, 6);
    assert_int_equal(f->batch_bytes_max, 40);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(f->batch[i].pass, i / 2);
        assert_int_equal(f->batch[i].layer, i % 2);
        assert_int_equal(f->batch[i].tokens, 2);
        assert_int_equal(t->step[f->batch[i].first_row], i / 2 * 2);
    }
    feed_free(f);
    assert_ok(feed_new(&f, t, UINT64_MAX, &dg));
    assert_false(f->cut);
    assert_int_equal(f->batch_count, 2);
    assert_int_equal(f->batch_bytes_max, 120);
    feed_free(f);
    assert_int_equal(replay(t, "lru", SCOPE_GLOBAL, EVICT_BEFORE, 50).counts.lookups, 24);
    trace_free(t);
}

/* ---- prefetch ---- */

static struct replay_result replay_prefetch(const struct trace *t, const char *prefetch,
                                            uint64_t bytes)
{
    struct diag dg;
    struct replay_result out;
    struct replay_setup s = {.policy = cache_policy_find("lru"),
                             .prefetch = prefetch_policy_find(prefetch),
                             .budget_bytes = bytes,
                             .prefetch_distance = 1,
                             .prefetch_experts_max = t->top_k};
    assert_non_null(s.prefetch);
    assert_ok(replay_run(&out, t, &s, &dg));
    return out;
}

static void the_oracle_turns_every_miss_into_a_prefetch(void **state)
{
    (void)state;
    struct trace *t = uniform_trace(4, 16, 2, 100, 1, 4);
    struct replay_result none = replay(t, "lru", SCOPE_GLOBAL, EVICT_BEFORE, 12);
    struct replay_result x = replay_prefetch(t, "oracle", 12);
    assert_int_equal(x.counts.misses, 2); /* the very first batch: nobody could foresee it */
    assert_int_equal(x.counts.prefetch_used, x.counts.prefetches);
    assert_int_equal(x.counts.prefetch_wasted, 0);
    assert_true(none.counts.misses > 400);
    trace_free(t);
}

static void every_prefetch_is_used_wasted_or_still_there(void **state)
{
    (void)state;
    struct trace *t = uniform_trace(4, 16, 2, 300, 1, 4);
    static const char *const names[] = {"previous-token", "frequency", "co-activation"};
    for (size_t i = 0; i < 3; i++) {
        struct replay_result x = replay_prefetch(t, names[i], 6); /* below a token cycle */
        assert_true(x.counts.prefetches > 0);
        uint64_t settled = x.counts.prefetch_used + x.counts.prefetch_wasted;
        assert_true(settled <= x.counts.prefetches && x.counts.prefetches - settled <= 6);
        assert_int_equal(x.read_bytes, x.counts.misses + x.counts.prefetches);
        assert_true(x.peak_bytes <= 6);
    }
    trace_free(t);
}

static void a_cycle_of_topics_is_learned_by_coactivation(void **state)
{
    (void)state;
    struct diag dg;
    struct trace_layer layer[2] = {{.expert_bytes = 1}, {.expert_bytes = 1}};
    struct trace_builder *b;
    struct trace *t;
    assert_ok(trace_builder_new(&b, "pairs", 2, 64, 1, layer, &dg));
    struct pcg chance;
    pcg_stream(&chance, 1, "test/pairs");
    for (uint32_t token = 0; token < 2000; token++) {
        uint32_t e =
            pcg_below(&chance, 64); /* layer 1 always wants the mirror image of layer 0's expert */
        assert_ok(trace_builder_row(b, 0, PHASE_DECODE, token, token, 0, 0, e, 0, &dg));
        assert_ok(trace_builder_row(b, 0, PHASE_DECODE, token, token, 1, 0, 63 - e, 0, &dg));
    }
    assert_ok(trace_builder_finish(b, &t, &dg));
    struct replay_result x = replay_prefetch(t, "co-activation", 8);
    assert_true(x.counts.prefetch_used > 1600); /* layer 1 of nearly every token after learning */
    trace_free(t);
}

static void predictions_of_a_trace_drive_the_gate_prefetcher(void **state)
{
    (void)state;
    struct diag dg;
    struct trace_layer layer[2] = {{.expert_bytes = 1}, {.expert_bytes = 1}};
    struct trace_builder *b;
    struct trace *t;
    assert_ok(trace_builder_new(&b, "guesses", 2, 32, 1, layer, &dg));
    for (uint32_t p = 0; p < 100; p++) {
        assert_ok(trace_builder_row(b, 0, PHASE_DECODE, p, p, 0, 0, p % 32, 0, &dg));
        assert_ok(trace_builder_guess(b, 0, PHASE_DECODE, p, 0, 1, 0, (p + 7) % 32, 5, &dg));
        assert_ok(
            trace_builder_row(b, 0, PHASE_DECODE, p, p, 1, 0, (p + 7 + 13 * (p % 2)) % 32, 0, &dg));
    }
    assert_ok(trace_builder_finish(b, &t, &dg));
    struct replay_result x = replay_prefetch(t, "gate", 4);
    assert_int_equal(x.counts.prefetches, 100);
    assert_int_equal(x.counts.prefetch_used, 50);
    struct replay_setup s = {.policy = cache_policy_find("lru"),
                             .prefetch = prefetch_policy_find("gate"),
                             .budget_bytes = 1,
                             .prefetch_distance = 1,
                             .prefetch_experts_max = 1};
    assert_int_equal(replay_run(&x, t, &s, &dg),
                     ST_MISFIT); /* a batch and a prefetch need two slots */
    trace_free(t);
    static const uint16_t string[] = {1, 2};
    t = reference_string(string, 2, 4);
    assert_int_equal(replay_run(&x, t, &s, &dg), ST_MISFIT); /* no predictions in it */
    assert_non_null(strstr(dg.text, "kind p"));
    trace_free(t);
}

static void the_hottest_experts_of_another_trace_stay_pinned(void **state)
{
    (void)state;
    struct diag dg;
    static const uint16_t hot[] = {1, 1, 1, 2, 2, 2, 3, 1, 2};
    static const uint16_t use[] = {5, 6, 7, 1, 2, 5, 1, 6, 2, 7, 1, 2};
    struct trace *past = reference_string(hot, 9, 8), *now = reference_string(use, 12, 8);
    struct feed *f;
    uint32_t rank[8];
    assert_ok(feed_new(&f, past, UINT64_MAX, &dg));
    assert_ok(feed_rank(f, rank, &dg));
    assert_int_equal(rank[1], 0);
    assert_int_equal(rank[2], 1);
    assert_int_equal(rank[3], 2);
    assert_int_equal(rank[5], NO_KEY);
    feed_free(f);
    struct replay_setup s = {
        .policy = cache_policy_find("pinned"), .budget_bytes = 3, .rank = rank};
    struct replay_result x;
    assert_ok(replay_run(&x, now, &s, &dg));
    assert_int_equal(x.counts.hits,
                     5); /* 1 and 2 after their first use, and 5 before 6 took its place */
    trace_free(past);
    trace_free(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_of_qwen_gives_the_published_curve_to_the_last_digit),
        cmocka_unit_test(replay_of_gemma_gives_the_published_curve_to_the_last_digit),
        cmocka_unit_test(fifo_shows_beladys_anomaly),
        cmocka_unit_test(belady_is_never_beaten_for_equal_sizes),
        cmocka_unit_test(mattson_equals_direct_lru_at_every_size),
        cmocka_unit_test(mattson_equals_direct_lru_on_a_recorded_trace),
        cmocka_unit_test(a_later_prompt_hits_without_decoding),
        cmocka_unit_test(uniform_routing_hits_slots_over_experts_for_every_online_policy),
        cmocka_unit_test(budget_is_never_exceeded_when_evicting_before),
        cmocka_unit_test(bytes_read_are_the_bytes_of_the_misses),
        cmocka_unit_test(same_seed_gives_the_same_commands_and_another_policy_gives_others),
        cmocka_unit_test(renaming_experts_changes_no_count),
        cmocka_unit_test(a_prefill_chunk_too_large_for_the_budget_is_cut_into_whole_tokens),
        cmocka_unit_test(the_oracle_turns_every_miss_into_a_prefetch),
        cmocka_unit_test(every_prefetch_is_used_wasted_or_still_there),
        cmocka_unit_test(a_cycle_of_topics_is_learned_by_coactivation),
        cmocka_unit_test(predictions_of_a_trace_drive_the_gate_prefetcher),
        cmocka_unit_test(the_hottest_experts_of_another_trace_stay_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
