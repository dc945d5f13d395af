/* plot.c -- `memwall plot`: a figure from an experiment's committed results, or from any CSV. */
#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/plot_kinds.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PLOT_PATH_MAX = 4200, TITLE_MAX = 640, TITLE_LINE = 92 };

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

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

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
    struct figure figure;
    const char *title;
    char data[PLOT_PATH_MAX], out[PLOT_PATH_MAX];
};

/* experiments/e01-flash.yaml: experiments/results/e01.csv and plots/figures/e01.svg. */
static void experiment_paths(struct plot *p, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int folder = slash ? (int)(slash - path) : 1, stem = (int)strcspn(name, "-.");
    const char *base = slash ? path : ".";
    snprintf(p->data, sizeof p->data, "%.*s/results/%.*s.csv", folder, base, stem, name);
    snprintf(p->out, sizeof p->out, "%.*s/../plots/figures/%.*s.svg", folder, base, stem, name);
}

static void file_paths(struct plot *p, const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - path) : (int)strlen(path);
    snprintf(p->data, sizeof p->data, "%s", path);
    snprintf(p->out, sizeof p->out, "%.*s.svg", stem, path);
}

/* Results are where the experiment says, unless it has not been run. */
static enum status check_data(const struct plot *p, const char *path, struct diag *dg)
{
    if (!p->experiment || access(p->data, F_OK) == 0)
        return ST_OK;
    return diag_set(dg, ST_MISSING, "%s: no results yet: memwall sweep %s --out %s", p->data, path,
                    p->data);
}

static enum status load(struct plot *p, const struct args *a, struct diag *dg)
{
    const char *path = args_positional(a, 0);
    enum status st = ST_OK;
    if (ends_with(path, ".yaml")) {
        st = experiment_file_load(&p->experiment, path, a, dg);
        if (st != ST_OK)
            return st;
        p->figure = p->experiment->figure;
        p->title = p->experiment->finding ? p->experiment->finding : p->experiment->question;
        experiment_paths(p, path);
    } else {
        file_paths(p, path);
    }
    take_options(&p->figure, a);
    if (args_given(a, "title"))
        p->title = args_text(a, "title");
    if (args_given(a, "data"))
        snprintf(p->data, sizeof p->data, "%s", args_text(a, "data"));
    if (args_given(a, "out"))
        snprintf(p->out, sizeof p->out, "%s", args_text(a, "out"));
    st = check_data(p, path, dg);
    if (st != ST_OK)
        return st;
    if (!ends_with(p->out, ".svg") && !ends_with(p->out, ".png"))
        return diag_set(dg, ST_USAGE, "--out: a name that ends in .svg or .png, not '%s'", p->out);
    return ST_OK;
}

/* A finding is a sentence: it goes over several lines. */
static void wrap(char out[TITLE_MAX], const char *text)
{
    size_t line = 0, used = 0;
    for (const char *c = text; *c && used + 1 < TITLE_MAX; c++) {
        size_t word = strcspn(c + 1, " \n");
        bool turn = *c == ' ' && line + word >= TITLE_LINE;
        line = turn || *c == '\n' ? 0 : line + 1;
        out[used++] = turn ? '\n' : *c;
    }
    out[used] = 0;
}

static void label(struct gnuplot *g, const char *name, const char *given, const char *column,
                  const char *unit)
{
    char text[256];
    if (given || !column)
        snprintf(text, sizeof text, "%s", given ? given : "");
    else
        snprintf(text, sizeof text, unit ? "%s (%s)" : "%s", column, unit);
    gnuplot_set(g, name, text);
}

/* Labels of the axes that a kind has without being told. */
static void usual_labels(struct figure *f)
{
    static const struct {
        const char *kind, *x, *y;
    } usual[] = {{"mrc", "cache (GiB)", "miss ratio while decoding"},
                 {"tornado", "factor of the decode rate", ""},
                 {"roofline", "operations a byte", "operations a second"},
                 {"predicted", "measured", "predicted"},
                 {"quantiles", "absolute error", "share of rows"},
                 {"timeline", "time (ms)", ""}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(usual[i].kind, f->kind) == 0) {
            f->x_label = f->x_label ? f->x_label : usual[i].x;
            f->y_label = f->y_label ? f->y_label : usual[i].y;
        }
}

static void set_texts(struct gnuplot *g, const struct plot *p)
{
    const struct figure *f = &p->figure;
    char title[TITLE_MAX];
    wrap(title, p->title ? p->title : p->data);
    gnuplot_set(g, "more", "");
    gnuplot_set(g, "title", title);
    gnuplot_set(g, "logs", f->log ? f->log : "");
    gnuplot_set(g, "note", f->note ? f->note : "");
    gnuplot_set(g, "legend", f->by ? f->by : "");
    label(g, "xlabel", f->x_label, f->x, f->x_unit);
    label(g, "ylabel", f->y_label, f->y, f->y_unit);
}

static enum status relate(struct plot_table *t, const struct plot *p, struct diag *dg)
{
    const char *axis[64];
    const struct figure *f = &p->figure;
    const char *value = f->z ? f->z : f->y;
    size_t count = 0;
    if (!f->relative_to)
        return ST_OK;
    if (!value)
        return diag_set(dg, ST_USAGE, "relative_to: which column? (y, or z)");
    for (; count < p->experiment->axis_count && count < 64; count++)
        axis[count] = p->experiment->axis[count].name;
    return plot_table_relate(t, value, f->relative_to, axis, count, dg);
}

static enum status write_data(struct gnuplot *g, struct plot *p, const struct args *a,
                              struct diag *dg)
{
    struct plot_table t = {0};
    const struct plot_kind *kind;
    bool json = ends_with(p->data, ".json");
    enum status st = json ? ST_OK : plot_table_load(&t, p->data, dg);
    if (st != ST_OK)
        return st;
    if (!p->figure.kind)
        p->figure.kind = json ? "timeline" : plot_kind_guess(&t);
    st = plot_kind_find(&kind, p->figure.kind, dg);
    const char *log = p->figure.log ? p->figure.log : "";
    if (st == ST_OK && *log && strcmp(log, "x") != 0 && strcmp(log, "y") != 0 &&
        strcmp(log, "xy") != 0)
        st = diag_set(dg, ST_USAGE, "log: x, y or xy is expected, not '%s'", log);
    if (st == ST_OK && kind->from_json != json)
        st = diag_set(dg, ST_USAGE, "--kind %s: it is drawn from a %s, not from %s", kind->name,
                      kind->from_json ? "timeline (.json)" : "CSV file", p->data);
    if (st == ST_OK && !json)
        st = plot_table_keep(&t, p->figure.where, dg);
    if (st == ST_OK && !json)
        st = relate(&t, p, dg);
    if (st == ST_OK) {
        usual_labels(&p->figure);
        set_texts(g, p);
        st = json
                 ? plot_timeline(g, p->data,
                                 args_given(a, "pass") ? args_count(a, "pass") : PLOT_LAST_PASS, dg)
                 : kind->write(g, &t, &p->figure, dg);
    }
    plot_table_free(&t);
    return st;
}

static enum status plot_command(struct args *a, struct diag *dg)
{
    char scripts[CATALOGUE_PATH_MAX];
    struct plot p = {0};
    struct gnuplot g = {0};
    enum status st = load(&p, a, dg);
    if (st == ST_OK)
        st = gnuplot_open(&g, dg);
    if (st == ST_OK)
        st = write_data(&g, &p, a, dg);
    if (st == ST_OK)
        st = gnuplot_draw(&g, catalogue_dir(scripts, sizeof scripts, "plots"), p.figure.kind, p.out,
                          dg);
    gnuplot_close(&g);
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
