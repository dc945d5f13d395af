/* test_cli_failures.c -- a wrong world is one line of reason and exit 1: files that are not what they should
 * be, overrides that fit nothing, a full disk, a closed pipe. Nothing half-written is left behind. */
#include "tests/cli_expect.h"

#include <dirent.h>
#include <sys/stat.h>

/* ---- files that are not what they should be ---- */

enum bad { MISSING, FOLDER, PIPE, EMPTY, BINARY, PROSE, BAD_COUNT };
static const char *const bad_name[BAD_COUNT] = {"missing", "folder", "pipe",
                                                "empty",   "binary", "prose"};

/* A bad file whose name ends as `ending` says. */
static void make_bad(char path[160], enum bad kind, const char *ending)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", bad_name[kind], ending);
    strcpy(path, temp_path(name));
    if (kind == FOLDER)
        (void)mkdir(path, 0777); /* it may be there from the command before */
    else if (kind == PIPE)
        (void)mkfifo(path, 0600); /* nobody writes to it */
    else if (kind == EMPTY)
        write_file(path, "");
    else if (kind == PROSE)
        write_file(path, "Once upon a time,\n\tthere was no trace: {\n");
    else if (kind == BINARY) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        for (int i = 0; i < 4096; i++)
            fputc((i * 167 + i / 256) & 255, f);
        assert_int_equal(fclose(f), 0);
    }
}

static int count_files(const char *path)
{
    int n = -2; /* . and .. */
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Commands that read a file; '@' is where it goes. */
static const struct reader {
    const char *command, *ending;
    bool writes; /* has --out */
} readers[] = {
    {"replay --cache 600 --trace @", ".csv", false},
    {"replay --cache 600 --policy pinned --trace tests/data/demo.trace.csv --pin-from @", ".csv",
     false},
    {"trace info @", ".csv", false},
    {"trace mrc @", ".csv", false},
    {"trace convert @", ".csv", true},
    {"trace convert --to oracle-general @", ".csv", true},
    {"trace generate --preset @", ".yaml", true},
    {"trace generate --preset tiny --model @", ".yaml", true},
    {"model show @", ".yaml", false},
    {"model show @", ".gguf", false},
    {"model show @", ".json", false},
    {"model import @", ".json", true},
    {"model import @", ".gguf", true},
    {"device show @", ".yaml", false},
    {"device import @", ".json", true},
    {"device fit @", ".csv", true},
    {"plan --device oneplus-15r @", ".yaml", false},
    {"plan qwen3-30b-a3b --device @", ".yaml", false},
    {"plan qwen3-30b-a3b --device oneplus-15r --preset @", ".yaml", false},
    {"roofline --device oneplus-15r @", ".yaml", false},
    {"roofline qwen3-30b-a3b --device @", ".yaml", false},
};

static void a_bad_file_is_one_line_that_names_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        for (enum bad kind = MISSING; kind < BAD_COUNT; kind++) {
            char path[160], arguments[ARGUMENTS_MAX];
            make_bad(path, kind, readers[i].ending);
            fill_path(arguments, readers[i].command, path);
            if (readers[i].writes)
                strcat(arguments, " --out -");
            expect_refusal(arguments, EXIT_FAILED, path);
        }
}

static void a_bad_input_leaves_no_output_and_no_temporary_file(void **state)
{
    (void)state;
    char folder[160], kept[160], path[160], pattern[160], arguments[ARGUMENTS_MAX];
    strcpy(folder, temp_path("out"));
    assert_int_equal(mkdir(folder, 0777), 0);
    strcpy(kept, temp_path("out/kept"));
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        for (enum bad kind = MISSING; readers[i].writes && kind < BAD_COUNT; kind++) {
            make_bad(path, kind, readers[i].ending);
            snprintf(pattern, sizeof pattern, "%s --out %s", readers[i].command, kept);
            fill_path(arguments, pattern, path);
            expect_refusal(arguments, EXIT_FAILED, path);
            assert_int_equal(count_files(folder), 0);
            write_file(kept, "as it was");
            expect_refusal(arguments, EXIT_FAILED, path);
            assert_int_equal(count_files(folder), 1);
            char *text = read_whole(kept, NULL);
            assert_string_equal(text, "as it was");
            free(text);
            assert_int_equal(remove(kept), 0);
        }
}

static void a_trace_cut_short_anywhere_is_refused(void **state)
{
    (void)state;
    char path[160], arguments[320];
    strcpy(path, temp_path("cut.csv"));
    for (size_t cut = 0; cut + 2 < strlen(small_trace); cut += 23) {
        char text[1024];
        strcpy(text, small_trace);
        text[cut] = 0;
        write_file(path, text);
        snprintf(arguments, sizeof arguments, "replay --cache 600 --trace %s", path);
        expect_refusal(arguments, EXIT_FAILED, path);
    }
}

static void a_trace_with_one_wrong_row_is_refused_with_its_line(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "x,0,1,2,3,1,1,2,0.25",  "r,0,1,2,3,1,1,4,0.25",   "r,0,1,2,3,2,1,2,0.25",
        "r,0,1,2,3,1,2,2,0.25",  "r,0,1,1,3,1,1,2,0.25",   "r,0,1,2,3,1,1,-2,0.25",
        "r,0,1,2,3,1,1,2,heavy", "r,0,1,2,3,1,1,2",        "r,0,1,2,3,1,1,2,0.25,9",
        "r,0,2,2,3,1,1,2,0.25",  "r,0,1,2,3,1,1,\"2,0.25",
    };
    char path[160], arguments[320], reason[200];
    strcpy(path, temp_path("wrong.csv"));
    snprintf(arguments, sizeof arguments, "trace info %s", path);
    const char *last = strstr(small_trace, "r,0,1,2,3,1,1,2,0.25");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%.*s%s\n# end rows=17\n", (int)(last - small_trace),
                 small_trace, rows[i]);
        write_file(path, text);
        snprintf(reason, sizeof reason, "%s:25: ", path);
        expect_refusal(arguments, EXIT_FAILED, reason);
    }
}

static void a_cache_that_holds_no_batch_is_refused_with_the_least(void **state)
{
    (void)state;
    char arguments[240];
    snprintf(arguments, sizeof arguments, "replay --trace %s --cache 199", small_trace_path());
    expect_refusal(arguments, EXIT_FAILED, "200 B");
    snprintf(arguments, sizeof arguments, "replay --trace %s --cache 0", small_trace_path());
    expect_refusal(arguments, EXIT_FAILED, "200 B");
}

static void a_budget_without_bounds_is_not_mistaken_for_a_small_one(void **state)
{
    (void)state;
    static const char *const scopes[] = {"global", "layer"};
    for (size_t i = 0; i < 2; i++) {
        char arguments[320];
        snprintf(arguments, sizeof arguments,
                 "replay --trace %s --cache 1 --scope %s --prefetch co-activation "
                 "--prefetch-budget 18446744073709551615",
                 small_trace_path(), scopes[i]);
        expect_refusal(arguments, EXIT_FAILED, i ? "1.20 kB" : "600 B");
    }
}

static void sizes_that_no_model_has_are_refused_with_their_line(void **state)
{
    (void)state;
    static const char *const sizes[] = {"18446744073709551615", "1099511627777"};
    char path[160], arguments[240];
    strcpy(path, temp_path("vast.csv"));
    snprintf(arguments, sizeof arguments, "replay --cache 18446744073709551615 --trace %s", path);
    for (size_t i = 0; i < 2; i++) {
        char text[1200], reason[200];
        const char *at = strstr(small_trace, "expert_bytes=100");
        snprintf(text, sizeof text, "%.*sexpert_bytes=%s%s", (int)(at - small_trace), small_trace,
                 sizes[i], at + strlen("expert_bytes=100"));
        write_file(path, text);
        snprintf(reason, sizeof reason, "%s:6: expert_bytes up to 2^40", path);
        expect_refusal(arguments, EXIT_FAILED, reason);
    }
    snprintf(arguments, sizeof arguments, "trace convert %s --expert-bytes 1025GiB",
             small_trace_path());
    expect_refusal(arguments, EXIT_MISUSE, "--expert-bytes must be at most");
}

static void a_name_that_is_not_in_the_catalogue_gets_the_nearest_as_a_hint(void **state)
{
    (void)state;
    expect_refusal("model show kimi-k33", EXIT_FAILED, "nearest is 'kimi-k3'");
    expect_refusal("device show oneplus-15", EXIT_FAILED, "nearest is 'oneplus-15r'");
    expect_refusal("plan qwen3-30b-a3 --device oneplus-15r", EXIT_FAILED,
                   "nearest is 'qwen3-30b-a3b'");
    expect_refusal("roofline qwen3-30b-a3b --device iphone-17-por", EXIT_FAILED,
                   "nearest is 'iphone-17-pro'");
    expect_refusal("trace generate --preset tinny --out -", EXIT_FAILED, "nearest is 'tiny'");
    expect_refusal("model show kimi-k3 --quant q4_k_x", EXIT_FAILED, "'q4_k_x'");
}

static void a_name_that_says_nothing_is_misuse(void **state)
{
    (void)state;
    expect_refusal("device fit tests/data/rates.csv --name ''", EXIT_MISUSE,
                   "--name needs a value");
    expect_refusal("device import tests/data/fio.json --name ''", EXIT_MISUSE,
                   "--name needs a value");
}

static void any_name_makes_a_part_that_can_be_read(void **state)
{
    (void)state;
    static const char *const names[] = {"null", "\x1b[31mred", "caf\xe9", "a\tb\x7f", "\"\\: {#"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char arguments[400];
        snprintf(arguments, sizeof arguments,
                 "device fit tests/data/rates.csv --name '%s' --out %s", names[i],
                 temp_path("part.yaml"));
        struct run r = run_memwall(arguments);
        assert_int_equal(r.exit_code, 0);
        run_free(&r);
        snprintf(arguments, sizeof arguments, "device show %s", temp_path("part.yaml"));
        r = run_memwall(arguments);
        if (r.exit_code != 0 || strchr(r.out, '\x1b'))
            fail_msg("%s: %s", names[i], r.err);
        run_free(&r);
    }
}

static void a_name_in_a_table_cannot_steer_the_terminal(void **state)
{
    (void)state;
    size_t bytes;
    char *text = read_whole("tests/data/fio.json", &bytes);
    char *name = strstr(text, "16k-depth1");
    assert_non_null(name);
    memcpy(name, "a\\u001b[2Jb", 10); /* as long as the name it replaces */
    write_file(temp_path("escape.json"), text);
    free(text);
    char arguments[200];
    snprintf(arguments, sizeof arguments, "device import %s", temp_path("escape.json"));
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    assert_null(strchr(r.out, '\x1b'));
    assert_non_null(strstr(r.out, "a?[2J"));
    run_free(&r);
}

/* ---- overrides ---- */

static void a_command_without_descriptions_refuses_overrides(void **state)
{
    (void)state;
    expect_refusal("model list --set layers=2", EXIT_MISUSE, "reads no description");
    expect_refusal("model import tests/data/tiny/config.json --set layers=2", EXIT_MISUSE,
                   "reads no description");
}

static void an_override_that_fits_nothing_is_refused_with_its_text(void **state)
{
    (void)state;
    static const struct {
        const char *command, *set, *reason;
    } cases[] = {
        {"device show oneplus-15r", "storage.0.bandwith=15GB/s", "did you mean 'bandwidth'?"},
        {"device show oneplus-15r", "storage.7.bandwidth=15GB/s", "storage.7.bandwidth"},
        {"device show oneplus-15r", "storage.0.bandwidth=15GiB", "unknown unit 'GiB'"},
        {"device show oneplus-15r", "storage.0.bandwidth=15", "15"},
        {"device show oneplus-15r", "storage.0.bandwidth=", "storage.0.bandwidth"},
        {"device show oneplus-15r", "storage.0=15GB/s", "storage.0"},
        {"device show oneplus-15r", "storage.0.queue_depth=-1", "-1"},
        {"device show oneplus-15r", "nonsense=1", "nonsense"},
        {"device show oneplus-15r", "nonsense.deeper=1", "nonsense"},
        {"model show kimi-k3", "layres=2", "did you mean 'layers'?"},
        {"model show kimi-k3", "ffn.7.experts=2", "ffn.7.experts"},
        {"model show kimi-k3", "ffn.1.experts=many", "ffn.1.experts=many"},
        {"model show kimi-k3", "ffn.1.top_k=4000", "top_k"},
        {"model show kimi-k3", "tied_embeddings=perhaps", "tied_embeddings=perhaps"},
        {"plan qwen3-30b-a3b --device oneplus-15r", "storage.0.bandwith=1GB/s", "did you mean"},
        {"plan qwen3-30b-a3b --device oneplus-15r", "dram.capacity=1GB/s", "unknown unit 'GB/s'"},
        {"plan qwen3-30b-a3b --device oneplus-15r", "ffn.3.top_k=2", "ffn.3.top_k"},
        {"roofline qwen3-30b-a3b --device oneplus-15r", "compute.9.f32=1GFLOP/s", "compute.9.f32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "%s --set %s", cases[i].command, cases[i].set);
        expect_refusal(arguments, EXIT_FAILED, cases[i].reason);
    }
}

/* ---- a full disk, a closed pipe ---- */

static void a_full_disk_fails_every_command_that_prints(void **state)
{
    (void)state;
    struct command_list list;
    command_list_read(&list);
    for (size_t i = 0; i < list.count; i++) {
        if (example_is_slow(list.name[i]))
            continue;
        struct run whole = run_example(list.name[i], "");
        struct run full = run_example(list.name[i], ">/dev/full");
        bool prints = whole.out_bytes > 0;
        if (whole.exit_code != 0)
            fail_msg("example of %s: exit %d: %s", list.name[i], whole.exit_code, whole.err);
        if (full.exit_code != prints)
            fail_msg("%s > /dev/full: exit %d: %s", list.name[i], full.exit_code, full.err);
        const char *reason =
            "memwall: standard output: cannot be written: No space left on device\n";
        size_t n = strlen(reason);
        if (prints && (full.err_bytes < n || strcmp(full.err + full.err_bytes - n, reason) != 0))
            fail_msg("%s > /dev/full: %s", list.name[i], full.err);
        run_free(&whole);
        run_free(&full);
    }
    expect_shell_refusal("$MEMWALL >/dev/full", EXIT_FAILED, "No space left on device");
    expect_shell_refusal("$MEMWALL --version >/dev/full", EXIT_FAILED, "No space left on device");
    expect_shell_refusal("$MEMWALL replay --help >/dev/full", EXIT_FAILED,
                         "No space left on device");
    expect_shell_refusal("$MEMWALL trace --help >/dev/full", EXIT_FAILED,
                         "No space left on device");
    expect_shell_refusal("$MEMWALL bench read --repeats 1 >/dev/full", EXIT_FAILED,
                         "No space left on device");
}

static void a_full_disk_under_an_output_file_is_reported(void **state)
{
    (void)state;
    char arguments[320];
    expect_refusal("trace generate --preset tiny --tokens 1000 --out /dev/full", EXIT_FAILED,
                   "/dev/full: cannot be written: No space left on device");
    expect_refusal("model import tests/data/tiny/config.json --out /dev/full", EXIT_FAILED,
                   "/dev/full: cannot be written: No space left on device");
    snprintf(arguments, sizeof arguments, "trace convert %s --out /dev/full", large_trace_path());
    expect_refusal(arguments, EXIT_FAILED, "/dev/full: cannot be written: No space left on device");
    snprintf(arguments, sizeof arguments, "trace convert %s --to oracle-general --out /dev/full",
             small_trace_path());
    expect_refusal(arguments, EXIT_FAILED, "/dev/full: cannot be written: No space left on device");
}

static void a_limit_on_file_sizes_leaves_no_half_written_file(void **state)
{
    (void)state;
    char folder[160], command[512];
    strcpy(folder, temp_path("limit"));
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(command, sizeof command, "ulimit -f 16; $MEMWALL trace convert %s --out %s/result",
             large_trace_path(), folder);
    expect_shell_refusal(command, EXIT_FAILED, "File too large");
    assert_int_equal(count_files(folder), 0);
}

static void an_output_that_cannot_be_created_is_reported(void **state)
{
    (void)state;
    char arguments[320];
    snprintf(arguments, sizeof arguments, "trace convert %s --out /nonexistent/x",
             small_trace_path());
    expect_refusal(arguments, EXIT_FAILED, "/nonexistent/x");
    snprintf(arguments, sizeof arguments, "trace convert %s --out /tmp", small_trace_path());
    expect_refusal(arguments, EXIT_FAILED, "/tmp");
    snprintf(arguments, sizeof arguments, "trace convert %s --out ''", small_trace_path());
    expect_refusal(arguments, EXIT_FAILED, "cannot be written");
}

/* Runs `memwall ARGUMENTS | reader` in bash and demands exit 1 with a reason of the program. */
static void expect_broken_pipe(const char *arguments, const char *reader)
{
    char command[9000];
    snprintf(command, sizeof command,
             "bash -c '$MEMWALL %s | %s >/dev/null; exit ${PIPESTATUS[0]}'", arguments, reader);
    expect_shell_refusal(command, EXIT_FAILED, "cannot be written: Broken pipe");
}

static void a_closed_pipe_is_a_reason_and_not_a_death(void **state)
{
    (void)state;
    char arguments[8000];
    int n = snprintf(arguments, sizeof arguments,
                     "replay --format csv --policy all --trace %s --cache ", small_trace_path());
    for (int size = 600; size < 1200; size++)
        n += snprintf(arguments + n, sizeof arguments - (size_t)n, "%s%d", size > 600 ? "," : "",
                      size);
    expect_broken_pipe(arguments, "true");
    expect_broken_pipe(arguments, "head -n 1");
    snprintf(arguments, sizeof arguments, "trace convert %s", large_trace_path());
    expect_broken_pipe(arguments, "true");
    expect_broken_pipe("trace generate --preset tiny --tokens 1000 --out -", "head -c 10");
}

static void results_do_not_depend_on_where_stderr_goes(void **state)
{
    (void)state;
    char command[320];
    snprintf(command, sizeof command, "$MEMWALL replay --trace %s --cache 200 2>/dev/full",
             small_trace_path());
    struct run r = run_shell(command);
    snprintf(command, sizeof command, "replay --trace %s --cache 200", small_trace_path());
    struct run plain = run_memwall(command);
    assert_int_equal(r.exit_code, 0);
    assert_true(plain.err_bytes >
                0); /* the prefill chunk was cut: that is said, but not in the results */
    assert_string_equal(r.out, plain.out);
    run_free(&r);
    run_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_file_is_one_line_that_names_it),
        cmocka_unit_test(a_bad_input_leaves_no_output_and_no_temporary_file),
        cmocka_unit_test(a_trace_cut_short_anywhere_is_refused),
        cmocka_unit_test(a_trace_with_one_wrong_row_is_refused_with_its_line),
        cmocka_unit_test(a_cache_that_holds_no_batch_is_refused_with_the_least),
        cmocka_unit_test(a_budget_without_bounds_is_not_mistaken_for_a_small_one),
        cmocka_unit_test(sizes_that_no_model_has_are_refused_with_their_line),
        cmocka_unit_test(a_name_that_is_not_in_the_catalogue_gets_the_nearest_as_a_hint),
        cmocka_unit_test(a_name_that_says_nothing_is_misuse),
        cmocka_unit_test(any_name_makes_a_part_that_can_be_read),
        cmocka_unit_test(a_name_in_a_table_cannot_steer_the_terminal),
        cmocka_unit_test(a_command_without_descriptions_refuses_overrides),
        cmocka_unit_test(an_override_that_fits_nothing_is_refused_with_its_text),
        cmocka_unit_test(a_full_disk_fails_every_command_that_prints),
        cmocka_unit_test(a_full_disk_under_an_output_file_is_reported),
        cmocka_unit_test(a_limit_on_file_sizes_leaves_no_half_written_file),
        cmocka_unit_test(an_output_that_cannot_be_created_is_reported),
        cmocka_unit_test(a_closed_pipe_is_a_reason_and_not_a_death),
        cmocka_unit_test(results_do_not_depend_on_where_stderr_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
