/* figure_draw.h -- from results to a picture: what `memwall plot` and `memwall report` share. */
#ifndef CLI_FIGURE_DRAW_H
#define CLI_FIGURE_DRAW_H

#include "cli/plot_kinds.h"

struct drawing {
    const struct experiment *experiment; /* whose axes `relative_to` means; NULL for a file */
    struct figure figure;                /* a kind that is not given is guessed, and set */
    const char *title;                   /* NULL: the path of the data */
    const char *data;                    /* a .csv, or the .json of a timeline */
    uint64_t pass;                       /* of a timeline, or PLOT_LAST_PASS */
};

/* Draws to `out`, an .svg or .png, which appears whole or not at all. ST_USAGE for a figure that asks for what
 * cannot be; ST_MISSING, among others, without gnuplot, and then the reason says what to install. */
MUST_CHECK enum status figure_draw(struct drawing *d, const char *out, struct diag *dg);

/* A file of an experiment: experiments/e01-flash.yaml, results and .csv give experiments/results/e01.csv. */
void figure_results(char *out, size_t size, const char *experiment, const char *folder,
                    const char *ending);
/* ST_MISSING, with the command that makes them, for results that are not there. */
MUST_CHECK enum status figure_results_check(const char *data, const char *experiment,
                                            struct diag *dg);

#endif
