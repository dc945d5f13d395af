/* bench_weights.h -- a random matrix of any format, with ordinary scales: kernels must not meet numbers that
 * a model has not, and zeros are not read like anything else on every machine. */
#ifndef KERNELS_BENCH_BENCH_WEIGHTS_H
#define KERNELS_BENCH_BENCH_WEIGHTS_H

#include "base/pcg.h"
#include "kernels/formats/block_format.h"

/* `blocks` blocks (of a float format: weights), magnitudes below about 1. */
void bench_weights_fill(const struct block_format *f, void *out, size_t blocks, struct pcg *chance);

#endif
