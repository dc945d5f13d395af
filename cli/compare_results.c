/* compare_results.c -- two result files: rows paired by what they are about, numbers compared. */
#include "cli/compare.h"

#include "base/csv.h"
#include "cli/plot_table.h"

#include <stdlib.h>
#include <string.h>

static bool number(const char *text, double *x)
{
    return csv_double((struct csv_field){text, strlen(text)}, x);
}

/* A row is about what its cells that are no numbers say. */
static bool same_subject(const struct plot_table *a, size_t i, const struct plot_table *b, size_t j)
{
    for (size_t c = 0; c < a->column_count; c++) {
        const char *x = plot_table_text(a, i, c), *y = plot_table_text(b, j, c);
        double unused;
        bool numbers = (number(x, &unused) || !*x) && (number(y, &unused) || !*y);
        bool hash = strstr(a->name[c], "hash") || strcmp(a->name[c], "fingerprint") == 0;
        if (!numbers && !hash && strcmp(x, y) != 0)
            return false;
    }
    return true;
}

static void subject_of(char *text, size_t size, const struct plot_table *a, size_t i)
{
    double unused;
    size_t used = (size_t)snprintf(text, size, "row %zu", i + 1);
    for (size_t c = 0; c < a->column_count && used < size; c++) {
        const char *x = plot_table_text(a, i, c);
        if (*x && !number(x, &unused) && strlen(x) < 40 && !strstr(a->name[c], "hash") &&
            strcmp(a->name[c], "fingerprint") != 0)
            used += (size_t)snprintf(text + used, size - used, " %s", x);
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
