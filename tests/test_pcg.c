/* test_pcg.c -- the generator against the published vectors and the authors' library; the samplers
 * against their distributions. Seeds are fixed, so a bound either always holds or never does. */
#include "base/pcg.h"

#include "tests/allocations.h"
#include "tests/pcg_reference.h"
#include "tests/support.h"

#include <math.h>

/* Pearson's statistic lies within five of its standard deviations of its mean, the degrees of
 * freedom: too even is as suspicious as too uneven. */
static void assert_fits(const uint64_t *counts, const double *expected, size_t bins)
{
    double chi_square = 0, freedom = (double)bins - 1;
    for (size_t i = 0; i < bins; i++) {
        double off = (double)counts[i] - expected[i];
        chi_square += off * off / expected[i];
    }
    assert_close(chi_square, freedom, 5 * sqrt(2 * freedom));
}

/* The round that the published demonstration prints for pcg32_srandom(42, 54): numbers, coin
 * tosses, dice and a shuffled deck, whose lengths also decide where the second round starts. */
static void the_published_demonstration_is_reproduced(void **state)
{
    (void)state;
    static const uint32_t first[6] = {0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                      0x83d2f293, 0xbfa4784b, 0xcbed606e};
    static const char coins[] = "HHTTTHTHHHTHTTTHHHHHTTTHHHTHTHTHTTHTTTHHHHHHTTTTHHTTTTTHTTTTTTTHT";
    static const char rolls[] = "341122324324335231315141564662633";
    static const uint32_t second[6] = {0x74ab93ad, 0x1c1da000, 0x494ff896,
                                       0x34462f2f, 0xd308a3e5, 0x0fa83bab};
    struct pcg p;
    pcg_seed(&p, 42, 54);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pcg_u32(&p), first[i]);
    for (const char *c = coins; *c; c++)
        assert_int_equal(pcg_below(&p, 2) ? 'H' : 'T', *c);
    for (const char *c = rolls; *c; c++)
        assert_int_equal('1' + pcg_below(&p, 6), *c);
    for (uint32_t left = 52; left > 1; left--)
        (void)pcg_below(&p, left);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pcg_u32(&p), second[i]);
}

static void numbers_equal_those_of_the_authors_library(void **state)
{
    (void)state;
    static const uint64_t seeds[][2] = {
        {0, 0}, {42, 54}, {1, UINT64_MAX}, {UINT64_MAX, 1}, {UINT64_C(0x9e3779b97f4a7c15), 77}};
    enum { COUNT = 10000 };
    static uint32_t theirs[COUNT];
    for (size_t s = 0; s < sizeof seeds / sizeof *seeds; s++) {
        struct pcg p;
        pcg_seed(&p, seeds[s][0], seeds[s][1]);
        pcg_reference_u32(theirs, COUNT, seeds[s][0], seeds[s][1]);
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(pcg_u32(&p), theirs[i]);
    }
}

static void bounded_numbers_equal_those_of_the_authors_library(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    static uint32_t bounds[COUNT], theirs[COUNT];
    struct pcg p;
    pcg_seed(&p, 3, 5);
    for (size_t i = 0; i < COUNT; i++)
        bounds[i] = (pcg_u32(&p) >> (i % 32)) | 1;
    bounds[0] = UINT32_MAX;
    bounds[1] = UINT32_C(1) << 31;
    bounds[2] = (UINT32_C(1) << 31) + 1; /* rejects every second draw */
    pcg_seed(&p, 7, 11);
    pcg_reference_below(theirs, bounds, COUNT, 7, 11);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(pcg_below(&p, bounds[i]), theirs[i]);
}

static void a_64_bit_number_is_two_draws_with_the_high_word_first(void **state)
{
    (void)state;
    struct pcg p;
    pcg_seed(&p, 42, 54);
    assert_true(pcg_u64(&p) == UINT64_C(0xa15c02b77b47f409));
}

static void a_stream_depends_on_its_seed_and_name_alone(void **state)
{
    (void)state;
    struct pcg a, b;
    pcg_stream(&a, 42, "storage0/latency");
    pcg_stream(&b, 42, "storage0/latency");
    for (int i = 0; i < 100; i++)
        assert_int_equal(pcg_u32(&a), pcg_u32(&b));
    static const struct {
        uint64_t seed;
        const char *name;
    } others[] = {{43, "storage0/latency"}, {42, "storage1/latency"}, {42, ""}, {0, ""}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        pcg_stream(&a, 42, "storage0/latency");
        pcg_stream(&b, others[k].seed, others[k].name);
        assert_true(a.increment != b.increment);
        int equal_bits = 0;
        for (int i = 0; i < 1000; i++)
            equal_bits += __builtin_popcount(~(pcg_u32(&a) ^ pcg_u32(&b)));
        assert_close(equal_bits, 16000, 5 * sqrt(8000));
    }
}

/* Old results could not be repeated if this changed. */
static void the_first_numbers_of_a_named_stream_never_change(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 42, "storage0/latency");
    assert_int_equal(pcg_u32(&p), 0x0454b6af);
    assert_int_equal(pcg_u32(&p), 0x204a0310);
}

static void bounded_numbers_are_uniform(void **state)
{
    (void)state;
    static const uint32_t bounds[] = {2, 3, 10, 97, 128};
    struct pcg p;
    pcg_stream(&p, 1, "uniform");
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        uint64_t counts[128] = {0};
        double expected[128];
        for (int i = 0; i < 200000; i++)
            counts[pcg_below(&p, bounds[k])]++;
        for (uint32_t i = 0; i < bounds[k]; i++)
            expected[i] = 200000.0 / bounds[k];
        assert_fits(counts, expected, bounds[k]);
    }
}

/* For a bound of 3 * 2^30, taking the remainder alone would make the lower third twice as likely. */
static void a_large_bound_has_no_modulo_bias(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 2, "bias");
    uint64_t counts[3] = {0};
    for (int i = 0; i < 300000; i++)
        counts[pcg_below(&p, UINT32_C(3) << 30) >> 30]++;
    assert_fits(counts, (const double[]){1e5, 1e5, 1e5}, 3);
}

static void gaussian_numbers_have_the_moments_of_a_standard_normal(void **state)
{
    (void)state;
    enum { COUNT = 1000000 };
    struct pcg p;
    pcg_stream(&p, 3, "gauss");
    double sum = 0, squares = 0, cubes = 0;
    int within_one = 0;
    for (int i = 0; i < COUNT; i++) {
        double x = pcg_gauss_q16(&p) / 65536.0;
        assert_true(x >= -6 && x <= 6);
        sum += x;
        squares += x * x;
        cubes += x * x * x;
        within_one += x > -1 && x < 1;
    }
    assert_close(sum / COUNT, 0, 4 * sqrt(1.0 / COUNT));
    assert_close(squares / COUNT, 1, 4 * sqrt(2.0 / COUNT));
    assert_close(cubes / COUNT, 0, 4 * sqrt(15.0 / COUNT));
    assert_close((double)within_one / COUNT, 0.6827, 0.005); /* of the normal */
}

static void a_gaussian_number_is_twelve_halves_of_six_draws_about_their_mean(void **state)
{
    (void)state;
    struct pcg p, raw;
    pcg_stream(&p, 3, "halves");
    raw = p;
    for (int i = 0; i < 1000; i++) {
        double sum = 0;
        for (int k = 0; k < 6; k++) {
            uint32_t draw = pcg_u32(&raw);
            sum += draw / 65536 + draw % 65536 - 2 * 32767.5;
        }
        assert_true(pcg_gauss_q16(&p) == sum);
    }
}

static void a_table_draws_in_proportion_to_its_weights(void **state)
{
    (void)state;
    struct diag dg;
    static const uint64_t weights[] = {5, 0, 1, 100, 17, 0, 2};
    struct pcg_table t;
    assert_ok(pcg_table_new(&t, weights, 7, &dg));
    struct pcg p;
    pcg_stream(&p, 4, "table");
    uint64_t counts[7] = {0};
    for (int i = 0; i < 125000; i++)
        counts[pcg_pick(&p, &t)]++;
    pcg_table_free(&t);
    assert_int_equal(counts[1], 0);
    assert_int_equal(counts[5], 0);
    const uint64_t kept[] = {counts[0], counts[2], counts[3], counts[4], counts[6]};
    assert_fits(kept, (const double[]){5000, 1000, 100000, 17000, 2000}, 5);
}

/* The sum is just below 2^63: draws must reach all of it. */
static void a_table_of_the_largest_weights_draws_evenly(void **state)
{
    (void)state;
    struct diag dg;
    uint64_t third = (UINT64_C(1) << 63) / 3;
    struct pcg_table t;
    assert_ok(pcg_table_new(&t, (const uint64_t[]){third, third, third}, 3, &dg));
    struct pcg p;
    pcg_stream(&p, 5, "large");
    uint64_t counts[3] = {0};
    for (int i = 0; i < 300000; i++)
        counts[pcg_pick(&p, &t)]++;
    pcg_table_free(&t);
    assert_fits(counts, (const double[]){1e5, 1e5, 1e5}, 3);
}

static void a_table_without_a_usable_sum_is_refused(void **state)
{
    (void)state;
    struct diag dg;
    struct pcg_table t;
    assert_int_equal(pcg_table_new(&t, (const uint64_t[]){0, 0}, 2, &dg), ST_RANGE);
    assert_int_equal(pcg_table_new(&t, NULL, 0, &dg), ST_RANGE);
    uint64_t half = UINT64_C(1) << 62;
    assert_int_equal(pcg_table_new(&t, (const uint64_t[]){half, half, 1}, 3, &dg), ST_RANGE);
    assert_null(t.cumulative);
    assert_ok(pcg_table_new(&t, (const uint64_t[]){half, half}, 2, &dg));
    pcg_table_free(&t);
    assert_int_equal(pcg_table_zipf(&t, 0, 1000, &dg), ST_RANGE);
    assert_int_equal(pcg_table_zipf(&t, ((size_t)1 << 30) + 1, 1000, &dg), ST_RANGE);
    assert_null(t.cumulative);
}

static void a_table_without_memory_is_refused(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct diag dg;
    struct pcg_table t;
    allocations_fail_at(1);
    assert_int_equal(pcg_table_new(&t, (const uint64_t[]){1}, 1, &dg), ST_NO_MEMORY);
    allocations_fail_at(1);
    assert_int_equal(pcg_table_zipf(&t, 5, 1000, &dg), ST_NO_MEMORY);
    assert_null(t.cumulative);
}

static void zipf_weights_equal_the_powers_of_the_ranks(void **state)
{
    (void)state;
    static const uint32_t exponents[] = {0, 500, 1000, 1234, 2000};
    struct diag dg;
    for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
        struct pcg_table t;
        assert_ok(pcg_table_zipf(&t, 1000, exponents[k], &dg));
        double first = (double)t.cumulative[0];
        for (size_t i = 1; i < t.count; i++) {
            double weight = (double)(t.cumulative[i] - t.cumulative[i - 1]) / first;
            double expected = pow((double)(i + 1), -(exponents[k] / 1000.0));
            assert_close(weight / expected, 1, 1e-7);
        }
        pcg_table_free(&t);
    }
}

static void zipf_draws_follow_the_weights(void **state)
{
    (void)state;
    enum { RANKS = 50, DRAWS = 500000 };
    struct diag dg;
    struct pcg_table t;
    assert_ok(pcg_table_zipf(&t, RANKS, 1100, &dg));
    struct pcg p;
    pcg_stream(&p, 6, "zipf");
    uint64_t counts[RANKS] = {0};
    for (int i = 0; i < DRAWS; i++)
        counts[pcg_pick(&p, &t)]++;
    pcg_table_free(&t);
    double expected[RANKS], sum = 0;
    for (int i = 0; i < RANKS; i++)
        sum += expected[i] = pow(i + 1, -1.1);
    for (int i = 0; i < RANKS; i++)
        expected[i] *= DRAWS / sum;
    assert_fits(counts, expected, RANKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_demonstration_is_reproduced),
        cmocka_unit_test(numbers_equal_those_of_the_authors_library),
        cmocka_unit_test(bounded_numbers_equal_those_of_the_authors_library),
        cmocka_unit_test(a_64_bit_number_is_two_draws_with_the_high_word_first),
        cmocka_unit_test(a_stream_depends_on_its_seed_and_name_alone),
        cmocka_unit_test(the_first_numbers_of_a_named_stream_never_change),
        cmocka_unit_test(bounded_numbers_are_uniform),
        cmocka_unit_test(a_large_bound_has_no_modulo_bias),
        cmocka_unit_test(gaussian_numbers_have_the_moments_of_a_standard_normal),
        cmocka_unit_test(a_gaussian_number_is_twelve_halves_of_six_draws_about_their_mean),
        cmocka_unit_test(a_table_draws_in_proportion_to_its_weights),
        cmocka_unit_test(a_table_of_the_largest_weights_draws_evenly),
        cmocka_unit_test(a_table_without_a_usable_sum_is_refused),
        cmocka_unit_test(a_table_without_memory_is_refused),
        cmocka_unit_test(zipf_weights_equal_the_powers_of_the_ranks),
        cmocka_unit_test(zipf_draws_follow_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
