/* sweep.c -- `memwall sweep`: the grid of an experiment, one row a point, the same bytes for any number
 * of threads and shards. */
#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    int used = 0;
    s->shard = s->shards = 1;
    s->part = text != NULL;
    if (!text)
        return ST_OK;
    if (text[strspn(text, "0123456789/")] ||
        sscanf(text, "%" SCNu64 "/%" SCNu64 "%n", &s->shard, &s->shards, &used) != 2 ||
        used != (int)strlen(text) || s->shard < 1 || s->shard > s->shards)
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

struct printer {
    const struct command *command;
    struct report *report;
    struct column *column; /* of the report, in the order of the header's cells */
    size_t count;
    bool notes;
};

static void take_column(void *self, size_t i, const char *name)
{
    struct printer *p = self;
    struct column *c = realloc(p->column, (i + 1) * sizeof *c);
    if (!c)
        return;
    p->column = c;
    p->count = i + 1;
    bool is_note = strcmp(name, "note") == 0;
    c[i] = (struct column){strdup(name), CELL_TEXT, 0, is_note && !p->notes};
    for (size_t k = 0; k < p->command->column_count; k++)
        if (strcmp(p->command->columns[k].name, name) == 0) {
            c[i].type = p->command->columns[k].type;
            c[i].decimals = p->command->columns[k].decimals;
            c[i].wide_only = p->command->columns[k].wide_only;
        }
}

static void print_cell(void *self, size_t i, const char *text)
{
    struct printer *p = self;
    (void)i;
    report_raw(p->report, text);
}

static enum status print_rows(const struct sweep_result *r, const struct experiment *e,
                              const struct args *a, struct diag *dg)
{
    struct printer p = {.command = experiment_command(e), .notes = r->unanswered > 0};
    sweep_each_cell(r->header, take_column, &p);
    /* An axis that has a column's name holds what the file says, in its units. */
    for (size_t i = 0; i < e->axis_count && i < p.count; i++)
        p.column[i].type = CELL_TEXT, p.column[i].wide_only = false;
    enum status st = report_open(&p.report, a, p.column, p.count, dg);
    for (size_t i = 0; st == ST_OK && i < r->count; i++)
        sweep_each_cell(r->row[i], print_cell, &p);
    if (st == ST_OK)
        st = report_close(p.report, dg);
    for (size_t i = 0; i < p.count; i++)
        free((char *)p.column[i].name);
    free(p.column);
    return st;
}

/* ---- the command ---- */

static enum status finish(struct sweep_result *r, const struct sweep_setup *s, const struct args *a,
                          struct diag *dg)
{
    if (r->resumed)
        say("%zu of %zu points were there already", r->resumed, r->count);
    enum status st = s->out ? sweep_save(r, s, s->out, dg) : print_rows(r, s->experiment, a, dg);
    if (st != ST_OK || !r->unanswered)
        return st;
    if (r->unanswered == r->count && s->shards == 1)
        return diag_set(dg, ST_MISFIT, "no point has a result; the first: %s", r->why);
    say("%zu of %zu points have no result, their note says why; the first: %s", r->unanswered,
        r->count, r->why);
    return ST_OK;
}

static enum status run_experiment(const struct experiment *e, const struct args *a, struct diag *dg)
{
    struct sweep_result result;
    struct sweep_setup s = {.experiment = e,
                            .jobs = jobs_of(a),
                            .out = args_text(a, "out"),
                            .resume = args_flag(a, "resume")};
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
    struct experiment *e;
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
    enum status st = experiment_file_load(&e, args_positional(a, 0), a, dg);
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
