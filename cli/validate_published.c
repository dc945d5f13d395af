/* validate_published.c -- `memwall validate published`: runs of other people against this program's
 * predictions. CSV and JSON are the rows; the table puts the quantiles first, because the headline is how far
 * off a prediction is that knows only model, machine and engine. */
#include "cli/commands.h"
#include "cli/report.h"

#include "base/progress.h"
#include "validate/score.h"
#include "validate/systems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option options[] = {
    {"data", OPTION_TEXT, "FILE", "rows in the same format (the bundled ones)", NULL, NULL, 0, 0,
     false},
    {"class", OPTION_CHOICE, "C", "blind, hits or given alone (every class that a row allows)",
     NULL, published_class_names, 0, 0, false},
    {"draws", OPTION_COUNT, "N", "draws of the inputs behind low and high; 0: none", "8", NULL, 0,
     1000, false},
    {"jobs", OPTION_COUNT, "N", "threads; the result is the same for any number (all cores)", NULL,
     NULL, 1, 64, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"id", CELL_TEXT, 0, false},          {"metric", CELL_TEXT, 0, true},
    {"unit", CELL_TEXT, 0, false},        {"published", CELL_NUMBER, 6, false},
    {"predicted", CELL_NUMBER, 6, false}, {"signed_error", CELL_RATIO, 0, false},
    {"low", CELL_NUMBER, 6, true},        {"high", CELL_NUMBER, 6, true},
    {"bound", CELL_TEXT, 0, false},       {"profile", CELL_TEXT, 0, false},
    {"note", CELL_TEXT, 0, true},         {"class", CELL_TEXT, 0, false},
    {"rule", CELL_TEXT, 0, false},        {"tol", CELL_NUMBER, 1, true},
    {"pass", CELL_TEXT, 0, false},
};

/* ---- rows ---- */

static void number_or_empty(struct report *r, bool given, double x)
{
    if (given)
        report_number(r, x);
    else
        report_empty(r);
}

static void text_or_empty(struct report *r, const char *text)
{
    if (*text)
        report_text(r, text);
    else
        report_empty(r);
}

static void add_outcome(struct report *r, const struct published_outcome *o)
{
    const struct published_row *row = o->row;
    report_text(r, row->id);
    text_or_empty(r, row->metric);
    text_or_empty(r, row->unit);
    report_number(r, row->value.value);
    number_or_empty(r, o->predicted_given, o->predicted);
    if (o->predicted_given)
        report_ratio(r, o->signed_error);
    else
        report_empty(r);
    number_or_empty(r, o->high > 0, o->low);
    number_or_empty(r, o->high > 0, o->high);
    text_or_empty(r, o->bound);
    text_or_empty(r, row->profile);
    text_or_empty(r, o->note);
    report_text(r, published_class_names[o->class_of]);
    text_or_empty(r, row->rule);
    number_or_empty(r, row->tolerance_percent.given, row->tolerance_percent.value);
    text_or_empty(r, o->pass < 0 ? "" : o->pass ? "yes" : "no");
}

/* ---- the quantiles, for people ---- */

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void print_line(const struct score_line *l)
{
    char who[SCORE_ENGINE_MAX + 32];
    if (*l->engine)
        snprintf(who, sizeof who, "%s", l->engine);
    else
        snprintf(who, sizeof who, "%s%zu engine%s%s%s", l->engines == 1 ? "" : "all ", l->engines,
                 plural(l->engines), l->grade_a ? ", grade A" : "",
                 l->held_out ? ", held out" : "");
    printf("  %-6s %-32s %4zu  %6.1f %%  %+7.1f %+7.1f %+7.1f %%  %s %+.0f %%\n",
           published_class_names[l->class_of], who, l->rows, 100 * l->absolute_median,
           100 * l->signed_p10, 100 * l->signed_median, 100 * l->signed_p90, l->worst->row->id,
           100 * l->worst->signed_error);
}

static void print_score(const struct score *s)
{
    if (s->count == 0)
        return;
    const struct score_line *head = &s->lines[0];
    printf("predicted against published, class %s: median absolute error %.1f %% over %zu row%s of "
           "%zu engine%s, each weighing the same\n\n",
           published_class_names[head->class_of], 100 * head->absolute_median, head->rows,
           plural(head->rows), head->engines, plural(head->engines));
    printf("  %-6s %-32s %4s  %8s  %7s %7s %7s    %s\n", "class", "engine", "rows", "median", "p10",
           "p50", "p90", "worst row");
    for (size_t i = 0; i < s->count; i++)
        print_line(&s->lines[i]);
    printf("\nheld out: nothing was fitted to a run of the same engine on the same machine\n\n");
}

/* ---- the command ---- */

static void step(void *self)
{
    progress_add(self, 1);
}

static uint32_t cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

struct folder_texts {
    char text[6][CATALOGUE_PATH_MAX];
};

static struct published_folders find_folders(struct folder_texts *t)
{
    return (struct published_folders){
        .models = catalogue_dir(t->text[0], CATALOGUE_PATH_MAX, "models/desc"),
        .devices = catalogue_dir(t->text[1], CATALOGUE_PATH_MAX, "devices/desc"),
        .profiles = catalogue_dir(t->text[2], CATALOGUE_PATH_MAX, "sim/pipeline/profiles"),
        .presets = catalogue_dir(t->text[3], CATALOGUE_PATH_MAX, "sim/trace/presets"),
    };
}

static enum status print_all(struct args *a, const struct published *rows,
                             const struct published_outcome *o, size_t count,
                             const struct published_outcome *claim, size_t claims, struct diag *dg)
{
    struct score s = {0};
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    st = score_find(&s, rows, o, count, dg);
    if (st != ST_OK) {
        report_abandon(r);
        return st;
    }
    if (args_count(a, "format") == 0)
        print_score(&s);
    for (size_t i = 0; i < count; i++)
        add_outcome(r, &o[i]);
    for (size_t i = 0; i < claims; i++)
        if (!args_given(a, "class") || claim[i].class_of == args_count(a, "class"))
            add_outcome(r, &claim[i]);
    score_free(&s);
    return report_close(r, dg);
}

static enum status validate_published(struct args *a, struct diag *dg)
{
    struct folder_texts *texts = args_memory(a, sizeof *texts);
    if (!texts)
        return diag_no_memory(dg);
    struct progress bar;
    struct published_request q = {
        .folders = find_folders(texts),
        .only_class = args_given(a, "class") ? (int)args_count(a, "class") : -1,
        .seed = args_count(a, "seed"),
        .draws = args_count(a, "draws"),
        .threads = args_given(a, "jobs") ? (uint32_t)args_count(a, "jobs") : cores(),
        .step = step,
        .step_self = &bar,
    };
    if (q.draws == 1)
        return diag_set(dg, ST_USAGE, "--draws: one draw spans no interval; 0 is none, 2 or more");
    const char *path = args_text(a, "data");
    if (!path)
        path = catalogue_dir(texts->text[4], CATALOGUE_PATH_MAX, "validate/data/published.csv");
    struct published rows;
    struct published_outcome *o = NULL;
    size_t count = 0;
    enum status st = published_load(&rows, path, dg);
    if (st != ST_OK)
        return st;
    st = published_check_models(&rows, q.folders.models, dg);
    if (st != ST_OK) {
        published_free(&rows);
        return st;
    }
    progress_start(&bar, "running published rows", published_run_count(&rows, q.only_class));
    st = published_run_all(&o, &count, &rows, &q, dg);
    progress_end(&bar);
    struct systems claims = {0};
    struct published_outcome *claim = NULL;
    if (st == ST_OK && !args_given(a, "data")) {
        st = systems_load(
            &claims, catalogue_dir(texts->text[5], CATALOGUE_PATH_MAX, "validate/data/systems.csv"),
            dg);
        if (st == ST_OK)
            claim = args_memory(a, (claims.count + 1) * sizeof *claim);
        if (st == ST_OK && !claim)
            st = diag_no_memory(dg);
        if (st == ST_OK)
            st = systems_check(claim, &claims, o, count, &q.folders, dg);
    }
    if (st == ST_OK)
        st = print_all(a, &rows, o, count, claim, claims.count, dg);
    systems_free(&claims);
    free(o);
    published_free(&rows);
    return st;
}

const struct command command_validate_published = {
    .name = "validate published",
    .summary = "published runs against this program's predictions",
    .usage = "[--data FILE] [--class C]",
    .example = "memwall validate published --class given --draws 0",
    .options = options,
    .no_set = true,
    .run = validate_published,
};
