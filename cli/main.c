/* main.c -- the table of subcommands, and the only place that decides an exit code: 0 done, 1 failed,
 * 2 misuse. Standard output holds results only; everything said to the user goes to stderr. */
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/scratch.h"

#include "base/nearest.h"
#include "base/text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct command *const commands[] = {
    &command_plan,
    &command_roofline,
    &command_replay,
    &command_sim,
    &command_sweep,
    &command_compare,
    &command_plot,
    &command_report,
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
    &command_calibrate,
    &command_validate_published,
    &command_validate_measured,
    &command_validate_diff,
    &command_bench_replay,
    &command_bench_read,
    &command_bench_sim,
    &command_bench_sweep,
    &command_engine_synth,
    &command_engine_pack,
    &command_engine_heads,
    &command_engine_repair,
    &command_engine_run,
    &command_engine_bench_kernels,
    &command_engine_bench_loader,
    &command_engine_bench_decode,
    NULL,
};
/* clang-format on */

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
            fprintf(f, "  %-20s  %s\n", (*c)->name, (*c)->summary);
}

/* The exit code after something was printed by hand. */
static int printed(void)
{
    struct diag dg;
    if (flush_stdout(&dg) == ST_OK)
        return 0;
    say("%s", dg.text);
    return 1;
}

static int print_overview(void)
{
    printf("memwall " MEMWALL_VERSION
           ": how fast a model runs whose weights do not fit in memory, and "
           "why\n\n");
    print_commands(stdout, NULL);
    printf("\n  memwall COMMAND --help   options and an example\n");
    return printed();
}

/* Says that `word`, or `word next`, is not what was expected, with the nearest of the commands that begin
 * with `prefix`, or all of their second words. */
static int unknown_command(const char *prefix, const char *word, const char *next)
{
    const char *names[64];
    char listed[256] = "";
    size_t count = 0, skip = strlen(prefix);
    for (const struct command *const *c = commands; *c && count < 64; c++) {
        if (strncmp((*c)->name, prefix, skip) != 0)
            continue;
        names[count++] = (*c)->name + skip;
        text_list(listed, sizeof listed, ", ", "%s", (*c)->name + skip);
    }
    char both[64];
    snprintf(both, sizeof both, "%s %s", word ? word : "", next ? next : "");
    const char *near = word ? nearest_name(word, names, count) : NULL;
    if (!near && word && next)
        near = nearest_name(both, names, count);
    if (!word)
        say("'%.*s' needs one of %s", (int)skip - 1, prefix, listed);
    else if (near)
        say("unknown command '%s%s' (did you mean '%s%s'?)", prefix, word, prefix, near);
    else if (skip)
        say("unknown command '%s%s': there are %s", prefix, word, listed);
    else
        say("unknown command '%s' (memwall --help lists them)", word);
    return 2;
}

/* What no command answers to: perhaps the first word of several commands ("trace"). */
static int incomplete_command(int argc, char **argv)
{
    char prefix[64];
    int n = snprintf(prefix, sizeof prefix, "%s ", argv[0]);
    for (const struct command *const *c = commands; n < (int)sizeof prefix && *c; c++)
        if (strncmp((*c)->name, prefix, (size_t)n) == 0) {
            if (argc == 1 || strcmp(argv[1], "--help") != 0)
                return unknown_command(prefix, argc > 1 ? argv[1] : NULL, NULL);
            print_commands(stdout, prefix);
            return printed();
        }
    return unknown_command("", argv[0], argc > 1 ? argv[1] : NULL);
}

static int run(const struct command *c, int argc, char **argv)
{
    struct diag dg;
    struct args *a;
    enum status st = args_parse(&a, c, argc, argv, &dg);
    if (st == ST_OK && args_flag(a, "help")) {
        args_help(c);
        args_free(a);
        return printed();
    }
    if (st == ST_OK) {
        st = c->run(a, &dg);
        args_free(a);
    }
    if (st == ST_OK)
        return printed();
    say("%s", dg.text);
    return st == ST_USAGE ? 2 : 1;
}

int main(int argc, char **argv)
{
    /* A closed pipe and a file that may grow no further are errors to report, not a silent death. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    scratch_watch();
    bool help = argc >= 2 && strcmp(argv[1], "help") == 0;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (help && argc == 2))
        return print_overview();
    if (strcmp(argv[1], "--version") == 0) {
        printf("memwall " MEMWALL_VERSION "\n");
        return printed();
    }
    for (const struct command *const *c = commands; *c; c++) {
        int words = match((*c)->name, argc - 1 - help, argv + 1 + help);
        if (words > 0 && help) {
            args_help(*c);
            return printed();
        }
        if (words > 0)
            return run(*c, argc - 1 - words, argv + 1 + words);
    }
    return incomplete_command(argc - 1 - help, argv + 1 + help);
}
