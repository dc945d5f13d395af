/* test_trace.c -- trace files: what is written is read back, what is broken is refused with its line. */
#include "tests/support.h"

#include "base/csv.h"
#include "base/pcg.h"
#include "sim/trace/trace.h"
#include "sim/trace/trace_file.h"
#include "sim/trace/trace_write.h"

#include <sys/stat.h>
#include <unistd.h>

static const char small[] = "# memwall-trace 1\n"
                            "# model=test model\n"
                            "# layers=3\n"
                            "# experts=8\n"
                            "# top_k=2\n"
                            "# layer=0 expert_bytes=0 dense_bytes=100\n"
                            "# layer=1 expert_bytes=1000 dense_bytes=200\n"
                            "# layer=2 expert_bytes=2000 dense_bytes=300\n"
                            "kind,turn,phase,pass,step,layer,slot,expert,weight\n"
                            "r,0,0,0,0,1,0,5,0.75\n"
                            "r,0,0,0,0,1,1,3,0.25\n"
                            "r,0,0,0,1,1,0,7,0.123456789\n"
                            "p,0,0,0,1,2,0,6,-1.5\n"
                            "p,0,0,0,1,2,1,1,-2\n"
                            "r,0,0,0,0,2,0,6,1\n"
                            "r,0,1,1,2,1,0,0,0.5\n"
                            "r,0,1,1,2,2,0,1,0.5\n"
                            "# end rows=8\n";

static struct trace *load_text(const char *text)
{
    struct diag dg;
    struct trace *t;
    const char *path = temp_path("trace.csv");
    write_file(path, text);
    assert_ok(trace_load(&t, path, &dg));
    return t;
}

static void a_trace_is_read_as_it_is_written(void **state)
{
    (void)state;
    struct trace *t = load_text(small);
    assert_string_equal(t->model, "test model");
    assert_int_equal(t->layers, 3);
    assert_int_equal(t->experts, 8);
    assert_int_equal(t->top_k, 2);
    assert_int_equal(t->layer[2].expert_bytes, 2000);
    assert_int_equal(t->pass_count, 2);
    assert_int_equal(t->batch_count, 4);
    assert_int_equal(t->row_count, 6);
    assert_int_equal(t->guess_count, 2);
    assert_int_equal(t->batch[0].row_count, 3);
    assert_int_equal(t->batch[0].guess_count, 2);
    assert_int_equal(t->guess[1].score, -2000000000);
    assert_int_equal(t->weight[2], 123456789);
    assert_int_equal(t->pass[1].phase, PHASE_DECODE);
    struct diag dg;
    assert_ok(trace_save(t, temp_path("copy.csv"), &dg));
    char *copy = read_whole(temp_path("copy.csv"), NULL);
    assert_string_equal(copy, small);
    free(copy);
    trace_free(t);
}

/* Replaces the first `from` of the small trace by `to`, and expects a refusal that contains `reason`. */
static void refuse(const char *from, const char *to, const char *reason)
{
    char text[2048];
    struct diag dg;
    struct trace *t;
    const char *at = strstr(small, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
    const char *path = temp_path("broken.csv");
    write_file(path, text);
    if (trace_load(&t, path, &dg) == ST_OK)
        fail_msg("accepted '%s' in place of '%s'", to, from);
    if (strncmp(dg.text, path, strlen(path)) != 0 || !strstr(dg.text, reason))
        fail_msg("'%s' was expected, not '%s'", reason, dg.text);
}

static void a_broken_trace_is_refused_with_its_line(void **state)
{
    (void)state;
    refuse("# memwall-trace 1", "# memwall-trace 2", ":1: expected");
    refuse("# end rows=8\n", "", "truncated");
    refuse("# end rows=8", "# end rows=9", ":18: 9 rows expected, 8 found");
    refuse("r,0,1,1,2,2,0,1,0.5\n", "", "8 rows expected, 7 found");
    refuse("# layers=3", "# layers=4", "4 '# layer=' lines expected, 3 found");
    refuse("# layer=1", "# layer=2", ":7: expected layer=1");
    refuse("# layer=1 expert_bytes=", "# layer=1 expert_bytes=10000000000000",
           ":7: expert_bytes up to");
    refuse("# model=test model\n", "", "must come first");
    refuse("# layers=3", "# layers=3\n# layers=3", ":4: '# layers=' was expected only once");
    refuse("# model=test model", "# model=a\n# model=b", ":3: '# model=' was expected only once");
    refuse("# model=test model", "# model=a\x1b[2J", ":2: '# model=' needs a name without control");
    refuse("# layers=3", "# layers=many", ":3: '# layers=' needs a whole number above 0");
    refuse("kind,turn", "kind,tern", ":9: a column 'turn' was expected");
    refuse("r,0,0,0,0,1,0,5,0.75", "r,0,0,0,0,1,0,8,0.75", ":10: expert must be below 8");
    refuse("r,0,0,0,0,1,0,5,0.75", "r,0,0,0,0,0,0,5,0.75", ":10: layer 0 has no routed experts");
    refuse("r,0,0,0,0,1,0,5,0.75", "r,0,0,0,0,3,0,5,0.75", ":10: layer must be below 3");
    refuse("r,0,0,0,0,1,0,5,0.75", "r,0,0,1,0,1,0,5,0.75", ":10: pass 0 expected");
    refuse("r,0,0,0,0,1,0,5,0.75", "x,0,0,0,0,1,0,5,0.75", ":10: kind must be r or p");
    refuse("r,0,0,0,0,1,0,5,0.75", "r,0,0,0,0,1,0,-5,0.75", ":10: expert: a whole number");
    refuse("r,0,0,0,0,1,0,5,0.75", "r,0,0,0,0,1,0,5,heavy", ":10: weight");
    refuse("r,0,0,0,0,1,0,5,0.75", "r,0,0,0,0,1,0,5", ":10:");
    refuse("r,0,0,0,0,1,1,3,0.25", "r,0,0,0,0,1,1,5,0.25", ":11: expert 5 twice");
    refuse("r,0,0,0,0,1,1,3,0.25", "r,0,0,0,0,1,2,3,0.25", ":11: slot must be below top_k");
    refuse("r,0,0,0,0,1,1,3,0.25", "r,0,0,0,0,1,0,3,0.25", ":11: slot 1 expected");
    refuse("r,0,0,0,0,2,0,6,1", "r,0,0,0,0,1,0,6,1", "after predictions made at the same layer");
    refuse("r,0,1,1,2,1,0,0,0.5", "r,0,1,0,2,1,0,0,0.5", "two turns or phases");
    refuse("r,0,1,1,2,2,0,1,0.5", "r,0,1,1,2,1,0,1,0.5", ":17: slot 1 expected");
    refuse("p,0,0,0,1,2,1,1,-2", "p,0,0,0,1,2,3,1,-2", ":14: rank 1 expected");
    refuse("# end rows=8", "# end rows=8\nr,0,1,1,2,2,1,2,0.5", ":19: nothing expected after");
    refuse("p,0,0,0,1,2,0,6,-1.5", "# a remark", "a comment between rows");
}

static void predictions_alone_are_no_trace(void **state)
{
    (void)state;
    struct diag dg;
    struct trace *t;
    write_file(temp_path("guesses.csv"), "# memwall-trace 1\n# model=m\n# layers=1\n# experts=2\n"
                                         "# top_k=1\n# layer=0 expert_bytes=1 dense_bytes=1\n"
                                         "kind,turn,phase,pass,step,layer,slot,expert,weight\n"
                                         "p,0,0,0,0,0,0,0,1\n# end rows=1\n");
    assert_int_equal(trace_load(&t, temp_path("guesses.csv"), &dg), ST_PARSE);
    assert_non_null(strstr(dg.text, "guesses.csv: a trace without routing rows"));
}

static void a_step_may_not_go_back_within_a_layer(void **state)
{
    (void)state;
    refuse("r,0,0,0,1,1,0,7,0.123456789", "r,0,0,0,0,1,0,7,0.1", ":12: slot 2 expected");
    refuse("r,0,0,0,0,1,0,5,0.75\nr,0,0,0,0,1,1,3,0.25",
           "r,0,0,0,2,1,0,5,0.75\nr,0,0,0,2,1,1,3,0.25", ":12: step 1 after step 2");
}

static void weights_are_exact_decimals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
        const char *printed;
    } cases[] = {{"0", 0, "0"},
                 {"", 0, "0"},
                 {"1", 1000000000, "1"},
                 {"0.0976991", 97699100, "0.0976991"},
                 {"6.1e-05", 61000, "0.000061"},
                 {"-2.5E2", -250000000000, "-250"},
                 {"0.9999999999", 1000000000, "1"},
                 {"0.00000000049", 0, "0"},
                 {"0.1234567895", 123456790, "0.12345679"},
                 {"12345678901234567890e-20", 123456789, "0.123456789"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value;
        char text[TRACE_WEIGHT_TEXT_MAX];
        assert_true(
            trace_weight_parse((struct csv_field){cases[i].text, strlen(cases[i].text)}, &value));
        assert_int_equal(value, cases[i].value);
        assert_string_equal(trace_weight_print(text, value), cases[i].printed);
    }
    static const char *const bad[] = {"-",   ".",  "1.2.3", "0x10",       "1e",
                                      "nan", "1 ", "1e30",  "99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value;
        assert_false(trace_weight_parse((struct csv_field){bad[i], strlen(bad[i])}, &value));
    }
}

static void route_trace_v1_becomes_passes_of_prefill_and_decode(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct trace *t;
    assert_ok(trace_load(&t, SHARED "bmoe/qwen.route.csv", &dg));
    assert_string_equal(t->model, "Qwen3-30B-A3B-Q4_K_M");
    assert_int_equal(t->layers, 48);
    assert_int_equal(t->top_k, 6);
    assert_int_equal(t->row_count, 44766); /* data lines of the file */
    assert_int_equal(t->pass_count, 129);  /* one prefill, 128 decode steps */
    assert_int_equal(t->pass[0].phase, PHASE_PREFILL);
    assert_int_equal(t->batch_count, 129 * 48);
    assert_ok(trace_save(t, temp_path("qwen.csv"), &dg));
    struct trace *again;
    assert_ok(trace_load(&again, temp_path("qwen.csv"), &dg));
    assert_int_equal(again->row_count, t->row_count);
    assert_memory_equal(again->expert, t->expert, t->row_count * sizeof *t->expert);
    assert_memory_equal(again->weight, t->weight, t->row_count * sizeof *t->weight);
    assert_memory_equal(again->batch, t->batch, t->batch_count * sizeof *t->batch);
    trace_free(again);
    trace_free(t);
}

static void a_bad_route_trace_is_refused_with_its_line(void **state)
{
    (void)state;
    static const char good[] = "# route_trace v1\n"
                               "# model=/d/g.gguf arch=g n_layer=1 n_expert=4 n_expert_used=2\n"
                               "# layer=0 expert_bytes=100 dense_bytes=44\n"
                               "turn,phase,step,layer,slot,expert,weight\n"
                               "0,0,0,0,0,1,0.5\n"
                               "0,0,0,0,1,2,0.5\n";
    static const struct {
        const char *from, *to, *reason;
    } bad[] = {
        {"# layer=0", "# model=x n_layer=1 n_expert=4 n_expert_used=2\n# layer=0",
         ":3: '# model='"},
        {"0,0,0,0,1,2,", "# model=x n_layer=1 n_expert=4 n_expert_used=3\n0,0,0,0,1,2,",
         ":6: '# model='"},
        {"0,0,0,0,1,2,", "# layer=1 expert_bytes=1 dense_bytes=1\n0,0,0,0,1,2,", ":6: '# layer='"},
        {"used=2", "used=0", ":5: n_expert must be 1..65535 and n_expert_used 1..n_expert"},
        {"/d/g.gguf", "/d/", ":5: model= was expected to name a file"},
        {"g.gguf", "g\x1b.gguf", ":2: '# model=' needs a name without control"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct diag dg;
        struct trace *t;
        char text[1024];
        const char *at = strstr(good, bad[i].from);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, bad[i].to,
                 at + strlen(bad[i].from));
        write_file(temp_path("route.csv"), text);
        assert_int_equal(trace_load(&t, temp_path("route.csv"), &dg), ST_PARSE);
        if (!strstr(dg.text, bad[i].reason))
            fail_msg("'%s' was expected, not '%s'", bad[i].reason, dg.text);
    }
}

static void a_pipe_is_refused_because_a_trace_is_read_twice(void **state)
{
    (void)state;
    struct diag dg;
    struct trace *t;
    assert_int_equal(mkfifo(temp_path("pipe.csv"), 0600), 0);
    assert_int_equal(trace_load(&t, temp_path("pipe.csv"), &dg), ST_IO);
    assert_non_null(strstr(dg.text, ": a regular file is expected"));
}

static void a_truncated_route_trace_is_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct trace *t;
    size_t bytes;
    char *text = read_whole(SHARED "bmoe/gemma.route.csv", &bytes);
    text[bytes - 1] = 0;
    *strrchr(text, '\n') = 0; /* without its last row */
    write_file(temp_path("short.csv"), text);
    free(text);
    assert_int_not_equal(trace_load(&t, temp_path("short.csv"), &dg), ST_OK);
    assert_non_null(strstr(dg.text, "truncated"));
}

static void esft_folders_become_one_turn_a_text(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct trace *t;
    assert_ok(trace_load(&t, SHARED "esft/law", &dg));
    assert_int_equal(t->layers, 26);
    assert_int_equal(t->experts, 64);
    assert_int_equal(t->top_k, 6);
    assert_int_equal(t->pass[t->pass_count - 1].turn + 1, 33);
    assert_int_equal(t->expert[0], 8); /* the first id of expert_weights_1.txt */
    assert_int_equal(t->row_count, t->pass_count * 26 * 6);
    trace_free(t);
}

static void a_bad_esft_folder_is_refused(void **state)
{
    (void)state;
    struct diag dg;
    struct trace *t;
    char dir[256], file[300];
    snprintf(dir, sizeof dir, "%s", temp_path("esft"));
    mkdir(dir, 0700);
    assert_int_not_equal(trace_load(&t, dir, &dg), ST_OK);
    assert_non_null(strstr(dg.text, "expert_weights_1.txt"));
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {"1\t2\t3\t4\t5\t64\t\t1\t1\t1\t1\t1\t1\n", ":1: expected an expert id below 64"},
        {"1\t2\t3\t4\t5\t6\n", ":1: truncated"},
        {"1\t2\t3\t4\t5\t6\t\t1\t1\t1\n", ":1: 6 weights expected, 3 found"},
        {"1\t2\t3\t4\t5\t\t1\t1\t1\t1\t1\n", ":1: the number of ids must be a multiple of 6"},
        {"1\t2\t3\t4\t5\t5\t\t1\t1\t1\t1\t1\t1\n", "expert 5 twice"}};
    snprintf(file, sizeof file, "%s/expert_weights_1.txt", dir);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(file, bad[i].text);
        assert_int_not_equal(trace_load(&t, dir, &dg), ST_OK);
        if (!strstr(dg.text, bad[i].reason))
            fail_msg("'%s' was expected, not '%s'", bad[i].reason, dg.text);
    }
    /* A file that is there but cannot be read must not end the list of layers. */
    write_file(file, "1\t2\t3\t4\t5\t6\t\t1\t1\t1\t1\t1\t1\n");
    snprintf(file, sizeof file, "%s/expert_weights_2.txt", dir);
    assert_int_equal(symlink("expert_weights_2.txt", file), 0);
    assert_int_equal(trace_load(&t, dir, &dg), ST_IO);
    assert_non_null(strstr(dg.text, "expert_weights_2.txt: cannot be opened: Too many levels"));
    assert_int_equal(remove(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_int_equal(trace_load(&t, dir, &dg), ST_IO);
    assert_non_null(strstr(dg.text, "expert_weights_2.txt: a regular file is expected"));
}

static void oracle_general_says_when_each_object_comes_next(void **state)
{
    (void)state;
    struct diag dg;
    struct trace *t = load_text(small);
    assert_ok(trace_save_oracle_general(t, temp_path("oracle"), &dg));
    size_t bytes;
    unsigned char *r = (unsigned char *)read_whole(temp_path("oracle"), &bytes);
    static const struct {
        uint32_t clock;
        uint64_t object;
        uint32_t size;
        int64_t next;
    } want[] = {{0, 13, 1000, -1}, {0, 11, 1000, -1}, {0, 15, 1000, -1},
                {0, 22, 2000, -1}, {1, 8, 1000, -1},  {1, 17, 2000, -1}};
    assert_int_equal(bytes, 24 * 6);
    for (size_t i = 0; i < 6; i++) {
        uint32_t clock, size;
        uint64_t object;
        int64_t next;
        memcpy(&clock, r + 24 * i, 4);
        memcpy(&object, r + 24 * i + 4, 8);
        memcpy(&size, r + 24 * i + 12, 4);
        memcpy(&next, r + 24 * i + 16, 8);
        assert_int_equal(clock, want[i].clock);
        assert_int_equal(object, want[i].object);
        assert_int_equal(size, want[i].size);
        assert_int_equal(next, want[i].next);
    }
    free(r);
    trace_free(t);
}

static void damaged_bytes_never_crash_the_reader(void **state)
{
    (void)state;
    struct pcg chance;
    pcg_stream(&chance, 3, "test/damage");
    size_t n = strlen(small);
    for (int round = 0; round < 1000; round++) {
        char text[sizeof small];
        memcpy(text, small, sizeof small);
        for (uint32_t hits = 1 + pcg_below(&chance, 4); hits > 0; hits--)
            text[pcg_below(&chance, (uint32_t)n)] = (char)(1 + pcg_below(&chance, 255));
        text[pcg_below(&chance, 3) ? n : pcg_below(&chance, (uint32_t)n)] = 0;
        const char *path = temp_path("damaged.csv");
        write_file(path, text);
        struct diag dg;
        struct trace *t;
        if (trace_load(&t, path, &dg) == ST_OK)
            trace_free(t);
        else
            assert_null(strchr(dg.text, '\n'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_is_read_as_it_is_written),
        cmocka_unit_test(a_broken_trace_is_refused_with_its_line),
        cmocka_unit_test(predictions_alone_are_no_trace),
        cmocka_unit_test(a_step_may_not_go_back_within_a_layer),
        cmocka_unit_test(weights_are_exact_decimals),
        cmocka_unit_test(route_trace_v1_becomes_passes_of_prefill_and_decode),
        cmocka_unit_test(a_bad_route_trace_is_refused_with_its_line),
        cmocka_unit_test(a_pipe_is_refused_because_a_trace_is_read_twice),
        cmocka_unit_test(a_truncated_route_trace_is_refused),
        cmocka_unit_test(esft_folders_become_one_turn_a_text),
        cmocka_unit_test(a_bad_esft_folder_is_refused),
        cmocka_unit_test(oracle_general_says_when_each_object_comes_next),
        cmocka_unit_test(damaged_bytes_never_crash_the_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
