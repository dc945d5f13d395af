/* claim.h -- figures of essays and papers that this program finds by itself: bytes, state, roofs, ranges of runs.
 *
 * One function a claim, by its id in validate/data/systems.csv; formulas and inputs are those of SYSTEMS section 5,
 * taken through model catalogue, device files and the program's own estimator wherever these know the input. */
#ifndef VALIDATE_CLAIM_H
#define VALIDATE_CLAIM_H

#include "validate/published_run.h"

/* Fills predicted of the claim `o->row`, and low and high where runs span a range. ST_UNSUPPORTED if no mechanism
 * gives the figure. */
MUST_CHECK enum status claim_find(struct published_outcome *o,
                                  const struct published_folders *folders, struct diag *dg);

#endif
