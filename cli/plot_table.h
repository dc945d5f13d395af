/* plot_table.h -- any CSV as texts by column name, and cells as numbers: what figures are made from.
 *
 * A cell is a number, or a quantity of a description ("1.6 GB/s", "4 GiB", "65 us"), which counts in its
 * base unit. Any other text is a category. */
#ifndef CLI_PLOT_TABLE_H
#define CLI_PLOT_TABLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct plot_table {
    const char *path;
    char **name; /* of the columns */
    size_t column_count, row_count;
    char **cell; /* row after row */
};

MUST_CHECK enum status plot_table_load(struct plot_table *out, const char *path, struct diag *dg);
void plot_table_free(struct plot_table *t);

/* ST_MISSING, with the nearest name, if there is no such column. */
MUST_CHECK enum status plot_table_find(size_t *column, const struct plot_table *t, const char *name,
                                       struct diag *dg);
bool plot_table_has(const struct plot_table *t, const char *name);
const char *plot_table_text(const struct plot_table *t, size_t row, size_t column);
/* Keeps the rows that `where` ("COLUMN=VALUE,COLUMN=VALUE") names; NULL keeps all. */
MUST_CHECK enum status plot_table_keep(struct plot_table *t, const char *where, struct diag *dg);

/* Divides the numbers of `value` by that of the row that has `to` ("AXIS=VALUE") and is alike in all other axes;
 * those rows go. An empty cell where there is none. */
MUST_CHECK enum status plot_table_relate(struct plot_table *t, const char *value, const char *to,
                                         const char *const *axis, size_t axis_count,
                                         struct diag *dg);

/* False for a category or an empty cell. */
bool plot_number(double *out, const char *text);
/* What one of `unit` ("GB/s", "GiB", "ms") is in base units; 1 for NULL and for what is no unit of a
 * quantity. */
double plot_unit(const char *unit);

#endif
