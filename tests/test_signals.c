/* test_signals.c -- a program that is told to stop leaves no temporary file or folder behind. */
#include "tests/cli_expect.h"

#include <fcntl.h>
#include <unistd.h>

#define MODEL "models/tiny/tiny-q4_0.gguf"

/* Files without a name, which is how outputs are written where the file system has them. */
static bool nameless_files(void)
{
    int fd = open(temp_path(""), O_TMPFILE | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Runs the shell command `$M ARGUMENTS`, where $M is the program with half a second to live and $d an empty folder.
 * Nothing may be left there, and the program must have died of the signal. */
static void expect_nothing_left(const char *signal_name, int number, const char *arguments)
{
    char command[1200];
    snprintf(command, sizeof command,
             "d=%s; mkdir $d; M=\"timeout --preserve-status -s %s 0.5 $MEMWALL\"; $M %s >/dev/null "
             "2>&1; e=$?; ls -A $d; rm -r $d; exit $e",
             temp_path("empty"), signal_name, arguments);
    struct run r = run_shell(command);
    if (r.out_bytes > 0)
        fail_msg("%s: SIG%s left %s", arguments, signal_name, r.out);
    assert_int_equal(r.exit_code, 128 + number);
    run_free(&r);
}

static void outputs_under_way_have_no_name(void **state)
{
    (void)state;
    static const char run[] = "engine run " MODEL " --prompt hi --ignore-eos --generate 250 "
                              "--limit-rate 1MB/s --cache 1MiB --tokens-out $d/x.csv";
    static const char synth[] = "engine synth qwen3-30b-a3b --layers 8 --out $d/x.gguf";
    if (!nameless_files())
        skip();
    expect_nothing_left("INT", 2, run);
    expect_nothing_left("TERM", 15, synth);
    expect_nothing_left("KILL", 9, run);
}

static void the_file_of_a_benchmark_has_no_name(void **state)
{
    (void)state;
    expect_nothing_left("TERM", 15, "engine bench loader --dir $d --file-bytes 1GiB");
}

/* Stands for gnuplot: says what it was to draw, and takes its time. */
static const char slow_gnuplot[] = "#!/bin/sh\ndirname $2 >$d/folder\nsleep 20\n";

static void a_figure_under_way_leaves_no_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"TERM", "HUP"};
    for (size_t i = 0; i < 2; i++) {
        char command[1200], tools[160];
        strcpy(tools, temp_path(""));
        write_file(temp_path("gnuplot"), slow_gnuplot);
        snprintf(command, sizeof command,
                 "export d=%s; chmod +x $d/gnuplot; PATH=$d:$PATH timeout -s %s 2 $MEMWALL plot "
                 "experiments/results/e01.csv --x storage.0.bandwidth --y decode_tok_per_s --out "
                 "$d/x.svg; cat "
                 "$d/folder; test ! -e $(cat $d/folder)",
                 tools, names[i]);
        struct run r = run_shell(command);
        if (!strstr(r.out, "/memwall-plot-"))
            fail_msg("nothing was drawn: %s", r.err);
        assert_int_equal(r.exit_code, 0);
        run_free(&r);
    }
}

static void a_signal_that_is_ignored_stays_ignored(void **state)
{
    (void)state;
    struct run r = run_shell("trap '' HUP; timeout -s HUP 0.3 $MEMWALL engine run " MODEL
                             " --prompt hi --ignore-eos --generate 100 --limit-rate 20MB/s "
                             "--cache 2MiB --format csv >/dev/null; test $? -ne 129");
    assert_int_equal(r.exit_code, 0);
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_under_way_have_no_name),
        cmocka_unit_test(the_file_of_a_benchmark_has_no_name),
        cmocka_unit_test(a_figure_under_way_leaves_no_folder),
        cmocka_unit_test(a_signal_that_is_ignored_stays_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
