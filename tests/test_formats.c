/* test_formats.c -- docs/formats.md against the program: its examples are read, every key of a schema stands in
 * it, and what it says of results is what comes out. (tests/test_model.c does so for the keys of a model.) */
#include "tests/cli_expect.h"

#include "devices/device_schema.h"
#include "sim/trace/preset.h"

#define MANUAL "docs/formats.md"

/* Writes the first block that a line "```kind" opens to a file and gives its path. */
static const char *example(const char *kind, const char *file_name)
{
    char fence[64], *text = read_whole(MANUAL, NULL);
    snprintf(fence, sizeof fence, "\n```%s\n", kind);
    char *block = strstr(text, fence);
    char *end = block ? strstr(block + strlen(fence), "\n```") : NULL;
    if (!end)
        fail_msg(MANUAL ": no block '%s'", kind);
    end[1] = 0;
    const char *path = temp_path(file_name);
    write_file(path, block + strlen(fence));
    free(text);
    return path;
}

static struct run run_with(const char *pattern, const char *path)
{
    char arguments[ARGUMENTS_MAX];
    struct run r = run_memwall(fill_path(arguments, pattern, path));
    if (r.exit_code != 0)
        fail_msg("%s: exit %d: %s", arguments, r.exit_code, r.err);
    return r;
}

static void the_trace_example_comes_back_as_it_was_read(void **state)
{
    (void)state;
    const char *path = example("trace", "example.csv");
    char *text = read_whole(path, NULL);
    struct run r = run_with("trace convert @", path);
    assert_string_equal(r.out, text);
    run_free(&r);
    free(text);
}

static void the_decisions_example_gives_its_commands_again(void **state)
{
    (void)state;
    struct run r =
        run_with("replay --format csv --decisions @", example("decisions", "decisions.csv"));
    assert_non_null(strstr(r.out, "lru,global,before,gate (timed),400,12,6,2,4,1,1,0,1,500,"));
    assert_non_null(strstr(r.out, ",yes\n"));
    run_free(&r);
}

static void the_description_examples_are_read(void **state)
{
    (void)state;
    struct run model = run_with("model show @", example("yaml model", "model.yaml"));
    struct run device = run_with("device show @", example("yaml device", "device.yaml"));
    struct run preset =
        run_with("trace generate --tokens 4 --out - --layers 2 --experts 8 --top-k 2 "
                 "--expert-bytes 1kB --preset @",
                 example("yaml preset", "preset.yaml"));
    assert_memory_equal(model.out, "gpt-oss-120b (model)", 20);
    assert_memory_equal(device.out, "device: A phone (phone)\n", 24);
    assert_memory_equal(preset.out, "# memwall-trace 1\n", 18);
    run_free(&model);
    run_free(&device);
    run_free(&preset);
}

/* The two lines under "$ memwall replay", of which "..." stands for further columns. */
static void the_result_example_is_what_replay_prints(void **state)
{
    (void)state;
    static const char start[] = "\n$ memwall replay --trace small.csv ";
    char *text = read_whole(MANUAL, NULL), pattern[160];
    char *line = strstr(text, start);
    assert_non_null(line);
    line += sizeof start - 1;
    snprintf(pattern, sizeof pattern, "replay --trace @ %.*s", (int)strcspn(line, "\n"), line);
    struct run r = run_with(pattern, example("trace", "example.csv"));
    const char *shown = strchr(line, '\n') + 1, *printed = r.out;
    for (int i = 0; i < 2; i++) {
        size_t length = (size_t)(strstr(shown, "...") - shown);
        if (strncmp(shown, printed, length) != 0)
            fail_msg("shown: %.*s\nprinted: %s", (int)length, shown, printed);
        shown = strchr(shown, '\n') + 1;
        printed = strchr(printed, '\n') + 1;
    }
    run_free(&r);
    free(text);
}

static void expect_key(const char *section, const char *key)
{
    char quoted[80];
    snprintf(quoted, sizeof quoted, "| `%s` |", key);
    if (!strstr(section, quoted))
        fail_msg(MANUAL " does not list %s", key);
}

static void expect_keys(const char *section, const struct yaml_field *fields)
{
    for (const struct yaml_field *f = fields; f->key; f++)
        expect_key(section, f->key);
}

/* The text from the heading to the next one of its level, in place. */
static char *section_of(char *text, const char *heading)
{
    char *section = strstr(text, heading);
    if (!section)
        fail_msg(MANUAL ": no section '%s'", heading);
    char level[8];
    snprintf(level, sizeof level, "%.*s", (int)strcspn(heading, " ") + 1, heading);
    char *end = strstr(section + 1, level);
    if (end)
        *end = 0;
    return section;
}

static void every_key_of_a_device_is_listed_in_its_section(void **state)
{
    (void)state;
    static const struct {
        const char *heading;
        const struct yaml_field *fields;
    } sections[] = {{"\n### The file", device_fields},
                    {"\n### `dram`", memory_fields},
                    {"\n### An entry of `storage`", storage_fields},
                    {"\n### An entry of `compute`", compute_fields}};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        char *text = read_whole(MANUAL, NULL);
        expect_keys(section_of(text, sections[i].heading), sections[i].fields);
        free(text);
    }
}

static void every_parameter_of_a_preset_is_listed(void **state)
{
    (void)state;
    char *text = read_whole(MANUAL, NULL);
    char *section = section_of(text, "\n## Routing preset");
    for (int i = 0; i < PRESET_VALUES; i++)
        expect_key(section, preset_value_key((enum preset_value)i));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_trace_example_comes_back_as_it_was_read),
        cmocka_unit_test(the_decisions_example_gives_its_commands_again),
        cmocka_unit_test(the_description_examples_are_read),
        cmocka_unit_test(the_result_example_is_what_replay_prints),
        cmocka_unit_test(every_key_of_a_device_is_listed_in_its_section),
        cmocka_unit_test(every_parameter_of_a_preset_is_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
