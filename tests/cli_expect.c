/* cli_expect.c -- see cli_expect.h. */
#include "tests/cli_expect.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

const char small_trace[] = "# memwall-trace 1\n"
                           "# model=small\n"
                           "# layers=2\n"
                           "# experts=4\n"
                           "# top_k=2\n"
                           "# layer=0 expert_bytes=100 dense_bytes=10\n"
                           "# layer=1 expert_bytes=100 dense_bytes=10\n"
                           "kind,turn,phase,pass,step,layer,slot,expert,weight\n"
                           "r,0,0,0,0,0,0,0,0.5\n"
                           "r,0,0,0,0,0,1,1,0.25\n"
                           "r,0,0,0,1,0,0,1,0.5\n"
                           "r,0,0,0,1,0,1,2,0.25\n"
                           "r,0,0,0,0,1,0,0,0.5\n"
                           "r,0,0,0,0,1,1,3,0.25\n"
                           "r,0,0,0,1,1,0,3,0.5\n"
                           "r,0,0,0,1,1,1,0,0.25\n"
                           "r,0,1,1,2,0,0,0,0.5\n"
                           "r,0,1,1,2,0,1,2,0.25\n"
                           "p,0,1,1,0,1,0,1,0.75\n"
                           "r,0,1,1,2,1,0,0,0.5\n"
                           "r,0,1,1,2,1,1,1,0.25\n"
                           "r,0,1,2,3,0,0,2,0.5\n"
                           "r,0,1,2,3,0,1,3,0.25\n"
                           "r,0,1,2,3,1,0,1,0.5\n"
                           "r,0,1,2,3,1,1,2,0.25\n"
                           "# end rows=17\n";

const char *small_trace_path(void)
{
    static char path[160];
    if (!*path) {
        strcpy(path, temp_path("small.csv"));
        write_file(path, small_trace);
    }
    return path;
}

const char *large_trace_path(void)
{
    static char path[160];
    char command[320];
    if (!*path) {
        strcpy(path, temp_path("large.csv"));
        snprintf(command, sizeof command,
                 "trace generate --preset tiny --tokens 1000 --prompt 16 --predict 1 --out %s",
                 path);
        expect_stdout(command, "");
    }
    return path;
}

const char *fill_path(char buffer[ARGUMENTS_MAX], const char *pattern, const char *path)
{
    const char *at = strchr(pattern, '@');
    int before = at ? (int)(at - pattern) : (int)strlen(pattern);
    int n = snprintf(buffer, ARGUMENTS_MAX, "%.*s%s%s", before, pattern, at ? path : "",
                     at ? at + 1 : "");
    assert_true(n < ARGUMENTS_MAX);
    return buffer;
}

void expect_stdout(const char *arguments, const char *text)
{
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s: exit %d: %s", arguments, r.exit_code, r.err);
    assert_string_equal(r.out, text);
    run_free(&r);
}

static void check_refusal(const char *what, struct run *r, int exit_code, const char *reason)
{
    const char *end = strchr(r->err, '\n');
    if (r->exit_code != exit_code)
        fail_msg("%s: exit %d, not %d: %s", what, r->exit_code, exit_code, r->err);
    if (r->out_bytes != 0)
        fail_msg("%s: prints results: %s", what, r->out);
    if (strncmp(r->err, "memwall: ", 9) != 0 || !end || end[1] != 0)
        fail_msg("%s: one line that starts with 'memwall: ' expected, not: %s", what, r->err);
    if (!strstr(r->err, reason))
        fail_msg("%s: '%s' expected in: %s", what, reason, r->err);
    run_free(r);
}

void expect_refusal(const char *arguments, int exit_code, const char *reason)
{
    struct run r = run_memwall(arguments);
    check_refusal(arguments, &r, exit_code, reason);
}

void expect_shell_refusal(const char *command, int exit_code, const char *reason)
{
    struct run r = run_shell(command);
    check_refusal(command, &r, exit_code, reason);
}

void command_list_read(struct command_list *out)
{
    struct run r = run_memwall("");
    assert_int_equal(r.exit_code, 0);
    out->count = 0;
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) {
        char *gap = strstr(line + 2, "  ");
        if (strncmp(line, "  ", 2) != 0 || strncmp(line, "  memwall", 9) == 0 || !gap)
            continue;
        assert_true(out->count < 64 && gap - line - 2 < 32);
        snprintf(out->name[out->count++], 32, "%.*s", (int)(gap - line - 2), line + 2);
    }
    run_free(&r);
}

/* The folder the examples run in, beside tests/ as on a checkout. */
static const char *example_dir(void)
{
    static char dir[160];
    static const char *const links[] = {"tests", "experiments", "models"};
    char here[PATH_MAX - 16], link[PATH_MAX], name[64];
    if (*dir)
        return dir;
    strcpy(dir, temp_path("examples"));
    assert_int_equal(mkdir(dir, 0777), 0);
    assert_non_null(getcwd(here, sizeof here));
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(link, sizeof link, "%s/%s", here, links[i]);
        snprintf(name, sizeof name, "examples/%s", links[i]);
        assert_int_equal(symlink(link, temp_path(name)), 0);
    }
    return dir;
}

struct run run_example(const char *command, const char *tail)
{
    static const char mark[] = "\nexample: memwall ";
    char help[64], line[4096];
    snprintf(help, sizeof help, "%s --help", command);
    struct run r = run_memwall(help);
    char *example = strstr(r.out, mark);
    if (r.exit_code != 0 || !example)
        fail_msg("%s: exit %d, no example in: %s", help, r.exit_code, r.out);
    example += sizeof mark - 1;
    example[strcspn(example, "\n")] = 0;
    snprintf(line, sizeof line, "program=$(realpath $MEMWALL) && cd %s && $program %s %s",
             example_dir(), example, tail);
    run_free(&r);
    return run_shell(line);
}

bool gnuplot_present(void)
{
    struct run r = run_shell("gnuplot --version");
    bool present = r.exit_code == 0;
    run_free(&r);
    return present;
}

void expect_holds(const char *arguments, int exit_code, const char *out, const char *err)
{
    struct run r = run_memwall(arguments);
    if (r.exit_code != exit_code || (out && !strstr(r.out, out)) || (err && !strstr(r.err, err)))
        fail_msg("%s: exit %d\n%s%s", arguments, r.exit_code, r.out, r.err);
    if (exit_code)
        assert_int_equal(r.out_bytes, 0);
    run_free(&r);
}

bool example_is_slow(const char *command)
{
    static const char *const slow[] = {"bench", "engine bench", "engine repair", "calibrate",
                                       "validate measured"};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (strncmp(command, slow[i], strlen(slow[i])) == 0)
            return true;
    return false;
}
