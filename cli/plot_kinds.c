/* plot_kinds.c -- see plot_kinds.h. */
#include "cli/plot_kinds.h"

#include "base/nearest.h"
#include "base/stats.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { CURVES_MAX = 64, LEVELS_MAX = 4096, NAME_MAX_BYTES = 200 };

/* ---- curves ---- */

/* The values of the `by` columns that occur, in the order in which they come. */
struct curves {
    char name[CURVES_MAX][NAME_MAX_BYTES];
    size_t count;
    size_t column[8], column_count;
};

static enum status curves_init(struct curves *c, const struct plot_table *t, const char *by,
                               struct diag *dg)
{
    char *copy = by ? strdup(by) : NULL, *rest = copy;
    enum status st = by && !copy ? diag_no_memory(dg) : ST_OK;
    *c = (struct curves){0};
    while (st == ST_OK && rest) {
        char *name = strsep(&rest, ",");
        name += strspn(name, " ");
        if (c->column_count == sizeof c->column / sizeof *c->column)
            st = diag_set(dg, ST_USAGE, "by: too many columns");
        else
            st = plot_table_find(&c->column[c->column_count++], t, name, dg);
    }
    free(copy);
    return st;
}

/* The row's curve, from 1; 0 if there are too many. */
static size_t curve_of(struct curves *c, const struct plot_table *t, size_t row)
{
    char name[NAME_MAX_BYTES] = "";
    for (size_t i = 0; i < c->column_count; i++)
        text_list(name, sizeof name, ", ", "%s", plot_table_text(t, row, c->column[i]));
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->name[i], name) == 0)
            return i + 1;
    if (c->count == CURVES_MAX)
        return 0;
    memcpy(c->name[c->count++], name, sizeof name);
    return c->count;
}

static enum status curves_number(size_t *curve, struct curves *c, const struct plot_table *t,
                                 struct diag *dg)
{
    for (size_t r = 0; r < t->row_count; r++) {
        curve[r] = curve_of(c, t, r);
        if (!curve[r])
            return diag_set(dg, ST_UNSUPPORTED, "%s: more than %d curves: choose `by` and `where`",
                            t->path, CURVES_MAX);
    }
    return ST_OK;
}

static void set_curves(struct gnuplot *g, const struct curves *c)
{
    fprintf(g->variables, "n = %zu\narray names[%zu]\n", c->count, c->count);
    for (size_t i = 0; i < c->count; i++) {
        char slot[32];
        snprintf(slot, sizeof slot, "names[%zu]", i + 1);
        gnuplot_set(g, slot, c->name[i]);
    }
}

/* ---- columns ---- */

static enum status need_column(size_t *column, const struct plot_table *t, const char *name,
                               const char *what, struct diag *dg)
{
    if (!name)
        return diag_set(dg, ST_USAGE,
                        "%s: which column? (--%s COLUMN, or figure: in the "
                        "experiment)",
                        what, what);
    return plot_table_find(column, t, name, dg);
}

/* Texts that are no numbers count 1, 2, 3 as they come, and name the tics. */
struct scale {
    char *name[LEVELS_MAX];
    size_t count;
    bool categories;
    double unit;
};

static void scale_init(struct scale *s, const struct plot_table *t, size_t column, const char *unit,
                       bool categories)
{
    double x;
    *s = (struct scale){.unit = plot_unit(unit), .categories = categories};
    for (size_t r = 0; r < t->row_count; r++) {
        const char *text = plot_table_text(t, r, column);
        s->categories |= *text && !plot_number(&x, text);
    }
}

static bool scale_value(double *out, struct scale *s, const char *text)
{
    if (!*text)
        return false;
    if (!s->categories) {
        bool number = plot_number(out, text);
        *out /= s->unit;
        return number;
    }
    size_t i = 0;
    while (i < s->count && strcmp(s->name[i], text) != 0)
        i++;
    if (i == LEVELS_MAX)
        return false;
    if (i == s->count)
        s->name[s->count++] = strdup(text);
    *out = (double)i + 1;
    return true;
}

/* `more` holds commands, which style.gp carries out; the tics of categories are among them. */
static void scale_tics(struct gnuplot *g, struct scale *s)
{
    if (s->categories) {
        fputs("more = more . 'set xtics rotate by -20 (", g->variables);
        for (size_t i = 0; i < s->count; i++) {
            fprintf(g->variables, "%s\"", i ? ", " : "");
            for (const char *c = s->name[i]; c && *c; c++)
                if (!strchr("\"'\\`", *c)) /* these have a meaning in a command */
                    fputc(*c, g->variables);
            fprintf(g->variables, "\" %zu", i + 1);
        }
        fputs(")'\n", g->variables);
    }
    for (size_t i = 0; i < s->count; i++)
        free(s->name[i]);
}

static double number_or_nan(const char *text, double unit)
{
    double x;
    return plot_number(&x, text) ? x / unit : 0.0 / 0.0;
}

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
    enum status st = need_column(&p->x, t, f->x, "x", dg);
    if (st == ST_OK)
        st = need_column(&p->y, t, f->y, "y", dg);
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

static enum status write_xy(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                            bool categories, struct diag *dg)
{
    struct curves c;
    struct xy p;
    size_t *curve = calloc(t->row_count, sizeof *curve);
    enum status st = curve ? find_xy(&p, t, f, categories, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = curves_init(&c, t, f->by, dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, dg);
    if (st == ST_OK) {
        fputs("curve,x,y,low,high\n", g->data);
        for (size_t i = 1; i <= c.count; i++)
            for (size_t r = 0; r < t->row_count; r++) {
                double x, y = number_or_nan(plot_table_text(t, r, p.y), p.unit);
                if (curve[r] != i || y != y ||
                    !scale_value(&x, &p.along, plot_table_text(t, r, p.x)))
                    continue;
                fprintf(g->data, "%zu,%.9g,%.9g,%.9g,%.9g\n", i, x, y,
                        number_or_nan(plot_table_text(t, r, p.low), p.unit),
                        number_or_nan(plot_table_text(t, r, p.high), p.unit));
            }
        set_curves(g, &c);
        gnuplot_number(g, "spread", p.spread);
        scale_tics(g, &p.along);
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
    enum status st = curve ? plot_table_find(&x, t, along, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = plot_table_find(&y, t, hits, dg);
    if (st == ST_OK)
        st = curves_init(&c, t, f->by ? f->by : "policy", dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, dg);
    for (size_t i = 1; st == ST_OK && i <= c.count; i++) {
        if (i == 1)
            fputs("curve,x,y\n", g->data);
        for (size_t r = 0; r < t->row_count; r++)
            if (curve[r] == i)
                fprintf(g->data, "%zu,%.9g,%.9g\n", i,
                        number_or_nan(plot_table_text(t, r, x), unit),
                        1 - number_or_nan(plot_table_text(t, r, y), 1));
    }
    if (st == ST_OK)
        set_curves(g, &c);
    free(curve);
    return st;
}

/* ---- contour, iso ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The different numbers of a column in rising order. */
static enum status levels_of(double *out, size_t *count, const struct plot_table *t, size_t column,
                             double unit, struct diag *dg)
{
    size_t n = 0;
    for (size_t r = 0; r < t->row_count; r++) {
        double x = number_or_nan(plot_table_text(t, r, column), unit);
        size_t i = 0;
        while (i < n && out[i] != x)
            i++;
        if (i < n || x != x)
            continue;
        if (n == LEVELS_MAX)
            return diag_set(dg, ST_UNSUPPORTED, "%s: %s has too many values for a grid", t->path,
                            t->name[column]);
        out[n++] = x;
    }
    qsort(out, n, sizeof *out, by_size);
    *count = n;
    if (n < 2)
        return diag_set(dg, ST_UNSUPPORTED, "%s: a grid needs two values of %s", t->path,
                        t->name[column]);
    return ST_OK;
}

struct mesh {
    size_t x, y, z, nx, ny;
    double xs[LEVELS_MAX], ys[LEVELS_MAX], x_unit, y_unit, z_unit;
};

static enum status find_mesh(struct mesh *m, const struct plot_table *t, const struct figure *f,
                             struct diag *dg)
{
    m->x_unit = plot_unit(f->x_unit);
    m->y_unit = plot_unit(f->y_unit);
    m->z_unit = plot_unit(f->z_unit);
    enum status st = need_column(&m->x, t, f->x, "x", dg);
    if (st == ST_OK)
        st = need_column(&m->y, t, f->y, "y", dg);
    if (st == ST_OK)
        st = need_column(&m->z, t, f->z, "z", dg);
    if (st == ST_OK)
        st = levels_of(m->xs, &m->nx, t, m->x, m->x_unit, dg);
    return st == ST_OK ? levels_of(m->ys, &m->ny, t, m->y, m->y_unit, dg) : st;
}

/* One scan line a value of x, as splot wants it; NaN where no row is. */
static enum status write_mesh(FILE *f, const struct mesh *m, const struct plot_table *t,
                              const size_t *curve, size_t which, struct diag *dg)
{
    double *z = malloc(m->nx * m->ny * sizeof *z);
    if (!z)
        return diag_no_memory(dg);
    for (size_t i = 0; i < m->nx * m->ny; i++)
        z[i] = 0.0 / 0.0;
    for (size_t r = 0; r < t->row_count; r++) {
        double x = number_or_nan(plot_table_text(t, r, m->x), m->x_unit);
        double y = number_or_nan(plot_table_text(t, r, m->y), m->y_unit);
        size_t i = 0, j = 0;
        while (i < m->nx && m->xs[i] != x)
            i++;
        while (j < m->ny && m->ys[j] != y)
            j++;
        if (curve[r] == which && i < m->nx && j < m->ny)
            z[i * m->ny + j] = number_or_nan(plot_table_text(t, r, m->z), m->z_unit);
    }
    fputs("x,y,z\n", f);
    for (size_t i = 0; i < m->nx; i++) {
        for (size_t j = 0; j < m->ny; j++)
            fprintf(f, "%.9g,%.9g,%.9g\n", m->xs[i], m->ys[j], z[i * m->ny + j]);
        fputs(i + 1 < m->nx ? "\n" : "", f);
    }
    free(z);
    return ST_OK;
}

static enum status write_meshes(struct gnuplot *g, const struct plot_table *t,
                                const struct figure *f, const char *by, struct diag *dg)
{
    struct curves c;
    struct mesh *m = calloc(1, sizeof *m);
    size_t *curve = calloc(t->row_count, sizeof *curve);
    enum status st = m && curve ? find_mesh(m, t, f, dg) : diag_no_memory(dg);
    if (st == ST_OK && !f->levels)
        st = diag_set(dg, ST_USAGE, "levels: which values of %s get a line? (--levels 5,10,20)",
                      f->z);
    if (st == ST_OK && f->levels[strspn(f->levels, "0123456789.,eE+- ")])
        st = diag_set(dg, ST_USAGE, "levels: numbers are expected, not '%s'", f->levels);
    if (st == ST_OK)
        st = curves_init(&c, t, by, dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, dg);
    for (size_t i = 1; st == ST_OK && i <= c.count; i++) {
        fputs(i > 1 ? "\n\n" : "", g->data);
        st = write_mesh(g->data, m, t, curve, i, dg);
    }
    if (st == ST_OK) {
        set_curves(g, &c);
        gnuplot_set(g, "levels", f->levels);
        gnuplot_set(g, "zlabel", f->z_label ? f->z_label : f->z);
    }
    free(m);
    free(curve);
    return st;
}

/* "X,Y; X,Y" as a second data file. */
static enum status write_marks(struct gnuplot *g, const char *marks, struct diag *dg)
{
    char path[128];
    snprintf(path, sizeof path, "%s/marks.csv", g->folder);
    FILE *f = fopen(path, "w");
    if (!f)
        return diag_errno(dg, path, "cannot be written");
    fputs("x,y\n", f);
    for (const char *c = marks ? marks : ""; *c; c++)
        fputc(*c == ';' ? '\n' : *c, f);
    fputc('\n', f);
    if (fclose(f) != 0)
        return diag_errno(dg, path, "cannot be written");
    gnuplot_set(g, "marks", path);
    return ST_OK;
}

static enum status write_contour(struct gnuplot *g, const struct plot_table *t,
                                 const struct figure *f, struct diag *dg)
{
    enum status st = write_marks(g, f->marks, dg);
    return st == ST_OK ? write_meshes(g, t, f, NULL, dg) : st;
}

static enum status write_iso(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                             struct diag *dg)
{
    return write_meshes(g, t, f, f->by, dg);
}

/* ---- tornado ---- */

struct bar {
    char name[NAME_MAX_BYTES];
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
        fprintf(g->data, "%zu,%s,%.9g,%.9g,%.9g\n", i + 1, bar[i].name, v < 1 ? v : 1,
                v < 1 ? 1 : v, v);
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
#define CELL(row, column) number_or_nan(plot_table_text(t, row, c.column), 1)
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

/* ---- predicted against measured, error quantiles ---- */

static const char *first_of(const struct plot_table *t, const char *given, const char *a,
                            const char *b)
{
    return given ? given : plot_table_has(t, a) ? a : b;
}

static double abs_of(double x)
{
    return x < 0 ? -x : x;
}

static enum status write_predicted(struct gnuplot *g, const struct plot_table *t,
                                   const struct figure *f, struct diag *dg)
{
    struct curves c;
    size_t x, y, low, high, spread = 0, *curve = calloc(t->row_count, sizeof *curve);
    const char *along = first_of(t, f->x, "published", "s_per_token_measured");
    const char *up = first_of(t, f->y, "predicted", "s_per_token_simulated");
    bool has_spread = plot_table_has(t, "spread_ratio");
    enum status st = curve ? plot_table_find(&x, t, along, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = plot_table_find(&y, t, up, dg);
    low = high = y;
    if (st == ST_OK && plot_table_has(t, f->low ? f->low : "low"))
        st = plot_table_find(&low, t, f->low ? f->low : "low", dg);
    if (st == ST_OK && plot_table_has(t, f->high ? f->high : "high"))
        st = plot_table_find(&high, t, f->high ? f->high : "high", dg);
    if (st == ST_OK && has_spread)
        st = plot_table_find(&spread, t, "spread_ratio", dg);
    if (st == ST_OK)
        st = curves_init(&c, t, f->by, dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, dg);
    if (st == ST_OK)
        fputs("curve,x,y,xlow,xhigh,low,high\n", g->data);
    for (size_t r = 0; st == ST_OK && r < t->row_count; r++) {
        double a = number_or_nan(plot_table_text(t, r, x), 1), b, lo, hi, s = 0;
        b = number_or_nan(plot_table_text(t, r, y), 1);
        lo = number_or_nan(plot_table_text(t, r, low), 1);
        hi = number_or_nan(plot_table_text(t, r, high), 1);
        if (has_spread)
            s = number_or_nan(plot_table_text(t, r, spread), 1) / 2;
        if (!(a > 0) || !(b > 0))
            continue;
        fprintf(g->data, "%zu,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", curve[r], a, b, a * (1 - s),
                a * (1 + s), lo > 0 ? lo : b, hi > 0 ? hi : b);
    }
    if (st == ST_OK)
        set_curves(g, &c);
    free(curve);
    return st;
}

static enum status write_quantiles(struct gnuplot *g, const struct plot_table *t,
                                   const struct figure *f, struct diag *dg)
{
    struct curves c;
    size_t column, *curve = calloc(t->row_count, sizeof *curve);
    double *error = calloc(t->row_count, sizeof *error);
    enum status st = curve && error ? plot_table_find(&column, t, f->x ? f->x : "signed_error", dg)
                                    : diag_no_memory(dg);
    if (st == ST_OK)
        st = curves_init(&c, t, f->by, dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, dg);
    if (st == ST_OK)
        fputs("curve,x,y\n", g->data);
    for (size_t i = 1; st == ST_OK && i <= c.count; i++) {
        size_t n = 0;
        for (size_t r = 0; r < t->row_count; r++) {
            double e = abs_of(number_or_nan(plot_table_text(t, r, column), 1));
            if (curve[r] == i && e == e)
                error[n++] = e;
        }
        qsort(error, n, sizeof *error, by_size);
        for (size_t k = 0; k < n; k++)
            fprintf(g->data, "%zu,%.9g,%.9g\n", i, error[k], (double)(k + 1) / (double)n);
    }
    if (st == ST_OK)
        set_curves(g, &c);
    free(curve);
    free(error);
    return st;
}

/* ---- the table of kinds ---- */

const struct plot_kind plot_kinds[] = {
    {"lines", "y against x, a curve a value of `by`", false, write_lines},
    {"bars", "y of categories x", false, write_bars},
    {"mrc", "miss ratio against bytes of cache", false, write_mrc},
    {"contour", "z over x and y, with lines at `levels`", false, write_contour},
    {"iso", "where z is `levels` over x and y, a line a value of `by`", false, write_iso},
    {"tornado", "what each change of a plan does alone", false, write_tornado},
    {"roofline", "roofs of processor, memory and storage", false, write_roofline},
    {"predicted", "predicted against measured", false, write_predicted},
    {"quantiles", "which share of rows has at most an error", false, write_quantiles},
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
