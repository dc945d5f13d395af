/* kernel_bench.h -- how fast the products are, beside what memory and arithmetic give at that moment.
 *
 * Weights: matrices of one format, layout and shape, one behind the other in huge pages, at least `bytes`
 * in all, so that no cache holds them; random codes and ordinary scales, no zeros. A pass multiplies each
 * matrix once, rows handed out to the workers as the engine does it.
 *
 * Roofs: what the same threads read of the same pages in a plain loop, forked once a pass (so the
 * fork and join of each product count against the kernel), and the multiply-adds that they do on registers.
 *
 * Absolute rates drift by the minute on a shared machine, so passes alternate (read, product, peak, read, ...)
 * and the ratio is the median of the ratios of neighbours. Memory is written, and passes are run until the
 * read rate is steady, before anything counts. One thread is timed by the time that it computed, so that
 * a process that takes its core for a while does not count; several threads are timed on the wall, because
 * waiting for each other is what they are measured for.
 */
#ifndef KERNELS_BENCH_KERNEL_BENCH_H
#define KERNELS_BENCH_KERNEL_BENCH_H

#include "kernels/isa/isa.h"

#define KERNEL_BENCH_PAIRS_MAX 99
#define KERNEL_BENCH_BATCH_MAX 512

struct kernel_bench_weights {
    const struct block_format *format;
    enum weight_layout layout;
    size_t rows, cols; /* > 0; cols a multiple of the format's block_weights */
    size_t bytes;      /* of weights at least; one matrix at least */
    uint64_t seed;
};

struct kernel_bench_case {
    const struct isa *isa;
    size_t
        batch; /* tokens, 1..KERNEL_BENCH_BATCH_MAX; activations in 8 bits where weights have codes */
    size_t threads; /* >= 1 */
    size_t pairs;   /* 1..KERNEL_BENCH_PAIRS_MAX */
};

/* Medians of the pairs. */
struct kernel_bench_rates {
    double weight_Bps, read_roof_Bps;
    double ratio;           /* of the two above */
    double gops, peak_gops; /* 10^9 operations a second; a multiply-add is two */
    double peak_ratio;      /* of the two above */
};

struct kernel_bench;
/* ST_NO_MEMORY. */
MUST_CHECK enum status kernel_bench_new(struct kernel_bench **out,
                                        const struct kernel_bench_weights *w, struct diag *dg);
void kernel_bench_free(struct kernel_bench *b); /* NULL is fine */
/* ST_NO_MEMORY; ST_IO: threads cannot be started. */
MUST_CHECK enum status kernel_bench_run(struct kernel_bench *b, struct kernel_bench_rates *out,
                                        const struct kernel_bench_case *c, struct diag *dg);

#endif
