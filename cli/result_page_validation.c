/* result_page_validation.c -- the page of a validation: how far off, by group and quantile; the
 * pictures; every row, worst first. */
#include "cli/result_page.h"

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The columns of the two validations that this page knows. */
struct shape {
    const char *title, *about;
    const char *truth, *prediction, *low, *high, *id; /* columns */
    const char *group[2];                             /* columns whose values get lines */
    const char *where, *label;                        /* of the figures */
};

static const struct shape shapes[] = {
    {"Published runs against their prediction",
     "Signed error is predicted over published less 1; within a published range it is 0.",
     "published",
     "predicted",
     "low",
     "high",
     "id",
     {"class", "metric"},
     "metric=decode_rate",
     " decode rate (tok/s)"},
    {"Runs on this machine against their simulation",
     "Signed error is simulated over measured seconds per token less 1.",
     "s_per_token_measured",
     "s_per_token_simulated",
     "low_s",
     "high_s",
     "cell",
     {"admitted", NULL},
     NULL,
     " seconds per token"},
};

static const struct shape *shape_of(const struct plot_table *t)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (plot_table_has(t, shapes[i].truth) && plot_table_has(t, shapes[i].prediction) &&
            plot_table_has(t, "signed_error"))
            return &shapes[i];
    return NULL;
}

bool result_page_is_validation(const struct plot_table *t)
{
    return shape_of(t) != NULL;
}

/* ---- the rows as numbers ---- */

struct row {
    double error, truth, low, high; /* NaN where there is none */
    size_t at;
};

struct validation {
    const struct plot_table *t;
    const struct shape *shape;
    struct row *row;    /* worst first */
    double *scratch;    /* of row_count */
    const char **group; /* by place in the table: the group that a row counts in */
    size_t id;          /* column */
};

static double cell_number(const struct plot_table *t, size_t row, const char *column)
{
    double x;
    size_t c = 0;
    while (c < t->column_count && strcmp(t->name[c], column) != 0)
        c++;
    return c < t->column_count && plot_number(&x, plot_table_text(t, row, c)) ? x : NAN;
}

/* Worst first; rows without a prediction last; else as they come. */
static int worst_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double ex = isnan(x->error) ? -1 : fabs(x->error), ey = isnan(y->error) ? -1 : fabs(y->error);
    if (ex != ey)
        return ex > ey ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void validation_free(struct validation *v)
{
    free(v->row);
    free(v->scratch);
    free(v->group);
}

static enum status validation_init(struct validation *v, const struct plot_table *t,
                                   struct diag *dg)
{
    size_t n = t->row_count + 1;
    *v = (struct validation){.t = t, .shape = shape_of(t)};
    v->row = calloc(n, sizeof *v->row);
    v->scratch = calloc(n, sizeof *v->scratch);
    v->group = calloc(n, sizeof *v->group);
    if (!v->row || !v->scratch || !v->group)
        return diag_no_memory(dg);
    for (size_t r = 0; r < t->row_count; r++)
        v->row[r] =
            (struct row){cell_number(t, r, "signed_error"), cell_number(t, r, v->shape->truth),
                         cell_number(t, r, v->shape->low), cell_number(t, r, v->shape->high), r};
    qsort(v->row, t->row_count, sizeof *v->row, worst_first);
    return plot_table_find(&v->id, t, v->shape->id, dg);
}

/* ---- quantiles ---- */

static const char *const quantile_columns[] = {
    "rows of",    "all",        "predicted",  "absolute median", "absolute p90", "absolute p95",
    "signed p10", "signed p50", "signed p90", "within interval", "worst"};

static void put_percent(struct html_table *t, double share, bool is_signed)
{
    char text[32];
    share = fabs(share) < 0.0005 ? 0 : share; /* no minus before a zero */
    snprintf(text, sizeof text, is_signed ? "%+.1f %%" : "%.1f %%", 100 * share);
    html_cell(t, text);
}

static void put_count(struct html_table *t, size_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", n);
    html_cell(t, text);
}

/* The errors of a group in v->scratch; NULL group: of all rows. */
static size_t gather(struct validation *v, const char *group, bool absolute)
{
    size_t n = 0;
    for (size_t i = 0; i < v->t->row_count; i++) {
        const struct row *r = &v->row[i];
        if (!isnan(r->error) && (!group || strcmp(v->group[r->at], group) == 0))
            v->scratch[n++] = absolute ? fabs(r->error) : r->error;
    }
    return n;
}

struct tally {
    size_t rows, with_interval, within;
    const struct row *worst;
};

static struct tally tally_of(const struct validation *v, const char *group)
{
    struct tally y = {0};
    for (size_t i = 0; i < v->t->row_count; i++) {
        const struct row *r = &v->row[i];
        if (group && strcmp(v->group[r->at], group) != 0)
            continue;
        y.rows++;
        y.worst = y.worst || isnan(r->error) ? y.worst : r;
        y.with_interval += r->high > 0 && r->truth > 0;
        y.within += r->high > 0 && r->truth >= r->low && r->truth <= r->high;
    }
    return y;
}

static void put_line(struct html_table *t, struct validation *v, const char *name,
                     const char *group)
{
    static const double absolute[] = {0.5, 0.9, 0.95}, signed_ones[] = {0.1, 0.5, 0.9};
    struct tally y = tally_of(v, group);
    size_t n = gather(v, group, true);
    html_cell(t, name);
    put_count(t, y.rows);
    put_count(t, n);
    for (size_t i = 0; i < 3; i++)
        if (n)
            put_percent(t, stats_quantile(v->scratch, n, absolute[i]), false);
        else
            html_cell(t, NULL);
    gather(v, group, false);
    for (size_t i = 0; i < 3; i++)
        if (n)
            put_percent(t, stats_quantile(v->scratch, n, signed_ones[i]), true);
        else
            html_cell(t, NULL);
    if (y.with_interval)
        put_percent(t, (double)y.within / (double)y.with_interval, false);
    else
        html_cell(t, NULL);
    html_cell(t, y.worst ? plot_table_text(v->t, y.worst->at, v->id) : NULL);
}

/* Groups by one column, in the order in which its values come. */
static size_t list_groups(struct validation *v, size_t column, const char **name)
{
    size_t count = 0;
    for (size_t r = 0; r < v->t->row_count; r++) {
        size_t i = 0;
        v->group[r] = plot_table_text(v->t, r, column);
        while (i < count && strcmp(name[i], v->group[r]) != 0)
            i++;
        if (i == count)
            name[count++] = v->group[r];
    }
    return count;
}

static enum status put_quantiles(struct result_page *p, struct validation *v, struct diag *dg)
{
    size_t columns = sizeof quantile_columns / sizeof *quantile_columns;
    const char **name = calloc(v->t->row_count + 1, sizeof *name);
    struct html_table t;
    if (!name)
        return diag_no_memory(dg);
    html_table_begin(&t, p->f, "Errors by quantile, every row weighing the same", quantile_columns,
                     columns, 1);
    put_line(&t, v, "everything", NULL);
    html_table_end(&t);
    for (size_t g = 0; g < 2; g++) {
        size_t column = 0;
        const char *by = v->shape->group[g];
        if (!by || !plot_table_has(v->t, by))
            continue;
        enum status st = plot_table_find(&column, v->t, by, dg);
        if (st != ST_OK) {
            free(name);
            return st;
        }
        size_t count = list_groups(v, column, name);
        html_table_begin(&t, p->f, by, quantile_columns, columns, count);
        for (size_t i = 0; i < count; i++)
            put_line(&t, v, name[i], name[i]);
        html_table_end(&t);
    }
    free(name);
    return ST_OK;
}

/* ---- figures and the page ---- */

/* Rates alone where there are some: figures of different units do not go on one axis. */
static bool has_rows(const struct plot_table *t, const char *where)
{
    const char *equals = where ? strchr(where, '=') : NULL;
    for (size_t c = 0; equals && c < t->column_count; c++)
        for (size_t r = 0; r < t->row_count; r++)
            if (strlen(t->name[c]) == (size_t)(equals - where) &&
                strncmp(t->name[c], where, strlen(t->name[c])) == 0 &&
                strcmp(plot_table_text(t, r, c), equals + 1) == 0)
                return true;
    return false;
}

static enum status put_figures(struct result_page *p, const struct validation *v, struct diag *dg)
{
    static const char *const usual[] = {"predicted", "quantiles"};
    const struct shape *s = v->shape;
    const char *by = s->group[0];
    bool some = has_rows(v->t, s->where);
    char x[64], y[64];
    if (p->kind_count == 0) {
        p->kind = usual;
        p->kind_count = 2;
    }
    snprintf(x, sizeof x, "%s%s", s->truth[0] == 'p' ? "published" : "measured",
             some || !s->where ? s->label : "");
    snprintf(y, sizeof y, "%s%s", s->truth[0] == 'p' ? "predicted" : "simulated",
             some || !s->where ? s->label : "");
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < p->kind_count; i++) {
        bool predicted = strcmp(p->kind[i], "predicted") == 0;
        struct drawing d = {.figure = {.kind = p->kind[i],
                                       .low = predicted ? s->low : NULL,
                                       .high = predicted ? s->high : NULL,
                                       .by = plot_table_has(v->t, by) ? by : NULL,
                                       .where = some ? s->where : NULL,
                                       .x_label = predicted ? x : NULL,
                                       .y_label = predicted ? y : NULL},
                            .title = s->title,
                            .data = v->t->path,
                            .pass = PLOT_LAST_PASS};
        st = result_page_figure(p, &d, dg);
    }
    return st;
}

static enum status put_rows(struct result_page *p, const struct validation *v, struct diag *dg)
{
    size_t *order = calloc(v->t->row_count + 1, sizeof *order);
    if (!order)
        return diag_no_memory(dg);
    for (size_t i = 0; i < v->t->row_count; i++)
        order[i] = v->row[i].at;
    html_element(p->f, "h2", "Rows, worst first");
    enum status st = result_page_rows(p, v->t, order, NULL, dg);
    free(order);
    return st;
}

enum status result_page_validation(struct result_page *p, const struct plot_table *t,
                                   struct diag *dg)
{
    struct validation v;
    enum status st = validation_init(&v, t, dg);
    if (st == ST_OK) {
        html_begin(p->f, v.shape->title);
        html_element(p->f, "h1", v.shape->title);
        fprintf(p->f, "<p>%zu rows of ", t->row_count);
        html_text(p->f, t->path);
        fputs(". ", p->f);
        html_text(p->f, v.shape->about);
        fputs("</p>\n", p->f);
        html_element(p->f, "h2", "How far off");
        st = put_quantiles(p, &v, dg);
    }
    if (st == ST_OK)
        html_element(p->f, "h2", "Figures");
    if (st == ST_OK)
        st = put_figures(p, &v, dg);
    if (st == ST_OK)
        st = put_rows(p, &v, dg);
    if (st == ST_OK)
        html_end(p->f);
    validation_free(&v);
    return st;
}
