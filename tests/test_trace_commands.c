/* test_trace_commands.c -- `memwall trace info` and `memwall trace generate`, as a user meets them. */
#include "tests/support.h"

#include <unistd.h>

/* Four tokens of one layer of four experts: the case of test_trace_stats.c. */
static const char four_tokens[] = "# memwall-trace 1\n"
                                  "# model=sketch\n"
                                  "# layers=1\n"
                                  "# experts=4\n"
                                  "# top_k=2\n"
                                  "# layer=0 expert_bytes=100 dense_bytes=0\n"
                                  "kind,turn,phase,pass,step,layer,slot,expert,weight\n"
                                  "r,0,1,0,0,0,0,0,0.6\n"
                                  "r,0,1,0,0,0,1,1,0.4\n"
                                  "r,0,1,1,1,0,0,1,0.6\n"
                                  "r,0,1,1,1,0,1,2,0.4\n"
                                  "r,0,1,2,2,0,0,1,0.6\n"
                                  "r,0,1,2,2,0,1,2,0.4\n"
                                  "r,0,1,3,3,0,0,3,0.6\n"
                                  "r,0,1,3,3,0,1,0,0.4\n"
                                  "# end rows=8\n";

static struct run info_of(const char *path, const char *options)
{
    char arguments[512];
    snprintf(arguments, sizeof arguments, "trace info %s %s", path, options);
    return run_memwall(arguments);
}

static void trace_info_prints_a_measure_a_line(void **state)
{
    (void)state;
    const char *path = temp_path("four.csv");
    write_file(path, four_tokens);
    struct run r = info_of(path, "");
    assert_int_equal(r.exit_code, 0);
    assert_string_equal(r.out, "sketch: 1 layers (1 routed) x 4 experts, top 2\n"
                               "1 turns, 4 passes, 0 prefill and 4 decode tokens, 8 routing rows, "
                               "0 predictions\n"
                               "\n"
                               "measure             all  layer_0\n"
                               "entropy_ratio    0.9528   0.9528\n"
                               "zipf_exponent    0.6755   0.6755\n"
                               "overlap_lag1     0.5000   0.5000\n"
                               "overlap_lag2     0.2500   0.2500\n"
                               "distinct_1       2.0000   2.0000\n"
                               "distinct_2       3.5000   3.5000\n"
                               "distinct_4       4.0000   4.0000\n"
                               "recency_top_k    0.3750   0.3750\n"
                               "recency_eighth   0.0000   0.0000\n"
                               "recency_quarter  0.2500   0.2500\n"
                               "recency_half     0.3750   0.3750\n");
    run_free(&r);
}

static void trace_info_as_csv_has_a_row_a_layer_with_nine_decimals(void **state)
{
    (void)state;
    const char *path = temp_path("four.csv");
    write_file(path, four_tokens);
    struct run r = info_of(path, "--format csv");
    assert_int_equal(r.exit_code, 0);
    assert_int_equal(
        strncmp(r.out, "layer,tokens,entropy_ratio,zipf_exponent,overlap_lag1,overlap_lag2,", 67),
        0);
    assert_non_null(strstr(r.out, "\nall,4,0.952819531,0.675459960,0.500000000,0.250000000,,"));
    assert_non_null(strstr(r.out, "\n0,4,0.952819531,0.675459960,0.500000000,0.250000000,,"));
    run_free(&r);
}

static void trace_info_of_a_broken_trace_is_one_line_and_no_output(void **state)
{
    (void)state;
    char text[sizeof four_tokens];
    memcpy(text, four_tokens, sizeof text);
    *strstr(text, "# end") = 0;
    const char *path = temp_path("broken.csv");
    write_file(path, text);
    struct run r = info_of(path, "");
    assert_int_equal(r.exit_code, 1);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "broken.csv"));
    assert_ptr_equal(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
    run_free(&r);
}

#define GENERATE "trace generate --preset tiny --layers 3 --tokens 20 --prompt 4 --predict 1 "

static void a_generated_trace_is_readable_and_repeats_to_the_byte(void **state)
{
    (void)state;
    struct run a = run_memwall(GENERATE "--out -"), b = run_memwall(GENERATE "--out -"),
               c = run_memwall(GENERATE "--seed 2 --out -");
    assert_int_equal(a.exit_code, 0);
    assert_string_equal(a.out, b.out);
    assert_string_not_equal(a.out, c.out);
    const char *path = temp_path("made.csv");
    write_file(path, a.out);
    struct run r = info_of(path, "");
    assert_int_equal(r.exit_code, 0);
    assert_int_equal(
        strncmp(
            r.out,
            "tiny: 3 layers (3 routed) x 32 experts, top 4\n1 turns, 21 passes, 4 prefill and 20 "
            "decode tokens, 288 routing rows, 160 predictions\n",
            120),
        0);
    assert_non_null(strstr(r.out, "recall_top_k_1"));
    run_free(&a);
    run_free(&b);
    run_free(&c);
    run_free(&r);
}

static void a_model_lends_its_layers_and_sizes(void **state)
{
    (void)state;
    struct run r = run_memwall("trace generate --preset qwen3 --model qwen3-30b-a3b --quant q4_k_m "
                               "--tokens 1 --out -");
    assert_int_equal(r.exit_code, 0);
    assert_non_null(
        strstr(r.out, "# model=qwen3-30b-a3b\n# layers=48\n# experts=128\n# top_k=8\n"));
    assert_null(strstr(r.out, "expert_bytes=0"));
    run_free(&r);
}

static void misuse_of_trace_generate_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *reason;
        int exit_code;
    } cases[] = {
        {"--out x", "--preset", 2},
        {"--preset tiny --model qwen3-30b-a3b --layers 3 --out x", "--layers", 2},
        {"--preset tiny --quant q4_k_m --out x", "--model", 2},
        {"--preset tyny --out x", "'tiny'", 1},
        {"--preset tiny --experts 8 --top-k 9 --out x", "top_k 9", 1},
        {"--preset tiny --set context_share=2 --out x", "context_share", 1},
        {"--preset tiny --set context_memry=0.5 --out x", "context_memory", 1},
        {"--preset tiny --tokens 0 --out x", "tokens", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "trace generate %s", cases[i].arguments);
        struct run r = run_memwall(arguments);
        if (r.exit_code != cases[i].exit_code || !strstr(r.err, cases[i].reason))
            fail_msg("%s: exit %d, %s", arguments, r.exit_code, r.err);
        assert_string_equal(r.out, "");
        assert_int_not_equal(access("x", F_OK), 0);
        run_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_info_prints_a_measure_a_line),
        cmocka_unit_test(trace_info_as_csv_has_a_row_a_layer_with_nine_decimals),
        cmocka_unit_test(trace_info_of_a_broken_trace_is_one_line_and_no_output),
        cmocka_unit_test(a_generated_trace_is_readable_and_repeats_to_the_byte),
        cmocka_unit_test(a_model_lends_its_layers_and_sizes),
        cmocka_unit_test(misuse_of_trace_generate_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
