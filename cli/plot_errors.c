/* plot_errors.c -- predictions beside measurements: the kinds predicted and quantiles of plot_kinds.h. They know the
 * columns of `validate published` and `validate measured`. */
#include "cli/plot_curves.h"
#include "cli/plot_kinds.h"

#include <stdlib.h>

static const char *first_of(const struct plot_table *t, const char *given, const char *a,
                            const char *b)
{
    return given ? given : plot_table_has(t, a) ? a : b;
}

static double abs_of(double x)
{
    return x < 0 ? -x : x;
}

enum status plot_write_predicted(struct gnuplot *g, const struct plot_table *t,
                                 const struct figure *f, struct diag *dg)
{
    struct curves c;
    size_t x, y = 0, low, high, spread = 0, *curve = calloc(t->row_count, sizeof *curve);
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
        st = curves_number(curve, &c, t, f->by, dg);
    if (st == ST_OK)
        fputs("curve,x,y,xlow,xhigh,low,high\n", g->data);
    for (size_t r = 0; st == ST_OK && r < t->row_count; r++) {
        double a = plot_number_or_nan(plot_table_text(t, r, x), 1), b, lo, hi, s = 0;
        b = plot_number_or_nan(plot_table_text(t, r, y), 1);
        lo = plot_number_or_nan(plot_table_text(t, r, low), 1);
        hi = plot_number_or_nan(plot_table_text(t, r, high), 1);
        if (has_spread)
            s = plot_number_or_nan(plot_table_text(t, r, spread), 1) / 2;
        if (!(a > 0) || !(b > 0))
            continue;
        fprintf(g->data, "%zu,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", curve[r], a, b, a * (1 - s),
                a * (1 + s), lo > 0 ? lo : b, hi > 0 ? hi : b);
    }
    if (st == ST_OK)
        curves_set(g, &c);
    free(curve);
    return st;
}

enum status plot_write_quantiles(struct gnuplot *g, const struct plot_table *t,
                                 const struct figure *f, struct diag *dg)
{
    struct curves c;
    size_t column, *curve = calloc(t->row_count, sizeof *curve);
    double *error = calloc(t->row_count, sizeof *error);
    enum status st = curve && error ? plot_table_find(&column, t, f->x ? f->x : "signed_error", dg)
                                    : diag_no_memory(dg);
    if (st == ST_OK)
        st = curves_number(curve, &c, t, f->by, dg);
    if (st == ST_OK)
        fputs("curve,x,y\n", g->data);
    for (size_t i = 1; st == ST_OK && i <= c.count; i++) {
        size_t n = 0;
        for (size_t r = 0; r < t->row_count; r++) {
            double e = abs_of(plot_number_or_nan(plot_table_text(t, r, column), 1));
            if (curve[r] == i && e == e)
                error[n++] = e;
        }
        qsort(error, n, sizeof *error, plot_by_size);
        for (size_t k = 0; k < n; k++)
            fprintf(g->data, "%zu,%.9g,%.9g\n", i, error[k], (double)(k + 1) / (double)n);
    }
    if (st == ST_OK)
        curves_set(g, &c);
    free(curve);
    free(error);
    return st;
}
