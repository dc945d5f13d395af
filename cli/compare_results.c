/* compare_results.c -- two result files: rows paired by what they are about, numbers compared. */
#include "cli/compare.h"

#include "base/csv.h"
#include "base/text.h"
#include "cli/plot_table.h"

#include <stdlib.h>
#include <string.h>

static bool number(const char *text, double *x)
{
    return csv_double((struct csv_field){text, strlen(text)}, x);
}

/* Columns before `model` are a sweep's axes. */
static size_t axis_count(const struct plot_table *t)
{
    for (size_t c = 0; c < t->column_count; c++)
        if (strcmp(t->name[c], "model") == 0)
            return c;
    return 0;
}

/* A row is about what went in: its place on the axes and the words beside, but for those that a run tells of itself. */
static bool is_outcome(const char *name)
{
    static const char *const outcomes[] = {"bound", "assumed", "note", "fingerprint"};
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        if (strcmp(name, outcomes[i]) == 0)
            return true;
    return strstr(name, "hash") != NULL;
}

static bool same_subject(const struct plot_table *a, size_t i, const struct plot_table *b, size_t j)
{
    size_t axes = axis_count(a);
    for (size_t c = 0; c < a->column_count; c++) {
        const char *x = plot_table_text(a, i, c), *y = plot_table_text(b, j, c);
        double unused;
        bool numbers = (number(x, &unused) || !*x) && (number(y, &unused) || !*y);
        bool matched = c < axes || (!numbers && !is_outcome(a->name[c]));
        if (matched && strcmp(x, y) != 0)
            return false;
    }
    return true;
}

static void subject_of(char *text, size_t size, const struct plot_table *a, size_t i)
{
    size_t axes = axis_count(a);
    snprintf(text, size, "row %zu", i + 1);
    for (size_t c = 0; c < a->column_count; c++) {
        const char *x = plot_table_text(a, i, c);
        double unused;
        if (*x && strlen(x) < 40 && (c < axes || (!number(x, &unused) && !is_outcome(a->name[c]))))
            text_append(text, size, " %s", x);
    }
}

static void compare_rows(struct comparison *c, const struct plot_table *a, size_t i,
                         const struct plot_table *b, size_t j)
{
    char subject[160], what[256];
    subject_of(subject, sizeof subject, a, i);
    for (size_t k = 0; k < a->column_count; k++) {
        const char *x = plot_table_text(a, i, k), *y = plot_table_text(b, j, k);
        double p = 0, q = 0;
        if (number(x, &p))
            number(y, &q);
        snprintf(what, sizeof what, "%s: %s", subject, a->name[k]);
        compare_number(c, what, x, y, p, q);
    }
}

static enum status pair_rows(struct comparison *c, const struct plot_table *a,
                             const struct plot_table *b, struct diag *dg)
{
    bool *used = calloc(b->row_count + 1, sizeof *used);
    if (!used)
        return diag_no_memory(dg);
    for (size_t i = 0; i < a->row_count; i++) {
        size_t j = 0;
        char subject[160];
        while (j < b->row_count && (used[j] || !same_subject(a, i, b, j)))
            j++;
        if (j < b->row_count) {
            used[j] = true;
            compare_rows(c, a, i, b, j);
            continue;
        }
        subject_of(subject, sizeof subject, a, i);
        compare_text(c, subject, "there", NULL);
    }
    for (size_t j = 0; j < b->row_count; j++) {
        char subject[160];
        subject_of(subject, sizeof subject, b, j);
        if (!used[j])
            compare_text(c, subject, NULL, "there");
    }
    free(used);
    return ST_OK;
}

enum status compare_results(struct comparison *c, const char *a, const char *b, struct diag *dg)
{
    struct plot_table x = {0}, y = {0};
    enum status st = plot_table_load(&x, a, dg);
    if (st == ST_OK)
        st = plot_table_load(&y, b, dg);
    if (st == ST_OK && x.column_count != y.column_count)
        st = diag_set(dg, ST_MISFIT,
                      "%s has %zu columns, %s has %zu: results of one kind are compared", a,
                      x.column_count, b, y.column_count);
    for (size_t i = 0; st == ST_OK && i < x.column_count; i++)
        if (strcmp(x.name[i], y.name[i]) != 0)
            st = diag_set(dg, ST_MISFIT, "%s has column '%s' where %s has '%s'", a, x.name[i], b,
                          y.name[i]);
    if (st == ST_OK)
        st = pair_rows(c, &x, &y, dg);
    plot_table_free(&x);
    plot_table_free(&y);
    return st;
}
