/* test_device_commands.c -- memwall device list, show, fit, import as a user runs them. */
#include "tests/support.h"

#include "tests/cli_expect.h"

static char *result(const char *arguments)
{
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("memwall %s: %s", arguments, r.err);
    free(r.err);
    return r.out;
}

static void expect_in_result(const char *arguments, const char *text)
{
    char *out = result(arguments);
    if (!strstr(out, text))
        fail_msg("memwall %s: '%s' does not hold '%s'", arguments, out, text);
    free(out);
}

static void list_has_a_row_for_every_device_and_counts_its_assumptions(void **state)
{
    (void)state;
    expect_stdout("device list --class board --format csv",
                  "name,title,class,dram_bytes,dram_Bps,storage_Bps,assumed\n"
                  "raspberry-pi-5-8gb,\"Raspberry Pi 5, 8 GB, NVMe on PCIe 2.0 x1\",board,"
                  "8589934592,9200000000,400000000,8\n"
                  "raspberry-pi-5-microsd,\"Raspberry Pi 5, 8 GB, microSD\",board,8589934592,"
                  "9200000000,93000000,5\n");
    char *out = result("device list --format csv");
    size_t lines = 0;
    for (const char *c = out; *c; c++)
        lines += *c == '\n';
    assert_true(lines > 35);
    free(out);
    expect_refusal("device list --class toaster", EXIT_MISUSE, "toaster");
    expect_refusal("device list --set a=1", EXIT_MISUSE, "--set");
}

static void show_prints_every_value_with_kind_spread_and_source(void **state)
{
    (void)state;
    expect_in_result("device show oneplus-15r --format json",
                     "{\"path\": \"dram.measured_bandwidth\", \"value\": \"59 GB/s\", "
                     "\"kind\": \"measured\", \"spread_ratio\": 0.050000000, "
                     "\"spread_stated\": \"no\", \"amount\": 59000000000, \"dimension\": \"rate\", "
                     "\"source\": \"BigMoeOnEdge: four threads\"}");
    expect_in_result("device show rtx-4090-pc", "storage.0 'nvme' is the part samsung-990-pro\n");
    expect_in_result("device show rtx-4090-pc --set storage.0.bandwidth=15GB/s --format csv",
                     "storage.0.bandwidth,15 GB/s,assumed,0.300000000,no,15000000000,rate,--set\n");
    expect_refusal("device show rtx-4090", EXIT_FAILED, "rtx-4090-pc");
    expect_refusal("device show rtx-4090-pc --set storage.0.bandwidth=15", EXIT_FAILED,
                   "--set storage.0.bandwidth:1: bandwidth: '15': a unit is required");
}

static void fit_prints_parameters_and_residuals_and_writes_a_part(void **state)
{
    (void)state;
    char line[400], part[200]; /* temp_path lends its text for a few calls only */
    strcpy(part, temp_path("fitted.yaml"));
    snprintf(line, sizeof line,
             "device fit tests/data/rates.csv --format csv --print parameters --name disk --out %s",
             part);
    expect_stdout(line, "parameter,value,half_width_90,amount,unit\n"
                        "latency,154 us,0.2702,154100,ns\n"
                        "bandwidth,3.80 GB/s,0.1665,3799000000,B/s\n"
                        "iops,36.9 kIOPS,0.4580,36930,reads/s\n");
    expect_in_result("device fit tests/data/rates.csv --format csv",
                     "read_bytes,depth,measured_Bps,fitted_Bps,residual_ratio\n"
                     "65536,1,630000000,425300000,-0.3249\n");
    expect_in_result("device fit tests/data/rates.csv",
                     "tests/data/rates.csv: closed-form fit, sharp corner, RMS 21.6 % over 12 rows "
                     "(rounded corner: ");
    expect_in_result("device fit tests/data/rates.csv", "lane_bandwidth: not determined");
    snprintf(line, sizeof line, "device show %s --format csv", part);
    expect_in_result(line, "storage.0.latency,154.1 us,fitted,0.270000000,yes,154100,time,"
                           "\"closed-form fit, sharp corner, 12 rows of tests/data/rates.csv, "
                           "RMS 21.6 %\"\n");
    expect_refusal("device fit tests/data/rates.csv --state cold", EXIT_FAILED, "cold");
    expect_refusal("device fit /nowhere.csv", EXIT_FAILED, "/nowhere.csv");
}

static void import_turns_fios_jobs_into_a_part_that_a_device_can_name(void **state)
{
    (void)state;
    char line[400], part[200], box[200];
    strcpy(part, temp_path("fio-drive.yaml"));
    strcpy(box, temp_path("box.yaml"));
    snprintf(line, sizeof line, "device import tests/data/fio.json --format csv --out %s", part);
    expect_in_result(line, "job,random,read_bytes,depth,rate_Bps,iops,lat_mean_ns,lat_p50_ns,"
                           "lat_p99_ns,file\n"
                           "16k-depth1,yes,16384,1,230227116,14051.9,70588,39168,79360,"
                           "tests/data/fio.json\n");
    write_file(box,
               "title: A box\nclass: server\n"
               "dram:\n  capacity: [8 GiB, assumed, test]\n  bandwidth: [9 GB/s, assumed, test]\n"
               "storage:\n  - name: disk\n    part: fio-drive.yaml\n");
    snprintf(line, sizeof line, "device show %s --format csv", box);
    expect_in_result(line, "storage.0.sequential_bandwidth,1.017 GB/s,measured,");
    expect_in_result(line, "storage.0.bandwidth,");
    expect_refusal("device import tests/data/rates.csv", EXIT_FAILED, "tests/data/rates.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_has_a_row_for_every_device_and_counts_its_assumptions),
        cmocka_unit_test(show_prints_every_value_with_kind_spread_and_source),
        cmocka_unit_test(fit_prints_parameters_and_residuals_and_writes_a_part),
        cmocka_unit_test(import_turns_fios_jobs_into_a_part_that_a_device_can_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
