/* drive_bench.h -- one drive alone, in the shape of the usual benchmarks.
 *
 * What validate/ fits the station with: a table of rates by read size and lanes is run on this very
 * station, and not on a formula. Each call has a queue, a memory and a drive of its own, starting
 * from idle; the same arguments give the same result.
 */
#ifndef SIM_PIPELINE_DRIVE_BENCH_H
#define SIM_PIPELINE_DRIVE_BENCH_H

#include "sim/pipeline/drive.h"

struct drive_run {
    uint64_t bytes;     /* of a read */
    uint32_t lanes;     /* reads kept under way */
    uint64_t extra_ns;  /* host time of each read */
    uint64_t dram_Bps;  /* 0: a memory that limits nothing */
    uint32_t jitter_e3; /* of t0, as in drive_setup */
    uint64_t seed;
};

/* A closed loop: `lanes` threads, each with one read of `bytes` after the other at random places,
 * `reads` reads in all (>= 1). *rate_Bps is all their bytes over the time until the last has
 * landed, rounded down. */
MUST_CHECK enum status drive_run_benchmark(uint64_t *rate_Bps, const struct storage *s,
                                           const struct drive_run *run, uint64_t reads,
                                           struct diag *dg);
/* `reads` reads submitted at one instant to an idle drive, 1..2^20. *last_ns is the time until all
 * have landed; ends_ns, if not NULL, has room for `reads` times and gets them in the order of
 * landing. */
MUST_CHECK enum status drive_run_burst(uint64_t *last_ns, uint64_t *ends_ns,
                                       const struct storage *s, const struct drive_run *run,
                                       uint32_t reads, struct diag *dg);

#endif
