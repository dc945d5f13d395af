/* result_page.c -- see result_page.h. */
#include "cli/result_page.h"

#include "cli/command.h"
#include "cli/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- figures ---- */

static enum status read_picture(char **out, const char *path, struct diag *dg)
{
    size_t room = 0;
    FILE *f = fopen(path, "r");
    *out = NULL;
    errno = 0;
    ssize_t n = f ? getdelim(out, &room, 0, f) : -1;
    if (f)
        fclose(f);
    return n > 0 ? ST_OK : diag_errno(dg, path, "cannot be read");
}

static enum status draw(char **picture, struct drawing *d, struct diag *dg)
{
    char folder[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX + sizeof "/figure.svg"];
    enum status st = scratch_open(folder, "report", dg);
    if (st != ST_OK)
        return st;
    snprintf(path, sizeof path, "%s/figure.svg", folder);
    st = figure_draw(d, path, dg);
    if (st == ST_OK)
        st = read_picture(picture, path, dg);
    scratch_close(folder);
    return st;
}

enum status result_page_figure(struct result_page *p, struct drawing *d, struct diag *dg)
{
    char *picture = NULL, prefix[16];
    enum status st = draw(&picture, d, dg);
    if (st == ST_USAGE)
        return st;
    snprintf(prefix, sizeof prefix, "f%u-", ++p->figures);
    fputs("<figure>\n", p->f);
    if (st == ST_OK) {
        html_svg(p->f, picture, prefix);
    } else {
        say("%s", dg->text);
        fputs("<p class=\"missing\">No figure: ", p->f);
        html_text(p->f, dg->text);
        fputs("</p>\n", p->f);
    }
    fputs("</figure>\n", p->f);
    free(picture);
    return ST_OK;
}

enum status result_page_figures(struct result_page *p, const struct drawing *d, struct diag *dg)
{
    struct drawing one = *d;
    enum status st = ST_OK;
    if (p->kind_count == 0)
        return result_page_figure(p, &one, dg);
    for (size_t i = 0; st == ST_OK && i < p->kind_count; i++) {
        one = *d;
        one.figure.kind = p->kind[i];
        st = result_page_figure(p, &one, dg);
    }
    return st;
}

/* ---- rows ---- */

static bool same_in_every_row(const struct plot_table *t, size_t column)
{
    for (size_t r = 1; r < t->row_count; r++)
        if (strcmp(plot_table_text(t, r, column), plot_table_text(t, 0, column)) != 0)
            return false;
    return t->row_count > 1;
}

static void put_common(struct result_page *p, const struct plot_table *t)
{
    size_t common = 0;
    for (size_t c = 0; c < t->column_count; c++) {
        const char *text = t->row_count ? plot_table_text(t, 0, c) : "";
        if (!*text || !same_in_every_row(t, c))
            continue;
        fputs(common++ ? "" : "<p>The same in every row:</p>\n<dl>\n", p->f);
        html_term(p->f, t->name[c], text);
    }
    fputs(common ? "</dl>\n" : "", p->f);
}

enum status result_page_rows(struct result_page *p, const struct plot_table *t, const size_t *row,
                             const char *caption, struct diag *dg)
{
    const char **name = calloc(t->column_count + 1, sizeof *name);
    size_t *column = calloc(t->column_count + 1, sizeof *column), count = 0;
    enum status st = name && column ? ST_OK : diag_no_memory(dg);
    for (size_t c = 0; st == ST_OK && c < t->column_count; c++)
        if (!same_in_every_row(t, c)) {
            name[count] = t->name[c];
            column[count++] = c;
        }
    if (st == ST_OK)
        put_common(p, t);
    if (st == ST_OK && count > 0) {
        struct html_table table;
        html_table_begin(&table, p->f, caption, name, count, t->row_count);
        for (size_t r = 0; r < t->row_count; r++)
            for (size_t c = 0; c < count; c++)
                html_cell(&table, plot_table_text(t, row ? row[r] : r, column[c]));
        html_table_end(&table);
    }
    free(name);
    free(column);
    return st;
}
