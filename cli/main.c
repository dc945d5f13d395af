/* main.c -- the table of subcommands, and the only place that decides an exit code: 0 done, 1 failed,
 * 2 misuse. Standard output holds results only; everything said to the user goes to stderr. */
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/report.h"

#include "base/nearest.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct command *const commands[] = {
    &command_plan,
    &command_roofline,
    &command_replay,
    &command_trace_info,
    &command_trace_convert,
    &command_trace_generate,
    &command_trace_mrc,
    &command_model_list,
    &command_model_show,
    &command_model_import,
    &command_device_list,
    &command_device_show,
    &command_device_import,
    &command_device_fit,
    &command_bench_replay,
    &command_bench_read,
    NULL,
};

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("memwall: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* Words that `name` ("trace info") takes of argv, 0 if it does not match. */
static int match(const char *name, int argc, char **argv)
{
    int words = 0;
    while (*name) {
        size_t n = strcspn(name, " ");
        if (words >= argc || strlen(argv[words]) != n || memcmp(argv[words], name, n) != 0)
            return 0;
        words++;
        name += n + (name[n] == ' ');
    }
    return words;
}

static void print_commands(FILE *f, const char *prefix)
{
    for (const struct command *const *c = commands; *c; c++)
        if (!prefix || (strncmp((*c)->name, prefix, strlen(prefix)) == 0))
            fprintf(f, "  %-16s %s\n", (*c)->name, (*c)->summary);
}

static int print_overview(void)
{
    printf("memwall " MEMWALL_VERSION
           ": how fast a model runs whose weights do not fit in memory, and "
           "why\n\n");
    print_commands(stdout, NULL);
    printf("\n  memwall COMMAND --help   options and an example\n");
    struct diag dg;
    return flush_stdout(&dg) == ST_OK ? 0 : 1;
}

static int unknown_command(int argc, char **argv)
{
    size_t n = strlen(argv[0]);
    for (const struct command *const *c = commands; *c; c++)
        if (strncmp((*c)->name, argv[0], n) == 0 && (*c)->name[n] == ' ') {
            if (argc > 1 && strcmp(argv[1], "--help") == 0) {
                print_commands(stdout, argv[0]);
                return 0;
            }
            say("'%s' needs one of these:", argv[0]);
            print_commands(stderr, argv[0]);
            return 2;
        }
    const char *names[64];
    size_t count = 0;
    for (const struct command *const *c = commands; *c && count < 64; c++)
        names[count++] = (*c)->name;
    const char *near = nearest_name(argv[0], names, count);
    if (near)
        say("unknown command '%s' (did you mean '%s'?)", argv[0], near);
    else
        say("unknown command '%s' (memwall --help lists them)", argv[0]);
    return 2;
}

static int run(const struct command *c, int argc, char **argv)
{
    struct diag dg;
    struct args *a;
    enum status st = args_parse(&a, c, argc, argv, &dg);
    if (st == ST_OK && args_flag(a, "help")) {
        args_help(c);
        args_free(a);
        return flush_stdout(&dg) == ST_OK ? 0 : 1;
    }
    if (st == ST_OK) {
        st = c->run(a, &dg);
        args_free(a);
    }
    if (st == ST_OK)
        return 0;
    say("%s", dg.text);
    return st == ST_USAGE ? 2 : 1;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error to report, not a silent death */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
        return print_overview();
    if (strcmp(argv[1], "--version") == 0) {
        printf("memwall " MEMWALL_VERSION "\n");
        return 0;
    }
    for (const struct command *const *c = commands; *c; c++) {
        int words = match((*c)->name, argc - 1, argv + 1);
        if (words > 0)
            return run(*c, argc - 1 - words, argv + 1 + words);
    }
    return unknown_command(argc - 1, argv + 1);
}
