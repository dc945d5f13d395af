/* test_fit.c -- the closed-form fit: it finds what made the data, says how sure it is, and
 * refuses. */
#include "tests/support.h"

#include "tests/mutate.h"

#include "base/pcg.h"
#include "devices/fit.h"
#include "devices/part_file.h"

#define IOBENCH SHARED "bmoe/iobench.csv"

static const struct storage_fit truth = {
    .corner = FIT_ROUNDED, .given = {true, true, true, false}, .amount = {200000, 3e9, 5e9, 0}};

/* Every size at every depth, from `f`, each rate off by up to `noise` per mille. */
static void table_from(struct rate_table *t, const struct storage_fit *f, const uint64_t *sizes,
                       size_t size_count, const uint64_t *depths, size_t depth_count,
                       uint32_t noise)
{
    struct diag dg;
    struct pcg p;
    pcg_stream(&p, 7, "fit");
    *t = (struct rate_table){.name = "made"};
    for (size_t i = 0; i < size_count; i++)
        for (size_t j = 0; j < depth_count; j++) {
            double off = noise ? ((double)pcg_below(&p, 2 * noise + 1) - noise) / 1000 : 0;
            double rate = storage_fit_rate(f, sizes[i], depths[j]) * (1 + off);
            assert_ok(rate_table_add(t,
                                     (struct rate_row){.bytes = sizes[i],
                                                       .depth = depths[j],
                                                       .rate_Bps = (uint64_t)(rate + 0.5)},
                                     &dg));
        }
}

static const uint64_t sizes[] = {4096, 65536, 524288, 4194304};
static const uint64_t depths[] = {1, 2, 4, 8, 32};

static void the_fit_finds_the_parameters_that_made_the_table(void **state)
{
    (void)state;
    struct diag dg;
    struct rate_table t;
    struct storage_fit f;
    table_from(&t, &truth, sizes, 4, depths, 5, 0);
    assert_ok(storage_fit_run(&f, &t, FIT_ROUNDED, &dg));
    for (size_t p = FIT_LATENCY; p <= FIT_BANDWIDTH; p++)
        assert_close(f.amount[p] / truth.amount[p], 1, 1e-6);
    assert_false(f.given[FIT_IOPS]);
    assert_close(f.rms, 0, 1e-7);
    rate_table_free(&t);
}

static void a_sharp_table_is_found_by_a_sharp_fit(void **state)
{
    (void)state;
    struct diag dg;
    struct rate_table t;
    struct storage_fit f, sharp = truth;
    sharp.corner = FIT_SHARP;
    table_from(&t, &sharp, sizes, 4, depths, 5, 0);
    assert_ok(storage_fit_run(&f, &t, FIT_SHARP, &dg));
    for (size_t p = FIT_LATENCY; p <= FIT_BANDWIDTH; p++)
        assert_close(f.amount[p] / truth.amount[p], 1, 0.01);
    rate_table_free(&t);
}

static void the_intervals_hold_the_truth_when_rates_are_noisy(void **state)
{
    (void)state;
    struct diag dg;
    struct rate_table t;
    struct storage_fit f;
    table_from(&t, &truth, sizes, 4, depths, 5, 50);
    assert_ok(storage_fit_run(&f, &t, FIT_ROUNDED, &dg));
    for (size_t p = FIT_LATENCY; p <= FIT_BANDWIDTH; p++) {
        assert_true(f.half_width[p] > 0.005 && f.half_width[p] < 0.2);
        assert_close(f.amount[p] / truth.amount[p], 1, 2 * f.half_width[p]);
    }
    rate_table_free(&t);
}

static void a_limit_of_reads_a_second_is_found_where_small_reads_show_it(void **state)
{
    (void)state;
    struct diag dg;
    struct rate_table t;
    struct storage_fit f, bound = truth;
    bound.given[FIT_IOPS] = true;
    bound.amount[FIT_IOPS] = 40000;
    table_from(&t, &bound, sizes, 4, depths, 5, 0);
    assert_ok(storage_fit_run(&f, &t, FIT_ROUNDED, &dg));
    assert_true(f.given[FIT_IOPS]);
    assert_close(f.amount[FIT_IOPS] / 40000, 1, 0.01);
    rate_table_free(&t);
}

static void at_one_depth_there_is_no_ceiling_apart_from_the_lane(void **state)
{
    (void)state;
    struct diag dg;
    struct rate_table t;
    struct storage_fit f;
    struct storage s = {0};
    struct storage_fit lane = truth;
    lane.given[FIT_BANDWIDTH] = false;
    table_from(&t, &lane, sizes, 4, depths, 1, 0);
    assert_ok(storage_fit_run(&f, &t, FIT_SHARP, &dg));
    assert_false(f.given[FIT_BANDWIDTH]);
    assert_close(f.amount[FIT_LANE] / 3e9, 1, 1e-6);
    storage_fit_values(&s, &f, "test");
    assert_int_equal(s.bandwidth.kind, KIND_MEASURED);
    assert_int_equal(s.lane_bandwidth.kind, KIND_FITTED);
    rate_table_free(&t);
    /* Nor where a knee would explain it better. */
    static const uint64_t many[] = {4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};
    table_from(&t, &truth, many, 7, depths, 1, 0);
    assert_ok(storage_fit_run(&f, &t, FIT_ROUNDED, &dg));
    assert_false(f.given[FIT_BANDWIDTH]);
    rate_table_free(&t);
}

static void assert_refused(const struct rate_table *t, const char *reason)
{
    struct diag dg;
    struct storage_fit f;
    assert_int_equal(storage_fit_run(&f, t, FIT_SHARP, &dg), ST_MISFIT);
    if (!strstr(dg.text, reason))
        fail_msg("'%s' should say '%s'", dg.text, reason);
}

static void a_table_that_does_not_determine_the_form_is_refused(void **state)
{
    (void)state;
    struct rate_table t;
    table_from(&t, &truth, sizes, 1, depths, 5, 0);
    assert_refused(&t, "one read size");
    rate_table_free(&t);
    table_from(&t, &truth, sizes, 2, depths, 1, 0);
    assert_refused(&t, "2 rows determine no parameter");
    rate_table_free(&t);
    /* Everything at the ceiling: 64 MiB and more at depth 32, with noise. */
    static const uint64_t large[] = {64 << 20, 128 << 20, 256 << 20};
    static const uint64_t deep[] = {32, 64, 128};
    table_from(&t, &truth, large, 3, deep, 3, 20);
    assert_refused(&t, "latency");
    rate_table_free(&t);
}

/* --- the phone of BigMoeOnEdge --- */

static void read_iobench(struct rate_table *t)
{
    struct diag dg;
    *t = (struct rate_table){0};
    assert_ok(rate_table_read(t, IOBENCH, "cold", &dg));
}

/* The 21 points of the size curve and the single lane: without the rest of the lane sweep. */
static void keep_the_22_points(struct rate_table *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++)
        if (i == 0 || i >= 8)
            t->rows[kept++] = t->rows[i];
    t->count = kept;
}

static void
the_published_parameters_of_a_ufs_phone_have_an_rms_of_six_and_a_half_percent(void **state)
{
    (void)state;
    NEED_SHARED();
    const struct storage_fit published = {
        .corner = FIT_ROUNDED,
        .given = {true, true, true, false},
        .amount = {220000, 2800 * 1048576.0, 2250 * 1048576.0, 0}};
    struct rate_table t;
    read_iobench(&t);
    assert_int_equal(t.count, 29);
    keep_the_22_points(&t);
    assert_int_equal(t.count, 22);
    double sum = 0;
    for (size_t i = 0; i < t.count; i++) {
        double rate = storage_fit_rate(&published, t.rows[i].bytes, t.rows[i].depth);
        double off = rate / (double)t.rows[i].rate_Bps - 1;
        sum += off * off;
    }
    assert_close(sum / 22, 0.065 * 0.065, 0.0003);
    rate_table_free(&t);
}

static void the_fit_of_a_ufs_phone_is_at_least_as_good_as_the_published_one(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct rate_table t;
    struct storage_fit f;
    read_iobench(&t);
    assert_ok(storage_fit_run(&f, &t, FIT_ROUNDED, &dg));
    assert_true(f.rms <= 0.065);
    assert_close(f.amount[FIT_LATENCY], 227460,
                 500); /* an independent random search ends there too */
    assert_close(f.amount[FIT_BANDWIDTH], 2.3757e9, 0.003e9);
    keep_the_22_points(&t);
    assert_ok(storage_fit_run(&f, &t, FIT_ROUNDED, &dg));
    assert_true(f.rms <= 0.065);
    rate_table_free(&t);
}

static void the_catalogue_holds_the_sharp_fit_of_that_phone(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct rate_table t;
    struct storage_fit f;
    struct storage s = {0};
    struct device *d;
    read_iobench(&t);
    assert_ok(storage_fit_run(&f, &t, FIT_SHARP, &dg));
    storage_fit_values(&s, &f, "test");
    assert_ok(device_load(&d, "oneplus-15r", "devices/desc", NULL, 0, &dg));
    assert_close((double)d->storage[0].latency.amount, (double)s.latency.amount, 500);
    assert_close((double)d->storage[0].lane_bandwidth.amount, (double)s.lane_bandwidth.amount, 1e6);
    assert_close((double)d->storage[0].bandwidth.amount, (double)s.bandwidth.amount, 1e6);
    for (size_t i = 0; i < t.count; i++) /* the roofline's integers and the fit are one formula */
        assert_close((double)storage_closed_rate_Bps(&s, t.rows[i].bytes, t.rows[i].depth) /
                         storage_fit_rate(&f, t.rows[i].bytes, t.rows[i].depth),
                     1, 0.001);
    device_free(d);
    rate_table_free(&t);
}

/* --- the table's file --- */

static void assert_table_refused(const char *text, const char *state, enum status wanted,
                                 const char *reason)
{
    struct diag dg;
    struct rate_table t = {0};
    const char *path = temp_path("rates.csv");
    write_file(path, text);
    assert_int_equal(rate_table_read(&t, path, state, &dg), wanted);
    if (!strstr(dg.text, reason))
        fail_msg("'%s' should say '%s'", dg.text, reason);
    rate_table_free(&t);
}

static void rates_are_read_in_any_of_three_units(void **state)
{
    (void)state;
    struct diag dg;
    struct rate_table t = {0};
    const char *path = temp_path("rates.csv");
    write_file(path, "depth,read_bytes,MB_per_s,extra\n4,4096,1.5,x\n");
    assert_ok(rate_table_read(&t, path, NULL, &dg));
    assert_int_equal(t.rows[0].rate_Bps, 1500000);
    assert_int_equal(t.rows[0].depth, 4);
    rate_table_free(&t);
    write_file(path, "read_bytes,lanes,MiB_per_s\n4096,2,0.5\n");
    assert_ok(rate_table_read(&t, path, NULL, &dg));
    assert_int_equal(t.rows[0].rate_Bps, 524288);
    rate_table_free(&t);
    write_file(path, "read_bytes,lanes,rate_Bps\n4096,2,77\n");
    assert_ok(rate_table_read(&t, path, NULL, &dg));
    assert_int_equal(t.rows[0].rate_Bps, 77);
    rate_table_free(&t);
}

static void a_wrong_table_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_table_refused("lanes,MB_per_s\n1,1\n", NULL, ST_PARSE, "read_bytes");
    assert_table_refused("read_bytes,lanes,MB_per_s\n4096,0,1\n", NULL, ST_PARSE, ":2: lanes");
    assert_table_refused("read_bytes,lanes,MB_per_s\n0,1,1\n", NULL, ST_PARSE, ":2: read_bytes");
    assert_table_refused("read_bytes,lanes,MB_per_s\n4096,1,-1\n", NULL, ST_PARSE, ":2: MiB_per_s");
    assert_table_refused("read_bytes,lanes,MB_per_s\n4096,1,1e30\n", NULL, ST_PARSE, ":2: ");
    assert_table_refused("read_bytes,lanes,MB_per_s\n4096,1,nan\n", NULL, ST_PARSE, ":2: ");
    assert_table_refused("read_bytes,lanes,depth,MB_per_s\n4096,1,1,9\n", NULL, ST_PARSE, ":2: ");
    assert_table_refused("read_bytes,lanes\n4096,1\n", NULL, ST_PARSE, ":2: MiB_per_s");
    assert_table_refused("state,read_bytes,lanes,MB_per_s\ncold,4096,1,1\nhot,4096,1,1\n", NULL,
                         ST_MISFIT, ":3: state 'hot'");
    assert_table_refused("state,read_bytes,lanes,MB_per_s\ncold,4096,1,1\n", "warm", ST_MISSING,
                         "no row of state warm");
}

static void a_written_part_loads_with_the_same_values(void **state)
{
    (void)state;
    struct diag dg;
    struct rate_table t;
    struct storage_fit f;
    struct storage s = {.name = "a \"quoted\" \\ drive"};
    struct device *d;
    const char *path = temp_path("part.yaml");
    table_from(&t, &truth, sizes, 4, depths, 5, 50);
    assert_ok(storage_fit_run(&f, &t, FIT_SHARP, &dg));
    storage_fit_values(&s, &f, "fit of a table, RMS 2.9 %: made \"here\"");
    assert_ok(part_file_write(path, s.name, "a note", &s, &dg));
    assert_ok(device_load(&d, path, "devices/desc", NULL, 0, &dg));
    assert_int_equal(d->class_of, DEVICE_STORAGE);
    assert_string_equal(d->storage[0].name, s.name);
    assert_string_equal(d->storage[0].latency.source, s.latency.source);
    assert_int_equal(d->storage[0].latency.amount, s.latency.amount);
    assert_int_equal(d->storage[0].latency.spread, s.latency.spread);
    assert_int_equal(d->storage[0].bandwidth.kind, KIND_FITTED);
    device_free(d);
    rate_table_free(&t);
    assert_int_equal(part_file_write("/nowhere/part.yaml", "x", NULL, &s, &dg), ST_IO);
}

static void a_damaged_table_is_fitted_or_gives_one_line_of_reason(void **state)
{
    (void)state;
    struct pcg p;
    char *whole = read_whole("tests/data/rates.csv", NULL), path[200], text[1024];
    size_t refused = 0;
    pcg_stream(&p, 3, "damaged table");
    strcpy(path, temp_path("damaged.csv"));
    assert_true(strlen(whole) + MUTATE_ROOM < sizeof text);
    for (int i = 0; i < 300; i++) {
        struct diag dg = {0};
        struct rate_table t = {0};
        struct storage_fit f;
        mutate(strcpy(text, whole), &p);
        write_file(path, text);
        enum status st = rate_table_read(&t, path, NULL, &dg);
        if (st == ST_OK)
            st = storage_fit_run(&f, &t, FIT_SHARP, &dg);
        if (st == ST_OK) {
            assert_true(f.rms >= 0 && f.amount[FIT_LATENCY] > 0);
        } else {
            refused++;
            assert_true(strlen(dg.text) > 0);
            assert_null(strchr(dg.text, '\n'));
        }
        rate_table_free(&t);
    }
    assert_true(refused > 20);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fit_finds_the_parameters_that_made_the_table),
        cmocka_unit_test(a_sharp_table_is_found_by_a_sharp_fit),
        cmocka_unit_test(the_intervals_hold_the_truth_when_rates_are_noisy),
        cmocka_unit_test(a_limit_of_reads_a_second_is_found_where_small_reads_show_it),
        cmocka_unit_test(at_one_depth_there_is_no_ceiling_apart_from_the_lane),
        cmocka_unit_test(a_table_that_does_not_determine_the_form_is_refused),
        cmocka_unit_test(
            the_published_parameters_of_a_ufs_phone_have_an_rms_of_six_and_a_half_percent),
        cmocka_unit_test(the_fit_of_a_ufs_phone_is_at_least_as_good_as_the_published_one),
        cmocka_unit_test(the_catalogue_holds_the_sharp_fit_of_that_phone),
        cmocka_unit_test(rates_are_read_in_any_of_three_units),
        cmocka_unit_test(a_wrong_table_is_refused_with_its_line),
        cmocka_unit_test(a_damaged_table_is_fitted_or_gives_one_line_of_reason),
        cmocka_unit_test(a_written_part_loads_with_the_same_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
