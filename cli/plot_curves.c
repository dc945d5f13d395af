/* plot_curves.c -- see plot_curves.h. */
#include "cli/plot_curves.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

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
    char name[CURVE_NAME_MAX] = "";
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

enum status curves_number(size_t *curve, struct curves *c, const struct plot_table *t,
                          const char *by, struct diag *dg)
{
    enum status st = curves_init(c, t, by, dg);
    for (size_t r = 0; st == ST_OK && r < t->row_count; r++) {
        curve[r] = curve_of(c, t, r);
        if (!curve[r])
            return diag_set(dg, ST_UNSUPPORTED, "%s: more than %d curves: choose `by` and `where`",
                            t->path, CURVES_MAX);
    }
    return st;
}

void curves_set(struct gnuplot *g, const struct curves *c)
{
    fprintf(g->variables, "n = %zu\narray names[%zu]\n", c->count, c->count);
    for (size_t i = 0; i < c->count; i++) {
        char slot[32];
        snprintf(slot, sizeof slot, "names[%zu]", i + 1);
        gnuplot_set(g, slot, c->name[i]);
    }
}

enum status plot_need_column(size_t *column, const struct plot_table *t, const char *name,
                             const char *what, struct diag *dg)
{
    if (!name)
        return diag_set(dg, ST_USAGE,
                        "%s: which column? (--%s COLUMN, or figure: in the "
                        "experiment)",
                        what, what);
    return plot_table_find(column, t, name, dg);
}

void scale_init(struct scale *s, const struct plot_table *t, size_t column, const char *unit,
                bool categories)
{
    double x;
    *s = (struct scale){.unit = plot_unit(unit), .categories = categories};
    for (size_t r = 0; r < t->row_count; r++) {
        const char *text = plot_table_text(t, r, column);
        s->categories |= *text && !plot_number(&x, text);
    }
}

bool scale_value(double *out, struct scale *s, const char *text)
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
    if (i == s->count) {
        s->name[i] = strdup(text);
        if (!s->name[i])
            return false;
        s->count++;
    }
    *out = (double)i + 1;
    return true;
}

/* `more` holds commands, which style.gp carries out; the tics of categories are among them. A line end would let the
 * rest of a name be a command: of the shell, if it begins with '!'. */
void scale_tics(struct gnuplot *g, struct scale *s)
{
    if (s->categories) {
        fputs("more = more . 'set xtics rotate by -20 (", g->variables);
        for (size_t i = 0; i < s->count; i++) {
            fprintf(g->variables, "%s\"", i ? ", " : "");
            for (const char *c = s->name[i]; c && *c; c++)
                if ((unsigned char)*c < ' ')
                    fputc(' ', g->variables);
                else if (*c == '%') /* a tic is a format */
                    fputs("%%", g->variables);
                else if (!strchr("\"'\\`", *c)) /* these have a meaning in a command */
                    fputc(*c, g->variables);
            fprintf(g->variables, "\" %zu", i + 1);
        }
        fputs(")'\n", g->variables);
    }
    for (size_t i = 0; i < s->count; i++)
        free(s->name[i]);
}

double plot_number_or_nan(const char *text, double unit)
{
    double x;
    return plot_number(&x, text) ? x / unit : 0.0 / 0.0;
}

int plot_by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
