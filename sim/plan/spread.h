/* spread.h -- draws of the inputs of a prediction: how far each may lie from what is written.
 *
 * An input's factor is 2^(g * log2(1 + spread) / 1.6449) with g standard normal: the stated spread is
 * half the width of its 90 % interval, upwards and, in proportion, downwards. Draw i of path P comes
 * from the stream "plan/P", so a new input never shifts the others.
 */
#ifndef SIM_PLAN_SPREAD_H
#define SIM_PLAN_SPREAD_H

#include "base/value.h"

#include <stddef.h>

/* factor[i], parts in 10^9, for i in 0..count-1. */
void spread_draw(uint64_t *factor, size_t count, uint64_t seed, const char *path,
                 const struct value *v);

/* Sorts, and returns the element below which `per_cent` of them lie. */
uint64_t spread_quantile(uint64_t *x, size_t count, unsigned per_cent);

#endif
