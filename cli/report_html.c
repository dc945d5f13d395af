/* report_html.c -- `memwall report`: an experiment or a validation as one HTML file that needs nothing else. */
#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/result_page.h"

#include "base/outfile.h"
#include "base/text.h"

#include <string.h>

enum { REPORT_PATH_MAX = 4200, KINDS_MAX = 32 };

static const struct option options[] = {
    {"figure", OPTION_REPEATED, "KIND",
     "a figure of this kind, as of memwall plot; several give several (the experiment's own; "
     "predicted and quantiles of a validation)",
     NULL, NULL, 1, 0, false},
    {"data", OPTION_TEXT, "FILE", "results of the experiment (results/eNN.csv beside it)", NULL,
     NULL, 1, 0, false},
    {"out", OPTION_TEXT, "FILE", "the page (beside the results, .html for .csv)", NULL, NULL, 1, 0,
     false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

struct html_report {
    struct experiment *experiment; /* NULL for a file of results */
    struct plot_table table;
    char data[REPORT_PATH_MAX], out[REPORT_PATH_MAX];
};

/* Kinds are checked before anything is drawn. A timeline is no table. */
static enum status read_kinds(struct result_page *p, const struct args *a, struct diag *dg)
{
    p->kind = args_list(a, "figure", &p->kind_count);
    for (size_t i = 0; i < p->kind_count; i++) {
        const struct plot_kind *kind;
        enum status st = plot_kind_find(&kind, p->kind[i], dg);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static void name_files(struct html_report *r, const struct args *a, const char *path)
{
    if (args_given(a, "data"))
        snprintf(r->data, sizeof r->data, "%s", args_text(a, "data"));
    else if (r->experiment)
        figure_results(r->data, sizeof r->data, path, "results", ".csv");
    else
        snprintf(r->data, sizeof r->data, "%s", path);
    size_t stem = strlen(r->data) - (text_ends_with(r->data, ".csv") ? strlen(".csv") : 0);
    snprintf(r->out, sizeof r->out, "%.*s.html", (int)stem, r->data);
    if (args_given(a, "out"))
        snprintf(r->out, sizeof r->out, "%s", args_text(a, "out"));
}

static enum status load(struct html_report *r, const struct args *a, struct diag *dg)
{
    const char *path = args_positional(a, 0);
    bool is_experiment = text_ends_with(path, ".yaml");
    enum status st = ST_OK;
    if (!is_experiment && (args_given(a, "set") || args_given(a, "data")))
        return diag_set(dg, ST_USAGE, "--%s goes with an experiment (.yaml)",
                        args_given(a, "set") ? "set" : "data");
    if (is_experiment)
        st = experiment_file_load(&r->experiment, path, a, dg);
    if (st != ST_OK)
        return st;
    name_files(r, a, path);
    st = r->experiment ? figure_results_check(r->data, path, dg) : ST_OK;
    if (st == ST_OK)
        st = plot_table_load(&r->table, r->data, dg);
    if (st == ST_OK && r->table.row_count == 0)
        return diag_set(dg, ST_MISSING, "%s: no rows", r->data);
    return st;
}

static bool has_column(const void *self, const char *name)
{
    return plot_table_has(self, name);
}

/* Rows of a sweep whose experiment is not at hand: they alone, with the figures that were asked for. */
static enum status write_result(struct result_page *p, const struct plot_table *t, struct diag *dg)
{
    const struct command *c = experiment_command_of(has_column, t);
    struct drawing d = {.data = t->path, .pass = PLOT_LAST_PASS};
    if (!c)
        return diag_set(dg, ST_PARSE,
                        "%s: no results: the columns of validate published, validate measured or a "
                        "sweep are expected",
                        t->path);
    enum status st = ST_OK;
    html_begin(p->f, t->path);
    html_element(p->f, "h1", t->path);
    fprintf(p->f, "<p>%zu rows of memwall %s.</p>\n", t->row_count, c->name);
    if (p->kind_count)
        st = result_page_figures(p, &d, dg);
    if (st == ST_OK)
        st = result_page_rows(p, t, NULL, NULL, dg);
    html_end(p->f);
    return st;
}

static enum status write_page(struct html_report *r, struct result_page *p, struct diag *dg)
{
    struct outfile *file;
    enum status st = outfile_open(&file, r->out, dg);
    if (st != ST_OK)
        return st;
    p->f = outfile_stream(file);
    if (r->experiment)
        st = result_page_experiment(p, r->experiment, &r->table, dg);
    else if (result_page_is_validation(&r->table))
        st = result_page_validation(p, &r->table, dg);
    else
        st = write_result(p, &r->table, dg);
    if (st == ST_OK)
        return outfile_commit(file, dg);
    outfile_abandon(file);
    return st;
}

static enum status report_command(struct args *a, struct diag *dg)
{
    struct html_report r = {0};
    struct result_page p = {0};
    enum status st = read_kinds(&p, a, dg);
    if (st == ST_OK)
        st = load(&r, a, dg);
    if (st == ST_OK)
        st = write_page(&r, &p, dg);
    plot_table_free(&r.table);
    experiment_free(r.experiment);
    if (st == ST_OK && strcmp(r.out, "-") != 0)
        say("%s", r.out);
    return st;
}

const struct command command_report = {
    .name = "report",
    .summary =
        "an experiment or a validation as one HTML file: figures, tables, inputs with sources",
    .usage = "EXPERIMENT.yaml|RESULT.csv [--figure KIND]... [--out F.html]",
    .example = "memwall report experiments/e01-flash-bandwidth.yaml --out e01.html",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .run = report_command,
};
