/* Meters: exact integrals over time, for whatever sequence of levels. */
#include "tests/support.h"

#include "base/pcg.h"
#include "sim/core/meter.h"

static void a_level_is_weighted_by_the_time_it_lasted(void **state)
{
    (void)state;
    struct meter m;
    meter_init(&m, 100);
    meter_set(&m, 110, 3);  /* 10 ns of 0 */
    meter_rise(&m, 115, 4); /* 5 ns of 3 */
    meter_fall(&m, 117, 7); /* 2 ns of 7 */
    meter_rise(&m, 120, 1); /* 3 ns of 0 */
    assert_true(meter_area(&m, 124) == 5 * 3 + 2 * 7 + 4 * 1);
    assert_int_equal(meter_busy_ns(&m, 124), 11);
    assert_int_equal(meter_idle_ns(&m, 124), 13);
    assert_int_equal(meter_span_ns(&m, 124), 24);
    assert_int_equal(m.level_max, 7);
    assert_int_equal(meter_mean_e9(&m, 124), 33 * UINT64_C(1000000000) / 24);
}

static void reading_changes_nothing(void **state)
{
    (void)state;
    struct meter m;
    meter_init(&m, 0);
    meter_set(&m, 5, 2);
    for (int i = 0; i < 3; i++)
        assert_true(meter_area(&m, 10) == 10);
    assert_true(meter_area(&m, 11) == 12);
}

static void busy_and_idle_add_up_to_the_span_in_every_run(void **state)
{
    (void)state;
    struct pcg chance;
    pcg_seed(&chance, 1, 1);
    for (int run = 0; run < 200; run++) {
        uint64_t now = pcg_u32(&chance), start = now, busy = 0, level = 0;
        unsigned __int128 area = 0;
        struct meter m;
        meter_init(&m, now);
        for (int change = 0; change < 100; change++) {
            uint64_t stay = pcg_below(&chance, 4) * pcg_u64(&chance) / 1024;
            area += (unsigned __int128)level * stay;
            busy += level ? stay : 0;
            now += stay;
            level = pcg_below(&chance, 3) ? pcg_u64(&chance) : 0;
            meter_set(&m, now, level);
            assert_true(meter_area(&m, now) == area);
            assert_true(meter_busy_ns(&m, now) == busy);
            assert_true(busy + meter_idle_ns(&m, now) == now - start);
        }
    }
}

static void throughput_counts_what_passed(void **state)
{
    (void)state;
    struct meter m;
    meter_init(&m, 0);
    assert_int_equal(meter_passed_per_s(&m, 0), 0);
    meter_pass(&m, 7);
    meter_pass(&m, 3);
    assert_int_equal(m.passed_count, 2);
    assert_int_equal(meter_passed_per_s(&m, 3), 3333333333);
    assert_int_equal(meter_passed_per_s(&m, 4000000000), 2);
    for (int i = 0; i < 4; i++)
        meter_pass(&m, UINT64_MAX);
    assert_true(m.passed_units == (unsigned __int128)UINT64_MAX * 4 + 10);
    assert_true(meter_passed_per_s(&m, 1) == UINT64_MAX);
    assert_true(meter_passed_per_s(&m, 8000000000) == UINT64_MAX / 2 + 1);
}

static void a_mean_that_fits_no_integer_saturates(void **state)
{
    (void)state;
    struct meter m;
    meter_init(&m, 0);
    assert_int_equal(meter_mean_e9(&m, 0), 0);
    meter_set(&m, 0, UINT64_MAX);
    assert_true(meter_area(&m, UINT64_MAX) == (unsigned __int128)UINT64_MAX * UINT64_MAX);
    assert_true(meter_mean_e9(&m, UINT64_MAX) == UINT64_MAX);
}

static void restarting_forgets_all_but_the_level(void **state)
{
    (void)state;
    struct meter m;
    meter_init(&m, 0);
    meter_set(&m, 1, 9);
    meter_set(&m, 2, 4);
    meter_pass(&m, 5);
    meter_restart(&m, 10);
    assert_int_equal(meter_span_ns(&m, 10), 0);
    assert_int_equal(m.level_max, 4);
    assert_int_equal(m.passed_count, 0);
    assert_true(meter_area(&m, 13) == 12);
    assert_int_equal(meter_busy_ns(&m, 13), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_is_weighted_by_the_time_it_lasted),
        cmocka_unit_test(reading_changes_nothing),
        cmocka_unit_test(busy_and_idle_add_up_to_the_span_in_every_run),
        cmocka_unit_test(throughput_counts_what_passed),
        cmocka_unit_test(a_mean_that_fits_no_integer_saturates),
        cmocka_unit_test(restarting_forgets_all_but_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
