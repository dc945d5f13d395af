/* test_trace_stats.c -- the measures of a trace on cases small enough for paper, and on real traces whose
 * figures were published. */
#include "tests/support.h"

#include "sim/trace/trace_measure.h"
#include "sim/trace/trace_stats.h"

static struct diag dg;

/* A trace of `layers` layers under construction; every call adds one token's choices in one layer. */
struct sketch {
    struct trace_builder *b;
    uint32_t turn, phase, pass, step;
};

static struct sketch sketch_new(uint32_t layers, uint32_t experts, uint32_t top_k)
{
    struct trace_layer layer[4] = {{100, 0}, {100, 0}, {100, 0}, {100, 0}};
    struct sketch s = {.phase = PHASE_DECODE};
    assert_true(layers <= 4);
    assert_ok(trace_builder_new(&s.b, "sketch", layers, experts, top_k, layer, &dg));
    return s;
}

static void choose(struct sketch *s, uint32_t layer, uint32_t count, const uint32_t *ids)
{
    for (uint32_t i = 0; i < count; i++)
        assert_ok(
            trace_builder_row(s->b, s->turn, s->phase, s->pass, s->step, layer, i, ids[i], 0, &dg));
}
#define CHOOSE(s, layer, ...)                                                                      \
    choose(s, layer, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                         \
           (uint32_t[]){__VA_ARGS__})

static void guess(struct sketch *s, uint32_t made_at, uint32_t target, uint32_t count,
                  const uint32_t *ids)
{
    for (uint32_t i = 0; i < count; i++)
        assert_ok(trace_builder_guess(s->b, s->turn, s->phase, s->pass, made_at, target, i, ids[i],
                                      0, &dg));
}
#define GUESS(s, made_at, target, ...)                                                             \
    guess(s, made_at, target, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                \
          (uint32_t[]){__VA_ARGS__})

static void next_pass(struct sketch *s)
{
    s->pass++;
    s->step++;
}

static struct trace_stats *measured(struct sketch *s)
{
    struct trace *t;
    struct trace_stats *stats;
    assert_ok(trace_builder_finish(s->b, &t, &dg));
    assert_ok(trace_stats_new(&stats, t, &dg));
    trace_free(t);
    return stats;
}

static void assert_part(struct part p, uint64_t part, uint64_t whole)
{
    assert_int_equal(p.part, part);
    assert_int_equal(p.whole, whole);
}

/* Tokens {0,1} {1,2} {1,2} {3,0} in one layer of four experts. */
static struct trace_stats *four_tokens(void)
{
    struct sketch s = sketch_new(1, 4, 2);
    CHOOSE(&s, 0, 0, 1);
    next_pass(&s);
    CHOOSE(&s, 0, 1, 2);
    next_pass(&s);
    CHOOSE(&s, 0, 1, 2);
    next_pass(&s);
    CHOOSE(&s, 0, 3, 0);
    return measured(&s);
}

static void overlap_counts_shared_choices_at_each_lag(void **state)
{
    (void)state;
    struct trace_stats *s = four_tokens();
    assert_part(s->layer[0].overlap[0], 3, 6);
    assert_part(s->layer[0].overlap[1], 1, 4);
    assert_part(s->layer[0].overlap[2], 0, 0);
    assert_true(part_ratio(s->overall.overlap[2]) != part_ratio(s->overall.overlap[2]));
    trace_stats_free(s);
}

static void windows_lie_end_to_end(void **state)
{
    (void)state;
    struct trace_stats *s = four_tokens();
    assert_part(s->layer[0].distinct[0], 8, 4);
    assert_part(s->layer[0].distinct[1], 7, 2);
    assert_part(s->layer[0].distinct[2], 4, 1);
    assert_part(s->layer[0].distinct[3], 0, 0);
    trace_stats_free(s);
}

/* Uses 3 2 2 1: entropy and slope worked out with a calculator. */
static void skew_is_entropy_over_its_maximum_and_the_slope_of_log_uses(void **state)
{
    (void)state;
    struct trace_stats *s = four_tokens();
    assert_close(s->layer[0].entropy_ratio, 0.952819531, 1e-8);
    assert_close(s->layer[0].zipf_exponent, 0.675459960, 1e-8);
    assert_close(s->overall.entropy_ratio, s->layer[0].entropy_ratio, 0);
    trace_stats_free(s);
}

/* Two of eight experts, as often each: one bit of the three that all eight would have. */
static void entropy_is_a_share_of_what_all_experts_would_have(void **state)
{
    (void)state;
    struct sketch k = sketch_new(1, 8, 2);
    CHOOSE(&k, 0, 5, 6);
    next_pass(&k);
    CHOOSE(&k, 0, 6, 5);
    struct trace_stats *s = measured(&k);
    assert_close(s->layer[0].entropy_ratio, 1.0 / 3, 1e-9);
    trace_stats_free(s);
}

static void recency_is_a_cache_of_the_last_distinct_experts(void **state)
{
    (void)state;
    struct trace_stats *s = four_tokens();
    assert_part(s->layer[0].recency[0], 3, 8); /* 2 slots */
    assert_part(s->layer[0].recency[1], 0, 8); /* 4 / 8 = 0 slots */
    assert_part(s->layer[0].recency[2], 2, 8); /* 1 slot */
    assert_part(s->layer[0].recency[3], 3, 8);
    trace_stats_free(s);
}

static void a_prefill_is_history_but_not_measured(void **state)
{
    (void)state;
    struct sketch s = sketch_new(1, 4, 2);
    s.phase = PHASE_PREFILL;
    CHOOSE(&s, 0, 0, 1);
    s.step++;
    CHOOSE(&s, 0, 2, 3);
    next_pass(&s);
    s.phase = PHASE_DECODE;
    CHOOSE(&s, 0, 0, 2);
    struct trace_stats *stats = measured(&s);
    assert_int_equal(stats->prefill_tokens, 2);
    assert_int_equal(stats->decode_tokens, 1);
    assert_int_equal(stats->layer[0].tokens, 1);
    assert_part(stats->layer[0].overlap[0], 0, 0);
    assert_part(stats->layer[0].distinct[0], 2, 1);
    assert_part(stats->layer[0].recency[3], 1, 2); /* recent first: 3 2 1 0 */
    trace_stats_free(stats);
}

static void overlap_and_windows_stop_at_a_turn_recency_does_not(void **state)
{
    (void)state;
    struct sketch s = sketch_new(1, 4, 1);
    CHOOSE(&s, 0, 1);
    next_pass(&s);
    s.turn = 1;
    s.step = 0;
    CHOOSE(&s, 0, 1);
    struct trace_stats *stats = measured(&s);
    assert_int_equal(stats->turns, 2);
    assert_part(stats->layer[0].overlap[0], 0, 0);
    assert_part(stats->layer[0].distinct[1], 0, 0);
    assert_part(stats->layer[0].recency[0], 1, 2);
    trace_stats_free(stats);
}

/* Layer 0 chooses 0 0 1 0, layer 1 chooses 0 0 3 1: only the second token was foreseeable; a score of 0
 * foretells nothing, not even expert 0. */
static void coactivation_knows_earlier_tokens_only(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, 0, 1, 0}, second[] = {0, 0, 3, 1};
    struct sketch s = sketch_new(2, 4, 1);
    for (int i = 0; i < 4; i++) {
        CHOOSE(&s, 0, first[i]);
        CHOOSE(&s, 1, second[i]);
        next_pass(&s);
    }
    struct trace_stats *stats = measured(&s);
    assert_part(stats->layer[0].coactivation, 1, 4);
    assert_part(stats->layer[1].coactivation, 0, 0);
    trace_stats_free(stats);
}

static void predictions_are_scored_by_distance_in_routed_layers(void **state)
{
    (void)state;
    struct sketch s = sketch_new(4, 4, 2);
    CHOOSE(&s, 0, 2, 3);
    GUESS(&s, 0, 1, 1, 3, 0); /* layer 1 chooses 0 and 1 */
    GUESS(&s, 0, 3, 2, 1);    /* two routed layers on, as layer 2 has no rows */
    CHOOSE(&s, 1, 0, 1);
    CHOOSE(&s, 3, 1, 2);
    struct trace_stats *stats = measured(&s);
    assert_int_equal(stats->guesses, 5);
    assert_int_equal(stats->routed_layers, 3);
    assert_part(stats->layer[1].recall_top_k[0], 1, 2);
    assert_part(stats->layer[1].recall[0], 2, 2);
    assert_part(stats->layer[1].precision[0], 2, 3);
    assert_part(stats->layer[3].recall[1], 2, 2);
    assert_part(stats->overall.precision[0], 2, 3);
    trace_stats_free(stats);
}

static void a_prediction_for_an_earlier_layer_speaks_of_the_next_pass(void **state)
{
    (void)state;
    struct sketch s = sketch_new(2, 4, 1);
    CHOOSE(&s, 0, 0);
    CHOOSE(&s, 1, 1);
    GUESS(&s, 1, 0, 3);
    next_pass(&s);
    CHOOSE(&s, 0, 3);
    CHOOSE(&s, 1, 1);
    GUESS(&s, 1, 0, 2); /* of a pass that never comes */
    struct trace_stats *stats = measured(&s);
    assert_part(stats->layer[0].recall[0], 1, 1);
    trace_stats_free(stats);
}

static void measures_are_found_by_name(void **state)
{
    (void)state;
    struct trace_stats *s = four_tokens();
    size_t i;
    assert_true(trace_measure_find("overlap_lag1", &i));
    assert_close(trace_measure(&s->overall, i), 0.5, 0);
    assert_true(trace_measure_find("distinct_2", &i));
    assert_close(trace_measure(&s->overall, i), 3.5, 0);
    assert_true(trace_measure_is_count(i));
    assert_true(trace_measure_find("recency_quarter", &i));
    assert_close(trace_measure(&s->overall, i), 0.25, 0);
    assert_false(trace_measure_find("overlap_lag3", &i));
    trace_stats_free(s);
}

static struct trace_stats *real(const char *path)
{
    struct trace *t;
    struct trace_stats *s;
    assert_ok(trace_load(&t, path, &dg));
    assert_ok(trace_stats_new(&s, t, &dg));
    trace_free(t);
    return s;
}

/* SYSTEMS.md 1.7 (distinct experts) and F1 (overlap; hits at 1000 MiB between one token cycle and two). */
static void a_recorded_qwen3_trace_gives_its_published_figures(void **state)
{
    (void)state;
    NEED_SHARED();
    static const double distinct[] = {6, 9.7, 15.8, 23.8, 33.2, 43.4, 53.2, 63.7};
    struct trace_stats *s = real(SHARED "bmoe/qwen.route.csv");
    assert_int_equal(s->decode_tokens, 128);
    assert_close(part_ratio(s->overall.overlap[0]), 0.380, 0.0005);
    assert_close(part_ratio(s->overall.recency[0]), 0.380, 0.0015);
    for (size_t i = 0; i < TRACE_STATS_WINDOWS; i++)
        assert_close(part_ratio(s->overall.distinct[i]), distinct[i], 0.0501);
    trace_stats_free(s);
}

static void a_recorded_gemma_trace_gives_its_published_overlap(void **state)
{
    (void)state;
    NEED_SHARED();
    struct trace_stats *s = real(SHARED "bmoe/gemma.route.csv");
    assert_close(part_ratio(s->overall.overlap[0]), 0.357, 0.0005);
    trace_stats_free(s);
}

static void teacher_forced_texts_give_their_published_overlap(void **state)
{
    (void)state;
    NEED_SHARED();
    struct trace_stats *s = real(SHARED "esft/law");
    assert_int_equal(s->turns, 33);
    assert_close(part_ratio(s->overall.overlap[0]), 0.290, 0.0005);
    assert_close(part_ratio(s->overall.recency[0]), 0.290, 0.0015);
    trace_stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_counts_shared_choices_at_each_lag),
        cmocka_unit_test(windows_lie_end_to_end),
        cmocka_unit_test(entropy_is_a_share_of_what_all_experts_would_have),
        cmocka_unit_test(skew_is_entropy_over_its_maximum_and_the_slope_of_log_uses),
        cmocka_unit_test(recency_is_a_cache_of_the_last_distinct_experts),
        cmocka_unit_test(a_prefill_is_history_but_not_measured),
        cmocka_unit_test(overlap_and_windows_stop_at_a_turn_recency_does_not),
        cmocka_unit_test(coactivation_knows_earlier_tokens_only),
        cmocka_unit_test(predictions_are_scored_by_distance_in_routed_layers),
        cmocka_unit_test(a_prediction_for_an_earlier_layer_speaks_of_the_next_pass),
        cmocka_unit_test(measures_are_found_by_name),
        cmocka_unit_test(a_recorded_qwen3_trace_gives_its_published_figures),
        cmocka_unit_test(a_recorded_gemma_trace_gives_its_published_overlap),
        cmocka_unit_test(teacher_forced_texts_give_their_published_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
