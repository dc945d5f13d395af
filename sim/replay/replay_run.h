/* replay_run.h -- a trace through the cache decisions without time: hits, bytes and the command stream. */
#ifndef SIM_REPLAY_REPLAY_RUN_H
#define SIM_REPLAY_REPLAY_RUN_H

#include "sim/policy/decide.h"
#include "sim/trace/trace.h"

struct replay_setup {
    const struct cache_policy *policy;
    const struct prefetch_policy *prefetch; /* NULL: none */
    enum scope scope;
    enum evict_when evict;
    uint64_t budget_bytes;
    uint64_t prefetch_bytes_max; /* as in decide.h */
    uint32_t prefetch_distance, prefetch_experts_max;
    uint64_t seed;
    const uint32_t *rank; /* for pinned; NULL: first come */
};

struct replay_result {
    struct decide_counts counts; /* the whole trace */
    uint64_t decode_lookups, decode_hits;
    uint64_t read_bytes, decode_read_bytes; /* demand and prefetch */
    uint64_t peak_bytes;
    bool cut; /* a prefill chunk was too large for the budget and was cut */
};

/* Refuses what decide_new refuses, a trace without predictions for a prefetcher that needs them, and a
 * prefetch distance beyond the layers. */
MUST_CHECK enum status replay_run(struct replay_result *out, const struct trace *t,
                                  const struct replay_setup *s, struct diag *dg);

#endif
