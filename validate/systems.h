/* systems.h -- the claims of essays and papers (validate/data/systems.csv) against this program.
 *
 * A claim is checked as its column `check` says:
 *     sim         by the rows of published.csv that it names, in the highest class that they were run in
 *     model       by bytes of the model catalogue          state      by bytes of KV cache and recurrent state
 *     roofline    by the closed forms of a machine         arithmetic by the same rounding on stated figures
 *     iso-curve   by the range that stated parameters span: it must hold the published figure
 * A claim counts in no quantile: those that are measured count already as rows of published.csv. */
#ifndef VALIDATE_SYSTEMS_H
#define VALIDATE_SYSTEMS_H

#include "validate/published_run.h"

struct systems {
    struct arena arena;
    struct published_row *rows; /* value: the middle of lo..hi */
    const char **check;         /* beside each row */
    const char **answers;       /* ids of published.csv, separated by blanks; "" */
    size_t count;
};

MUST_CHECK enum status systems_load(struct systems *out, const char *path, struct diag *dg);
void systems_free(struct systems *s);

/* One outcome a claim, in the file's order; `outcome[0..s->count)`. `done` are the published rows' outcomes. */
MUST_CHECK enum status systems_check(struct published_outcome *outcome, const struct systems *s,
                                     const struct published_outcome *done, size_t done_count,
                                     const struct published_folders *folders, struct diag *dg);

#endif
