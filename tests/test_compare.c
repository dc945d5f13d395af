/* test_compare.c -- `memwall compare`: exact rows of two machines, models and result files, and what is not compared. */
#include "tests/cli_expect.h"

#define PATH_MAX_BYTES 200

static const char device_text[] = "title: %s\n"
                                  "class: laptop\n"
                                  "dram:\n"
                                  "  capacity: [16 GiB, datasheet, a sheet]\n"
                                  "  bandwidth: [%d GB/s, datasheet, a sheet]\n"
                                  "storage:\n"
                                  "  - name: drive\n"
                                  "    latency: [100 us, assumed, round]\n"
                                  "    lane_bandwidth: [2 GB/s, assumed, round]\n"
                                  "    bandwidth: [%d GB/s, %s, a run]\n"
                                  "    queue_depth: [32, datasheet, a sheet]\n"
                                  "%s"
                                  "compute:\n"
                                  "  - name: cpu\n"
                                  "    threads: [4, datasheet, a sheet]\n"
                                  "    f32: [400 GFLOP/s, assumed, round]\n";

static const char model_text[] =
    "title: %s\n"
    "source: a test\n"
    "grade: A\n"
    "layers: 8\n"
    "hidden: 256\n"
    "vocab: 256\n"
    "max_context: 8192\n"
    "tied_embeddings: false\n"
    "formats: {default: f16}\n"
    "attention:\n"
    "  - {layers: all, family: gqa, heads: 4, kv_heads: 2, head_dim: 64}\n"
    "ffn:\n"
    "  - {layers: all, matrices: 3, experts: %d, top_k: 4, "
    "expert_width: 128}\n";

struct things {
    char slow[PATH_MAX_BYTES], fast[PATH_MAX_BYTES], small[PATH_MAX_BYTES], wide[PATH_MAX_BYTES];
};

static void write_text(char path[PATH_MAX_BYTES], const char *name, const char *text)
{
    snprintf(path, PATH_MAX_BYTES, "%s", temp_path(name));
    write_file(path, text);
}

static struct things write_things(void)
{
    struct things t;
    char text[2048];
    snprintf(text, sizeof text, device_text, "Slow", 50, 3, "measured", "");
    write_text(t.slow, "slow.yaml", text);
    snprintf(text, sizeof text, device_text, "Fast", 100, 6, "assumed",
             "    iops: [500 kIOPS, datasheet, a sheet]\n");
    write_text(t.fast, "fast.yaml", text);
    snprintf(text, sizeof text, model_text, "Small", 32);
    write_text(t.small, "small.yaml", text);
    snprintf(text, sizeof text, model_text, "Wide", 64);
    write_text(t.wide, "wide.yaml", text);
    return t;
}

/* `compare A B OPTIONS`, and what it prints. */
static char *compared(const char *a, const char *b, const char *options)
{
    char line[1024];
    snprintf(line, sizeof line, "compare %s %s --format csv %s", a, b, options);
    struct run r = run_memwall(line);
    if (r.exit_code != 0 || r.err_bytes > 0)
        fail_msg("%s: exit %d: %s", line, r.exit_code, r.err);
    char *out = strdup(r.out);
    run_free(&r);
    return out;
}

static void expect_rows(const char *a, const char *b, const char *options, const char *rows)
{
    char *out = compared(a, b, options);
    assert_string_equal(out, rows);
    free(out);
}

#define HEADER "figure,first,second,ratio\n"

/* The number in the row of `figure`: its last cell. */
static double ratio_of(const char *out, const char *figure)
{
    char start[64];
    snprintf(start, sizeof start, "\n%s,", figure);
    const char *row = strstr(out, start);
    assert_non_null(row);
    const char *end = strchr(row + 1, '\n');
    while (end[-1] != ',')
        end--;
    return strtod(end, NULL);
}

/* ---- devices ---- */

static void of_two_devices_each_value_that_differs_is_a_row(void **state)
{
    (void)state;
    struct things t = write_things();
    char *out = compared(t.slow, t.fast, "");
    static const char values[] =
        HEADER "title,Slow,Fast,\n"
               "dram.bandwidth,50 GB/s datasheet,100 GB/s datasheet,2.0000\n"
               "storage.0.bandwidth,3 GB/s measured,6 GB/s assumed,2.0000\n"
               "storage.0.iops,-,500 kIOPS datasheet,\n";
    assert_memory_equal(out, values, strlen(values));
    /* What it costs: the faster machine decodes faster, up to twice, and begins no later. */
    double rate = ratio_of(out, "decode_tok_per_s"), first = ratio_of(out, "ttft_s");
    assert_true(rate > 1 && rate <= 2);
    assert_true(first >= 0.5 && first <= 1);
    free(out);
}

static void exchanged_devices_give_the_inverse_ratio(void **state)
{
    (void)state;
    struct things t = write_things();
    char *out = compared(t.slow, t.fast, ""), *back = compared(t.fast, t.slow, "");
    static const char *const figures[] = {"dram.bandwidth", "storage.0.bandwidth",
                                          "decode_tok_per_s", "ttft_s"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        assert_close(ratio_of(out, figures[i]) * ratio_of(back, figures[i]), 1, 1e-3);
    free(out);
    free(back);
}

/* A value that was measured here and assumed there differs, be the amounts equal. */
static void another_kind_is_a_difference(void **state)
{
    (void)state;
    char a[PATH_MAX_BYTES], b[PATH_MAX_BYTES], text[2048];
    snprintf(text, sizeof text, device_text, "One", 50, 3, "measured", "");
    write_text(a, "one.yaml", text);
    snprintf(text, sizeof text, device_text, "One", 50, 3, "assumed", "");
    write_text(b, "other.yaml", text);
    expect_rows(a, b, "", HEADER "storage.0.bandwidth,3 GB/s measured,3 GB/s assumed,1.0000\n");
}

/* ---- models ---- */

static void of_two_models_sizes_and_speed_are_compared(void **state)
{
    (void)state;
    struct things t = write_things();
    char device[PATH_MAX_BYTES + 16];
    snprintf(device, sizeof device, "--device %s", t.slow);
    char *out = compared(t.small, t.wide, device);
    /* 32 experts more in 8 layers: 3 * 256 * 128 weights each, and their routers' 256. */
    static const char sizes[] = HEADER "title,Small,Wide,\n"
                                       "experts,32,64,2.0000\n"
                                       "params_total,26939648,52171008,1.9366\n"
                                       "params_active,4854016,4919552,1.0135\n"
                                       "weight_bytes,18.1 MB,35.1 MB,1.9432\n";
    assert_int_equal(52171008 - 26939648, 32 * 8 * (3 * 256 * 128 + 256));
    assert_memory_equal(out, sizes, strlen(sizes));
    double rate =
        ratio_of(out, "decode_tok_per_s"); /* a router twice as large, all else the same */
    assert_true(rate > 0.9 && rate < 1);
    assert_close(ratio_of(out, "cache_bytes"), 2, 0); /* all experts fit */
    free(out);
}

static void on_request_equal_figures_are_rows_too(void **state)
{
    (void)state;
    struct things t = write_things();
    char *out = compared(t.small, t.small, "--all");
    assert_non_null(strstr(out, "\nhidden,256,256,1.0000\n"));
    assert_non_null(strstr(out, "\nexpert_bytes,"));
    assert_close(ratio_of(out, "decode_tok_per_s"), 1, 0);
    free(out);
}

static void equal_things_give_no_rows(void **state)
{
    (void)state;
    struct things t = write_things();
    char path[PATH_MAX_BYTES];
    write_text(path, "same.csv", "policy,rate\nlru,1\narc,2\n");
    expect_rows(t.slow, t.slow, "", HEADER);
    expect_rows(t.small, t.small, "", HEADER);
    expect_rows(path, path, "", HEADER);
}

/* ---- result files ---- */

static const char results_a[] = "policy,cache_bytes,rate,note,command_hash\n"
                                "lru,100,2.0,,aa\n"
                                "arc,100,4.0,,bb\n"
                                "fifo,100,1.0,,cc\n"
                                "lru,200,8,,ee\n";

/* Rows are paired by their words, in order: a hash is no word, and neither is an empty cell. */
static void rows_of_results_are_paired_by_their_words(void **state)
{
    (void)state;
    char a[PATH_MAX_BYTES], b[PATH_MAX_BYTES];
    write_text(a, "a.csv", results_a);
    write_text(b, "b.csv",
               "policy,cache_bytes,rate,note,command_hash\n"
               "arc,100,5.0,,bd\n"
               "lru,100,2.0,,aa\n"
               "lru,200,2,,ee\n"
               "sieve,100,0,,dd\n");
    expect_rows(a, b, "",
                HEADER "row 2 arc: rate,4.0,5.0,1.2500\n"
                       "row 2 arc: command_hash,bb,bd,\n"
                       "row 3 fifo,there,-,\n"
                       "row 4 lru: rate,8,2,0.2500\n"
                       "row 4 sieve,-,there,\n");
}

/* Two versions of one sweep: an axis pairs them, be it a number; what a run says of itself is compared. */
static void rows_of_a_sweep_are_paired_by_what_went_in(void **state)
{
    (void)state;
    char a[PATH_MAX_BYTES], b[PATH_MAX_BYTES];
    write_text(a, "a.csv",
               "top_k,model,rate,bound,assumed,note\n"
               "4,m,2.0,flash,iops latency,\n"
               "8,m,1.0,flash,iops,\n");
    write_text(b, "b.csv",
               "top_k,model,rate,bound,assumed,note\n"
               "8,m,1.5,compute,iops,\n"
               "4,m,2.0,flash,iops,does not fit\n");
    expect_rows(a, b, "",
                HEADER "row 1 4 m: assumed,iops latency,iops,\n"
                       "row 1 4 m: note,,does not fit,\n"
                       "row 2 8 m: rate,1.0,1.5,1.5000\n"
                       "row 2 8 m: bound,flash,compute,\n");
}

static void names_of_columns_may_be_quoted(void **state)
{
    (void)state;
    char a[PATH_MAX_BYTES], b[PATH_MAX_BYTES];
    write_text(a, "a.csv", "\"a, \"\"b\"\"\",y\n1,2\n");
    write_text(b, "b.csv", "\"a, \"\"b\"\"\",y\n3,2\n");
    expect_rows(a, b, "", HEADER "\"row 1: a, \"\"b\"\"\",1,3,3.0000\n");
}

static void comments_and_quotes_in_results_are_read_as_such(void **state)
{
    (void)state;
    char a[PATH_MAX_BYTES], b[PATH_MAX_BYTES];
    write_text(a, "a.csv", "# a remark\npolicy,rate\n\"a, b\",1\n");
    write_text(b, "b.csv", "policy,rate\n\"a, b\",3\n");
    expect_rows(a, b, "", HEADER "\"row 1 a, b: rate\",1,3,3.0000\n");
}

/* ---- refusals ---- */

static void what_is_not_of_one_kind_is_refused(void **state)
{
    (void)state;
    struct things t = write_things();
    char a[PATH_MAX_BYTES], fewer[PATH_MAX_BYTES], other[PATH_MAX_BYTES], cut[PATH_MAX_BYTES],
        empty[PATH_MAX_BYTES], line[1024];
    write_text(a, "a.csv", results_a);
    write_text(fewer, "fewer.csv", "policy,rate\nlru,1\n");
    write_text(other, "other.csv", "policy,cache_bytes,speed,note,command_hash\nlru,1,1,,a\n");
    write_text(cut, "cut.csv", "policy,rate\nlru\n");
    write_text(empty, "empty.csv", "");
    const struct {
        const char *first, *second;
        int exit_code;
        const char *reason;
    } cases[] = {
        {t.slow, t.small, EXIT_FAILED, "not a device with a model"},
        {t.small, t.slow, EXIT_FAILED, "not a device with a model"},
        {a, fewer, EXIT_FAILED, "results of one kind are compared"},
        {a, other, EXIT_FAILED, "has column 'rate' where"},
        {cut, cut, EXIT_FAILED, "cut.csv:2: 2 fields were expected"},
        {empty, a, EXIT_FAILED, "empty.csv:1: a header row was expected"},
        {a, "none.csv", EXIT_FAILED, "none.csv: cannot be opened"},
        {"none.csv", a, EXIT_FAILED, "none.csv: cannot be opened"},
        {a, t.slow, EXIT_FAILED, "neither a device"},
        {t.slow, "none.yaml", EXIT_FAILED, "neither a device (none.yaml"},
        {t.slow, "no-such-name", EXIT_FAILED, "nor a model (no model 'no-such-name'"},
        {a, "a.cvs", EXIT_FAILED, "neither a device ("},
        {"a.cvs", a, EXIT_FAILED, "nor a result file (.csv)"},
        {t.slow, "", EXIT_MISUSE, "an argument is missing"},
        {t.slow, "x y", EXIT_MISUSE, "y"},
        {a, "/dev", EXIT_FAILED, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(line, sizeof line, "compare %s %s", cases[i].first, cases[i].second);
        expect_refusal(line, cases[i].exit_code, cases[i].reason);
    }
}

static void of_a_model_or_device_that_is_asked_for_and_missing_the_name_is_said(void **state)
{
    (void)state;
    struct things t = write_things();
    char line[1024];
    snprintf(line, sizeof line, "compare %s %s --model qwen3-30b-a3", t.slow, t.fast);
    expect_refusal(line, EXIT_FAILED, "qwen3-30b-a3b");
    snprintf(line, sizeof line, "compare %s %s --device oneplus-15", t.small, t.wide);
    expect_refusal(line, EXIT_FAILED, "oneplus-15r");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_two_devices_each_value_that_differs_is_a_row),
        cmocka_unit_test(exchanged_devices_give_the_inverse_ratio),
        cmocka_unit_test(another_kind_is_a_difference),
        cmocka_unit_test(of_two_models_sizes_and_speed_are_compared),
        cmocka_unit_test(on_request_equal_figures_are_rows_too),
        cmocka_unit_test(equal_things_give_no_rows),
        cmocka_unit_test(rows_of_results_are_paired_by_their_words),
        cmocka_unit_test(rows_of_a_sweep_are_paired_by_what_went_in),
        cmocka_unit_test(names_of_columns_may_be_quoted),
        cmocka_unit_test(comments_and_quotes_in_results_are_read_as_such),
        cmocka_unit_test(what_is_not_of_one_kind_is_refused),
        cmocka_unit_test(of_a_model_or_device_that_is_asked_for_and_missing_the_name_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
