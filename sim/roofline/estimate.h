/* estimate.h -- the one estimator: what a pass moves and computes, and how long that takes.
 *
 * Roofline, planner and the simulator's bounds all call it, so a byte or an operation is counted once.
 * A machine (machine.h) runs a workload (workload.h) under a regime: hit ratio, lanes, pieces, what
 * overlaps what. Everything is integer arithmetic, so results are the same bytes on every compiler.
 * Equations: SYSTEMS 1.2 (bytes), 1.3 (mixture over misses), 1.4 (flash), 1.5 (layer time), 1.6.
 */
#ifndef SIM_ROOFLINE_ESTIMATE_H
#define SIM_ROOFLINE_ESTIMATE_H

#include "sim/roofline/machine.h"
#include "sim/roofline/workload.h"

enum profile {
    PROFILE_SERIAL,  /* all reads of a layer, then all its experts */
    PROFILE_OVERLAP, /* experts run as they arrive; cached ones meanwhile */
    PROFILE_PERFECT /* every read known a token ahead: only the busier of flash and the rest counts */
};

struct regime {
    enum profile profile;
    uint64_t hit_ratio;    /* of expert look-ups, parts in 10^9 */
    uint64_t lanes;        /* reads in flight */
    uint64_t pieces;       /* reads an expert takes */
    uint64_t copies;       /* memory copies a byte takes after its read */
    uint64_t stream_trunk; /* share of the fixed weights read again every pass */
    uint64_t stream_bytes; /* further bytes read again every pass: embedding, head */
    bool experts_on_unit;  /* cached experts lie in the unit's memory: only misses cross the link */
};

struct tally {
    uint64_t flash_bytes, dram_bytes,
        link_bytes;        /* SYSTEMS 1.2; without memory of the unit's own */
    uint64_t memory_bytes; /* dram_bytes counts what kernels move as well  */
    uint64_t ops;
    uint64_t expert_bytes, miss_bytes, streamed_bytes;
    uint64_t reads; /* requests to flash */
};
void estimate_tally(struct tally *out, const struct workload *l, const struct machine *m,
                    const struct regime *r);

/* Where the time goes. The parts sum to total_ns; flash and link count only what is not hidden. */
struct timing {
    uint64_t flash_ns, link_ns, compute_ns, memory_ns, overhead_ns;
    uint64_t host_memory_ns; /* experts computed out of DRAM beside a unit of its own memory */
    uint64_t total_ns;
};
void estimate_timing(struct timing *out, const struct workload *l, const struct machine *m,
                     const struct regime *r);

/* max_x(B_x/BW_x, FLOP/F) and the sum of everything one after another, call and read latencies
 * included: any run of this load lies between (SYSTEMS 1.6). Which resource sets the lower bound:
 * "flash", "DRAM", "link", "compute". */
struct bounds {
    uint64_t lower_ns, upper_ns;
    /* Bytes/rate and operations/rate; compute_ns at the rate of the pass's number of tokens. */
    uint64_t flash_ns, dram_ns, memory_ns, link_ns, compute_ns;
    const char *binds;
};
void estimate_bounds(struct bounds *out, const struct workload *l, const struct machine *m,
                     const struct regime *r);

/* ceil(amount * 10^9 / rate): bytes at B/s, or operations at operations/s, in ns. Saturates; 0 if
 * amount is 0, UINT64_MAX if only the rate is 0. */
uint64_t time_for(uint64_t amount, uint64_t per_second);

/* Probability of j misses among n look-ups with hit ratio h (independent; SYSTEMS 1.3), Q32 each,
 * n + 1 entries that sum to 2^32. */
void miss_distribution(uint64_t *q32, uint64_t n, uint64_t hit_ratio);

#endif
