/* measure_engine.h -- what a token costs the engine beside its reads: from a run with everything resident, and from one that
 * keeps nothing and so waits in every layer. */
#ifndef VALIDATE_MEASURE_ENGINE_H
#define VALIDATE_MEASURE_ENGINE_H

#include "kernels/graph/engine.h"

struct engine_costs {
    double
        dense_ns; /* of a token: all that is neither experts, shared expert, head nor waiting; trimmed mean */
    double expert_ns; /* routed experts, all layers */
    double shared_ns, head_ns;
    double reads, stalls; /* of a token, mean */
    double spread;        /* of the whole token: half of (90th - 10th percentile) / median */
    size_t tokens;        /* that the medians are over */
};

enum engine_way {
    WAY_RESIDENT, /* twice over the same routing with a cache for all experts; the first time brings them in, the second one is
                     timed, and passes that still waited for a read do not count */
    WAY_GUESSING, /* the same, and every layer runs the next one's router early */
    WAY_WAITING   /* policy none: every expert is read each time */
};

/* Runs `tokens` tokens, twice. `s` says model, threads, layout and so on. */
MUST_CHECK enum status measure_engine(struct engine_costs *out, const struct engine_setup *s,
                                      size_t tokens, enum engine_way way, struct diag *dg);

#endif
