/* test_closed_form.c -- the integer closed form against published figures and against its laws. */
#include "tests/support.h"

#include "base/pcg.h"
#include "devices/device.h"

#define CATALOGUE "devices/desc"
#define MIB       UINT64_C(1048576)

static struct value given(uint64_t amount)
{
    return (struct value){.amount = amount, .given = true, .source = "test"};
}

static struct device *loaded(const char *name)
{
    struct diag dg;
    struct device *d = NULL;
    assert_ok(device_load(&d, name, CATALOGUE, NULL, 0, &dg));
    return d;
}

static void a_microsd_card_reads_as_published(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        double rate;
    } published[] = {
        {4096, 15.1e6}, {8192, 25.1e6}, {65536, 70.6e6}, {524288, 89.6e6}, {1048576, 92.0e6}};
    struct device *d = loaded("microsd-a2");
    double sum = 0;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        double rate = (double)storage_closed_rate_Bps(&d->storage[0], published[i].bytes, 1);
        double off = rate / published[i].rate - 1;
        assert_close(off, 0, 0.03);
        sum += off * off;
    }
    assert_close(sum / 5, 0, 0.014 * 0.014); /* RMS 1.4 % */
    device_free(d);
}

static void llm_in_a_flash_reads_as_published(void **state)
{
    (void)state;
    struct device *d = loaded("m1-max-64gb");
    const struct storage *s = &d->storage[0];
    assert_close((double)storage_closed_rate_Bps(s, 8192, 32), 1.25e9, 0.01e9);
    assert_close((double)storage_closed_rate_Bps(s, 16384, 32), 2.25e9, 0.01e9);
    assert_int_equal(storage_closed_rate_Bps(s, UINT64_C(1) << 30, 32), 6100000000);
    device_free(d);
}

static void slotstream_reads_as_published(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, depth;
        double rate;
    } published[] = {{2764800, 1, 9.46e9},  {2764800, 4, 16.95e9}, {2764800, 8, 17.25e9},
                     {2764800, 32, 17.3e9}, {16384, 1, 0.27e9},    {16384, 8, 2.04e9},
                     {16384, 32, 4.54e9}};
    struct device *d = loaded("m5-pro-48gb");
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        double rate =
            (double)storage_closed_rate_Bps(&d->storage[0], published[i].bytes, published[i].depth);
        assert_close(rate / published[i].rate, 1, 0.04);
    }
    device_free(d);
}

static void the_formula_is_exact(void **state)
{
    (void)state;
    /* 100 us + 1 MB at 10 GB/s = 200 us a read: 5 GB/s a lane. */
    struct storage s = {.latency = given(100000),
                        .lane_bandwidth = given(10000000000),
                        .bandwidth = given(12000000000)};
    assert_int_equal(storage_closed_rate_Bps(&s, 1000000, 1), 5000000000);
    assert_int_equal(storage_closed_rate_Bps(&s, 1000000, 2), 10000000000);
    assert_int_equal(storage_closed_rate_Bps(&s, 1000000, 3), 12000000000);
    assert_int_equal(storage_closed_rate_Bps(&s, 1000000, 0), 5000000000);
    s.iops = given(3000);
    assert_int_equal(storage_closed_rate_Bps(&s, 1000000, 3), 3000000000);
    s.link_bandwidth = given(2000000000);
    assert_int_equal(storage_closed_rate_Bps(&s, 1000000, 3), 2000000000);
    s = (struct storage){.latency = given(100000), .queue_depth = given(4)};
    assert_int_equal(storage_closed_rate_Bps(&s, 1000, 4), 40000000);
    assert_int_equal(storage_closed_rate_Bps(&s, 1000, 400), 40000000);
    /* Three reads of a third each make one: rounded once, at the end. */
    s = (struct storage){.latency = given(3)};
    assert_int_equal(storage_closed_rate_Bps(&s, 1, 3), 1000000000);
}

static void what_is_not_given_does_not_limit(void **state)
{
    (void)state;
    const struct storage none = {0};
    assert_int_equal(storage_closed_rate_Bps(&none, 4096, 1), UINT64_MAX);
    assert_int_equal(storage_closed_burst_ns(&none, 16, 4096, 4), 0);
}

static void a_burst_takes_the_longest_of_rounds_pipe_and_commands(void **state)
{
    (void)state;
    struct storage s = {.latency = given(100000), .lane_bandwidth = given(10000000000)};
    assert_int_equal(storage_closed_burst_ns(&s, 0, 1000000, 4), 0);
    assert_int_equal(storage_closed_burst_ns(&s, 4, 1000000, 4), 200000);
    assert_int_equal(storage_closed_burst_ns(&s, 5, 1000000, 4), 400000);
    s.bandwidth = given(5000000000);
    assert_int_equal(storage_closed_burst_ns(&s, 5, 1000000, 4), 1000000);
    s.iops = given(1000);
    assert_int_equal(storage_closed_burst_ns(&s, 5, 1000000, 4), 5000000);
    /* Rounded up: 1 B at 3 B/s is 333333333.3 ns. */
    s = (struct storage){.bandwidth = given(3)};
    assert_int_equal(storage_closed_burst_ns(&s, 1, 1, 1), 333333334);
}

static void nand_is_limited_by_its_planes_or_its_buses(void **state)
{
    (void)state;
    /* 2 channels x 2 dies x 2 planes x 16 KiB a 50 us = 2.62 GB/s of array, 2 x 1 GB/s of bus. */
    struct storage s = {.model = STORAGE_NAND,
                        .channels = given(2),
                        .dies_per_channel = given(2),
                        .planes = given(2),
                        .page_bytes = given(16384),
                        .read_time = given(50000),
                        .bus_bandwidth = given(1000000000)};
    assert_int_equal(storage_closed_rate_Bps(&s, 64 * MIB, 1), 2000000000);
    s.bus_bandwidth = given(4000000000);
    assert_int_equal(storage_closed_rate_Bps(&s, 64 * MIB, 1), 2621440000);
    assert_int_equal(storage_closed_rate_Bps(&s, 4096, 1), 81920000);
}

/* A random drive within the limits of a description. */
static struct storage drawn_drive(struct pcg *p)
{
    struct storage s = {0};
    s.latency = given(1 + pcg_below(p, 1000000));
    s.lane_bandwidth = given(1 + pcg_u64(p) % UINT64_C(1000000000000));
    s.bandwidth = given(1 + pcg_u64(p) % UINT64_C(1000000000000));
    s.iops = given(1 + pcg_below(p, 10000000));
    s.queue_depth = given(1 + pcg_below(p, 1024));
    return s;
}

static void the_rate_is_monotone_in_everything(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 1, "closed_form");
    for (int i = 0; i < 20000; i++) {
        const struct storage s = drawn_drive(&p);
        uint64_t bytes = 1 + pcg_u64(&p) % (1 << 26), depth = 1 + pcg_below(&p, 64);
        uint64_t rate = storage_closed_rate_Bps(&s, bytes, depth);
        struct storage t = s;
        t.bandwidth.amount += 1 + pcg_below(&p, 1000000);
        assert_true(storage_closed_rate_Bps(&t, bytes, depth) >= rate);
        t.lane_bandwidth.amount += 1 + pcg_below(&p, 1000000);
        assert_true(storage_closed_rate_Bps(&t, bytes, depth) >= rate);
        t.iops.amount++;
        assert_true(storage_closed_rate_Bps(&t, bytes, depth) >= rate);
        t.latency.amount--;
        assert_true(storage_closed_rate_Bps(&t, bytes, depth) >= rate);
        assert_true(storage_closed_rate_Bps(&s, bytes, depth + 1) >= rate);
        assert_true(storage_closed_rate_Bps(&s, bytes + 1, depth) >= rate);
        assert_true(rate <= s.bandwidth.amount);
    }
}

static void a_burst_is_never_faster_than_the_rate_allows(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 2, "closed_form");
    for (int i = 0; i < 20000; i++) {
        const struct storage s = drawn_drive(&p);
        uint64_t bytes = 1 + pcg_u64(&p) % (1 << 24), depth = 1 + pcg_below(&p, 64);
        uint64_t n = 1 + pcg_below(&p, 200);
        uint64_t rate = storage_closed_rate_Bps(&s, bytes, depth);
        uint64_t ns = storage_closed_burst_ns(&s, n, bytes, depth);
        /* bytes moved <= (rate + 1) x time: the rate is rounded down, the time up. */
        unsigned __int128 moved = (unsigned __int128)n * bytes * 1000000000u;
        assert_true(moved <= (unsigned __int128)(rate + 1) * ns);
        assert_true(storage_closed_burst_ns(&s, n + 1, bytes, depth) >= ns);
        struct storage t = s;
        t.bandwidth.amount *= 2;
        assert_true(storage_closed_burst_ns(&t, n, bytes, depth) <= ns);
    }
}

static void extreme_arguments_stay_in_range(void **state)
{
    (void)state;
    const struct storage s = {.latency = given(1),
                              .lane_bandwidth = given(UINT64_C(1000000000000000)),
                              .bandwidth = given(UINT64_C(1000000000000000)),
                              .iops = given(UINT64_C(1000000000000))};
    assert_true(storage_closed_rate_Bps(&s, UINT64_MAX, UINT64_MAX) <= s.bandwidth.amount);
    assert_true(storage_closed_rate_Bps(&s, UINT64_MAX, 1) > UINT64_C(999000000000000));
    assert_true(storage_closed_burst_ns(&s, UINT64_MAX, UINT64_MAX, 1) > 0);
    const struct storage slow = {.bandwidth = given(1)};
    assert_int_equal(storage_closed_burst_ns(&slow, UINT64_MAX, UINT64_MAX, 1), UINT64_MAX);
    assert_int_equal(storage_closed_rate_Bps(&s, 0, 1), 0);
}

static void a_rate_that_was_scaled_to_nothing_is_slow_but_defined(void **state)
{
    (void)state;
    struct storage s = {.bandwidth = given(0), .lane_bandwidth = given(0), .iops = given(0)};
    assert_int_equal(storage_closed_burst_ns(&s, 1, 10, 1), UINT64_C(10000000000));
    s.iops.given = false;
    assert_int_equal(storage_closed_rate_Bps(&s, 10, 1), 1);
    struct storage n = {.model = STORAGE_NAND,
                        .channels = given(1),
                        .dies_per_channel = given(1),
                        .planes = given(1),
                        .page_bytes = given(4096),
                        .read_time = given(0),
                        .bus_bandwidth = given(0)};
    assert_int_equal(storage_closed_rate_Bps(&n, 10, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_microsd_card_reads_as_published),
        cmocka_unit_test(llm_in_a_flash_reads_as_published),
        cmocka_unit_test(slotstream_reads_as_published),
        cmocka_unit_test(the_formula_is_exact),
        cmocka_unit_test(what_is_not_given_does_not_limit),
        cmocka_unit_test(a_burst_takes_the_longest_of_rounds_pipe_and_commands),
        cmocka_unit_test(nand_is_limited_by_its_planes_or_its_buses),
        cmocka_unit_test(the_rate_is_monotone_in_everything),
        cmocka_unit_test(a_burst_is_never_faster_than_the_rate_allows),
        cmocka_unit_test(extreme_arguments_stay_in_range),
        cmocka_unit_test(a_rate_that_was_scaled_to_nothing_is_slow_but_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
