/* The NAND model: latencies by hand, overlap of dies and buses, saturation at the least of array,
 * buses and link, stalls of a die, priorities inside it, read disturb. */
#include "tests/drive_rig.h"
#include "tests/support.h"

static struct diag dg;

static void assert_order(const uintptr_t *expected, size_t count)
{
    assert_int_equal(rig.landed, count);
    assert_memory_equal(rig.order, expected, count * sizeof *expected);
}

static void a_page_takes_tR_its_bus_and_its_link(void **state)
{
    (void)state;
    /* 16 KiB x 2 planes: 40 us, 32768 B at 1 GB/s, and again at 4 GB/s. */
    const struct storage s = rig_nand(4, 2, 2, 16384, 40 * US, GBS, 4 * GBS);
    rig_open(&s, 4);
    rig_submit(0, 32768, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 40 * US + 32768 + 8192);
    rig_close();
    /* Of a page that is read in part only what was asked for moves. */
    rig_open(&s, 4);
    rig_submit(0, 4000, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 40 * US + 4000 + 1000);
    rig_close();
}

static void latency_of_a_description_includes_tR(void **state)
{
    (void)state;
    struct storage s = rig_nand(4, 2, 2, 16384, 40 * US, GBS, 4 * GBS);
    s.latency = rig_value(65 * US);
    rig_open(&s, 4);
    rig_submit(0, 4000, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 65 * US + 5000);
    rig_close();
}

static void units_of_a_read_overlap_as_dies_and_buses_allow(void **state)
{
    (void)state;
    /* One channel, two dies: both read at once, the bus moves one after the other, 10 us each. */
    struct storage s = rig_nand(1, 2, 1, 10000, 40 * US, GBS, 10 * GBS);
    rig_open(&s, 1);
    rig_submit(0, 20000, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 40 * US + 20 * US + US);
    rig_close();
    /* Two channels, a die each: the buses work at once, the link follows itself. */
    s = rig_nand(2, 1, 1, 10000, 40 * US, GBS, 10 * GBS);
    rig_open(&s, 1);
    rig_submit(0, 20000, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 40 * US + 10 * US + 2 * US);
    rig_close();
    /* One die: it reads the second unit while the first is on the bus. */
    s = rig_nand(1, 1, 1, 10000, 40 * US, GBS, 10 * GBS);
    rig_open(&s, 1);
    rig_submit(0, 30000, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 3 * 40 * US + 10 * US + US);
    rig_close();
    /* One die and a slow bus: the third unit waits for the register. */
    s = rig_nand(1, 1, 1, 100000, 40 * US, GBS, 10 * GBS);
    rig_open(&s, 1);
    rig_submit(0, 300000, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 40 * US + 3 * 100 * US + 10 * US);
    rig_close();
}

static void nand_saturates_at_the_least_of_array_buses_and_link(void **state)
{
    (void)state;
    const struct {
        struct storage s;
        double Bps;
    } cases[] = {
        {rig_nand(8, 4, 4, 16384, 50 * US, 1200 * MS, 7 * GBS), 7e9},                /* link */
        {rig_nand(4, 4, 4, 16384, 50 * US, 1200 * MS, 14 * GBS), 4.8e9},             /* buses */
        {rig_nand(4, 2, 2, 16384, 80 * US, 2400 * MS, 14 * GBS), 8 * 32768 / 80e-6}, /* array */
        {rig_nand(2, 1, 1, 4096, 3 * US, 1200 * MS, 0), 2.4e9}, /* buses, no link */
        {rig_nand(16, 4, 4, 4096, 5 * US, 12 * GBS, 0), 16 * 12e9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct drive_run run = {.bytes = 4 * MIB, .lanes = 16};
        uint64_t rate;
        assert_ok(drive_run_benchmark(&rate, &cases[i].s, &run, 1000, &dg));
        assert_close((double)rate / cases[i].Bps, 1.0, 0.03);
        assert_true((double)rate <= cases[i].Bps * 1.0001);
        assert_close((double)storage_closed_rate_Bps(&cases[i].s, 4 * MIB, 16) / cases[i].Bps, 1.0,
                     1e-6);
    }
}

static void nand_throttles_as_a_whole(void **state)
{
    (void)state;
    const struct storage s = rig_nand(4, 2, 2, 16384, 40 * US, GBS, 4 * GBS);
    rig_open(&s, 4);
    drive_set_speed(rig.drive, 500);
    rig_submit(0, 32768, 0);
    rig_drain();
    assert_int_equal(rig.end_ns[0], 2 * (40 * US + 32768 + 8192));
    rig_close();
}

static void a_die_reads_demand_before_prefetch(void **state)
{
    (void)state;
    const struct storage s = rig_nand(1, 1, 1, 16384, 40 * US, GBS, 4 * GBS);
    rig_open(&s, 8);
    for (uintptr_t n = 10; n < 13; n++)
        rig_submit(n, 16384, DRIVE_PREFETCH);
    rig_submit(1, 16384, DRIVE_DEMAND);
    rig_drain();
    const uintptr_t expected[] = {10, 1, 11, 12};
    assert_order(expected, 4);
    rig_close();
}

static void submit_demand(struct evq *queue, void *self)
{
    (void)queue;
    rig_submit((uintptr_t)self, 100000, DRIVE_DEMAND);
}

static void a_die_with_a_full_register_stalls_before_its_next_unit(void **state)
{
    (void)state;
    /* tR 40 us, bus 100 us a unit, link 10 us. The second unit waits in the array from 80 to 140
     * us; so a demand read that comes at 100 us is read before the third, and is on the bus before
     * it. */
    const struct storage s = rig_nand(1, 1, 1, 100000, 40 * US, GBS, 10 * GBS);
    rig_open(&s, 4);
    rig_submit(9, 300000, DRIVE_PREFETCH);
    assert_int_equal(evq_at(rig.q, 100 * US, submit_demand, (void *)1), ST_OK);
    rig_drain();
    assert_int_equal(rig.end_ns[1], (40 + 3 * 100 + 10) * US);
    assert_int_equal(rig.end_ns[9], (40 + 4 * 100 + 10) * US);
    rig_close();
}

static void a_promoted_read_is_demand_inside_the_die_too(void **state)
{
    (void)state;
    const struct storage s = rig_nand(1, 1, 1, 16384, 40 * US, GBS, 4 * GBS);
    for (int promoted = 0; promoted < 2; promoted++) {
        rig_open(&s, 2);
        rig_submit(1, 16384, DRIVE_PREFETCH);
        rig_submit(2, 10 * 16384, DRIVE_PREFETCH);
        rig_submit(3, 16384, DRIVE_PREFETCH);
        if (promoted)
            assert_true(drive_promote(rig.drive, rig.ticket[3]));
        rig_drain();
        const uintptr_t expected[2][3] = {{1, 2, 3}, {1, 3, 2}};
        assert_order(expected[promoted], 3);
        rig_close();
    }
}

static void pages_read_are_counted_by_block(void **state)
{
    (void)state;
    struct storage s = rig_nand(2, 2, 2, 4096, 5 * US, GBS, 4 * GBS);
    s.capacity = rig_value(8192 * UINT64_C(4) * 1024 * 8); /* 8 blocks a die */
    rig_open(&s, 8);
    for (size_t n = 0; n < 50; n++)
        rig_submit(7, 8192 * 6, 0);
    rig_drain();
    struct drive_disturb got;
    assert_true(drive_disturb(rig.drive, &got));
    assert_int_equal(got.dies, 4);
    assert_int_equal(got.blocks_per_die, 8);
    assert_int_equal(got.block_bytes, 8192 * 1024);
    assert_int_equal(got.page_reads, 50 * 6);
    assert_int_equal(got.die_reads_max, 100); /* two of the six units */
    assert_int_equal(got.block_reads_max, 100);
    uint64_t sum = 0;
    for (uint32_t die = 0; die < 4; die++)
        for (uint32_t block = 0; block < 8; block++)
            sum += drive_block_reads(rig.drive, die, block);
    assert_int_equal(sum, 300);
    rig_close();
    const struct storage c = {.latency = rig_value(1), .bandwidth = rig_value(GBS)};
    rig_open(&c, 1);
    assert_false(drive_disturb(rig.drive, &got));
    rig_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_takes_tR_its_bus_and_its_link),
        cmocka_unit_test(latency_of_a_description_includes_tR),
        cmocka_unit_test(units_of_a_read_overlap_as_dies_and_buses_allow),
        cmocka_unit_test(nand_saturates_at_the_least_of_array_buses_and_link),
        cmocka_unit_test(nand_throttles_as_a_whole),
        cmocka_unit_test(a_die_reads_demand_before_prefetch),
        cmocka_unit_test(a_die_with_a_full_register_stalls_before_its_next_unit),
        cmocka_unit_test(a_promoted_read_is_demand_inside_the_die_too),
        cmocka_unit_test(pages_read_are_counted_by_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
