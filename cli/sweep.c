/* sweep.c -- `memwall sweep`: the grid of an experiment, one row a point, the same bytes for any number
 * of threads and shards. */
#include "base/csv.h"
#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/outputs.h"
#include "cli/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTS_MAX = 1024 };

static const struct option options[] = {
    {"out", OPTION_TEXT, "FILE", "CSV of the results (standard output)", NULL, NULL, 1, 0, false},
    {"shard", OPTION_TEXT, "K/N", "every N-th point from the K-th on, as a part to be merged", NULL,
     NULL, 1, 0, false},
    {"jobs", OPTION_COUNT, "N", "threads (as many as processors)", NULL, NULL, 1, 1024, false},
    {"resume", OPTION_FLAG, NULL, "go on with what a killed run left in FILE.journal", NULL, NULL,
     0, 0, false},
    {"merge", OPTION_TEXT, "OUT", "write OUT from the parts of all shards, and run nothing", NULL,
     NULL, 1, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static enum status read_shard(struct sweep_setup *s, const struct args *a, struct diag *dg)
{
    const char *text = args_text(a, "shard");
    s->shard = s->shards = 1;
    s->part = text != NULL;
    if (!text)
        return ST_OK;
    size_t before = strcspn(text, "/");
    const char *after = text + before + (text[before] == '/');
    if (!csv_u64((struct csv_field){text, before}, &s->shard) ||
        !csv_u64((struct csv_field){after, strlen(after)}, &s->shards) || s->shard < 1 ||
        s->shard > s->shards)
        return diag_set(dg, ST_USAGE, "--shard: K/N with K from 1 to N, not '%s'", text);
    if (!args_given(a, "out"))
        return diag_set(dg, ST_USAGE, "--shard needs --out");
    return ST_OK;
}

static uint64_t jobs_of(const struct args *a)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (args_given(a, "jobs"))
        return args_count(a, "jobs");
    return processors > 0 ? (uint64_t)processors : 1;
}

static enum status merge(const struct args *a, struct diag *dg)
{
    static const char *const others[] = {"out", "shard", "jobs", "resume", "set"};
    const char *part[PARTS_MAX];
    size_t count = args_positional_count(a);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (args_given(a, others[i]))
            return diag_set(dg, ST_USAGE, "--merge OUT PART... and --%s exclude each other",
                            others[i]);
    for (size_t i = 0; i < count; i++)
        part[i] = args_positional(a, i);
    return sweep_merge(args_text(a, "merge"), part, count, dg);
}

/* ---- on standard output ---- */

/* A column of the result is the command's, an axis or the note. */
static struct column column_of(const struct command *c, const char *name, bool is_axis, bool notes)
{
    struct column found = {name, CELL_TEXT, 0, !notes && strcmp(name, "note") == 0};
    for (size_t k = 0; !is_axis && k < c->column_count; k++)
        if (strcmp(c->columns[k].name, name) == 0)
            found = c->columns[k];
    found.name = name;
    return found;
}

static size_t cells_of(const char *row)
{
    size_t n = 1;
    for (const char *c = row; *c; c++)
        n += *c == SWEEP_CELL_END;
    return n;
}

/* `names` is the header, which is cut into its cells. */
static void list_columns(struct column *column, char *names, const struct sweep_result *r,
                         const struct experiment *e)
{
    static const char end[] = {SWEEP_CELL_END, 0};
    for (size_t i = 0; names; i++) {
        const char *name = strsep(&names, end);
        column[i] = column_of(experiment_command(e), name, i<e->axis_count, r->unanswered> 0);
    }
}

static void print_cell(void *report, size_t i, const char *text)
{
    (void)i;
    report_raw(report, text);
}

static enum status print_rows(const struct sweep_result *r, const struct experiment *e,
                              const struct args *a, struct diag *dg)
{
    struct report *report;
    size_t count = cells_of(r->header);
    struct column *column = calloc(count, sizeof *column);
    char *names = strdup(r->header);
    enum status st = column && names ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK) {
        list_columns(column, names, r, e);
        st = report_open(&report, a, column, count, dg);
    }
    if (st == ST_OK) {
        for (size_t i = 0; i < r->count; i++)
            sweep_each_cell(r->row[i], print_cell, report);
        st = report_close(report, dg);
    }
    free(column);
    free(names);
    return st;
}

/* ---- the command ---- */

static enum status finish(struct sweep_result *r, const struct sweep_setup *s, const struct args *a,
                          struct diag *dg)
{
    if (r->resumed)
        say("%zu of %zu points were there already", r->resumed, r->count);
    const char *out = args_text(a, "out");
    enum status st = out ? sweep_save(r, s, out, dg) : print_rows(r, s->experiment, a, dg);
    if (st != ST_OK || !r->unanswered)
        return st;
    if (r->unanswered == r->count && s->shards == 1)
        return diag_set(dg, ST_MISFIT, "no point has a result; the first: %s", r->why);
    say("%zu of %zu points have no result, their note says why; the first: %s", r->unanswered,
        r->count, r->why);
    return ST_OK;
}

/* Whether rows can be kept beside the result: not where it is standard output, a device or a pipe. */
static bool has_journal(const char *out)
{
    struct stat there;
    return strcmp(out, "-") != 0 && (stat(out, &there) != 0 || S_ISREG(there.st_mode));
}

static enum status run_experiment(const struct experiment *e, const struct args *a, struct diag *dg)
{
    struct sweep_result result;
    struct sweep_setup s = {.experiment = e, .jobs = jobs_of(a), .resume = args_flag(a, "resume")};
    const char *out = args_text(a, "out");
    if (out && has_journal(out))
        s.out = out;
    if (s.resume && !s.out)
        return diag_set(dg, ST_USAGE, "--resume: %s is no regular file, which has no journal", out);
    enum status st = read_shard(&s, a, dg);
    if (st != ST_OK)
        return st;
    struct sweep_runner *runner = experiment_runner(e);
    if (!runner)
        return diag_no_memory(dg);
    s.runner = runner;
    st = sweep_run(&result, &s, dg);
    if (st == ST_OK) {
        st = finish(&result, &s, a, dg);
        sweep_result_free(&result);
    }
    free(runner);
    return st;
}

static enum status sweep_command(struct args *a, struct diag *dg)
{
    static const char *const written[] = {"out", "merge", NULL}, *const read[] = {NULL};
    struct experiment *e;
    enum status st = outputs_check(a, written, read, dg);
    if (st != ST_OK)
        return st;
    if (args_given(a, "merge"))
        return merge(a, dg);
    if (args_positional_count(a) != 1)
        return diag_set(dg, ST_USAGE, "one experiment at a time: memwall sweep EXPERIMENT.yaml");
    if (args_flag(a, "resume") && !args_given(a, "out"))
        return diag_set(dg, ST_USAGE, "--resume needs --out");
    if (args_given(a, "out") && args_given(a, "format") &&
        strcmp(args_text(a, "format"), "csv") != 0)
        return diag_set(dg, ST_USAGE, "--out writes CSV, not %s", args_text(a, "format"));
    if (args_given(a, "seed"))
        return diag_set(dg, ST_USAGE,
                        "--seed: the experiment's key `seed` says it, or --set seed=N");
    st = experiment_file_load(&e, args_positional(a, 0), a, dg);
    if (st != ST_OK)
        return st;
    st = run_experiment(e, a, dg);
    experiment_free(e);
    return st;
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "a grid of runs from one file: question, prediction, and a row a point",
    .usage =
        "EXPERIMENT.yaml [--out FILE] [--shard K/N] [--jobs N] [--resume] | --merge OUT PART...",
    .example = "memwall sweep experiments/e01-flash-bandwidth.yaml --set tokens=4",
    .options = options,
    .positional_min = 1,
    .positional_max = PARTS_MAX,
    .run = sweep_command,
};
