/* plot_curves.h -- what the kinds of figures share: curves told apart by the values of some columns, axes of
 * numbers or of categories. */
#ifndef CLI_PLOT_CURVES_H
#define CLI_PLOT_CURVES_H

#include "cli/gnuplot.h"
#include "cli/plot_table.h"

enum { CURVES_MAX = 64, LEVELS_MAX = 4096, CURVE_NAME_MAX = 200 };

/* The values of the `by` columns that occur, in the order in which they come. */
struct curves {
    char name[CURVES_MAX][CURVE_NAME_MAX];
    size_t count;
    size_t column[8], column_count;
};

/* Gives each row of `t` its curve, from 1; `by` NULL: one for all. Too many curves are ST_UNSUPPORTED. */
MUST_CHECK enum status curves_number(size_t *curve, struct curves *c, const struct plot_table *t,
                                     const char *by, struct diag *dg);
/* n and names[], for the script. */
void curves_set(struct gnuplot *g, const struct curves *c);

/* An axis: numbers in its unit; or texts, which count 1, 2, 3 as they come and name the tics. */
struct scale {
    char *name[LEVELS_MAX];
    size_t count;
    bool categories;
    double unit;
};
/* A column with a text that is no number has categories, whatever was asked for. */
void scale_init(struct scale *s, const struct plot_table *t, size_t column, const char *unit,
                bool categories);
/* False where there is nothing to draw. */
bool scale_value(double *out, struct scale *s, const char *text);
/* The tics of categories, for the script. Frees the names. */
void scale_tics(struct gnuplot *g, struct scale *s);

/* ST_USAGE if no column is named. */
MUST_CHECK enum status plot_need_column(size_t *column, const struct plot_table *t,
                                        const char *name, const char *what, struct diag *dg);
double plot_number_or_nan(const char *text, double unit);
int plot_by_size(const void *a, const void *b); /* doubles, for qsort */

#endif
