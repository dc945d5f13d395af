/* plot_mesh.c -- a quantity over a grid of two axes: the kinds contour and iso of plot_kinds.h. */
#include "cli/plot_curves.h"
#include "cli/plot_kinds.h"

#include <stdlib.h>
#include <string.h>

/* The different numbers of a column in rising order. */
static enum status levels_of(double *out, size_t *count, const struct plot_table *t, size_t column,
                             double unit, struct diag *dg)
{
    size_t n = 0;
    for (size_t r = 0; r < t->row_count; r++) {
        double x = plot_number_or_nan(plot_table_text(t, r, column), unit);
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
    qsort(out, n, sizeof *out, plot_by_size);
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
    enum status st = plot_need_column(&m->x, t, f->x, "x", dg);
    if (st == ST_OK)
        st = plot_need_column(&m->y, t, f->y, "y", dg);
    if (st == ST_OK)
        st = plot_need_column(&m->z, t, f->z, "z", dg);
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
        double x = plot_number_or_nan(plot_table_text(t, r, m->x), m->x_unit);
        double y = plot_number_or_nan(plot_table_text(t, r, m->y), m->y_unit);
        size_t i = 0, j = 0;
        while (i < m->nx && m->xs[i] != x)
            i++;
        while (j < m->ny && m->ys[j] != y)
            j++;
        if (curve[r] == which && i < m->nx && j < m->ny)
            z[i * m->ny + j] = plot_number_or_nan(plot_table_text(t, r, m->z), m->z_unit);
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
        st = curves_number(curve, &c, t, by, dg);
    for (size_t i = 1; st == ST_OK && i <= c.count; i++) {
        fputs(i > 1 ? "\n\n" : "", g->data);
        st = write_mesh(g->data, m, t, curve, i, dg);
    }
    if (st == ST_OK) {
        curves_set(g, &c);
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

enum status plot_write_contour(struct gnuplot *g, const struct plot_table *t,
                               const struct figure *f, struct diag *dg)
{
    enum status st = write_marks(g, f->marks, dg);
    return st == ST_OK ? write_meshes(g, t, f, NULL, dg) : st;
}

enum status plot_write_iso(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                           struct diag *dg)
{
    return write_meshes(g, t, f, f->by, dg);
}
