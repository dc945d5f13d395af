/* test_what_if.c -- each question of a plan against the plan of a machine, a cache or a format that really is
 * what the question supposes; and the planner's rules against their figures worked out here. */
#include "models/quant.h"
#include "models/state.h"
#include "sim/plan/planner.h"
#include "tests/plan_bench.h"
#include "tests/support.h"

/* Half of the phone's memory for the largest model that it runs: flash, compute and hits all count. */
static struct bench phone(void)
{
    struct bench s = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    s.r.place.memory = 6ull << 30;
    return s;
}

static uint64_t factor_of(const struct plan *p, const char *key)
{
    for (size_t i = 0; i < p->what_if_count; i++)
        if (strcmp(p->what_if[i].key, key) == 0)
            return p->what_if[i].factor.mid;
    fail_msg("no question %s", key);
    return 0;
}

/* The stated factor is that of the changed scene, but for a rounding of its rates. */
static void check_factor(struct bench *changed, const char *key)
{
    struct bench now = phone();
    struct plan *before = plan_of(&now), *after = plan_of(changed);
    double factor = (double)before->timing.total_ns / (double)after->timing.total_ns;
    assert_close((double)factor_of(before, key) / 1e9, factor, 1e-5);
    assert_true(factor > 1.02);
    plan_free(before);
    plan_free(after);
    bench_free(&now);
    bench_free(changed);
}

static void twice_the_flash_is_a_drive_of_twice_the_rates(void **state)
{
    (void)state;
    struct bench s = phone();
    s.d->storage[0].bandwidth.amount *= 2;
    s.d->storage[0].lane_bandwidth.amount *= 2;
    check_factor(&s, "flash_2x");
}

static void twice_the_compute_is_a_unit_of_twice_the_peak(void **state)
{
    (void)state;
    struct bench s = phone();
    s.d->compute[0].int8.amount *= 2;
    check_factor(&s, "compute_2x");
}

static void twice_the_cache_is_a_cache_of_twice_the_bytes(void **state)
{
    (void)state;
    struct bench s = phone();
    struct plan *p = plan_of(&s);
    struct plan_case c;
    struct timing t;
    plan_base_case(&c, p);
    c.cache = 2 * p->place.cache;
    assert_true(c.cache < p->place.experts);
    plan_token(&t, p, &c);
    assert_close((double)factor_of(p, "cache_2x") / 1e9,
                 (double)p->timing.total_ns / (double)t.total_ns, 1e-8);
    plan_free(p);
    bench_free(&s);
}

static void reads_beside_compute_are_the_overlap_profile(void **state)
{
    (void)state;
    struct bench s = phone();
    s.r.profile = PROFILE_OVERLAP;
    check_factor(&s, "overlap");
}

/* From 4.87 bits to the 3.4375 of q3_k, in a cache of as many bytes. */
static void fewer_bits_shrink_the_experts_to_the_bytes_of_their_format(void **state)
{
    (void)state;
    struct bench s = phone();
    struct plan *p = plan_of(&s);
    uint64_t params = 48ull * 128 * 3 * 2048 * 768;
    assert_string_equal(p->fewer_key, "bits_3");
    assert_close((double)p->fewer_factor / 1e9,
                 (double)params * 3.4375 / 8 / (double)model_experts_bytes(s.m), 1e-6);
    plan_free(p);
    bench_free(&s);
}

/* ---- rules --------------------------------------------------------------------------------- */

static void buffers_hold_reads_activations_and_logits(void **state)
{
    (void)state;
    struct bench s = phone();
    uint64_t read = (model_expert_bytes_max(s.m) + 2) / 3;
    assert_int_equal(placement_buffers(s.m, &s.r.place),
                     4 * read + 512ull * 2048 * 16 + 151936ull * 4);
    bench_free(&s);
}

static void a_system_that_states_no_reserve_keeps_a_quarter(void **state)
{
    (void)state;
    struct bench s = bench_of("qwen3-0.6b", "oneplus-15r", NULL);
    s.d->reserve.given = false;
    struct plan *p = plan_of(&s);
    assert_true(p->place.reserve_by_rule);
    assert_int_equal(p->place.reserve, s.d->dram.capacity.amount / 4);
    assert_int_equal(p->place.given, s.d->dram.capacity.amount - p->place.reserve);
    plan_free(p);
    bench_free(&s);
}

static uint64_t largest_layer(const struct model *m)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        uint64_t sum = 0;
        for (int g = 0; g < GROUP_MAX; g++)
            sum += g == GROUP_EXPERT ? 0 : m->layers[i].weight_bytes[g];
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

/* Two layers pass through what is resident: one runs while the next arrives. */
static void streamed_weights_need_room_for_two_layers(void **state)
{
    (void)state;
    struct bench s = bench_of("kimi-k3", "m5-pro-64gb", NULL);
    s.r.place.stream_dense = true;
    struct plan *p = plan_of(&s);
    uint64_t wanted = p->place.dense - s.m->bytes_embedding;
    uint64_t missing = wanted - p->place.dense_resident + 2 * largest_layer(s.m);
    assert_close((double)p->place.stream_trunk / 1e9, (double)missing / (double)wanted, 1e-8);
    plan_free(p);
    bench_free(&s);
}

static void the_cliff_stands_one_layer_below_the_token_cycle(void **state)
{
    (void)state;
    struct bench s = phone();
    struct plan *p = plan_of(&s);
    assert_int_equal(p->cycle, model_token_cycle_bytes(s.m));
    assert_int_equal(p->cliff, p->cycle / 48 * 47);
    plan_free(p);
    bench_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_the_flash_is_a_drive_of_twice_the_rates),
        cmocka_unit_test(twice_the_compute_is_a_unit_of_twice_the_peak),
        cmocka_unit_test(twice_the_cache_is_a_cache_of_twice_the_bytes),
        cmocka_unit_test(reads_beside_compute_are_the_overlap_profile),
        cmocka_unit_test(fewer_bits_shrink_the_experts_to_the_bytes_of_their_format),
        cmocka_unit_test(buffers_hold_reads_activations_and_logits),
        cmocka_unit_test(a_system_that_states_no_reserve_keeps_a_quarter),
        cmocka_unit_test(streamed_weights_need_room_for_two_layers),
        cmocka_unit_test(the_cliff_stands_one_layer_below_the_token_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
