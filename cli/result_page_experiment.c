/* result_page_experiment.c -- the page of an experiment: what was asked and expected, what came out, and each row. */
#include "cli/result_page.h"

#include <inttypes.h>

static void put_question(FILE *f, const struct experiment *e)
{
    html_element(f, "h1", e->finding ? e->finding : e->question);
    fputs("<dl>\n", f);
    html_term(f, "question", e->question);
    html_term(f, "prediction", e->predict);
    html_term(f, "refuted if", e->refuted_if);
    html_term(f, "refuted", e->refuted ? e->refuted : "not recorded");
    html_term(f, "experiment", e->origin);
    fputs("</dl>\n", f);
}

/* A result has a column for every axis. */
static enum status check_axes(const struct experiment *e, const struct plot_table *t,
                              struct diag *dg)
{
    for (size_t a = 0; a < e->axis_count; a++)
        if (!plot_table_has(t, e->axis[a].name))
            return diag_set(dg, ST_MISFIT, "%s: no result of %s: it has no column '%s'", t->path,
                            e->origin, e->axis[a].name);
    return ST_OK;
}

enum status result_page_experiment(struct result_page *p, const struct experiment *e,
                                   const struct plot_table *t, struct diag *dg)
{
    struct drawing d = {.experiment = e,
                        .figure = e->figure,
                        .title = e->finding ? e->finding : e->question,
                        .data = t->path,
                        .pass = PLOT_LAST_PASS};
    enum status st = check_axes(e, t, dg);
    if (st != ST_OK)
        return st;
    html_begin(p->f, e->question);
    put_question(p->f, e);
    if (e->figure.kind || p->kind_count) {
        html_element(p->f, "h2", "Figures");
        st = result_page_figures(p, &d, dg);
    }
    if (st != ST_OK)
        return st;
    html_element(p->f, "h2", "Results");
    fprintf(p->f, "<p>%zu of %" PRIu64 " points, in the order of the grid, from ", t->row_count,
            e->points);
    html_text(p->f, t->path);
    fputs(".</p>\n", p->f);
    st = result_page_rows(p, t, NULL, NULL, dg);
    if (st == ST_OK)
        st = result_page_inputs(p, e, dg);
    html_end(p->f);
    return st;
}
