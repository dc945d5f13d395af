/* Drives: the laws of the curve station (exact when unloaded, B_max when saturated, bursts by
 * grain), the order of service, memory shared with others, chance. test_nand.c has the other
 * model's own. */
#include "tests/drive_rig.h"
#include "tests/support.h"

#include "base/fixed.h"
#include "base/pcg.h"
#include "tests/allocations.h"

static struct diag dg;

static struct storage curve_of(uint64_t latency_ns, uint64_t lane_Bps, uint64_t pipe_Bps,
                               uint64_t grain)
{
    struct storage s = {.name = "test", .model = STORAGE_CURVE};
    s.latency = rig_value(latency_ns);
    s.bandwidth = rig_value(pipe_Bps);
    if (lane_Bps)
        s.lane_bandwidth = rig_value(lane_Bps);
    if (grain)
        s.grain = rig_value(grain);
    return s;
}

static void at(uint64_t when_ns, evq_fn *fn, uintptr_t self)
{
    assert_int_equal(evq_at(rig.q, when_ns, fn, (void *)self), ST_OK);
}

static uint64_t ceil_ns(uint64_t bytes, uint64_t Bps)
{
    return wide_end_ns(0, wide_mul(bytes, NS_PER_S), Bps);
}

/* ---- the curve ---- */

static void a_read_alone_takes_t0_and_its_bytes_at_the_slower_of_lane_and_pipe(void **state)
{
    (void)state;
    const uint64_t rates[][2] = {{2 * GBS, 3 * GBS},
                                 {3 * GBS, 2 * GBS},
                                 {0, 7 * GBS},
                                 {1234567891, 1234567891},
                                 {93000000, 94000000},
                                 {2074000000, 2326000000},
                                 {16 * GBS + 7, 1 * GBS - 1},
                                 {1, 3}};
    const uint64_t sizes[] = {
        1, 511, 512, 4096, 16384, 65537, 131072, 1000003, 2 * MIB + 4096, 7 * MIB, 64 * MIB + 13};
    const uint64_t grains[] = {0, 512, 4096, 65536, 1000000, 100 * MIB};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (size_t k = 0; k < sizeof grains / sizeof *grains; k++) {
                const struct storage s =
                    curve_of(237 * US + 1, rates[i][0], rates[i][1], grains[k]);
                uint64_t slower =
                    rates[i][0] && rates[i][0] < rates[i][1] ? rates[i][0] : rates[i][1];
                if (slower < 1000 && sizes[j] > 100000)
                    continue;
                rig_open(&s, 4);
                rig_submit(0, sizes[j], 0);
                rig_drain();
                uint64_t end = 237 * US + 1 + ceil_ns(sizes[j], slower);
                bool chunks = grains[k] && grains[k] < sizes[j];
                bool stream_binds = rates[i][0] && rates[i][0] < rates[i][1];
                assert_true(rig.end_ns[0] == end ||
                            (chunks && stream_binds && rig.end_ns[0] == end + 1));
                rig_close();
            }
}

static void host_time_is_added_to_the_latency(void **state)
{
    (void)state;
    const struct storage s = curve_of(100 * US, 0, GBS, 0);
    rig_open(&s, 1);
    const struct drive_read r = {
        .bytes = 1000, .extra_ns = 77 * US, .done = rig_mark, .self = (void *)0};
    assert_int_equal(drive_submit(rig.drive, &r, NULL), ST_OK);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 178 * US);
    rig_close();
}

static void a_link_below_the_media_is_the_pipe(void **state)
{
    (void)state;
    struct storage s = curve_of(0, 0, 4 * GBS, 0);
    s.link_bandwidth = rig_value(2 * GBS);
    rig_open(&s, 1);
    rig_submit(0, 2 * MIB, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], ceil_ns(2 * MIB, 2 * GBS));
    rig_close();
}

static void a_saturated_pipe_runs_at_exactly_its_rate(void **state)
{
    (void)state;
    const uint64_t rates[] = {2326000000, 7 * GBS + 1, 93 * MS, 999999937};
    const uint64_t sizes[] = {4096, 131072, 131072 + 512, 1966080};
    const uint64_t grains[] = {0, 4096, 65536};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++)
            for (size_t k = 0; k < 3; k++) {
                const struct storage s = curve_of(0, 0, rates[i], grains[k]);
                rig_open(&s, 32);
                for (uintptr_t n = 0; n < 200; n++)
                    rig_submit(n, sizes[j], 0);
                rig_drain();
                assert_int_equal(evq_now_ns(rig.q), ceil_ns(200 * sizes[j], rates[i]));
                struct drive_counts c = drive_counts(rig.drive, evq_now_ns(rig.q));
                assert_int_equal(c.bytes, 200 * sizes[j]);
                assert_int_equal(c.busy_ns, evq_now_ns(rig.q));
                rig_close();
            }
}

static void a_saturated_drive_stays_within_one_read_of_its_pipe_rate(void **state)
{
    (void)state;
    const struct storage s = curve_of(237 * US, 2074 * MS, 2326 * MS, 65536);
    rig_open(&s, 16);
    for (uintptr_t n = 0; n < 250; n++)
        rig_submit(n, MIB, 0);
    rig_drain();
    uint64_t least = ceil_ns(250 * MIB, 2326 * MS);
    assert_true(evq_now_ns(rig.q) >= least);
    assert_true(evq_now_ns(rig.q) <= least + 237 * US + ceil_ns(MIB, 2074 * MS));
    rig_close();
}

static void a_burst_lands_one_by_one_with_the_read_as_grain(void **state)
{
    (void)state;
    const struct storage s = curve_of(237 * US, 2 * GBS, 2326 * MS, 0);
    const struct drive_run run = {.bytes = 2 * MIB, .lanes = 16};
    for (uint32_t n = 1; n <= 16; n++) {
        uint64_t last, landings[16];
        assert_ok(drive_run_burst(&last, landings, &s, &run, n, &dg));
        uint64_t first = 237 * US + ceil_ns(2 * MIB, 2 * GBS);
        assert_int_equal(landings[0], first);
        assert_int_equal(last, landings[n - 1]);
        for (uint32_t i = 1; i < n; i++) {
            uint64_t through = ceil_ns(2 * MIB * i, 2326 * MS);
            assert_true(landings[i] - first >= through - 1 && landings[i] - first <= through);
        }
    }
}

static void a_burst_lands_together_with_a_small_grain(void **state)
{
    (void)state;
    const struct storage s = curve_of(237 * US, 2 * GBS, 2326 * MS, 4096);
    const struct drive_run run = {.bytes = 2 * MIB, .lanes = 16};
    for (uint32_t n = 2; n <= 16; n++) {
        uint64_t last, landings[16];
        assert_ok(drive_run_burst(&last, landings, &s, &run, n, &dg));
        uint64_t grain = ceil_ns(4096, 2326 * MS);
        assert_true(last - landings[0] <= n * grain);
        assert_true(last >= 237 * US + ceil_ns(n * 2 * MIB, 2326 * MS));
        assert_true(last <= 237 * US + ceil_ns(n * 2 * MIB, 2326 * MS) + 2 * grain + n);
    }
}

static void a_closed_loop_reaches_the_closed_form(void **state)
{
    (void)state;
    const struct storage s = curve_of(237 * US, 2074 * MS, 2326 * MS, 0);
    for (uint64_t bytes = 4096; bytes <= 8 * MIB; bytes *= 2)
        for (uint32_t lanes = 1; lanes <= 32; lanes *= 2) {
            const struct drive_run run = {.bytes = bytes, .lanes = lanes};
            uint64_t rate, expected = storage_closed_rate_Bps(&s, bytes, lanes);
            assert_ok(drive_run_benchmark(&rate, &s, &run, 100 * lanes, &dg));
            assert_close((double)rate / (double)expected, 1.0, 0.02);
        }
}

static void iops_bound_small_reads_exactly(void **state)
{
    (void)state;
    struct storage s = curve_of(20 * US, 0, 7 * GBS, 0);
    s.iops = rig_value(70001);
    rig_open(&s, 64);
    for (uintptr_t n = 0; n < 200; n++)
        rig_submit(n, 512, 0);
    rig_drain();
    uint64_t start = wide_mul(199, NS_PER_S) / 70001;
    assert_int_equal(rig.end_ns[199], start + 20 * US + ceil_ns(512, 7 * GBS));
    rig_close();
    const struct drive_run run = {.bytes = 512, .lanes = 64};
    uint64_t rate;
    assert_ok(drive_run_benchmark(&rate, &s, &run, 5000, &dg));
    assert_close((double)rate, 512.0 * 70001, 512.0 * 70001 * 0.005);
}

static void the_queue_depth_limits_reads_in_flight_and_so_do_lanes(void **state)
{
    (void)state;
    struct storage s = curve_of(100 * US, 0, 7 * GBS, 0);
    s.queue_depth = rig_value(4);
    rig_open(&s, 32);
    for (uintptr_t n = 0; n < 10; n++)
        rig_submit(n, 4096, 0);
    assert_int_equal(drive_in_flight(rig.drive), 4);
    assert_int_equal(drive_waiting(rig.drive), 6);
    rig_close();
    rig_open(&s, 2);
    for (uintptr_t n = 0; n < 10; n++)
        rig_submit(n, 4096, 0);
    assert_int_equal(drive_in_flight(rig.drive), 2);
    rig_close();
}

static void littles_law_holds_to_the_nanosecond_at_every_event(void **state)
{
    (void)state;
    const struct storage s = curve_of(50 * US, 2 * GBS, 3 * GBS, 65536);
    rig_open(&s, 3);
    for (uintptr_t n = 0; n < 40; n++)
        rig_submit(n, 4096 * (n + 1), n % 2);
    wide sojourn = 0;
    while (evq_step(rig.q)) {
        struct drive_counts c = drive_counts(rig.drive, evq_now_ns(rig.q));
        assert_true(c.area_in_flight + c.area_waiting == c.latency_ns + c.latency_present_ns);
    }
    for (size_t n = 0; n < 40; n++)
        sojourn += rig.end_ns[n];
    assert_true(drive_counts(rig.drive, evq_now_ns(rig.q)).latency_ns == sojourn);
    assert_int_equal(drive_counts(rig.drive, evq_now_ns(rig.q)).reads, 40);
    rig_close();
}

/* ---- order ---- */

static void submit_demand(struct evq *queue, void *self)
{
    (void)queue;
    rig_submit((uintptr_t)self, MIB, DRIVE_DEMAND);
}

static void promote_it(struct evq *queue, void *self)
{
    (void)queue;
    assert_true(drive_promote(rig.drive, rig.ticket[(uintptr_t)self]));
}

static void assert_order(const uintptr_t *expected, size_t count)
{
    assert_int_equal(rig.landed, count);
    assert_memory_equal(rig.order, expected, count * sizeof *expected);
}

static void demand_overtakes_prefetch_that_waits_and_nothing_in_flight(void **state)
{
    (void)state;
    const struct storage s = curve_of(100 * US, 0, GBS, 0);
    rig_open(&s, 2);
    for (uintptr_t n = 10; n < 14; n++)
        rig_submit(n, MIB, DRIVE_PREFETCH);
    at(10 * US, submit_demand, 1);
    rig_drain();
    const uintptr_t expected[] = {10, 11, 1, 12, 13};
    assert_order(expected, 5);
    rig_close();
}

static void a_promoted_prefetch_goes_before_prefetches_but_behind_demand(void **state)
{
    (void)state;
    const struct storage s = curve_of(100 * US, 0, GBS, 0);
    rig_open(&s, 1);
    for (uintptr_t n = 10; n < 14; n++)
        rig_submit(n, MIB, DRIVE_PREFETCH);
    at(10 * US, submit_demand, 1);
    at(20 * US, promote_it, 13);
    assert_false(drive_promote(rig.drive, rig.ticket[10])); /* in flight */
    rig_drain();
    const uintptr_t expected[] = {10, 1, 13, 11, 12};
    assert_order(expected, 5);
    assert_false(drive_promote(rig.drive, rig.ticket[12])); /* over */
    rig_close();
}

static void a_full_drive_refuses_and_has_room_again_after_an_end(void **state)
{
    (void)state;
    const struct storage s = curve_of(100 * US, 0, GBS, 0);
    const struct drive_read r = {.bytes = 1};
    rig_open(&s, 1);
    for (size_t n = 0; n < 256; n++)
        assert_int_equal(drive_submit(rig.drive, &r, NULL), ST_OK);
    assert_int_equal(drive_submit(rig.drive, &r, NULL), ST_RANGE);
    rig_drain();
    assert_int_equal(drive_submit(rig.drive, &r, NULL), ST_OK);
    rig_drain();
    rig_close();
}

/* ---- rates ---- */

static void kernel_done(struct evq *queue, void *self)
{
    (void)self;
    rig.end_ns[RIG_MARKS - 1] = evq_now_ns(queue);
}

static void memory_is_shared_max_min_between_reads_and_kernels(void **state)
{
    (void)state;
    /* 3 GB/s of memory; a kernel that could take all of it against a pipe of 2: 1.5 each. */
    const struct storage s = curve_of(0, 0, 2 * GBS, 65536);
    rig_open_net(3 * GBS);
    const struct drive_setup setup = {.storage = &s,
                                      .name = "storage0",
                                      .lanes = 4,
                                      .reads_max = 8,
                                      .net = rig.net,
                                      .dram = rig.dram,
                                      .dram_weight = 1};
    assert_ok(drive_new(&rig.drive, rig.q, &setup, &dg));
    uint32_t kernels;
    const struct flow_class kernel = {&rig.dram, 1, FLOW_NO_CAP, 1};
    assert_ok(flow_class_add(rig.net, &kernel, &kernels, &dg));
    const struct flow f = {.bytes = 15 * MIB, .done = kernel_done};
    assert_int_equal(flow_start(rig.net, kernels, &f), ST_OK);
    for (uintptr_t n = 0; n < 4; n++)
        rig_submit(n, 5 * MIB, 0);
    rig_drain();
    /* 15 MiB each at 1.5 GB/s, then the last 5 MiB of the reads at 2. */
    double shared = 15.0 * (double)MIB / 1.5, alone = 5.0 * (double)MIB / 2;
    assert_close((double)rig.end_ns[RIG_MARKS - 1], shared, shared * 1e-4);
    assert_close((double)rig.end_ns[3], shared + alone, shared * 1e-4);
    rig_close();
}

/* Reads of 40 MiB by a pipe of 1 GB/s, and a kernel that draws 7.5 GB/s of a memory of 8. */
static uint64_t kernel_beside_reads_ns(const struct storage *s, uint64_t *reads_ns)
{
    rig_open_net(8 * GBS);
    const struct drive_setup setup = {.storage = s,
                                      .name = "storage0",
                                      .lanes = 4,
                                      .reads_max = 8,
                                      .net = rig.net,
                                      .dram = rig.dram,
                                      .dram_Bps = 8 * GBS,
                                      .dram_weight = 1};
    assert_ok(drive_new(&rig.drive, rig.q, &setup, &dg));
    uint32_t kernels;
    const struct flow_class kernel = {&rig.dram, 1, 15 * GBS / 2, 2};
    assert_ok(flow_class_add(rig.net, &kernel, &kernels, &dg));
    const struct flow f = {.bytes = 150 * MIB, .done = kernel_done};
    assert_int_equal(flow_start(rig.net, kernels, &f), ST_OK);
    for (uintptr_t n = 0; n < 4; n++)
        rig_submit(n, 10 * MIB, 0);
    rig_drain();
    *reads_ns = rig.end_ns[3];
    uint64_t kernel_ns = rig.end_ns[RIG_MARKS - 1];
    rig_close();
    return kernel_ns;
}

static void an_inflated_read_takes_its_own_time_and_more_of_the_memory(void **state)
{
    (void)state;
    struct storage s = curve_of(100 * US, 0, GBS, 0);
    const struct drive_run run = {.bytes = MIB, .lanes = 8, .dram_Bps = 8 * GBS};
    uint64_t plain, inflated, plain_ns, inflated_ns;
    assert_ok(drive_run_benchmark(&plain, &s, &run, 100, &dg));
    uint64_t beside = kernel_beside_reads_ns(&s, &plain_ns);
    assert_close((double)beside, 150.0 * (double)MIB / 7.0, 1e5);
    s.dram_inflation = rig_value(5); /* 5 of 8 GB/s for the reads, 3 for the kernel */
    assert_ok(drive_run_benchmark(&inflated, &s, &run, 100, &dg));
    assert_int_equal(inflated, plain);
    beside = kernel_beside_reads_ns(&s, &inflated_ns);
    assert_int_equal(inflated_ns, plain_ns);
    double left = 150.0 * (double)MIB - 3.0 * 40.0 * (double)MIB;
    assert_close((double)beside, 40.0 * (double)MIB + left / 7.5, 2e6);
    s.dram_inflation = rig_value(100); /* no more than lets the drive run alone: 8 */
    kernel_beside_reads_ns(&s, &inflated_ns);
    assert_true(inflated_ns > plain_ns); /* the kernel has its weight */
}

static void a_slower_memory_than_the_pipe_is_the_pipe(void **state)
{
    (void)state;
    const struct storage s = curve_of(100 * US, 0, 8 * GBS, 0);
    const struct drive_run run = {.bytes = MIB, .lanes = 8, .dram_Bps = 3 * GBS};
    uint64_t rate;
    assert_ok(drive_run_benchmark(&rate, &s, &run, 1000, &dg));
    assert_close((double)rate, 3e9, 3e7);
}

static void twice_a_rate_or_half_the_latency_never_slows_a_fixed_order(void **state)
{
    (void)state;
    struct pcg chance;
    pcg_seed(&chance, 7, 1);
    for (size_t round = 0; round < 60; round++) {
        uint64_t latency = 1 + pcg_below(&chance, 400000), lane = GBS / 4 + pcg_u32(&chance);
        uint64_t pipe = GBS / 4 + pcg_u32(&chance), grain = round % 2 ? 0 : 16384;
        uint64_t bytes = 1 + pcg_below(&chance, 4 * MIB);
        uint32_t lanes = 1 + pcg_below(&chance, 8), reads = 1 + pcg_below(&chance, 40), change;
        const struct drive_run run = {.bytes = bytes, .lanes = lanes};
        const struct storage slow = curve_of(latency, lane, pipe, grain);
        const struct storage faster[] = {curve_of(latency, lane, 2 * pipe, grain),
                                         curve_of(latency, 2 * lane, pipe, grain),
                                         curve_of(latency / 2, lane, pipe, grain)};
        uint64_t before, after;
        assert_ok(drive_run_burst(&before, NULL, &slow, &run, reads, &dg));
        for (change = 0; change < 3; change++) {
            assert_ok(drive_run_burst(&after, NULL, &faster[change], &run, reads, &dg));
            assert_true(after <= before + 1);
        }
    }
}

static void memory_gets_the_bytes_that_were_read(void **state)
{
    (void)state;
    const struct storage s = curve_of(237 * US, 0, 7 * GBS + 1, 0);
    rig_open(&s, 4);
    for (uintptr_t n = 0; n < 4; n++) {
        rig_submit(n, 1000003, 0);
        rig_drain();
    }
    const struct meter *alone = flow_meter_flows(rig.net, rig.dram);
    assert_true(alone->passed_count == 4 && alone->passed_units == 4 * 1000003);
    for (uintptr_t n = 4; n < 104; n++)
        rig_submit(n, 1000003, 0);
    rig_drain();
    /* Back to back they are rounded together: less than the rate x 1 ns off. */
    assert_close((double)alone->passed_units, 104.0 * 1000003, 7.0);
    rig_close();
}

static void change_speed(struct evq *queue, void *self)
{
    (void)queue;
    drive_set_speed(rig.drive, (uint32_t)(uintptr_t)self);
}

static void a_change_of_speed_holds_from_its_instant_on_for_reads_in_flight(void **state)
{
    (void)state;
    /* 1 GB/s and 4 MB: with half the speed after 2 ms the rest takes twice as long. B1 or B_max
     * binds. */
    const uint64_t rates[][2] = {{GBS, 4 * GBS}, {0, GBS}, {4 * GBS, GBS}};
    const uint64_t grains[] = {0, 100000};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) {
            const struct storage s = curve_of(100 * US, rates[i][0], rates[i][1], grains[k]);
            rig_open(&s, 4);
            rig_submit(0, 4 * MS, 0);
            at(100 * US + 2 * MS, change_speed, 500);
            rig_drain();
            assert_close((double)rig.end_ns[0], (double)(100 * US + 6 * MS), 100.0);
            /* At half speed 2 ms bring 1 MB; at full speed again the rest takes 3 ms. */
            uint64_t start = evq_now_ns(rig.q);
            rig_submit(1, 4 * MS, 0);
            at(start + 100 * US + 2 * MS, change_speed, 1000);
            rig_drain();
            assert_close((double)(rig.end_ns[1] - start), (double)(100 * US + 5 * MS), 100.0);
            /* During the latency: nothing was streamed yet. */
            start = evq_now_ns(rig.q);
            rig_submit(2, 4 * MS, 0);
            at(start + 50 * US, change_speed, 500);
            rig_drain();
            assert_close((double)(rig.end_ns[2] - start), (double)(100 * US + 8 * MS), 100.0);
            rig_close();
        }
}

/* ---- chance, repetition, memory of its own ---- */

static void jitter_spreads_the_latency_around_its_mean_and_is_off_by_default(void **state)
{
    (void)state;
    const struct storage s = curve_of(200 * US, 0, 7 * GBS, 0);
    rig_open_net(1000 * GBS);
    struct drive_setup setup = {.storage = &s,
                                .name = "storage0",
                                .lanes = 1,
                                .reads_max = 256,
                                .net = rig.net,
                                .dram = rig.dram,
                                .dram_weight = 1,
                                .jitter_e3 = 200,
                                .seed = 42};
    assert_ok(drive_new(&rig.drive, rig.q, &setup, &dg));
    double sum = 0, squares = 0, before = 0;
    for (uintptr_t n = 0; n < 250; n++)
        rig_submit(n, 7, 0);
    rig_drain();
    for (size_t n = 0; n < 250; n++) {
        double t = (double)rig.end_ns[n] - before - 1;
        before = (double)rig.end_ns[n];
        sum += t;
        squares += t * t;
    }
    double mean = sum / 250, variance = squares / 250 - mean * mean;
    assert_close(mean, 200e3, 4 * 40e3 / 15.8);
    assert_close(variance / (40e3 * 40e3), 1.0, 0.35);
    rig_close();
}

static uint64_t fingerprint_of(const struct storage *s, uint32_t jitter_e3, uint64_t seed)
{
    rig_open_net(1000 * GBS);
    const struct drive_setup setup = {.storage = s,
                                      .name = "storage0",
                                      .lanes = 7,
                                      .reads_max = 256,
                                      .net = rig.net,
                                      .dram = rig.dram,
                                      .dram_weight = 1,
                                      .jitter_e3 = jitter_e3,
                                      .seed = seed};
    assert_ok(drive_new(&rig.drive, rig.q, &setup, &dg));
    for (uintptr_t n = 0; n < 100; n++)
        rig_submit(n, 4096 * (1 + n * 7 % 31), n % 3 == 0);
    rig_drain();
    uint64_t fingerprint = evq_fingerprint(rig.q);
    rig_close();
    return fingerprint;
}

static void the_same_run_has_the_same_fingerprint_and_another_seed_another(void **state)
{
    (void)state;
    const struct storage both[] = {curve_of(200 * US, 2 * GBS, 3 * GBS, 16384),
                                   rig_nand(4, 2, 2, 4096, 50 * US, GBS, 3 * GBS)};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fingerprint_of(&both[i], 0, 1), fingerprint_of(&both[i], 0, 1));
        assert_int_equal(fingerprint_of(&both[i], 0, 1), fingerprint_of(&both[i], 0, 2));
    }
    assert_int_equal(fingerprint_of(&both[0], 100, 1), fingerprint_of(&both[0], 100, 1));
    assert_int_not_equal(fingerprint_of(&both[0], 100, 1), fingerprint_of(&both[0], 100, 2));
    assert_int_not_equal(fingerprint_of(&both[0], 100, 1), fingerprint_of(&both[0], 0, 1));
}

static void nothing_is_allocated_while_it_runs(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const struct storage both[] = {curve_of(200 * US, 2 * GBS, 3 * GBS, 16384),
                                   rig_nand(4, 2, 2, 4096, 50 * US, GBS, 3 * GBS)};
    for (size_t i = 0; i < 2; i++) {
        rig_open(&both[i], 8);
        size_t before = allocations_count();
        for (uintptr_t n = 0; n < 200; n++)
            rig_submit(n, 200000, n % 2);
        rig_drain();
        assert_int_equal(allocations_count(), before);
        assert_int_equal(rig.landed, 200);
        rig_close();
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const struct storage both[] = {curve_of(200 * US, 2 * GBS, 3 * GBS, 16384),
                                   rig_nand(4, 2, 2, 4096, 50 * US, GBS, 3 * GBS)};
    const struct drive_run run = {.bytes = MIB, .lanes = 4};
    for (size_t i = 0; i < 2; i++) {
        size_t n = 0;
        enum status status;
        do {
            uint64_t rate;
            allocations_fail_at(++n);
            status = drive_run_benchmark(&rate, &both[i], &run, 10, &dg);
            allocations_fail_at(0);
            assert_true(status == ST_OK || status == ST_NO_MEMORY);
        } while (status != ST_OK);
        assert_true(n > 10);
    }
}

static void what_a_description_lacks_is_named(void **state)
{
    (void)state;
    const struct drive_run run = {.bytes = MIB, .lanes = 4};
    uint64_t rate;
    struct storage s = curve_of(1, 1, GBS, 0);
    s.latency.given = false;
    assert_int_equal(drive_run_benchmark(&rate, &s, &run, 1, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "latency"));
    s = curve_of(1, 1, GBS, 0);
    s.bandwidth.given = false;
    assert_int_equal(drive_run_benchmark(&rate, &s, &run, 1, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "bandwidth"));
    s = rig_nand(4, 2, 2, 4096, 50 * US, GBS, 3 * GBS);
    s.planes.given = false;
    assert_int_equal(drive_run_benchmark(&rate, &s, &run, 1, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "planes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_alone_takes_t0_and_its_bytes_at_the_slower_of_lane_and_pipe),
        cmocka_unit_test(host_time_is_added_to_the_latency),
        cmocka_unit_test(a_link_below_the_media_is_the_pipe),
        cmocka_unit_test(a_saturated_pipe_runs_at_exactly_its_rate),
        cmocka_unit_test(a_saturated_drive_stays_within_one_read_of_its_pipe_rate),
        cmocka_unit_test(a_burst_lands_one_by_one_with_the_read_as_grain),
        cmocka_unit_test(a_burst_lands_together_with_a_small_grain),
        cmocka_unit_test(a_closed_loop_reaches_the_closed_form),
        cmocka_unit_test(iops_bound_small_reads_exactly),
        cmocka_unit_test(the_queue_depth_limits_reads_in_flight_and_so_do_lanes),
        cmocka_unit_test(littles_law_holds_to_the_nanosecond_at_every_event),
        cmocka_unit_test(demand_overtakes_prefetch_that_waits_and_nothing_in_flight),
        cmocka_unit_test(a_promoted_prefetch_goes_before_prefetches_but_behind_demand),
        cmocka_unit_test(a_full_drive_refuses_and_has_room_again_after_an_end),
        cmocka_unit_test(memory_is_shared_max_min_between_reads_and_kernels),
        cmocka_unit_test(an_inflated_read_takes_its_own_time_and_more_of_the_memory),
        cmocka_unit_test(a_slower_memory_than_the_pipe_is_the_pipe),
        cmocka_unit_test(twice_a_rate_or_half_the_latency_never_slows_a_fixed_order),
        cmocka_unit_test(memory_gets_the_bytes_that_were_read),
        cmocka_unit_test(a_change_of_speed_holds_from_its_instant_on_for_reads_in_flight),
        cmocka_unit_test(jitter_spreads_the_latency_around_its_mean_and_is_off_by_default),
        cmocka_unit_test(the_same_run_has_the_same_fingerprint_and_another_seed_another),
        cmocka_unit_test(nothing_is_allocated_while_it_runs),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_a_description_lacks_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
