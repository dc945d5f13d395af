/* synth_pool.h -- made-up weights as fast as a disk takes them.
 *
 * Drawing and quantising each weight would take ten times as long as writing it. So blocks are drawn once, into
 * a pool for each (format, fan-in) of the model, and rows are put together from pieces of the pool:
 *
 *   drawn     from the PCG stream "synth/FORMAT/FAN_IN" of the seed. Float formats: uniform weights of mean 0
 *             and standard deviation 1 / sqrt(fan_in). Formats with codes: random codes and random scale
 *             bytes, under F16 scales with which the weights have that deviation, and where the format has
 *             minima mean 0; they are found from a sample of blocks. MXFP4, whose scales are powers of two,
 *             has the nearest deviation.
 *   taken     if all rows of a class fit into its pool (SYNTH_POOL_BYTES), one after another: each block
 *             once. Else in pieces of about 256 bytes, each from a place in the pool that a hash of (tensor,
 *             piece) gives. Two rows of a matrix are then alike only if all their pieces are, and no part of a
 *             file larger than a piece repeats at a distance that a compressor or a cache could use.
 *
 * The same seed and shape give the same bytes on every machine.
 */
#ifndef KERNELS_SYNTH_SYNTH_POOL_H
#define KERNELS_SYNTH_SYNTH_POOL_H

#include "kernels/formats/block_format.h"

#define SYNTH_POOL_BYTES ((size_t)32 << 20)

struct synth_pools;

MUST_CHECK enum status synth_pools_new(struct synth_pools **out, uint64_t seed, struct diag *dg);
void synth_pools_free(struct synth_pools *p);

/* Before the first fill: so many weights of this class will be asked for. Counts add up. */
MUST_CHECK enum status synth_pools_announce(struct synth_pools *p, const struct block_format *f,
                                            uint64_t fan_in, uint64_t weights, struct diag *dg);

/* A row of a tensor, whose name hashes to `tensor`, in GGUF blocks. `row` counts from 0. */
MUST_CHECK enum status synth_pools_row(struct synth_pools *p, void *to,
                                       const struct block_format *f, uint64_t fan_in, size_t cols,
                                       uint64_t tensor, uint64_t row, struct diag *dg);

#endif
