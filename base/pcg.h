/* pcg.h -- PCG32 (XSH-RR 64/32, set-sequence; O'Neill 2014), named streams, integer-only samplers.
 *
 * Every source of chance has a stream of its own, derived from (seed, name), so that one component's
 * draws never shift another's. Nothing here touches floating point: same seed, same numbers, on any
 * machine and compiler.
 */
#ifndef BASE_PCG_H
#define BASE_PCG_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct pcg {
    uint64_t state;
    uint64_t increment; /* odd */
};

/* pcg32_srandom_r(initstate, initseq) of the published library. */
void pcg_seed(struct pcg *p, uint64_t initstate, uint64_t initseq);
/* A named stream: pcg_stream(&p, 42, "storage0/latency"). */
void pcg_stream(struct pcg *p, uint64_t seed, const char *name);

uint32_t pcg_u32(struct pcg *p);
/* Two draws, high word first. */
uint64_t pcg_u64(struct pcg *p);
/* Uniform in [0, bound), without modulo bias; bound > 0. The published pcg32_boundedrand_r. */
uint32_t pcg_below(struct pcg *p, uint32_t bound);

/* Standard normal in fixed point, 2^16 = 1.0: the sum of twelve 16-bit uniforms (Irwin-Hall),
 * mean 0, variance 1 - 2^-32, tails end at 6. */
int32_t pcg_gauss_q16(struct pcg *p);

/* A categorical distribution, as the sums of its weights: a pick is a binary search. */
struct pcg_table {
    uint64_t *cumulative; /* count entries, ascending, the last is the total */
    size_t count;
};
MUST_CHECK enum status pcg_table_new(struct pcg_table *t, const uint64_t *weights, size_t count,
                                     struct diag *dg); /* the sum must be in 1..2^63 */
/* Weights (rank+1)^-s, s in parts per 1000 (1000 = Zipf's law), by fixed-point powers. 1 to 2^30
 * ranks; s at most 100. A rank whose weight is below 2^-32 of the first may be never picked. */
MUST_CHECK enum status pcg_table_zipf(struct pcg_table *t, size_t count, uint32_t s_per_mille,
                                      struct diag *dg);
void pcg_table_free(struct pcg_table *t);
size_t pcg_pick(struct pcg *p, const struct pcg_table *t);

#endif
