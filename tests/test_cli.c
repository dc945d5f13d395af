/* test_cli.c -- every command of the table has help, an example that works, and options that are checked:
 * exit 0 done, 2 misuse. What the commands print is in test_cli_results.c, what makes them fail in
 * test_cli_failures.c. */
#include "tests/cli_expect.h"

#include "base/json.h"

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void every_command_has_help_with_an_example_of_itself(void **state)
{
    (void)state;
    struct command_list list;
    command_list_read(&list);
    assert_true(list.count >= 16);
    for (size_t i = 0; i < list.count; i++) {
        char arguments[64], start[64];
        snprintf(arguments, sizeof arguments, "%s --help", list.name[i]);
        snprintf(start, sizeof start, "\nexample: memwall %s", list.name[i]);
        struct run r = run_memwall(arguments);
        assert_int_equal(r.exit_code, 0);
        assert_string_equal(r.err, "");
        assert_true(starts_with(r.out + strlen("memwall "), list.name[i]));
        assert_non_null(strstr(r.out, start));
        for (const char *const *o = (const char *const[]){"--format", "--seed", "--help", NULL}; *o;
             o++)
            assert_non_null(strstr(r.out, *o));
        run_free(&r);
    }
}

/* Lines on stderr are the program's, none is a row of results. */
static void check_stderr(const char *command, const char *err)
{
    for (const char *line = err; *line; line += strcspn(line, "\n") + 1)
        if (!starts_with(line, "memwall: ") || !strchr(line, '\n'))
            fail_msg("%s: on stderr: %s", command, line);
}

static void every_example_runs(void **state)
{
    (void)state;
    struct command_list list;
    command_list_read(&list);
    for (size_t i = 0; i < list.count; i++) {
        if (example_is_slow(list.name[i]))
            continue;
        struct run r = run_example(list.name[i], "");
        if (r.exit_code != 0)
            fail_msg("example of %s: exit %d: %s", list.name[i], r.exit_code, r.err);
        if (strstr(r.out, "memwall: "))
            fail_msg("example of %s: a message among its results", list.name[i]);
        check_stderr(list.name[i], r.err);
        run_free(&r);
    }
}

static void every_example_prints_the_same_bytes_twice(void **state)
{
    (void)state;
    struct command_list list;
    command_list_read(&list);
    for (size_t i = 0; i < list.count; i++) {
        if (example_is_slow(list.name[i]))
            continue;
        struct run first = run_example(list.name[i], ""), second = run_example(list.name[i], "");
        assert_int_equal(first.out_bytes, second.out_bytes);
        assert_memory_equal(first.out, second.out, first.out_bytes);
        run_free(&first);
        run_free(&second);
    }
}

static bool is_description(const char *command)
{
    return strcmp(command, "model import") == 0; /* prints YAML */
}

/* `example --format F` of every command that prints rows. */
static void for_each_table(const char *format, void (*check)(const char *command, const char *out))
{
    struct command_list list;
    command_list_read(&list);
    for (size_t i = 0; i < list.count; i++) {
        char tail[32];
        if (example_is_slow(list.name[i]) || is_description(list.name[i]))
            continue;
        snprintf(tail, sizeof tail, "--format=%s", format);
        struct run r = run_example(list.name[i], tail);
        if (r.exit_code == 2 && strstr(r.err, "--format is given twice")) {
            run_free(&r);
            r = run_example(list.name[i], "");
        }
        if (r.exit_code != 0)
            fail_msg("%s %s: exit %d: %s", list.name[i], tail, r.exit_code, r.err);
        if (r.out_bytes > 0)
            check(list.name[i], r.out);
        run_free(&r);
    }
}

static void check_json(const char *command, const char *out)
{
    struct diag dg;
    struct json_doc *doc;
    const char *path = temp_path("out.json");
    write_file(path, out);
    if (json_open(&doc, path, &dg) != ST_OK)
        fail_msg("%s: %s", command, dg.text);
    json_close(doc);
}

static void json_output_is_json(void **state)
{
    (void)state;
    for_each_table("json", check_json);
}

/* Commas outside of quotes. */
static size_t count_commas(const char *line, size_t length)
{
    size_t n = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        quoted ^= line[i] == '"';
        n += line[i] == ',' && !quoted;
    }
    return n;
}

static void check_csv(const char *command, const char *out)
{
    if (*out == '{' || *out == '[')
        return;                         /* an example that asks for JSON itself */
    size_t header = strcspn(out, "\n"); /* dots: an axis of a sweep is named by its path */
    if (strspn(out, "abcdefghijklmnopqrstuvwxyzB0123456789_,.") != header)
        fail_msg("%s: columns are not snake_case: %.*s", command, (int)header, out);
    for (const char *line = out; *line; line += strcspn(line, "\n") + 1)
        if (count_commas(line, strcspn(line, "\n")) != count_commas(out, header))
            fail_msg("%s: a row of another length: %.80s", command, line);
}

static void csv_output_has_a_snake_case_header_and_rows_of_its_length(void **state)
{
    (void)state;
    for_each_table("csv", check_csv);
}

static void the_overview_and_the_version_are_results(void **state)
{
    (void)state;
    struct run none = run_memwall(""), help = run_memwall("--help"),
               group = run_memwall("trace --help");
    assert_int_equal(none.exit_code, 0);
    assert_string_equal(none.out, help.out);
    assert_int_equal(group.exit_code, 0);
    assert_non_null(strstr(group.out, "trace mrc"));
    assert_null(strstr(group.out, "replay "));
    run_free(&none);
    run_free(&help);
    run_free(&group);
    expect_stdout("--version", "memwall 0.1.0\n");
}

static void an_unknown_command_gets_the_nearest_as_a_hint(void **state)
{
    (void)state;
    expect_refusal("replya --trace x", 2, "unknown command 'replya' (did you mean 'replay'?)");
    expect_refusal("trace infoo x", 2,
                   "unknown command 'trace infoo' (did you mean 'trace info'?)");
    expect_refusal("modl show kimi-k3", 2, "did you mean 'model show'?");
    expect_refusal("xyzzy", 2, "unknown command 'xyzzy' (memwall --help lists them)");
    expect_refusal("trace", 2, "'trace' needs one of info, convert, generate, mrc");
}

static void every_command_refuses_an_unknown_option(void **state)
{
    (void)state;
    struct command_list list;
    command_list_read(&list);
    for (size_t i = 0; i < list.count; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "%s --zzzzzzzz", list.name[i]);
        expect_refusal(arguments, 2, "unknown option --zzzzzzzz (--help lists them)");
        snprintf(arguments, sizeof arguments, "%s --fromat csv", list.name[i]);
        expect_refusal(arguments, 2, "unknown option --fromat (did you mean --format?)");
        snprintf(arguments, sizeof arguments, "%s --format", list.name[i]);
        expect_refusal(arguments, 2, "--format needs a value (table|csv|json)");
        snprintf(arguments, sizeof arguments, "%s --format xml", list.name[i]);
        expect_refusal(arguments, 2, "--format must be one of table, csv, json, not 'xml'");
        snprintf(arguments, sizeof arguments, "%s --seed=-1", list.name[i]);
        expect_refusal(arguments, 2, "--seed: '-1': a number without a sign is expected");
        snprintf(arguments, sizeof arguments, "%s -q", list.name[i]);
        expect_refusal(arguments, 2, "unknown option -q (options start with --)");
    }
}

static void what_is_required_is_named(void **state)
{
    (void)state;
    expect_refusal("replay", 2, "--trace FILE is required");
    expect_refusal("replay --trace x", 2, "--cache SIZE[,SIZE] is required");
    expect_refusal("plan qwen3-30b-a3b", 2, "--device D is required");
    expect_refusal("trace generate --preset tiny", 2, "--out FILE is required");
    expect_refusal("plan --device oneplus-15r", 2, "an argument is missing: memwall plan MODEL");
    expect_refusal("trace info", 2, "an argument is missing: memwall trace info TRACE");
    expect_refusal("model show", 2, "an argument is missing: memwall model show MODEL");
    expect_refusal("model show a b", 2, "unexpected argument 'b': memwall model show MODEL");
    expect_refusal("device show a b", 2, "unexpected argument 'b': memwall device show DEVICE");
    expect_refusal("replay --trace x --cache 1 y", 2, "unexpected argument 'y'");
}

static void a_value_outside_its_limits_is_misuse(void **state)
{
    (void)state;
    const char plan[] = "plan qwen3-30b-a3b --device oneplus-15r";
    static const char *const cases[][2] = {
        {"--lanes 0", "--lanes must be at least 1, not 0"},
        {"--lanes 4097", "--lanes must be at most 4096, not 4097"},
        {"--lanes 99999999999999999999", "--lanes: '99999999999999999999'"},
        {"--lanes 1.5", "--lanes: '1.5'"},
        {"--lanes two", "--lanes: 'two'"},
        {"--lanes ''", "--lanes: ''"},
        {"--lanes 2 --lanes 3", "--lanes is given twice"},
        {"--dram 4Gb", "--dram: '4Gb': 'Gb' counts bits"},
        {"--dram 4parsec", "--dram: '4parsec': unknown unit 'parsec'"},
        {"--dram 4GB/s", "--dram: '4GB/s': unknown unit 'GB/s'"},
        {"--dense maybe", "--dense must be one of resident, stream, not 'maybe'"},
        {"--explain=yes", "--explain takes no value"},
        {"--set bandwidth", "PATH=VALUE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[160];
        snprintf(arguments, sizeof arguments, "%s %s", plan, cases[i][0]);
        expect_refusal(arguments, 2, cases[i][1]);
    }
}

static void a_policy_that_does_not_exist_gets_the_nearest_as_a_hint(void **state)
{
    (void)state;
    expect_refusal("replay --trace x --cache 1 --policy lur", 2,
                   "unknown policy 'lur' (did you mean lru?)");
    expect_refusal("replay --trace x --cache 1 --policy lru,beladi", 2,
                   "unknown policy 'beladi' (did you mean belady?)");
    expect_refusal("replay --trace x --cache 1 --policy xyzzy", 2,
                   "there are none pinned fifo lru");
    expect_refusal("replay --trace x --cache 1 --policy lru,", 2, "unknown policy ''");
    expect_refusal("replay --trace x --cache 1,2parsec", 2, "unknown unit 'parsec'");
    expect_refusal("replay --trace x --cache 1 --prefetch gaet", 2,
                   "--prefetch must be one of none");
    expect_refusal("replay --trace x --cache 1 --prefetch-distance 2", 2,
                   "--prefetch-distance needs --prefetch");
}

static void a_set_that_nothing_would_read_is_misuse(void **state)
{
    (void)state;
    static const char *const commands[] = {"replay --trace x --cache 1", "trace mrc x",
                                           "trace convert x", "bench read", "bench replay"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[96];
        snprintf(arguments, sizeof arguments, "%s --set a=b", commands[i]);
        expect_refusal(arguments, 2, "reads no description");
    }
}

static void words_after_two_dashes_are_no_options(void **state)
{
    (void)state;
    expect_refusal("trace info -- --help", 1, "--help: cannot be read: No such file or directory");
    expect_refusal("trace info -- -q", 1, "-q: cannot be read: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_has_help_with_an_example_of_itself),
        cmocka_unit_test(every_example_runs),
        cmocka_unit_test(every_example_prints_the_same_bytes_twice),
        cmocka_unit_test(json_output_is_json),
        cmocka_unit_test(csv_output_has_a_snake_case_header_and_rows_of_its_length),
        cmocka_unit_test(the_overview_and_the_version_are_results),
        cmocka_unit_test(an_unknown_command_gets_the_nearest_as_a_hint),
        cmocka_unit_test(every_command_refuses_an_unknown_option),
        cmocka_unit_test(what_is_required_is_named),
        cmocka_unit_test(a_value_outside_its_limits_is_misuse),
        cmocka_unit_test(a_policy_that_does_not_exist_gets_the_nearest_as_a_hint),
        cmocka_unit_test(a_set_that_nothing_would_read_is_misuse),
        cmocka_unit_test(words_after_two_dashes_are_no_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
