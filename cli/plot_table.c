/* plot_table.c -- see plot_table.h. */
#include "cli/plot_table.h"

#include "base/csv.h"
#include "base/nearest.h"
#include "base/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ---- */

static bool as_quantity(double *out, const char *text)
{
    static const enum dimension dims[] = {DIM_SIZE,    DIM_RATE,  DIM_TIME,        DIM_FREQUENCY,
                                          DIM_COMPUTE, DIM_POWER, DIM_TEMPERATURE, DIM_RATIO};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        struct diag dg;
        uint64_t amount;
        if (quantity_parse(&amount, dims[i], text, QUANTITY_UNIT_REQUIRED, &dg) != ST_OK)
            continue;
        double base = dims[i] == DIM_TIME    ? 1e9
                      : dims[i] == DIM_POWER ? 1e6
                      : dims[i] == DIM_RATIO ? 1e9
                                             : 1;
        *out = (double)amount / base; /* in seconds, watts and one, as columns of results are */
        return true;
    }
    return false;
}

bool plot_number(double *out, const char *text)
{
    struct csv_field f = {text, strlen(text)};
    return csv_double(f, out) || as_quantity(out, text);
}

double plot_unit(const char *unit)
{
    char one[64];
    double value;
    if (!unit)
        return 1;
    snprintf(one, sizeof one, "1 %s", unit);
    return plot_number(&value, one) ? value : 1;
}

/* ---- the table ---- */

struct reading {
    struct plot_table *t;
    size_t room;
};

static enum status take_row(void *self, size_t line, const struct csv_field *fields,
                            struct diag *dg)
{
    struct reading *r = self;
    struct plot_table *t = r->t;
    (void)line;
    if (t->row_count == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        char **bigger = realloc(t->cell, room * t->column_count * sizeof *bigger);
        if (!bigger)
            return diag_no_memory(dg);
        t->cell = bigger;
        r->room = room;
    }
    char **row = &t->cell[t->row_count++ * t->column_count];
    memset(row, 0, t->column_count * sizeof *row);
    for (size_t c = 0; c < t->column_count; c++) {
        row[c] = strndup(fields[c].text, fields[c].length);
        if (!row[c])
            return diag_no_memory(dg);
    }
    return ST_OK;
}

static enum status take_name(void *self, struct csv_field name, struct diag *dg)
{
    struct plot_table *t = self;
    char **bigger = realloc(t->name, (t->column_count + 1) * sizeof *bigger);
    if (!bigger)
        return diag_no_memory(dg);
    t->name = bigger;
    t->name[t->column_count] = strndup(name.text, name.length);
    return t->name[t->column_count++] ? ST_OK : diag_no_memory(dg);
}

enum status plot_table_load(struct plot_table *out, const char *path, struct diag *dg)
{
    *out = (struct plot_table){.path = path};
    struct reading r = {out, 0};
    enum status st = csv_header(path, take_name, out, dg);
    struct csv_column *columns = calloc(out->column_count + 1, sizeof *columns);
    if (st == ST_OK && !columns)
        st = diag_no_memory(dg);
    for (size_t c = 0; st == ST_OK && c < out->column_count; c++)
        columns[c] = (struct csv_column){out->name[c], true};
    if (st == ST_OK)
        st = csv_read(path, columns, out->column_count, false, take_row, NULL, &r, dg);
    free(columns);
    if (st != ST_OK)
        plot_table_free(out);
    return st;
}

void plot_table_free(struct plot_table *t)
{
    for (size_t i = 0; i < t->row_count * t->column_count; i++)
        free(t->cell[i]);
    for (size_t c = 0; c < t->column_count; c++)
        free(t->name[c]);
    free(t->cell);
    free(t->name);
    *t = (struct plot_table){0};
}

bool plot_table_has(const struct plot_table *t, const char *name)
{
    for (size_t c = 0; c < t->column_count; c++)
        if (strcmp(t->name[c], name) == 0)
            return true;
    return false;
}

enum status plot_table_find(size_t *column, const struct plot_table *t, const char *name,
                            struct diag *dg)
{
    for (size_t c = 0; c < t->column_count; c++)
        if (strcmp(t->name[c], name) == 0) {
            *column = c;
            return ST_OK;
        }
    const char *near = nearest_name(name, (const char *const *)t->name, t->column_count);
    if (near)
        return diag_set(dg, ST_MISSING, "%s: no column '%s' (did you mean %s?)", t->path, name,
                        near);
    return diag_set(dg, ST_MISSING, "%s: no column '%s'", t->path, name);
}

const char *plot_table_text(const struct plot_table *t, size_t row, size_t column)
{
    return t->cell[row * t->column_count + column];
}

/* Those whose cell equals `value`, or does not. */
static void keep_rows(struct plot_table *t, size_t column, const char *value, bool equal)
{
    size_t kept = 0;
    for (size_t r = 0; r < t->row_count; r++) {
        char **row = &t->cell[r * t->column_count];
        bool keep = (strcmp(row[column], value) == 0) == equal;
        for (size_t c = 0; !keep && c < t->column_count; c++)
            free(row[c]);
        if (keep && kept != r)
            memcpy(&t->cell[kept * t->column_count], row, t->column_count * sizeof *row);
        kept += keep;
    }
    t->row_count = kept;
}

static bool has(const struct plot_table *t, size_t row, size_t column, const char *value)
{
    return strcmp(plot_table_text(t, row, column), value) == 0;
}

struct relation {
    size_t value, column, axis[64], axis_count;
    const char *is;
};

static bool alike(const struct plot_table *t, const struct relation *r, size_t a, size_t b)
{
    for (size_t i = 0; i < r->axis_count; i++)
        if (r->axis[i] != r->column && !has(t, a, r->axis[i], plot_table_text(t, b, r->axis[i])))
            return false;
    return true;
}

static char *ratio_text(const struct plot_table *t, const struct relation *r, size_t row)
{
    double x, base;
    char text[40] = "";
    for (size_t b = 0; b < t->row_count; b++)
        if (has(t, b, r->column, r->is) && alike(t, r, row, b) &&
            plot_number(&x, plot_table_text(t, row, r->value)) &&
            plot_number(&base, plot_table_text(t, b, r->value)) && base != 0)
            snprintf(text, sizeof text, "%.9g", x / base);
    return strdup(text);
}

static enum status divide(struct plot_table *t, const struct relation *r, struct diag *dg)
{
    for (size_t row = 0; row < t->row_count; row++) {
        if (has(t, row, r->column, r->is))
            continue;
        char *text = ratio_text(t, r, row);
        if (!text)
            return diag_no_memory(dg);
        free(t->cell[row * t->column_count + r->value]);
        t->cell[row * t->column_count + r->value] = text;
    }
    return ST_OK;
}

enum status plot_table_relate(struct plot_table *t, const char *value, const char *to,
                              const char *const *axis, size_t axis_count, struct diag *dg)
{
    struct relation r = {0};
    const char *equals = strchr(to, '=');
    char *name = equals ? strndup(to, (size_t)(equals - to)) : NULL;
    if (!equals)
        return diag_set(dg, ST_USAGE, "relative_to: AXIS=VALUE is expected, not '%s'", to);
    enum status st = name ? plot_table_find(&r.column, t, name, dg) : diag_no_memory(dg);
    free(name);
    if (st == ST_OK)
        st = plot_table_find(&r.value, t, value, dg);
    for (; st == ST_OK && r.axis_count < axis_count && r.axis_count < 64; r.axis_count++)
        st = plot_table_find(&r.axis[r.axis_count], t, axis[r.axis_count], dg);
    r.is = equals + 1;
    if (st == ST_OK)
        st = divide(t, &r, dg);
    if (st == ST_OK)
        keep_rows(t, r.column, r.is, false);
    return st;
}

enum status plot_table_keep(struct plot_table *t, const char *where, struct diag *dg)
{
    char *copy = where ? strdup(where) : NULL, *rest = copy;
    enum status st = where && !copy ? diag_no_memory(dg) : ST_OK;
    while (st == ST_OK && rest) {
        size_t column;
        char *name = strsep(&rest, ","), *value = strchr(name, '=');
        if (!value) {
            st = diag_set(dg, ST_USAGE, "where: COLUMN=VALUE is expected, not '%s'", name);
            break;
        }
        *value++ = 0;
        st = plot_table_find(&column, t, name, dg);
        if (st == ST_OK)
            keep_rows(t, column, value, true);
    }
    free(copy);
    if (st == ST_OK && t->row_count == 0)
        return diag_set(dg, ST_MISSING, "%s: no rows%s%s", t->path, where ? " where " : "",
                        where ? where : "");
    return st;
}
