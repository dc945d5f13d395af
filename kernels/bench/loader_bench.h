/* loader_bench.h -- what the loader's queue, priorities, tickets and checks cost: it and a bare ring read the
 * same pieces of a file into the same huge pages, in turn.
 *
 * Both read directly into places of one arena, touched beforehand, with registered buffers. A run is a list of
 * random reads; pairs of runs alternate in who goes first, and each pair has a list of its own. The ratio is
 * the median of the ratios of pairs. */
#ifndef KERNELS_BENCH_LOADER_BENCH_H
#define KERNELS_BENCH_LOADER_BENCH_H

#include "kernels/loader/loader_io.h"

#define LOADER_BENCH_PAIRS_MAX 99
#define LOADER_BENCH_DEPTH_MAX 256

struct loader_bench_setup {
    const char *dir;                /* where the temporary file goes */
    uint64_t file_bytes, bytes_max; /* of a read; both whole blocks of 4 KiB */
    uint32_t depth_max;
    uint64_t seed;
};

struct loader_bench_case {
    uint64_t bytes_min, bytes_max; /* of a read; different: equally likely in each doubling */
    uint32_t depth;
    enum loader_backend_kind backend;
    uint64_t run_bytes; /* about how much one run reads */
    size_t pairs;
};

struct loader_bench_rates {
    double rate_Bps, bare_Bps, ratio;
    double latency_ns_p50, latency_ns_p99, bare_latency_ns_p50, bare_latency_ns_p99;
};

struct loader_bench;
/* Writes the file. ST_IO, ST_NO_MEMORY. */
MUST_CHECK enum status loader_bench_new(struct loader_bench **out,
                                        const struct loader_bench_setup *s, struct diag *dg);
void loader_bench_free(struct loader_bench *b); /* and the file; NULL is fine */
/* ST_UNSUPPORTED: no io_uring here, or no direct reads, so there is nothing to compare with. */
MUST_CHECK enum status loader_bench_run(struct loader_bench *b, struct loader_bench_rates *out,
                                        const struct loader_bench_case *c, struct diag *dg);

#endif
