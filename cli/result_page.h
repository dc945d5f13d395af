/* result_page.h -- the parts of which the pages of `memwall report` are made. */
#ifndef CLI_RESULT_PAGE_H
#define CLI_RESULT_PAGE_H

#include "cli/args.h"
#include "cli/figure_draw.h"
#include "cli/html.h"

struct result_page {
    FILE *f;
    const char *const *kind; /* of figures that were asked for; none: the page's own choice */
    size_t kind_count;
    unsigned figures; /* drawn so far */
};

/* Draws `d` into the page. Without gnuplot, and for results that give no picture, the reason stands in its place and on
 * stderr; only a figure that asks for what cannot be is an error (ST_USAGE). */
MUST_CHECK enum status result_page_figure(struct result_page *p, struct drawing *d,
                                          struct diag *dg);
/* `d` once for each kind that was asked for; with none, as it is. */
MUST_CHECK enum status result_page_figures(struct result_page *p, const struct drawing *d,
                                           struct diag *dg);

/* All rows, in the order of `row` (NULL: as they are). A column that holds the same in every row is said once, above. */
MUST_CHECK enum status result_page_rows(struct result_page *p, const struct plot_table *t,
                                        const size_t *row, const char *caption, struct diag *dg);

/* The page of an experiment and its results. */
MUST_CHECK enum status result_page_experiment(struct result_page *p, const struct experiment *e,
                                              const struct plot_table *t, struct diag *dg);
/* Its inputs: settings, models, devices, engine profiles. */
MUST_CHECK enum status result_page_inputs(struct result_page *p, const struct experiment *e,
                                          struct diag *dg);

/* The options of its command as `point`, the arguments of the first point, has them, and the axes. */
void result_page_settings(struct result_page *p, const struct experiment *e,
                          const struct args *point);
/* A table of inputs, row by row. */
void result_page_inputs_begin(struct html_table *t, struct result_page *p, const char *title,
                              size_t rows);
void result_page_input(struct html_table *t, const char *input, const char *value, const char *kind,
                       const char *source);
/* Whether an item of the axis sets the key; one that ends with a point means all paths below it. */
bool result_page_axis_sets(const struct axis *axis, const char *key);
/* "1.6 GB/s | 2.5 GB/s" for a key that an axis sets, "-" where its item does not; false for any other. */
enum { SWEPT_MAX = 600 };
bool result_page_swept(char out[SWEPT_MAX], const char **axis, const struct experiment *e,
                       const char *key);

/* Rows of `validate published` or `validate measured`. */
bool result_page_is_validation(const struct plot_table *t);
MUST_CHECK enum status result_page_validation(struct result_page *p, const struct plot_table *t,
                                              struct diag *dg);

#endif
