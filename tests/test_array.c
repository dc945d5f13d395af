/* Several drives as one: striping and mirroring add up rates, lose nothing, and change nothing for
 * one. */
#include "tests/support.h"

#include "sim/pipeline/array.h"
#include "tests/allocations.h"
#include "tests/drive_rig.h"

static struct diag dg;
static struct evq *q;
static struct flow_net *net;
static struct array *array;
static struct storage storage[4];
static struct device device;

enum { MARKS = 2048 };
static uint64_t ends[MARKS];
static size_t landed;
static uint64_t left_to_submit, read_bytes;

static enum status try_open(size_t drives, enum array_layout layout, uint32_t lanes)
{
    uint32_t dram;
    device = (struct device){.name = "test", .storage_count = drives, .storage = storage};
    for (size_t i = 0; i < drives; i++)
        storage[i] = (struct storage){.name = "drive",
                                      .latency = rig_value(100 * US),
                                      .lane_bandwidth = rig_value(2 * GBS),
                                      .bandwidth = rig_value(3 * GBS)};
    assert_int_equal(evq_new(&q, 1000), ST_OK);
    assert_ok(flow_net_new(&net, q, 16, &dg));
    assert_ok(flow_resource_add(net, 1000 * GBS, &dram, &dg));
    const struct array_setup setup = {.device = &device,
                                      .layout = layout,
                                      .lanes = lanes,
                                      .reads_max = 64,
                                      .net = net,
                                      .dram = dram,
                                      .dram_weight = 1};
    memset(ends, 0xff, sizeof ends);
    landed = 0;
    return array_new(&array, q, &setup, &dg);
}

static void close_array(void)
{
    array_free(array);
    array = NULL;
    flow_net_free(net);
    evq_free(q);
}

static void submit_next(void);

static void mark(struct evq *queue, void *self)
{
    (void)self;
    ends[landed++] = evq_now_ns(queue);
    if (left_to_submit)
        submit_next();
}

static void submit_next(void)
{
    const struct drive_read r = {.bytes = read_bytes, .place = left_to_submit, .done = mark};
    left_to_submit--;
    assert_int_equal(array_submit(array, &r), ST_OK);
}

/* `reads` reads, `at_once` of them under way; the time until the last has landed. */
static uint64_t run_reads(uint64_t bytes, uint64_t reads, uint64_t at_once)
{
    uint64_t start = evq_now_ns(q);
    read_bytes = bytes;
    left_to_submit = reads;
    for (uint64_t i = 0; i < at_once; i++)
        submit_next();
    while (evq_step(q))
        ;
    return evq_now_ns(q) - start;
}

static uint64_t time_of(size_t drives, enum array_layout layout, uint64_t bytes, uint64_t reads,
                        uint64_t at_once)
{
    assert_ok(try_open(drives, layout, 32));
    uint64_t ns = run_reads(bytes, reads, at_once);
    assert_int_equal(landed, reads);
    struct array_counts c = array_counts(array, evq_now_ns(q));
    assert_int_equal(c.reads, reads);
    assert_int_equal(c.bytes, reads * bytes);
    assert_int_equal(c.busy_ns, ns);
    uint64_t of_drives = 0;
    for (size_t i = 0; i < array_drive_count(array); i++)
        of_drives += drive_counts(array_drive(array, i), evq_now_ns(q)).bytes;
    assert_int_equal(of_drives, reads * bytes);
    close_array();
    return ns;
}

static void one_drive_is_the_same_under_both_layouts(void **state)
{
    (void)state;
    for (uint64_t bytes = 1; bytes < 8 * MIB; bytes = bytes * 3 + 1) {
        uint64_t striped = time_of(1, ARRAY_STRIPED, bytes, 20, 4);
        assert_int_equal(striped, time_of(1, ARRAY_MIRRORED, bytes, 20, 4));
    }
    assert_int_equal(time_of(1, ARRAY_STRIPED, 2000, 1, 1), 101 * US);
}

static void striping_halves_the_bytes_of_a_read_and_not_its_latency(void **state)
{
    (void)state;
    assert_int_equal(time_of(2, ARRAY_STRIPED, 4096 * 1000, 1, 1), 100 * US + 1024 * US);
    assert_int_equal(time_of(4, ARRAY_STRIPED, 4096 * 1000, 1, 1), 100 * US + 512 * US);
    assert_int_equal(time_of(2, ARRAY_MIRRORED, 4096 * 1000, 1, 1), 100 * US + 2048 * US);
}

static void two_drives_double_the_rate_of_many_reads(void **state)
{
    (void)state;
    for (int layout = ARRAY_STRIPED; layout <= ARRAY_MIRRORED; layout++) {
        double one = (double)time_of(1, layout, 2 * MIB, 1000, 32);
        double two = (double)time_of(2, layout, 2 * MIB, 1000, 32);
        assert_close(one / two, 2.0, 0.02);
        double four = (double)time_of(4, layout, 2 * MIB, 1000, 32);
        assert_close(one / four, 4.0, 0.08);
    }
}

static void small_reads_go_round_the_drives(void **state)
{
    (void)state;
    assert_ok(try_open(4, ARRAY_STRIPED, 32));
    run_reads(4096, 40, 8);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(drive_counts(array_drive(array, i), evq_now_ns(q)).reads, 10);
    close_array();
}

static void a_mirrored_read_goes_to_the_drive_with_the_fewest(void **state)
{
    (void)state;
    assert_ok(try_open(3, ARRAY_MIRRORED, 32));
    read_bytes = MIB;
    left_to_submit = 7;
    while (left_to_submit)
        submit_next();
    assert_int_equal(drive_in_flight(array_drive(array, 0)), 3);
    assert_int_equal(drive_in_flight(array_drive(array, 1)), 2);
    assert_int_equal(drive_in_flight(array_drive(array, 2)), 2);
    while (evq_step(q))
        ;
    close_array();
}

static void a_full_array_refuses(void **state)
{
    (void)state;
    assert_ok(try_open(2, ARRAY_STRIPED, 32));
    const struct drive_read r = {.bytes = MIB};
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(array_submit(array, &r), ST_OK);
    assert_int_equal(array_submit(array, &r), ST_RANGE);
    while (evq_step(q))
        ;
    assert_int_equal(array_submit(array, &r), ST_OK);
    close_array();
}

static void half_the_speed_takes_twice_as_long_but_for_the_latency(void **state)
{
    (void)state;
    assert_ok(try_open(2, ARRAY_STRIPED, 32));
    array_set_speed(array, 500);
    assert_int_equal(run_reads(4096 * 1000, 1, 1), 100 * US + 2048 * US);
    close_array();
}

static void a_device_without_storage_is_refused(void **state)
{
    (void)state;
    assert_int_equal(try_open(0, ARRAY_STRIPED, 1), ST_MISFIT);
    assert_non_null(strstr(dg.text, "no storage"));
    close_array();
}

static void running_needs_no_allocation(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    assert_ok(try_open(3, ARRAY_STRIPED, 8));
    size_t before = allocations_count();
    run_reads(300000, 100, 32);
    assert_int_equal(allocations_count(), before);
    close_array();
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    assert_ok(try_open(3, ARRAY_STRIPED, 8));
    const struct array_setup setup = {
        .device = &device, .lanes = 8, .reads_max = 64, .net = net, .dram_weight = 1};
    struct array *other = NULL;
    size_t n = 0;
    enum status status;
    do {
        allocations_fail_at(++n);
        status = array_new(&other, q, &setup, &dg);
        allocations_fail_at(0);
        assert_true(status == ST_OK || status == ST_NO_MEMORY);
    } while (status != ST_OK);
    assert_true(n > 3);
    array_free(other);
    close_array();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_drive_is_the_same_under_both_layouts),
        cmocka_unit_test(striping_halves_the_bytes_of_a_read_and_not_its_latency),
        cmocka_unit_test(two_drives_double_the_rate_of_many_reads),
        cmocka_unit_test(small_reads_go_round_the_drives),
        cmocka_unit_test(a_mirrored_read_goes_to_the_drive_with_the_fewest),
        cmocka_unit_test(a_full_array_refuses),
        cmocka_unit_test(half_the_speed_takes_twice_as_long_but_for_the_latency),
        cmocka_unit_test(a_device_without_storage_is_refused),
        cmocka_unit_test(running_needs_no_allocation),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
