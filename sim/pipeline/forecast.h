/* forecast.h -- a run and how sure it is: the same run repeated with its inputs drawn within their spreads.
 *
 * Each draw scales every value of the device by its own stream of chance (plan/spread.h) and runs a
 * shorter stretch; its rate relative to the undisturbed stretch scales the full run's rate. The interval
 * is the 5 % and 95 % quantiles. */
#ifndef SIM_PIPELINE_FORECAST_H
#define SIM_PIPELINE_FORECAST_H

#include "sim/pipeline/pipeline.h"

struct forecast {
    struct pipeline_result result;
    uint64_t low, high; /* decode rate in microtokens/s; 0 without draws */
    char assumed[512];  /* inputs of kind assumed, separated by blanks */
};

/* `setup->device` is changed during the draws and restored. */
MUST_CHECK enum status forecast_run(struct forecast *out, const struct pipeline_setup *setup,
                                    uint64_t draws, struct diag *dg);

/* Decode rate in microtokens/s (DIM_TOKEN_RATE); 0 if nothing was decoded. */
uint64_t forecast_rate(const struct pipeline_result *r);

#endif
