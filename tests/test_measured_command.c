/* test_measured_command.c -- `memwall calibrate`, `validate measured` and `validate diff`, as a user meets them. What
 * they find depends on the machine and the hour; what must hold anywhere is tested here: every decision is equal, every column
 * is there, and a description that was written is read again. */
#include "tests/support.h"

#include "base/csv.h"
#include "tests/cli_expect.h"

#define MODEL SHARED "tiny/tiny-q4_0.gguf"

static const char *calibrated(void)
{
    static char path[512];
    if (*path)
        return path;
    char arguments[1024];
    snprintf(path, sizeof path, "%s", temp_path("here.yaml"));
    snprintf(arguments, sizeof arguments,
             "calibrate --quick --model " MODEL " --out %s --format csv", path);
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s", r.err);
    assert_non_null(strstr(r.out, "experts,reads,bytes,measured_us"));
    run_free(&r);
    return path;
}

static void a_calibration_is_a_device_that_others_read(void **state)
{
    (void)state;
    char arguments[1024];
    NEED_SHARED();
    snprintf(arguments, sizeof arguments, "device show %s", calibrated());
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s", r.err);
    assert_non_null(strstr(r.out, "measured"));
    assert_non_null(strstr(r.out, "fitted"));
    assert_null(strstr(r.out, "assumed"));
    run_free(&r);
    snprintf(arguments, sizeof arguments,
             "sim --model " MODEL
             " --device %s --profile memwall --cache 4MiB --tokens 8 --draws 0",
             calibrated());
    r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s", r.err);
    run_free(&r);
}

struct cells {
    size_t count, equal, limited, prefetching, serial;
};

static enum status take_cell(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct cells *c = self;
    double measured, simulated;
    (void)line, (void)dg;
    c->count++;
    c->equal += csv_equal(f[0], "E1") && f[1].length == 16 && f[1].length == f[2].length &&
                memcmp(f[1].text, f[2].text, 16) == 0;
    c->prefetching += !csv_equal(f[3], "none");
    c->serial += csv_equal(f[4], "serial");
    c->limited += !csv_equal(f[5], "0");
    assert_true(csv_double(f[6], &measured) && measured > 0);
    assert_true(csv_double(f[7], &simulated) && simulated > 0);
    return ST_OK;
}

static void every_cell_of_the_quick_matrix_decides_alike(void **state)
{
    (void)state;
    NEED_SHARED();
    static const struct csv_column columns[] = {{"equality_tier", true},
                                                {"command_hash_measured", true},
                                                {"command_hash_simulated", true},
                                                {"prefetch", true},
                                                {"overlap", true},
                                                {"rate_limit_Bps", true},
                                                {"s_per_token_measured", true},
                                                {"s_per_token_simulated", true}};
    struct cells c = {0};
    struct diag dg = {0};
    const char *path = temp_path("cells.csv");
    struct run r = run_memwall("validate measured --quick --model " MODEL
                               " --repeats 1 --draws 2 --format csv");
    if (r.exit_code != 0)
        fail_msg("%s", r.err);
    assert_non_null(strstr(r.out, "cell,policy,prefetch,cache_bytes,overlap,lanes,threads,"
                                  "rate_limit_Bps,quant,packed,equality_tier,hits_measured,"
                                  "hits_simulated,"));
    write_file(path, r.out);
    run_free(&r);
    assert_ok(csv_read(path, columns, 8, true, take_cell, NULL, &c, &dg));
    assert_true(c.count >= 8);
    assert_int_equal(c.equal, c.count);
    assert_true(c.limited >= 1 && c.prefetching >= 1 && c.serial >= 1 && c.serial < c.count);
}

static void what_cannot_be_calibrated_is_refused_in_one_line(void **state)
{
    (void)state;
    expect_refusal("calibrate", EXIT_MISUSE, "--out");
    expect_refusal("calibrate --out /nowhere/x.yaml --quick", EXIT_FAILED, "/nowhere/x.yaml");
    expect_refusal("validate measured --model /nowhere.gguf", EXIT_FAILED, "/nowhere.gguf");
    expect_refusal("validate diff a.json", EXIT_MISUSE, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_calibration_is_a_device_that_others_read),
        cmocka_unit_test(every_cell_of_the_quick_matrix_decides_alike),
        cmocka_unit_test(what_cannot_be_calibrated_is_refused_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
