/* The NAND model: latencies by hand, overlap of dies and buses, saturation at the least of array,
 * buses and link, stalls of a die, priorities inside it, read disturb. */
#include "tests/support.h"

#include "sim/pipeline/drive_bench.h"

#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GBS UINT64_C(1000000000)

static struct diag dg;
static struct evq *q;
static struct flow_net *net;
static struct drive *drive;

enum { MARKS = 64 };
static uint64_t ends[MARKS], tickets[MARKS];
static uintptr_t order[MARKS];
static size_t landed;

static struct value value_of(uint64_t amount)
{
    return (struct value){.amount = amount, .given = true};
}

static struct storage nand_of(uint64_t channels, uint64_t dies, uint64_t planes, uint64_t page,
                              uint64_t read_ns, uint64_t bus_Bps, uint64_t link_Bps)
{
    struct storage s = {.name = "test", .model = STORAGE_NAND};
    s.channels = value_of(channels);
    s.dies_per_channel = value_of(dies);
    s.planes = value_of(planes);
    s.page_bytes = value_of(page);
    s.read_time = value_of(read_ns);
    s.bus_bandwidth = value_of(bus_Bps);
    if (link_Bps)
        s.link_bandwidth = value_of(link_Bps);
    return s;
}

static void open_drive(const struct storage *s, uint32_t lanes)
{
    uint32_t dram;
    assert_int_equal(evq_new(&q, 100), ST_OK);
    assert_ok(flow_net_new(&net, q, 4, &dg));
    assert_ok(flow_resource_add(net, 1000 * GBS, &dram, &dg));
    const struct drive_setup setup = {.storage = s,
                                      .name = "storage0",
                                      .lanes = lanes,
                                      .reads_max = MARKS,
                                      .net = net,
                                      .dram = dram,
                                      .dram_weight = 1};
    assert_ok(drive_new(&drive, q, &setup, &dg));
    memset(ends, 0xff, sizeof ends);
    landed = 0;
}

static void close_drive(void)
{
    drive_free(drive);
    flow_net_free(net);
    evq_free(q);
}

static void mark(struct evq *queue, void *self)
{
    ends[(uintptr_t)self] = evq_now_ns(queue);
    order[landed++] = (uintptr_t)self;
}

static void submit(uintptr_t number, uint64_t bytes, uint32_t level)
{
    const struct drive_read r = {
        .bytes = bytes, .place = number, .level = level, .done = mark, .self = (void *)number};
    assert_int_equal(drive_submit(drive, &r, &tickets[number]), ST_OK);
}

static void drain(void)
{
    while (evq_step(q))
        ;
}

static void assert_order(const uintptr_t *expected, size_t count)
{
    assert_int_equal(landed, count);
    assert_memory_equal(order, expected, count * sizeof *expected);
}

static void a_page_takes_tR_its_bus_and_its_link(void **state)
{
    (void)state;
    /* 16 KiB x 2 planes: 40 us, 32768 B at 1 GB/s, and again at 4 GB/s. */
    const struct storage s = nand_of(4, 2, 2, 16384, 40 * US, GBS, 4 * GBS);
    open_drive(&s, 4);
    submit(0, 32768, 0);
    drain();
    assert_int_equal(ends[0], 40 * US + 32768 + 8192);
    close_drive();
    /* Of a page that is read in part only what was asked for moves. */
    open_drive(&s, 4);
    submit(0, 4000, 0);
    drain();
    assert_int_equal(ends[0], 40 * US + 4000 + 1000);
    close_drive();
}

static void latency_of_a_description_includes_tR(void **state)
{
    (void)state;
    struct storage s = nand_of(4, 2, 2, 16384, 40 * US, GBS, 4 * GBS);
    s.latency = value_of(65 * US);
    open_drive(&s, 4);
    submit(0, 4000, 0);
    drain();
    assert_int_equal(ends[0], 65 * US + 5000);
    close_drive();
}

static void units_of_a_read_overlap_as_dies_and_buses_allow(void **state)
{
    (void)state;
    /* One channel, two dies: both read at once, the bus moves one after the other, 10 us each. */
    struct storage s = nand_of(1, 2, 1, 10000, 40 * US, GBS, 10 * GBS);
    open_drive(&s, 1);
    submit(0, 20000, 0);
    drain();
    assert_int_equal(ends[0], 40 * US + 20 * US + US);
    close_drive();
    /* Two channels, a die each: the buses work at once, the link follows itself. */
    s = nand_of(2, 1, 1, 10000, 40 * US, GBS, 10 * GBS);
    open_drive(&s, 1);
    submit(0, 20000, 0);
    drain();
    assert_int_equal(ends[0], 40 * US + 10 * US + 2 * US);
    close_drive();
    /* One die: it reads the second unit while the first is on the bus. */
    s = nand_of(1, 1, 1, 10000, 40 * US, GBS, 10 * GBS);
    open_drive(&s, 1);
    submit(0, 30000, 0);
    drain();
    assert_int_equal(ends[0], 3 * 40 * US + 10 * US + US);
    close_drive();
    /* One die and a slow bus: the third unit waits for the register. */
    s = nand_of(1, 1, 1, 100000, 40 * US, GBS, 10 * GBS);
    open_drive(&s, 1);
    submit(0, 300000, 0);
    drain();
    assert_int_equal(ends[0], 40 * US + 3 * 100 * US + 10 * US);
    close_drive();
}

static void nand_saturates_at_the_least_of_array_buses_and_link(void **state)
{
    (void)state;
    const struct {
        struct storage s;
        double Bps;
    } cases[] = {
        {nand_of(8, 4, 4, 16384, 50 * US, 1200 * MS, 7 * GBS), 7e9},                /* link */
        {nand_of(4, 4, 4, 16384, 50 * US, 1200 * MS, 14 * GBS), 4.8e9},             /* buses */
        {nand_of(4, 2, 2, 16384, 80 * US, 2400 * MS, 14 * GBS), 8 * 32768 / 80e-6}, /* array */
        {nand_of(2, 1, 1, 4096, 3 * US, 1200 * MS, 0), 2.4e9}, /* buses, no link */
        {nand_of(16, 4, 4, 4096, 5 * US, 12 * GBS, 0), 16 * 12e9},
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
    const struct storage s = nand_of(4, 2, 2, 16384, 40 * US, GBS, 4 * GBS);
    open_drive(&s, 4);
    drive_set_speed(drive, 500);
    submit(0, 32768, 0);
    drain();
    assert_int_equal(ends[0], 2 * (40 * US + 32768 + 8192));
    close_drive();
}

static void a_die_reads_demand_before_prefetch(void **state)
{
    (void)state;
    const struct storage s = nand_of(1, 1, 1, 16384, 40 * US, GBS, 4 * GBS);
    open_drive(&s, 8);
    for (uintptr_t n = 10; n < 13; n++)
        submit(n, 16384, DRIVE_PREFETCH);
    submit(1, 16384, DRIVE_DEMAND);
    drain();
    const uintptr_t expected[] = {10, 1, 11, 12};
    assert_order(expected, 4);
    close_drive();
}

static void submit_demand(struct evq *queue, void *self)
{
    (void)queue;
    submit((uintptr_t)self, 100000, DRIVE_DEMAND);
}

static void a_die_with_a_full_register_stalls_before_its_next_unit(void **state)
{
    (void)state;
    /* tR 40 us, bus 100 us a unit, link 10 us. The second unit waits in the array from 80 to 140
     * us; so a demand read that comes at 100 us is read before the third, and is on the bus before
     * it. */
    const struct storage s = nand_of(1, 1, 1, 100000, 40 * US, GBS, 10 * GBS);
    open_drive(&s, 4);
    submit(9, 300000, DRIVE_PREFETCH);
    assert_int_equal(evq_at(q, 100 * US, submit_demand, (void *)1), ST_OK);
    drain();
    assert_int_equal(ends[1], (40 + 3 * 100 + 10) * US);
    assert_int_equal(ends[9], (40 + 4 * 100 + 10) * US);
    close_drive();
}

static void a_promoted_read_is_demand_inside_the_die_too(void **state)
{
    (void)state;
    const struct storage s = nand_of(1, 1, 1, 16384, 40 * US, GBS, 4 * GBS);
    for (int promoted = 0; promoted < 2; promoted++) {
        open_drive(&s, 2);
        submit(1, 16384, DRIVE_PREFETCH);
        submit(2, 10 * 16384, DRIVE_PREFETCH);
        submit(3, 16384, DRIVE_PREFETCH);
        if (promoted)
            assert_true(drive_promote(drive, tickets[3]));
        drain();
        const uintptr_t expected[2][3] = {{1, 2, 3}, {1, 3, 2}};
        assert_order(expected[promoted], 3);
        close_drive();
    }
}

static void pages_read_are_counted_by_block(void **state)
{
    (void)state;
    struct storage s = nand_of(2, 2, 2, 4096, 5 * US, GBS, 4 * GBS);
    s.capacity = value_of(8192 * UINT64_C(4) * 1024 * 8); /* 8 blocks a die */
    open_drive(&s, 8);
    for (size_t n = 0; n < 50; n++)
        submit(7, 8192 * 6, 0);
    drain();
    struct drive_disturb got;
    assert_true(drive_disturb(drive, &got));
    assert_int_equal(got.dies, 4);
    assert_int_equal(got.blocks_per_die, 8);
    assert_int_equal(got.block_bytes, 8192 * 1024);
    assert_int_equal(got.page_reads, 50 * 6);
    assert_int_equal(got.die_reads_max, 100); /* two of the six units */
    assert_int_equal(got.block_reads_max, 100);
    uint64_t sum = 0;
    for (uint32_t die = 0; die < 4; die++)
        for (uint32_t block = 0; block < 8; block++)
            sum += drive_block_reads(drive, die, block);
    assert_int_equal(sum, 300);
    close_drive();
    const struct storage c = {.latency = value_of(1), .bandwidth = value_of(GBS)};
    open_drive(&c, 1);
    assert_false(drive_disturb(drive, &got));
    close_drive();
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
