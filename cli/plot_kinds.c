/* plot_kinds.c -- see plot_kinds.h. */
#include "cli/plot_kinds.h"

#include "base/csv.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/plot_curves.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines, bars, mrc ---- */

struct xy {
    size_t x, y, low, high;
    bool spread;
    double unit;
    struct scale along;
};

static enum status find_xy(struct xy *p, const struct plot_table *t, const struct figure *f,
                           bool categories, struct diag *dg)
{
    enum status st = plot_need_column(&p->x, t, f->x, "x", dg);
    if (st == ST_OK)
        st = plot_need_column(&p->y, t, f->y, "y", dg);
    p->low = p->high = p->y;
    p->spread = f->low && f->high;
    if (st == ST_OK && p->spread)
        st = plot_table_find(&p->low, t, f->low, dg);
    if (st == ST_OK && p->spread)
        st = plot_table_find(&p->high, t, f->high, dg);
    if (st != ST_OK)
        return st;
    p->unit = plot_unit(f->y_unit);
    scale_init(&p->along, t, p->x, f->x_unit, categories);
    return ST_OK;
}

/* Whether a number has a place on axis `axis`: 'x' or 'y'. */
static bool has_place(double value, const struct figure *f, char axis)
{
    return value == value && (value > 0 || !f->log || !strchr(f->log, axis));
}

static enum status refuse_nothing(const struct plot_table *t, size_t column, const struct figure *f,
                                  struct diag *dg)
{
    return diag_set(dg, ST_UNSUPPORTED, "%s: column %s: no number that can be drawn%s%s", t->path,
                    t->name[column], f->log ? ", log: " : "", f->log ? f->log : "");
}

/* Every point of curve `i`; their number. */
static size_t write_curve(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                          struct xy *p, const size_t *curve, size_t i)
{
    size_t drawn = 0;
    for (size_t r = 0; r < t->row_count; r++) {
        double x, y = plot_number_or_nan(plot_table_text(t, r, p->y), p->unit);
        if (curve[r] != i || y != y || !scale_value(&x, &p->along, plot_table_text(t, r, p->x)))
            continue;
        fprintf(g->data, "%zu,%.9g,%.9g,%.9g,%.9g\n", i, x, y,
                plot_number_or_nan(plot_table_text(t, r, p->low), p->unit),
                plot_number_or_nan(plot_table_text(t, r, p->high), p->unit));
        drawn += has_place(x, f, 'x') && has_place(y, f, 'y');
    }
    return drawn;
}

static enum status write_xy(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                            bool categories, struct diag *dg)
{
    struct curves c;
    struct xy p;
    size_t *curve = calloc(t->row_count, sizeof *curve);
    enum status st = curve ? find_xy(&p, t, f, categories, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, f->by, dg);
    if (st == ST_OK) {
        size_t drawn = 0;
        fputs("curve,x,y,low,high\n", g->data);
        for (size_t i = 1; i <= c.count; i++)
            drawn += write_curve(g, t, f, &p, curve, i);
        curves_set(g, &c);
        gnuplot_number(g, "spread", p.spread);
        scale_tics(g, &p.along);
        st = drawn ? ST_OK : refuse_nothing(t, p.y, f, dg);
    }
    free(curve);
    return st;
}

static enum status write_lines(struct gnuplot *g, const struct plot_table *t,
                               const struct figure *f, struct diag *dg)
{
    return write_xy(g, t, f, false, dg);
}

static enum status write_bars(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                              struct diag *dg)
{
    return write_xy(g, t, f, true, dg);
}

/* Columns of `trace mrc` and of `replay`: bytes along, misses up, a curve a policy. */
static enum status write_mrc(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                             struct diag *dg)
{
    const char *along = f->x ? f->x : plot_table_has(t, "cache") ? "cache" : "cache_bytes";
    const char *hits = f->y ? f->y : "decode_hit_ratio";
    struct curves c;
    size_t x, y, *curve = calloc(t->row_count, sizeof *curve);
    double unit = plot_unit(f->x_unit ? f->x_unit : "GiB");
    bool drawn = false;
    enum status st = curve ? plot_table_find(&x, t, along, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = plot_table_find(&y, t, hits, dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, f->by ? f->by : "policy", dg);
    for (size_t i = 1; st == ST_OK && i <= c.count; i++) {
        if (i == 1)
            fputs("curve,x,y\n", g->data);
        for (size_t r = 0; r < t->row_count; r++)
            if (curve[r] == i) {
                double along_x = plot_number_or_nan(plot_table_text(t, r, x), unit);
                double up_y = 1 - plot_number_or_nan(plot_table_text(t, r, y), 1);
                fprintf(g->data, "%zu,%.9g,%.9g\n", i, along_x, up_y);
                drawn |= has_place(along_x, f, 'x') && has_place(up_y, f, 'y');
            }
    }
    if (st == ST_OK)
        curves_set(g, &c);
    if (st == ST_OK && !drawn)
        st = refuse_nothing(t, y, f, dg);
    free(curve);
    return st;
}

/* ---- tornado ---- */

struct bar {
    char name[CURVE_NAME_MAX];
    double value;
};

static int by_effect(const void *a, const void *b)
{
    double x = ((const struct bar *)a)->value - 1, y = ((const struct bar *)b)->value - 1;
    x = x < 0 ? -x : x;
    y = y < 0 ? -y : y;
    return (x < y) - (x > y);
}

/* The factors of a plan's first row, or of y by category over its first row. */
static size_t list_bars(struct bar *bar, const struct plot_table *t)
{
    size_t n = 0;
    for (size_t c = 0; c < t->column_count && n < CURVES_MAX; c++) {
        double value;
        const char *name = t->name[c];
        if (strncmp(name, "factor_", strlen("factor_")) != 0 ||
            !plot_number(&value, plot_table_text(t, 0, c)))
            continue;
        snprintf(bar[n].name, sizeof bar[n].name, "%s", name + strlen("factor_"));
        for (char *at = bar[n].name; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        bar[n++].value = value;
    }
    return n;
}

static enum status write_tornado(struct gnuplot *g, const struct plot_table *t,
                                 const struct figure *f, struct diag *dg)
{
    struct bar bar[CURVES_MAX];
    size_t n = list_bars(bar, t);
    (void)f;
    if (n == 0)
        return diag_set(dg, ST_MISSING, "%s: no columns factor_...: results of plan have them",
                        t->path);
    qsort(bar, n, sizeof *bar, by_effect);
    fputs("row,name,low,high,value\n", g->data);
    for (size_t i = 0; i < n; i++) {
        double v = bar[i].value;
        fprintf(g->data, "%zu,", i + 1);
        csv_write_field(g->data, bar[i].name);
        fprintf(g->data, ",%.9g,%.9g,%.9g\n", v < 1 ? v : 1, v < 1 ? 1 : v, v);
    }
    fprintf(g->variables, "n = %zu\nbase = 1\n", n);
    return ST_OK;
}

/* ---- roofline ---- */

struct roof_columns {
    size_t ops, flash_bytes, dram_bytes, flash_s, dram_s, compute_s, rate;
};

static enum status find_roof(struct roof_columns *c, const struct plot_table *t, struct diag *dg)
{
    const struct {
        size_t *column;
        const char *name;
    } needs[] = {{&c->ops, "flop_per_token"},
                 {&c->flash_bytes, "flash_bytes_per_token"},
                 {&c->dram_bytes, "dram_bytes_per_token"},
                 {&c->flash_s, "flash_s_per_token"},
                 {&c->dram_s, "dram_s_per_token"},
                 {&c->compute_s, "compute_s_per_token"},
                 {&c->rate, "decode_tok_per_s_serial"}};
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < sizeof needs / sizeof *needs; i++)
        st = plot_table_find(needs[i].column, t, needs[i].name, dg);
    return st;
}

/* A roof is what the first row moves in the time it takes at least. */
static enum status write_roofline(struct gnuplot *g, const struct plot_table *t,
                                  const struct figure *f, struct diag *dg)
{
    struct roof_columns c;
    double least = 1e300, most = 0;
    (void)f;
    enum status st = find_roof(&c, t, dg);
    if (st != ST_OK)
        return st;
#define CELL(row, column) plot_number_or_nan(plot_table_text(t, row, c.column), 1)
    fputs("flash_x,dram_x,y\n", g->data);
    for (size_t r = 0; r < t->row_count; r++) {
        double flash = CELL(r, ops) / CELL(r, flash_bytes),
               dram = CELL(r, ops) / CELL(r, dram_bytes);
        if (dram != dram)
            continue;
        fprintf(g->data, "%.9g,%.9g,%.9g\n", flash, dram, CELL(r, ops) * CELL(r, rate));
        least = dram < least ? dram : least;
        most = flash > most && flash < 1e9 ? flash : most;
    }
    double peak = CELL(0, ops) / CELL(0, compute_s),
           flash = CELL(0, flash_bytes) / CELL(0, flash_s);
    gnuplot_number(g, "peak", peak);
    gnuplot_number(g, "dram_Bps", CELL(0, dram_bytes) / CELL(0, dram_s));
    gnuplot_number(g, "flash_Bps", flash);
#undef CELL
    if (!(flash > 0))
        return diag_set(dg, ST_UNSUPPORTED,
                        "%s: nothing streams in the first row: there is no "
                        "storage roof",
                        t->path);
    gnuplot_number(g, "xmin", least / 4);
    gnuplot_number(g, "xmax", 4 * (most > peak / flash ? most : peak / flash));
    return ST_OK;
}

/* ---- the table of kinds ---- */

const struct plot_kind plot_kinds[] = {
    {"lines", "y against x, a curve a value of `by`", false, write_lines},
    {"bars", "y of categories x", false, write_bars},
    {"mrc", "miss ratio against bytes of cache", false, write_mrc},
    {"contour", "z over x and y, with lines at `levels`", false, plot_write_contour},
    {"iso", "where z is `levels` over x and y, a line a value of `by`", false, plot_write_iso},
    {"tornado", "what each change of a plan does alone", false, write_tornado},
    {"roofline", "roofs of processor, memory and storage", false, write_roofline},
    {"predicted", "predicted against measured", false, plot_write_predicted},
    {"quantiles", "which share of rows has at most an error", false, plot_write_quantiles},
    {"timeline", "one token of sim --timeline", true, NULL},
    {NULL, NULL, false, NULL},
};

enum status plot_kind_find(const struct plot_kind **out, const char *name, struct diag *dg)
{
    const char *names[32];
    char listed[256] = "";
    size_t count = 0;
    for (const struct plot_kind *k = plot_kinds; k->name; k++) {
        if (strcmp(k->name, name) == 0) {
            *out = k;
            return ST_OK;
        }
        names[count++] = k->name;
        text_list(listed, sizeof listed, " ", "%s", k->name);
    }
    const char *near = nearest_name(name, names, count);
    if (near)
        return diag_set(dg, ST_USAGE, "no figure of kind '%s' (did you mean %s?)", name, near);
    return diag_set(dg, ST_USAGE, "no figure of kind '%s'; there are %s", name, listed);
}

const char *plot_kind_guess(const struct plot_table *t)
{
    if (plot_table_has(t, "exact") && plot_table_has(t, "slots"))
        return "mrc";
    if (plot_table_has(t, "published") || plot_table_has(t, "s_per_token_measured"))
        return "predicted";
    return "lines";
}
