/* test_sampler.c -- tokens are drawn as often as their weights say, from those that the cuts
 * leave, and the same way every time. */
#include "tests/support.h"

#include "base/pcg.h"
#include "kernels/graph/sampler.h"
#include "tests/allocations.h"

#include <math.h>

static struct diag dg;

static struct sampler *open_sampler(double temperature, size_t top_k, double top_p, uint64_t seed)
{
    struct sampler *s;
    struct sampler_options o = {temperature, top_p, top_k, seed};
    assert_ok(sampler_new(&s, &o, 1000, &dg));
    return s;
}

static uint32_t pick(struct sampler *s, const float *logits, size_t n)
{
    uint32_t token = UINT32_MAX;
    assert_ok(sampler_pick(s, &token, logits, n, &dg));
    assert_true(token < n);
    return token;
}

static void random_logits(float *logits, size_t n, struct pcg *chance)
{
    for (size_t i = 0; i < n; i++)
        logits[i] = (float)pcg_gauss_q16(chance) / 16384.0f;
}

static void temperature_zero_takes_the_largest_of_equal_ones_the_first(void **state)
{
    struct sampler *s = open_sampler(0, 0, 1, 1);
    (void)state;
    assert_int_equal(pick(s, (float[]){1, 3, 3, 2}, 4), 1);
    assert_int_equal(pick(s, (float[]){-0.0f, 0.0f}, 2), 0);
    assert_int_equal(pick(s, (float[]){-INFINITY, -3e38f, -INFINITY}, 3), 1);
    assert_int_equal(pick(s, (float[]){-7}, 1), 0);
    sampler_free(s);
}

static void a_temperature_near_zero_is_greedy(void **state)
{
    struct sampler *greedy = open_sampler(0, 0, 1, 1);
    static const double cold[] = {1e-7, 1e-30, 1e-310};
    float logits[1000];
    struct pcg chance;
    (void)state;
    pcg_stream(&chance, 1, "logits");
    for (size_t k = 0; k < 3; k++) {
        struct sampler *s = open_sampler(cold[k], 0, k == 1 ? 0.9 : 1, 1);
        for (int i = 0; i < 100; i++) {
            random_logits(logits, 1000, &chance);
            logits[pcg_below(&chance, 1000)] = 20; /* one is the largest by far */
            assert_int_equal(pick(s, logits, 1000), pick(greedy, logits, 1000));
        }
        sampler_free(s);
    }
    sampler_free(greedy);
}

/* Draws many and compares each token's share with what it should be. */
static void expect_shares(struct sampler *s, const float *logits, const double *share, size_t n)
{
    enum { DRAWS = 200000 };
    size_t count[16] = {0};
    assert_true(n <= 16);
    for (int i = 0; i < DRAWS; i++)
        count[pick(s, logits, n)]++;
    for (size_t i = 0; i < n; i++) {
        double error = sqrt(share[i] * (1 - share[i]) / DRAWS);
        assert_close((double)count[i] / DRAWS, share[i], 4 * error);
    }
    sampler_free(s);
}

static void shares(double *share, const float *logits, size_t n, double temperature)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += share[i] = exp((double)logits[i] / temperature);
    for (size_t i = 0; i < n; i++)
        share[i] /= sum;
}

static const float eight[] = {0.5f, -1, 2, 1.25f, -4, 0, 2.5f, -0.25f};

static void tokens_come_as_often_as_the_softmax_says(void **state)
{
    static const double temperatures[] = {0.3, 1, 2.5};
    double share[8];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        shares(share, eight, 8, temperatures[i]);
        expect_shares(open_sampler(temperatures[i], 0, 1, i), eight, share, 8);
        expect_shares(open_sampler(temperatures[i], 8, 1, i), eight, share, 8);
    }
}

static void cuts_leave_the_shares_of_the_rest_as_they_were(void **state)
{
    double share[8] = {0};
    (void)state;
    /* Of softmax(eight) the largest are ids 6, 2, 3: 0.453, 0.275, 0.130. */
    share[6] = exp(2.5);
    share[2] = exp(2);
    double sum = share[6] + share[2];
    share[6] /= sum;
    share[2] /= sum;
    expect_shares(open_sampler(1, 0, 0.5, 3), eight, share, 8);
    expect_shares(open_sampler(1, 2, 1, 4), eight, share, 8);
    expect_shares(open_sampler(1, 3, 0.65, 5), eight, share, 8); /* of three, 0.53 and 0.32 */
    shares(share, eight, 8, 1.5);
    double rest = 1 - share[4]; /* 0.0046: the only one that 0.98 leaves out */
    share[4] = 0;
    for (size_t i = 0; i < 8; i++)
        share[i] /= rest;
    expect_shares(open_sampler(1.5, 0, 0.98, 42), eight, share, 8);
}

/* The ids that ever come, as bits. */
static unsigned seen(double top_p, size_t top_k, const float *logits, size_t n)
{
    struct sampler *s = open_sampler(1, top_k, top_p, 9);
    unsigned ids = 0;
    for (int i = 0; i < 2000; i++)
        ids |= 1u << pick(s, logits, n);
    sampler_free(s);
    return ids;
}

static void top_p_keeps_the_fewest_whose_sum_reaches_it(void **state)
{
    static const float equal[] = {1, 1, 1, 1}, middle[] = {-INFINITY, 0, 0, -90, 0};
    (void)state;
    assert_int_equal(seen(0.5, 0, equal, 4),
                     0x3); /* exactly half is enough; of equal ones the first */
    assert_int_equal(seen(nextafter(0.5, 1), 0, equal, 4), 0x7);
    assert_int_equal(seen(0.75, 0, equal, 4), 0x7);
    assert_int_equal(seen(nextafter(0.75, 1), 0, equal, 4), 0xf);
    assert_int_equal(seen(1e-300, 0, equal, 4), 0x1);
    assert_int_equal(seen(1, 0, equal, 4), 0xf);
    assert_int_equal(seen(1, 0, middle, 5), 0x16);
    assert_int_equal(seen(0.6, 0, middle, 5), 0x6);
    assert_int_equal(seen(0.45, 0, eight, 8), 1 << 6);
    assert_int_equal(seen(0.46, 0, eight, 8), 1 << 6 | 1 << 2);
}

static void top_k_keeps_the_largest_and_top_p_cuts_what_it_left(void **state)
{
    static const float equal[] = {1, 1, 1, 1};
    (void)state;
    assert_int_equal(seen(1, 1, eight, 8), 1 << 6);
    assert_int_equal(seen(1, 3, eight, 8), 1 << 6 | 1 << 2 | 1 << 3);
    assert_int_equal(seen(1, 3, equal, 4), 0x7);
    assert_int_equal(seen(0.5, 2, equal, 4), 0x1); /* half of two */
    assert_int_equal(seen(0.51, 2, equal, 4), 0x3);
    assert_int_equal(seen(0.5, 100, equal, 4), 0x3);
}

/* A sorted list of all tokens, cut with doubles, where no sum is near the border. */
static void top_p_agrees_with_sorting_everything(void **state)
{
    enum { N = 300 };
    struct pcg chance;
    float logits[N];
    (void)state;
    pcg_stream(&chance, 2, "logits");
    for (int round = 0; round < 50; round++) {
        double share[N], top_p = 0.05 + 0.9 * pcg_below(&chance, 1000) / 1000, sum = 0;
        bool kept[N] = {false};
        random_logits(logits, N, &chance);
        shares(share, logits, N, 1.5);
        while (sum < top_p) {
            size_t best = 0;
            for (size_t i = 1; i < N; i++)
                if (!kept[i] && (kept[best] || logits[i] > logits[best]))
                    best = i;
            kept[best] = true;
            sum += share[best];
        }
        struct sampler *s = open_sampler(1.5, 0, top_p, (uint64_t)round);
        for (int i = 0; i < 500; i++)
            assert_true(kept[pick(s, logits, N)]);
        sampler_free(s);
    }
}

static void a_seed_repeats_and_another_differs(void **state)
{
    float logits[1000];
    struct pcg chance;
    struct sampler *a = open_sampler(4, 0, 1, 7), *b = open_sampler(4, 0, 1, 7);
    struct sampler *c = open_sampler(4, 0, 1, 8);
    int same = 0;
    (void)state;
    pcg_stream(&chance, 3, "logits");
    for (int i = 0; i < 200; i++) {
        random_logits(logits, 1000, &chance);
        uint32_t token = pick(a, logits, 1000);
        assert_int_equal(pick(b, logits, 1000), token);
        same += pick(c, logits, 1000) == token;
    }
    assert_true(same < 50);
    sampler_free(a);
    sampler_free(b);
    sampler_free(c);
}

/* Pinned: the same on every compiler, processor and instruction set. */
static void the_tokens_of_seed_42_are_these(void **state)
{
    struct sampler *s = open_sampler(1.5, 0, 0.98, 42);
    char got[200] = "";
    (void)state;
    for (size_t i = 0, n = 0; i < 40; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%u", pick(s, eight, 8));
    assert_string_equal(got, "2622766162260220662207766666075275260626");
    sampler_free(s);
}

static void logits_that_mean_nothing_are_refused_and_spend_no_chance(void **state)
{
    struct sampler *s = open_sampler(1, 0, 0.9, 7), *twin = open_sampler(1, 0, 0.9, 7);
    struct sampler *greedy = open_sampler(0, 0, 1, 7);
    uint32_t token;
    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(sampler_pick(s, &token, (float[]){0, 1, NAN}, 3, &dg), ST_RANGE);
        assert_string_equal(dg.text, "the logit of token 2 is not a number");
        assert_int_equal(sampler_pick(s, &token, (float[]){0, INFINITY}, 2, &dg), ST_RANGE);
        assert_string_equal(dg.text, "the logit of token 1 is infinite");
        assert_int_equal(sampler_pick(s, &token, (float[]){-INFINITY, -INFINITY}, 2, &dg),
                         ST_RANGE);
        assert_string_equal(dg.text, "the logits of all 2 tokens are -infinity");
        assert_int_equal(pick(s, eight, 8), pick(twin, eight, 8));
    }
    assert_int_equal(sampler_pick(greedy, &token, (float[]){NAN, 1}, 2, &dg), ST_RANGE);
    assert_int_equal(sampler_pick(greedy, &token, (float[]){1, INFINITY}, 2, &dg), ST_RANGE);
    sampler_free(s);
    sampler_free(twin);
    sampler_free(greedy);
}

static void options_outside_their_limits_are_refused(void **state)
{
    static const struct sampler_options wrong[] = {
        {.temperature = -1, .top_p = 1},       {.temperature = NAN, .top_p = 1},
        {.temperature = INFINITY, .top_p = 1}, {.temperature = 1, .top_p = 0},
        {.temperature = 1, .top_p = 1.01},     {.temperature = 1, .top_p = NAN}};
    struct sampler *s;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(sampler_new(&s, &wrong[i], 10, &dg), ST_RANGE);
        assert_non_null(strstr(dg.text, i < 3 ? "temperature" : "top-p"));
    }
    struct sampler_options right = {.temperature = 1, .top_p = 1};
    assert_int_equal(sampler_new(&s, &right, (size_t)1 << 24, &dg), ST_RANGE);
    assert_non_null(strstr(dg.text, "a vocabulary of 16777216 tokens"));
}

static void picking_allocates_nothing(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct sampler *s = open_sampler(1, 5, 0.9, 7);
    size_t before = allocations_count();
    for (int i = 0; i < 100; i++)
        (void)pick(s, eight, 8);
    assert_int_equal(allocations_count(), before);
    sampler_free(s);
}

static void any_failed_allocation_is_reported(void **state)
{
    struct sampler_options o = {.temperature = 1, .top_p = 1};
    (void)state;
    NEED_ALLOCATIONS();
    for (size_t n = 1; n <= 4; n++) {
        struct sampler *s;
        allocations_fail_at(n);
        enum status status = sampler_new(&s, &o, 10, &dg);
        allocations_fail_at(0);
        assert_int_equal(status, ST_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temperature_zero_takes_the_largest_of_equal_ones_the_first),
        cmocka_unit_test(a_temperature_near_zero_is_greedy),
        cmocka_unit_test(tokens_come_as_often_as_the_softmax_says),
        cmocka_unit_test(cuts_leave_the_shares_of_the_rest_as_they_were),
        cmocka_unit_test(top_p_keeps_the_fewest_whose_sum_reaches_it),
        cmocka_unit_test(top_k_keeps_the_largest_and_top_p_cuts_what_it_left),
        cmocka_unit_test(top_p_agrees_with_sorting_everything),
        cmocka_unit_test(a_seed_repeats_and_another_differs),
        cmocka_unit_test(the_tokens_of_seed_42_are_these),
        cmocka_unit_test(logits_that_mean_nothing_are_refused_and_spend_no_chance),
        cmocka_unit_test(options_outside_their_limits_are_refused),
        cmocka_unit_test(picking_allocates_nothing),
        cmocka_unit_test(any_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
