/* gnuplot.h -- figures are drawn by gnuplot, an external program: its scripts are plots/KIND.gp, its data a
 * CSV that is made for the figure. */
#ifndef CLI_GNUPLOT_H
#define CLI_GNUPLOT_H

#include "cli/scratch.h"

#include <stdio.h>

/* A figure in the making: two temporary files, which gnuplot_close() removes. */
struct gnuplot {
    char folder[SCRATCH_PATH_MAX]; /* empty: none */
    const char *source;            /* the file that is drawn: named where gnuplot refuses; set after
                           gnuplot_open() */
    FILE *data;                    /* CSV for the script, which reads it by column name */
    FILE *variables;               /* assignments: gnuplot_set() writes them */
};

MUST_CHECK enum status gnuplot_open(struct gnuplot *g, struct diag *dg);
/* A text; nothing in it means anything to gnuplot. */
void gnuplot_set(struct gnuplot *g, const char *name, const char *text);
void gnuplot_number(struct gnuplot *g, const char *name, double value);
/* Draws with the scripts `style.gp` and `kind`.gp of folder `scripts` to `out`, an .svg or .png that appears
 * whole or not at all. ST_MISSING, with what to install, if there is no gnuplot. */
MUST_CHECK enum status gnuplot_draw(struct gnuplot *g, const char *scripts, const char *kind,
                                    const char *out, struct diag *dg);
void gnuplot_close(struct gnuplot *g);

#endif
