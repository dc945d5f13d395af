/* fit_solve.h -- one least-squares fit of fit.h, with the parameters told. Internal to devices/. */
#ifndef DEVICES_FIT_SOLVE_H
#define DEVICES_FIT_SOLVE_H

#include "devices/fit.h"

/* The best fit with exactly the parameters of `given`, from nine starts. ST_MISFIT if there are no more
 * rows than parameters, or no start leads anywhere. GSL's error handler must be off. */
MUST_CHECK enum status fit_solve(struct storage_fit *f, const bool *given, enum fit_corner corner,
                                 const struct rate_table *t, struct diag *dg);

#endif
