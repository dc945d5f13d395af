/* test_fio.c -- fio's JSON as rates and as a description, and the runs that are refused. */
#include "tests/support.h"

#include "tests/mutate.h"

#include "devices/fio_import.h"
#include "devices/part_file.h"

/* A job as fio 3.33 writes it, as far as it is read. */
struct written {
    const char *name;
    unsigned group;
    const char *options; /* members of "job options" */
    uint64_t bytes;      /* of one read */
    double rate;         /* B/s */
    double mean_ns;
};

static const char *fio_file(const char *name, const struct written *jobs, size_t count)
{
    static char path[200];
    char text[16384];
    size_t n = 0;
    strcpy(path, temp_path(name));
    n += (size_t)sprintf(text, "{\"fio version\" : \"fio-3.33\", \"global options\" : "
                               "{\"direct\" : \"1\", \"ioengine\" : \"io_uring\"}, \"jobs\" : [");
    for (size_t i = 0; i < count; i++) {
        const struct written *j = &jobs[i];
        uint64_t reads = 1000;
        n += (size_t)sprintf(
            text + n,
            "%s{\"jobname\" : \"%s\", \"groupid\" : %u, \"error\" : 0, \"job options\" : {%s}, "
            "\"read\" : {\"io_bytes\" : %ju, \"total_ios\" : %ju, \"bw_bytes\" : %.0f, "
            "\"iops\" : %.6f, \"lat_ns\" : {\"mean\" : %.3f}, "
            "\"clat_ns\" : {\"percentile\" : {\"50.000000\" : %.0f, \"99.000000\" : %.0f}}}, "
            "\"write\" : {\"io_bytes\" : 0}}",
            i ? ", " : "", j->name, j->group, j->options, (uintmax_t)(reads * j->bytes),
            (uintmax_t)reads, j->rate, j->rate / (double)j->bytes, j->mean_ns, j->mean_ns * 0.9,
            j->mean_ns * 3);
    }
    sprintf(text + n, "]}");
    write_file(path, text);
    return path;
}

#define RANDOM "\"rw\" : \"randread\", "

static void assert_refused(const struct written *jobs, size_t count, enum status wanted,
                           const char *reason)
{
    struct diag dg = {0};
    struct fio_table t = {0};
    assert_int_equal(fio_import(&t, fio_file("bad.json", jobs, count), &dg), wanted);
    if (!strstr(dg.text, reason))
        fail_msg("'%s' should say '%s'", dg.text, reason);
    fio_table_free(&t);
}

static void a_job_becomes_a_row(void **state)
{
    (void)state;
    static const struct written job = {
        "a", 0, RANDOM "\"bs\" : \"128k\", \"iodepth\" : \"8\"", 131072, 1.5e9, 90000};
    struct diag dg;
    struct fio_table t = {0};
    assert_ok(fio_import(&t, fio_file("one.json", &job, 1), &dg));
    assert_int_equal(t.count, 1);
    assert_string_equal(t.rows[0].job, "a");
    assert_true(t.rows[0].random);
    assert_int_equal(t.rows[0].bytes, 131072);
    assert_int_equal(t.rows[0].depth, 8);
    assert_int_equal(t.rows[0].rate_Bps, 1500000000);
    assert_close(t.rows[0].iops, 1.5e9 / 131072, 0.001);
    assert_int_equal(t.rows[0].latency_p50_ns, 81000);
    assert_int_equal(t.rows[0].latency_p99_ns, 270000);
    fio_table_free(&t);
}

static void clones_of_a_job_are_added_up(void **state)
{
    (void)state;
    static const char options[] =
        RANDOM "\"bs\" : \"4096\", \"numjobs\" : \"2\", \"iodepth\" : \"4\"";
    static const struct written jobs[] = {{"b", 3, options, 4096, 1e8, 10000},
                                          {"b", 3, options, 4096, 3e8, 30000}};
    struct diag dg;
    struct fio_table t = {0};
    assert_ok(fio_import(&t, fio_file("clones.json", jobs, 2), &dg));
    assert_int_equal(t.count, 1);
    assert_int_equal(t.rows[0].depth, 8);
    assert_int_equal(t.rows[0].rate_Bps, 400000000);
    assert_close(t.rows[0].latency_mean_ns, 20000, 0.1);
    assert_int_equal(t.rows[0].latency_p99_ns, 90000);
    fio_table_free(&t);
}

static void the_depth_of_a_synchronous_engine_is_its_number_of_jobs(void **state)
{
    (void)state;
    static const struct written job = {
        "c",
        0,
        RANDOM
        "\"bs\" : \"1m\", \"ioengine\" : \"psync\", \"iodepth\" : \"32\", \"numjobs\" : \"4\"",
        1048576,
        2e9,
        2000000};
    struct diag dg;
    struct fio_table t = {0};
    assert_ok(fio_import(&t, fio_file("sync.json", &job, 1), &dg));
    assert_int_equal(t.rows[0].depth, 4);
    fio_table_free(&t);
}

static void a_block_size_may_be_given_in_bytes_however_large(void **state)
{
    (void)state;
    static const struct written job = {
        "d", 0, RANDOM "\"bs\" : \"67108864\"", UINT64_C(64) << 20, 2e9, 30000000};
    struct diag dg;
    struct fio_table t = {0};
    assert_ok(fio_import(&t, fio_file("large.json", &job, 1), &dg));
    assert_int_equal(t.rows[0].bytes, 67108864);
    fio_table_free(&t);
}

static void jobs_that_write_are_left_out_and_counted(void **state)
{
    (void)state;
    static const struct written jobs[] = {
        {"w", 0, "\"rw\" : \"randwrite\", \"bs\" : \"4k\"", 4096, 1e8, 1000},
        {"r", 1, RANDOM "\"bs\" : \"4k\"", 4096, 1e8, 40000}};
    struct diag dg;
    struct fio_table t = {0};
    assert_ok(fio_import(&t, fio_file("mixed.json", jobs, 2), &dg));
    assert_int_equal(t.count, 1);
    assert_int_equal(t.write_jobs, 1);
    fio_table_free(&t);
}

static void a_run_that_does_not_mean_what_it_says_is_refused(void **state)
{
    (void)state;
    static const struct written buffered = {"d",  0,   RANDOM "\"bs\" : \"4k\", \"direct\" : \"0\"",
                                            4096, 1e9, 1000};
    assert_refused(&buffered, 1, ST_UNSUPPORTED, "direct=1");
    static const struct written together[] = {{"e", 0, RANDOM "\"bs\" : \"4k\"", 4096, 1e8, 1000},
                                              {"f", 0, RANDOM "\"bs\" : \"4k\"", 4096, 1e8, 1000}};
    assert_refused(together, 2, ST_UNSUPPORTED, "stonewall");
    static const struct written wrong_size = {"g", 0, RANDOM "\"bs\" : \"8k\"", 4096, 1e8, 1000};
    assert_refused(&wrong_size, 1, ST_MISFIT, "bs is not what");
    static const struct written range = {"h", 0, RANDOM "\"bsrange\" : \"4k-8k\"", 4096, 1e8, 1000};
    assert_refused(&range, 1, ST_UNSUPPORTED, "bsrange");
    static const struct written odd = {"i", 0, RANDOM "\"bs\" : \"4q\"", 4096, 1e8, 1000};
    assert_refused(&odd, 1, ST_PARSE, "bs=4q");
    static const struct written deep = {"j",  0,   RANDOM "\"bs\" : \"4k\", \"iodepth\" : \"-1\"",
                                        4096, 1e8, 1000};
    assert_refused(&deep, 1, ST_PARSE, "iodepth=-1");
    static const struct written impossible[] = {
        {"k", 0, RANDOM "\"bs\" : \"4k\"", 4096, 2e15, 1000},
        {"l", 0, RANDOM "\"bs\" : \"4k\"", 4096, 1e8, -1},
        {"m", 0, RANDOM "\"bs\" : \"4k\"", 4096, 1e8, 2e12},
    };
    assert_refused(&impossible[0], 1, ST_RANGE, "up to 1 PB/s");
    assert_refused(&impossible[1], 1, ST_RANGE, "latencies from 0");
    assert_refused(&impossible[2], 1, ST_RANGE, "latencies from 0");
}

static void a_file_that_is_not_fios_is_refused(void **state)
{
    (void)state;
    struct diag dg;
    struct fio_table t = {0};
    static const char *const texts[] = {
        "{}", "[]", "{\"jobs\" : []}", "{\"jobs\" : [{}]}", "{\"jobs\" : [1]}", "{\"jobs\" : "};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *path = temp_path("not.json");
        write_file(path, texts[i]);
        assert_int_equal(fio_import(&t, path, &dg), ST_PARSE);
        assert_non_null(strstr(dg.text, "not.json"));
        assert_int_equal(t.count, 0);
    }
    assert_int_equal(fio_import(&t, "/nowhere/fio.json", &dg), ST_IO);
    fio_table_free(&t);
}

/* A drive of 80 us, 2 GB/s a lane and 5 GB/s, read at four sizes and four depths. */
static size_t write_grid(struct written *jobs, char options[][80])
{
    static const uint64_t sizes[] = {4096, 65536, 1048576, 8388608};
    static const unsigned depths[] = {1, 2, 8, 32};
    size_t n = 0;
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++, n++) {
            double read_s = 80e-6 + (double)sizes[i] / 2e9;
            double rate = depths[j] * (double)sizes[i] / read_s;
            sprintf(options[n], RANDOM "\"bs\" : \"%ju\", \"iodepth\" : \"%u\"",
                    (uintmax_t)sizes[i], depths[j]);
            jobs[n] = (struct written){
                "grid", (unsigned)n, options[n], sizes[i], rate < 5e9 ? rate : 5e9, read_s * 1e9};
        }
    return n;
}

static void a_grid_of_jobs_becomes_a_fitted_description(void **state)
{
    (void)state;
    struct diag dg;
    struct fio_table t = {0};
    struct written jobs[17];
    char options[16][80];
    struct storage s;
    struct storage_fit fit;
    const char *reason;
    size_t n = write_grid(jobs, options);
    jobs[n++] =
        (struct written){"line", 99, "\"rw\" : \"read\", \"bs\" : \"1m\"", 1048576, 6e9, 1000};
    assert_ok(fio_import(&t, fio_file("grid.json", jobs, n), &dg));
    assert_ok(fio_storage(&s, &fit, &reason, FIT_SHARP, &t, &dg));
    assert_string_equal(reason, "");
    assert_close((double)s.latency.amount, 80000, 400);
    assert_close((double)s.lane_bandwidth.amount, 2e9, 2e7);
    assert_close((double)s.bandwidth.amount, 5e9, 5e7);
    assert_int_equal(s.bandwidth.kind, KIND_FITTED);
    assert_non_null(strstr(s.bandwidth.source, "closed-form"));
    assert_int_equal(s.sequential_bandwidth.amount, 6000000000);
    assert_int_equal(s.sequential_bandwidth.kind, KIND_MEASURED);
    const char *path = temp_path("drive.yaml");
    struct device *d;
    assert_ok(part_file_write(path, "Drive", NULL, &s, &dg));
    assert_ok(device_load(&d, path, "devices/desc", NULL, 0, &dg));
    assert_int_equal(d->storage[0].bandwidth.amount, s.bandwidth.amount);
    device_free(d);
    fio_table_free(&t);
}

static void few_jobs_become_a_measured_description_with_the_reason(void **state)
{
    (void)state;
    static const struct written jobs[] = {
        {"small", 0, RANDOM "\"bs\" : \"4k\"", 4096, 4e7, 95000},
        {"busy", 1, RANDOM "\"bs\" : \"4k\", \"iodepth\" : \"64\"", 4096, 1e9, 300000},
        {"large", 2, RANDOM "\"bs\" : \"4m\", \"iodepth\" : \"8\"", 4194304, 3e9, 9000000}};
    struct diag dg;
    struct fio_table t = {0};
    struct storage s;
    struct storage_fit fit;
    const char *reason;
    assert_ok(fio_import(&t, fio_file("few.json", jobs, 3), &dg));
    assert_ok(fio_storage(&s, &fit, &reason, FIT_SHARP, &t, &dg));
    assert_true(strlen(reason) > 0);
    assert_int_equal(s.bandwidth.amount, 3000000000);
    assert_int_equal(s.bandwidth.kind, KIND_MEASURED);
    assert_int_equal(s.latency.amount, 95000);
    assert_int_equal(s.iops.amount, 244100);
    assert_non_null(strstr(s.iops.source, "busy"));
    fio_table_free(&t);
}

static void a_shallow_queue_says_nothing_of_the_reads_a_second(void **state)
{
    (void)state;
    static const struct written jobs[] = {
        {"small", 0, RANDOM "\"bs\" : \"4k\"", 4096, 4e7, 95000},
        {"large", 1, RANDOM "\"bs\" : \"4m\", \"iodepth\" : \"8\"", 4194304, 3e9, 9000000}};
    struct diag dg;
    struct fio_table t = {0};
    struct storage s;
    struct storage_fit fit;
    const char *reason;
    assert_ok(fio_import(&t, fio_file("shallow.json", jobs, 2), &dg));
    assert_ok(fio_storage(&s, &fit, &reason, FIT_SHARP, &t, &dg));
    assert_true(s.bandwidth.given);
    assert_false(s.iops.given);
    fio_table_free(&t);
}

static void small_reads_alone_say_nothing_of_the_ceiling(void **state)
{
    (void)state;
    static const struct written job = {"small", 0, RANDOM "\"bs\" : \"4k\"", 4096, 4e7, 95000};
    struct diag dg;
    struct fio_table t = {0};
    struct storage s;
    struct storage_fit fit;
    const char *reason;
    assert_ok(fio_import(&t, fio_file("small.json", &job, 1), &dg));
    assert_int_equal(fio_storage(&s, &fit, &reason, FIT_SHARP, &t, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "1 MiB"));
    fio_table_free(&t);
}

static void a_damaged_file_is_read_or_gives_one_line_of_reason(void **state)
{
    (void)state;
    struct pcg p;
    char *whole = read_whole("tests/data/fio.json", NULL), path[200], text[8192];
    size_t refused = 0;
    pcg_stream(&p, 3, "damaged fio");
    strcpy(path, temp_path("damaged.json"));
    assert_true(strlen(whole) + MUTATE_ROOM < sizeof text);
    for (int i = 0; i < 2000; i++) {
        struct diag dg = {0};
        struct fio_table t = {0};
        struct storage s;
        struct storage_fit fit;
        const char *reason;
        mutate(strcpy(text, whole), &p);
        write_file(path, text);
        enum status st = fio_import(&t, path, &dg);
        if (st == ST_OK && i % 20 == 0) /* a fit takes its time */
            st = fio_storage(&s, &fit, &reason, FIT_SHARP, &t, &dg);
        if (st != ST_OK) {
            refused++;
            assert_true(strlen(dg.text) > 0);
            assert_null(strchr(dg.text, '\n'));
        }
        fio_table_free(&t);
    }
    assert_true(refused > 500);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_becomes_a_row),
        cmocka_unit_test(clones_of_a_job_are_added_up),
        cmocka_unit_test(the_depth_of_a_synchronous_engine_is_its_number_of_jobs),
        cmocka_unit_test(a_block_size_may_be_given_in_bytes_however_large),
        cmocka_unit_test(jobs_that_write_are_left_out_and_counted),
        cmocka_unit_test(a_run_that_does_not_mean_what_it_says_is_refused),
        cmocka_unit_test(a_file_that_is_not_fios_is_refused),
        cmocka_unit_test(a_grid_of_jobs_becomes_a_fitted_description),
        cmocka_unit_test(few_jobs_become_a_measured_description_with_the_reason),
        cmocka_unit_test(a_shallow_queue_says_nothing_of_the_reads_a_second),
        cmocka_unit_test(a_damaged_file_is_read_or_gives_one_line_of_reason),
        cmocka_unit_test(small_reads_alone_say_nothing_of_the_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
