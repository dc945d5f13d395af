/* test_stats.c -- statistics of samples small enough to work out by hand. */
#include "base/stats.h"

#include "tests/support.h"

#include <math.h>

static void the_mean_and_deviation_of_eight_numbers_are_known(void **state)
{
    (void)state;
    static const double x[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* squares off the mean add up to 32 */
    assert_close(stats_mean(x, 8), 5, 1e-15);
    assert_close(stats_sd(x, 8), sqrt(32.0 / 7), 1e-15);
}

static void a_large_offset_does_not_hide_the_deviation(void **state)
{
    (void)state;
    static const double x[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    assert_close(stats_mean(x, 4), 1e9 + 10, 1e-6);
    assert_close(stats_sd(x, 4), sqrt(30), 1e-6);
}

static void the_median_is_the_middle_or_halfway_between_the_middle_two(void **state)
{
    (void)state;
    assert_close(stats_median((double[]){9, -1, 4}, 3), 4, 0);
    assert_close(stats_median((double[]){9, -1, 4, 5}, 4), 4.5, 0);
}

static void quantiles_run_straight_between_the_order_statistics(void **state)
{
    (void)state;
    double x[] = {50, 10, 40, 20, 30};
    assert_close(stats_quantile(x, 5, 0), 10, 0);
    assert_close(stats_quantile(x, 5, 1), 50, 0);
    assert_close(stats_quantile(x, 5, 0.25), 20, 1e-12);
    assert_close(stats_quantile(x, 5, 0.9), 46, 1e-12);
    for (int i = 1; i < 5; i++)
        assert_true(x[i - 1] < x[i]);
}

static void tau_is_one_for_the_same_order_and_minus_one_for_the_opposite(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4}, same[] = {10, 20, 400, 401}, opposite[] = {4, 3, 2, 1};
    assert_close(stats_kendall_tau(x, same, 4), 1, 1e-15);
    assert_close(stats_kendall_tau(x, opposite, 4), -1, 1e-15);
}

/* Six pairs: five in the same order, one in the opposite one. */
static void tau_counts_pairs_in_either_order(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4}, y[] = {1, 3, 2, 4};
    assert_close(stats_kendall_tau(x, y, 4), 4.0 / 6, 1e-15);
}

/* Of six pairs one is tied in x and one in y; of the other four all agree: 4 / sqrt(5 * 5). */
static void tau_allows_for_ties_on_both_sides(void **state)
{
    (void)state;
    static const double x[] = {1, 1, 2, 3}, y[] = {1, 2, 2, 3};
    assert_close(stats_kendall_tau(x, y, 4), 4.0 / 5, 1e-15);
    static const double many[] = {12, 2, 1, 12, 2}, few[] = {1, 4, 7, 1, 0};
    assert_close(stats_kendall_tau(many, few, 5), -4 / sqrt(8 * 9), 1e-15);
}

static void undefined_statistics_are_zero(void **state)
{
    (void)state;
    double one[] = {7};
    static const double flat[] = {3, 3, 3}, rising[] = {1, 2, 3};
    assert_close(stats_mean(one, 0), 0, 0);
    assert_close(stats_sd(one, 1), 0, 0);
    assert_close(stats_sd(one, 0), 0, 0);
    assert_close(stats_median(one, 0), 0, 0);
    assert_close(stats_median(one, 1), 7, 0);
    assert_close(stats_kendall_tau(flat, rising, 3), 0, 0);
    assert_close(stats_kendall_tau(rising, flat, 3), 0, 0);
    assert_close(stats_kendall_tau(rising, rising, 1), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_and_deviation_of_eight_numbers_are_known),
        cmocka_unit_test(a_large_offset_does_not_hide_the_deviation),
        cmocka_unit_test(the_median_is_the_middle_or_halfway_between_the_middle_two),
        cmocka_unit_test(quantiles_run_straight_between_the_order_statistics),
        cmocka_unit_test(tau_is_one_for_the_same_order_and_minus_one_for_the_opposite),
        cmocka_unit_test(tau_counts_pairs_in_either_order),
        cmocka_unit_test(tau_allows_for_ties_on_both_sides),
        cmocka_unit_test(undefined_statistics_are_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
