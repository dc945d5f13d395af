/* test_outputs.c -- outputs are looked at before the work: none replaces an input or another output, and one that
 * cannot be written is told at once. */
#include "tests/cli_expect.h"

#include <sys/stat.h>
#include <unistd.h>

static const char content[] = "what was there before\n";

/* '@' is a file that is there. */
static const struct {
    const char *command, *option;
} over_inputs[] = {
    {"engine pack @ --out @", "--out"},
    {"engine pack models/tiny/tiny-q4_0.gguf --order @ --out @", "--out"},
    {"engine pack models/tiny/tiny-q4_0.gguf --coactivation @ --out @", "--out"},
    {"engine heads @ --tokens 1 --out @", "--out"},
    {"engine heads models/tiny/tiny-q4_0.gguf --text @ --out @", "--out"},
    {"engine repair @ --from models/tiny/tiny-q4_0.gguf --out @", "--out"},
    {"engine repair models/tiny/tiny-q4_0.gguf --from @ --out @", "--out"},
    {"engine repair models/tiny/tiny-q4_0.gguf --from x --weighted @ --out @", "--out"},
    {"engine synth @ --out @", "--out"},
    {"calibrate --model @ --out @", "--out"},
    {"calibrate --pack @ --out @", "--out"},
    {"sweep @ --out @", "--out"},
    {"sweep --merge @ @ @", "--merge"},
    {"sweep --merge @ other.csv @", "--merge"},
    {"engine run models/tiny/tiny-q4_0.gguf --prompt a --pack @ --timeline @", "--timeline"},
    {"engine run models/tiny/tiny-q4_0.gguf --prompt-file @ --trace-out @", "--trace-out"},
    {"engine run models/tiny/tiny-q4_0.gguf --route @ --trace-out @", "--trace-out"},
    {"engine run models/tiny/tiny-q4_0.gguf --prompt a --adapter other,@ --logits-out @",
     "--logits-out"},
    {"engine run models/tiny/tiny-q4_0.gguf --prompt a --prefetch heads --heads @ --tokens-out @",
     "--tokens-out"},
};

/* The path for every '@' of the pattern. */
static const char *fill_all(char buffer[ARGUMENTS_MAX], const char *pattern, const char *path)
{
    char next[ARGUMENTS_MAX];
    strcpy(buffer, pattern);
    while (strchr(buffer, '@')) {
        fill_path(next, buffer, path);
        strcpy(buffer, next);
    }
    return buffer;
}

static void no_output_replaces_an_input(void **state)
{
    (void)state;
    char path[160]; /* those of temp_path are few */
    strcpy(path, temp_path("input"));
    write_file(path, content);
    for (size_t i = 0; i < sizeof over_inputs / sizeof *over_inputs; i++) {
        char arguments[ARGUMENTS_MAX], reason[64];
        snprintf(reason, sizeof reason, "memwall: %s: ", over_inputs[i].option);
        expect_refusal(fill_all(arguments, over_inputs[i].command, path), EXIT_MISUSE, reason);
        char *now = read_whole(path, NULL);
        assert_string_equal(now, content);
        free(now);
    }
}

static void a_link_to_an_input_is_that_input(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX];
    const char *file = temp_path("linked"), *link = temp_path("link");
    write_file(file, content);
    assert_int_equal(symlink("linked", link), 0);
    snprintf(arguments, sizeof arguments, "engine pack %s --out %s", file, link);
    expect_refusal(arguments, EXIT_MISUSE, "is read by this run");
}

static void two_outputs_need_two_files(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX];
    static const char pattern[] = "engine run models/tiny/tiny-q4_0.gguf --prompt a "
                                  "--tokens-out @ --trace-out @";
    expect_refusal(fill_all(arguments, pattern, temp_path("two")), EXIT_MISUSE,
                   "--trace-out and --tokens-out: two outputs in one file");
    struct run r = run_memwall("engine run models/tiny/tiny-q4_0.gguf --prompt a --generate 2 "
                               "--tokens-out /dev/null --trace-out /dev/null");
    assert_int_equal(r.exit_code, 0);
    run_free(&r);
}

/* What would be long in coming is not even begun: the inputs are not there. */
static void an_output_that_cannot_be_written_is_told_before_the_work(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "engine run nothing.gguf --prompt a --timeline /nonexistent/x",
        "engine run nothing.gguf --prompt a --trace-out /nonexistent/x",
        "engine run nothing.gguf --prompt a --logits-out /nonexistent/x",
        "engine heads nothing.gguf --tokens 1 --out /nonexistent/x",
        "engine repair nothing.gguf --from nothing.gguf --out /nonexistent/x",
        "engine pack nothing.gguf --out /nonexistent/x",
        "sweep nothing.yaml --out /nonexistent/x",
        "sweep --merge /nonexistent/x nothing.csv",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        expect_refusal(commands[i], EXIT_FAILED, "/nonexistent/x: cannot be written");
    char folder[160], arguments[ARGUMENTS_MAX], journal[ARGUMENTS_MAX];
    strcpy(folder, temp_path("folder"));
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(arguments, sizeof arguments, "sweep experiments/e01-flash-bandwidth.yaml --out %s",
             folder);
    expect_refusal(arguments, EXIT_FAILED, "Is a directory");
    snprintf(journal, sizeof journal, "%s.journal", folder);
    assert_int_equal(access(journal, F_OK), -1);
    expect_refusal("sweep experiments/e01-flash-bandwidth.yaml --set tokens=4 --out /dev/full",
                   EXIT_FAILED, "/dev/full: cannot be written: No space left on device");
    assert_int_equal(access("/dev/full.journal", F_OK), -1);
    expect_refusal("sweep experiments/e01-flash-bandwidth.yaml --resume --out /dev/null",
                   EXIT_MISUSE, "--resume: /dev/null is no regular file");
}

/* The heads do not fit into the buffer of the stream, so that the first write already fails. */
static void a_full_disk_is_named_whenever_it_shows(void **state)
{
    (void)state;
    struct run r =
        run_memwall("engine heads models/tiny/tiny-q4_0.gguf --text models/tiny/README.md "
                    "--tokens-max 400 --window 64 --out /dev/full");
    assert_int_equal(r.exit_code, EXIT_FAILED);
    assert_non_null(strstr(r.err, "/dev/full: cannot be written: No space left on device"));
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_output_replaces_an_input),
        cmocka_unit_test(a_link_to_an_input_is_that_input),
        cmocka_unit_test(two_outputs_need_two_files),
        cmocka_unit_test(an_output_that_cannot_be_written_is_told_before_the_work),
        cmocka_unit_test(a_full_disk_is_named_whenever_it_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
