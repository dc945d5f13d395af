/* measure_kernels.h -- what the engine's own kernels take on this machine with a model's own matrices.
 *
 * Experts: groups of n of them, picked at random among as many as are loaded, through the code that the engine runs
 * (expert_math.h); time is a line over n: call + n * bytes / rate. Dense: all matrices of one format, one product
 * after another. Where the model does not fit the last-level cache, caches are swept between the repeats, so that weights come
 * from memory as they do in a run; else they stay where they are.
 */
#ifndef VALIDATE_MEASURE_KERNELS_H
#define VALIDATE_MEASURE_KERNELS_H

#include "kernels/graph/expert_source.h"

struct kernel_line {
    const struct block_format *format;
    double rate_Bps; /* of weights */
    double call_ns;  /* of a group; 0 for dense */
    double spread;   /* relative: half of (90th - 10th percentile) / median of the repeats */
};

struct measure_kernels_setup {
    const struct graph_weights *weights;
    struct compute_setup compute;
    const char *pack;
    size_t repeats;
    uint64_t experts_bytes; /* load at most so much of experts */
    bool cached;            /* weights may stay in the cache */
    uint64_t seed;
};

/* One token through groups of experts of the first layer that has some. */
MUST_CHECK enum status measure_expert_kernels(struct kernel_line *out, size_t tokens,
                                              const struct measure_kernels_setup *s,
                                              struct diag *dg);

/* One line for each format that dense matrices of layers or the head have; at most FORMAT_COUNT. */
MUST_CHECK enum status measure_dense_kernels(struct kernel_line *out, size_t *count,
                                             const struct measure_kernels_setup *s,
                                             struct diag *dg);

/* Multiply-adds of bytes that the workers do on registers, operations a second. */
double measure_peak(const struct compute_setup *c);

/* How much lies in a cache that all workers share: the largest buffer, in doublings from 2 MiB, that is read again at
 * least 1.3 times as fast as memory; 0 if none is. What a system says of its cache may be shared with others. */
MUST_CHECK enum status measure_cache(uint64_t *bytes, struct workers *w, size_t repeats,
                                     struct diag *dg);

/* What `threads` workers read of memory in a plain loop, bytes a second. ST_NO_MEMORY. */
MUST_CHECK enum status measure_memory(double *rate_Bps, struct workers *w, size_t repeats,
                                      struct diag *dg);

#endif
