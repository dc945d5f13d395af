/* memory_plan.h -- how a run's memory is shared out: what stands whatever happens, what grows with the tokens of a pass,
 * and the rest for the cache.
 *
 *     memory = dense weights + adapters, heads + state + buffers of a pass + MEMORY_OVERHEAD_BYTES + cache
 *
 * MEMORY_OVERHEAD_BYTES stand for code, stacks, tables, and MEMORY_PASS_BYTES of a pass's buffers; a chunk of so many tokens
 * that its buffers take more is counted with what is beyond. */
#ifndef KERNELS_GRAPH_MEMORY_PLAN_H
#define KERNELS_GRAPH_MEMORY_PLAN_H

#include "kernels/graph/graph.h"

#define MEMORY_OVERHEAD_BYTES ((uint64_t)64 << 20)
#define MEMORY_PASS_BYTES     ((uint64_t)32 << 20)

struct memory_plan_setup {
    const struct experts_setup *experts; /* its chunk does not matter */
    size_t context, chunk;
    uint64_t held_bytes; /* adapters, heads: what is there already beside dense weights */
    uint64_t
        memory_bytes; /* all together; 0: what the system and the process's control group can give */
};

struct memory_plan {
    uint64_t cache_bytes; /* budget of the cache */
    size_t chunk; /* at most the one asked for: halved until its buffers and experts have room */
};

/* What a run takes beside dense weights and cache budget, with passes of `chunk` tokens. */
MUST_CHECK enum status memory_plan_fixed(uint64_t *out, struct experts_need *need,
                                         const struct memory_plan_setup *s, size_t chunk,
                                         struct diag *dg);
/* ST_MISFIT: not even passes of one token fit; the reason names the least. */
MUST_CHECK enum status memory_plan_make(struct memory_plan *out, const struct memory_plan_setup *s,
                                        struct diag *dg);

#endif
