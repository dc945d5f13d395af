/* figure_draw.c -- see figure_draw.h. */
#include "cli/figure_draw.h"

#include "base/text.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TITLE_MAX = 640, TITLE_LINE = 92 };

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

static void set_texts(struct gnuplot *g, const struct drawing *d)
{
    const struct figure *f = &d->figure;
    char title[TITLE_MAX];
    wrap(title, d->title ? d->title : d->data);
    gnuplot_set(g, "more", "");
    gnuplot_set(g, "title", title);
    gnuplot_set(g, "logs", f->log ? f->log : "");
    gnuplot_set(g, "note", f->note ? f->note : "");
    gnuplot_set(g, "legend", f->by ? f->by : "");
    label(g, "xlabel", f->x_label, f->x, f->x_unit);
    label(g, "ylabel", f->y_label, f->y, f->y_unit);
}

static enum status relate(struct plot_table *t, const struct drawing *d, struct diag *dg)
{
    const char *axis[64];
    const struct figure *f = &d->figure;
    const char *value = f->z ? f->z : f->y;
    size_t count = 0;
    if (!f->relative_to)
        return ST_OK;
    if (!value)
        return diag_set(dg, ST_USAGE, "relative_to: which column? (y, or z)");
    for (; count < d->experiment->axis_count && count < 64; count++)
        axis[count] = d->experiment->axis[count].name;
    return plot_table_relate(t, value, f->relative_to, axis, count, dg);
}

/* Whether a kind is known, and drawn from what the data are. */
static enum status find_kind(const struct plot_kind **kind, const struct drawing *d, bool json,
                             struct diag *dg)
{
    const char *log = d->figure.log ? d->figure.log : "";
    enum status st = plot_kind_find(kind, d->figure.kind, dg);
    if (st == ST_OK && *log && strcmp(log, "x") != 0 && strcmp(log, "y") != 0 &&
        strcmp(log, "xy") != 0)
        st = diag_set(dg, ST_USAGE, "log: x, y or xy is expected, not '%s'", log);
    if (st == ST_OK && (*kind)->from_json != json)
        st = diag_set(dg, ST_USAGE, "kind %s: it is drawn from a %s, not from %s", (*kind)->name,
                      (*kind)->from_json ? "timeline (.json)" : "CSV file", d->data);
    return st;
}

static enum status write_data(struct gnuplot *g, struct drawing *d, struct diag *dg)
{
    struct plot_table t = {0};
    const struct plot_kind *kind;
    bool json = text_ends_with(d->data, ".json");
    enum status st = json ? ST_OK : plot_table_load(&t, d->data, dg);
    if (st != ST_OK)
        return st;
    if (!d->figure.kind)
        d->figure.kind = json ? "timeline" : plot_kind_guess(&t);
    st = find_kind(&kind, d, json, dg);
    if (st == ST_OK && !json)
        st = plot_table_keep(&t, d->figure.where, dg);
    if (st == ST_OK && !json)
        st = relate(&t, d, dg);
    if (st == ST_OK) {
        usual_labels(&d->figure);
        set_texts(g, d);
        st = json ? plot_timeline(g, d->data, d->pass, dg) : kind->write(g, &t, &d->figure, dg);
    }
    plot_table_free(&t);
    return st;
}

enum status figure_draw(struct drawing *d, const char *out, struct diag *dg)
{
    char scripts[CATALOGUE_PATH_MAX];
    struct gnuplot g = {0};
    enum status st = gnuplot_open(&g, dg);
    g.source = d->data;
    if (st == ST_OK)
        st = write_data(&g, d, dg);
    if (st == ST_OK)
        st = gnuplot_draw(&g, catalogue_dir(scripts, sizeof scripts, "plots"), d->figure.kind, out,
                          dg);
    gnuplot_close(&g);
    return st;
}

void figure_results(char *out, size_t size, const char *experiment, const char *folder,
                    const char *ending)
{
    const char *slash = strrchr(experiment, '/'), *name = slash ? slash + 1 : experiment;
    int before = slash ? (int)(slash - experiment) : 1, stem = (int)strcspn(name, "-.");
    snprintf(out, size, "%.*s/%s/%.*s%s", before, slash ? experiment : ".", folder, stem, name,
             ending);
}

enum status figure_results_check(const char *data, const char *experiment, struct diag *dg)
{
    if (access(data, F_OK) == 0)
        return ST_OK;
    return diag_set(dg, ST_MISSING, "%s: no results yet: memwall sweep %s --out %s", data,
                    experiment, data);
}
