/* test_station_fit.c -- the fit of a drive to bursts finds the drive that made them. */
#include "tests/support.h"

#include "sim/pipeline/drive_bench.h"
#include "validate/station_fit.h"

#include <math.h>

#define BURSTS 10

static struct storage drive(uint64_t latency_ns, uint64_t lane_Bps, uint64_t bandwidth_Bps)
{
    return (struct storage){.name = "made up",
                            .latency = {.amount = latency_ns, .given = true, .dim = DIM_TIME},
                            .lane_bandwidth = {.amount = lane_Bps, .given = true, .dim = DIM_RATE},
                            .bandwidth = {.amount = bandwidth_Bps, .given = true, .dim = DIM_RATE},
                            .queue_depth = {.amount = 16, .given = true, .dim = DIM_COUNT},
                            .grain = {.amount = UINT64_C(1) << 30, .given = true, .dim = DIM_SIZE}};
}

/* Bursts of 1..16 experts of three pieces, as that drive takes them, with host costs on top. */
static void make_bursts(struct read_burst *burst, const struct storage *s, uint64_t piece_bytes,
                        double host_ns, double wake_ns)
{
    static const uint32_t sizes[BURSTS] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
    struct diag dg = {0};
    for (int i = 0; i < BURSTS; i++) {
        uint64_t ns;
        struct drive_run run = {.bytes = piece_bytes, .lanes = 16};
        burst[i] = (struct read_burst){
            .experts = sizes[i], .reads = 3 * sizes[i], .bytes = 3 * sizes[i] * piece_bytes};
        assert_ok(drive_run_burst(&ns, NULL, s, &run, burst[i].reads, &dg));
        burst[i].ns = (double)ns + host_ns * burst[i].reads + wake_ns;
        burst[i].low_ns = burst[i].high_ns = burst[i].ns;
    }
}

static void bursts_of_a_known_drive_are_fitted_and_foretold(void **state)
{
    (void)state;
    static const uint64_t pieces[] = {18432, 262144, 884736};
    for (size_t p = 0; p < 3; p++) {
        struct read_burst burst[BURSTS];
        double fitted[BURSTS];
        struct station_fit f;
        struct diag dg = {0};
        struct storage s = drive(80000, 1500000000, 3000000000);
        make_bursts(burst, &s, pieces[p], 3000, 20000);
        assert_ok(station_fit(&f, fitted, burst, BURSTS, 3000, 20000, 16, &dg));
        assert_true(f.residual_max < 0.02);
        assert_true(f.held_out_max < 0.03);
        for (int i = 0; i < BURSTS; i++)
            assert_close(fitted[i] / burst[i].ns, 1, 0.03);
    }
}

static void a_fit_of_three_bursts_is_refused(void **state)
{
    (void)state;
    struct read_burst burst[3] = {{.experts = 1, .reads = 3, .bytes = 100, .ns = 1000}};
    double fitted[3];
    struct station_fit f;
    struct diag dg = {0};
    assert_int_equal(station_fit(&f, fitted, burst, 3, 0, 0, 16, &dg), ST_MISFIT);
}

static void what_was_held_out_does_not_move_the_fit(void **state)
{
    (void)state;
    struct read_burst burst[BURSTS];
    double fitted[BURSTS];
    struct station_fit before, after;
    struct diag dg = {0};
    struct storage s = drive(80000, 1500000000, 3000000000);
    make_bursts(burst, &s, 262144, 0, 0);
    assert_ok(station_fit(&before, fitted, burst, BURSTS, 0, 0, 16, &dg));
    for (size_t i = 0; i < BURSTS; i++)
        if (station_fit_held_out(i))
            burst[i].ns *= 3;
    assert_ok(station_fit(&after, fitted, burst, BURSTS, 0, 0, 16, &dg));
    assert_close(after.latency_ns, before.latency_ns, 1e-6 * before.latency_ns);
    assert_close(after.bandwidth_Bps, before.bandwidth_Bps, 1e-6 * before.bandwidth_Bps);
    assert_true(after.held_out_median > 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bursts_of_a_known_drive_are_fitted_and_foretold),
        cmocka_unit_test(a_fit_of_three_bursts_is_refused),
        cmocka_unit_test(what_was_held_out_does_not_move_the_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
