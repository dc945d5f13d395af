/* plot.c -- `memwall plot`: a figure from an experiment's committed results, or from any CSV. */
#include "base/text.h"
#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/figure_draw.h"

#include <stdio.h>
#include <string.h>

enum { PLOT_PATH_MAX = 4200 };

static const struct option options[] = {
    {"kind", OPTION_TEXT, "K",
     "lines bars mrc contour iso tornado roofline predicted quantiles timeline (the experiment's, "
     "or what the columns suggest)",
     NULL, NULL, 1, 0, false},
    {"x", OPTION_TEXT, "COL", "column along", NULL, NULL, 1, 0, false},
    {"y", OPTION_TEXT, "COL", "column up", NULL, NULL, 1, 0, false},
    {"z", OPTION_TEXT, "COL", "column of a contour plot", NULL, NULL, 1, 0, false},
    {"low", OPTION_TEXT, "COL", "lower end of y", NULL, NULL, 1, 0, false},
    {"high", OPTION_TEXT, "COL", "upper end of y", NULL, NULL, 1, 0, false},
    {"by", OPTION_TEXT, "COL[,COL]", "columns whose values tell curves apart", NULL, NULL, 1, 0,
     false},
    {"where", OPTION_TEXT, "COL=V[,..]", "rows that are drawn", NULL, NULL, 1, 0, false},
    {"x-unit", OPTION_TEXT, "U", "unit in which the axis counts: GB/s, GiB, ms", NULL, NULL, 1, 0,
     false},
    {"y-unit", OPTION_TEXT, "U", "the same of y", NULL, NULL, 1, 0, false},
    {"log", OPTION_TEXT, "x|y|xy", "logarithmic axes", NULL, NULL, 1, 0, false},
    {"levels", OPTION_TEXT, "V[,V]", "contour lines", NULL, NULL, 1, 0, false},
    {"pass", OPTION_COUNT, "N", "pass of a timeline (the last)", NULL, NULL, 0, 0, false},
    {"title", OPTION_TEXT, "TEXT", "what the figure shows (the experiment's finding)", NULL, NULL,
     1, 0, false},
    {"data", OPTION_TEXT, "FILE", "results of the experiment (results/eNN.csv beside it)", NULL,
     NULL, 1, 0, false},
    {"out", OPTION_TEXT, "FILE",
     "an .svg or .png (beside the data; of an experiment, "
     "plots/figures/eNN.svg)",
     NULL, NULL, 1, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

/* What the command line says goes over what the experiment says. */
static void take_options(struct figure *f, const struct args *a)
{
    const struct {
        const char **member;
        const char *option;
    } members[] = {{&f->kind, "kind"},     {&f->x, "x"},           {&f->y, "y"},
                   {&f->z, "z"},           {&f->low, "low"},       {&f->high, "high"},
                   {&f->by, "by"},         {&f->where, "where"},   {&f->x_unit, "x-unit"},
                   {&f->y_unit, "y-unit"}, {&f->levels, "levels"}, {&f->log, "log"}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (args_given(a, members[i].option))
            *members[i].member = args_text(a, members[i].option);
}

struct plot {
    struct experiment *experiment; /* NULL for a file */
    struct drawing drawing;
    char data[PLOT_PATH_MAX], out[PLOT_PATH_MAX];
};

static void file_paths(struct plot *p, const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - path) : (int)strlen(path);
    snprintf(p->data, sizeof p->data, "%s", path);
    snprintf(p->out, sizeof p->out, "%.*s.svg", stem, path);
}

static enum status load(struct plot *p, const struct args *a, struct diag *dg)
{
    const char *path = args_positional(a, 0);
    struct drawing *d = &p->drawing;
    enum status st = ST_OK;
    if (text_ends_with(path, ".yaml")) {
        st = experiment_file_load(&p->experiment, path, a, dg);
        if (st != ST_OK)
            return st;
        d->experiment = p->experiment;
        d->figure = p->experiment->figure;
        d->title = p->experiment->finding ? p->experiment->finding : p->experiment->question;
        figure_results(p->data, sizeof p->data, path, "results", ".csv");
        figure_results(p->out, sizeof p->out, path, "../plots/figures", ".svg");
    } else {
        file_paths(p, path);
    }
    take_options(&d->figure, a);
    if (args_given(a, "title"))
        d->title = args_text(a, "title");
    if (args_given(a, "data"))
        snprintf(p->data, sizeof p->data, "%s", args_text(a, "data"));
    if (args_given(a, "out"))
        snprintf(p->out, sizeof p->out, "%s", args_text(a, "out"));
    d->data = p->data;
    d->pass = args_given(a, "pass") ? args_count(a, "pass") : PLOT_LAST_PASS;
    st = p->experiment ? figure_results_check(p->data, path, dg) : ST_OK;
    if (st != ST_OK)
        return st;
    if (!text_ends_with(p->out, ".svg") && !text_ends_with(p->out, ".png"))
        return diag_set(dg, ST_USAGE, "--out: a name that ends in .svg or .png, not '%s'", p->out);
    return ST_OK;
}

static enum status plot_command(struct args *a, struct diag *dg)
{
    struct plot p = {0};
    enum status st = load(&p, a, dg);
    if (st == ST_OK)
        st = figure_draw(&p.drawing, p.out, dg);
    experiment_free(p.experiment);
    if (st == ST_OK)
        say("%s", p.out);
    return st;
}

const struct command command_plot = {
    .name = "plot",
    .summary = "a figure (SVG, PNG) of an experiment or of any CSV, with gnuplot",
    .usage = "EXPERIMENT.yaml|FILE.csv|TIMELINE.json [--kind K] [--x COL --y COL --by COL] [--out "
             "F.svg]",
    .example = "memwall plot tests/data/rates.csv --x read_bytes --y MB_per_s --by depth --log x "
               "--out rates.svg",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .run = plot_command,
};
