/* plot_kinds.h -- what each kind of figure takes of a table: one row a kind, one gnuplot script a kind. */
#ifndef CLI_PLOT_KINDS_H
#define CLI_PLOT_KINDS_H

#include "cli/gnuplot.h"
#include "cli/plot_table.h"
#include "experiments/experiment.h"

struct plot_kind {
    const char *name; /* and of its script */
    const char *help;
    bool from_json; /* reads a timeline instead of a table */
    /* Writes the data and the variables of its script; `t` is NULL for a timeline. */
    enum status (*write)(struct gnuplot *g, const struct plot_table *t, const struct figure *f,
                         struct diag *dg);
};

extern const struct plot_kind plot_kinds[]; /* ends with a NULL name */
/* ST_USAGE, with the nearest, for a kind that does not exist. */
MUST_CHECK enum status plot_kind_find(const struct plot_kind **out, const char *name,
                                      struct diag *dg);
/* What the columns suggest; lines if nothing does. */
const char *plot_kind_guess(const struct plot_table *t);

/* Writers of kinds that stand in files of their own. */
#define PLOT_WRITER(name)                                                                          \
    MUST_CHECK enum status name(struct gnuplot *g, const struct plot_table *t,                     \
                                const struct figure *f, struct diag *dg)
PLOT_WRITER(plot_write_contour);
PLOT_WRITER(plot_write_iso);
PLOT_WRITER(plot_write_predicted);
PLOT_WRITER(plot_write_quantiles);

/* The timeline of `sim --timeline`: one pass, the last unless `pass` says otherwise. */
MUST_CHECK enum status plot_timeline(struct gnuplot *g, const char *path, uint64_t pass,
                                     struct diag *dg);
#define PLOT_LAST_PASS UINT64_MAX

#endif
