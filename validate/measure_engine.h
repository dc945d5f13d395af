/* measure_engine.h -- what a token costs the engine beside reads and experts, from a run with everything resident. */
#ifndef VALIDATE_MEASURE_ENGINE_H
#define VALIDATE_MEASURE_ENGINE_H

#include "kernels/graph/engine.h"

struct engine_costs {
    double
        dense_ns; /* of a token: all that is neither experts, shared expert, head nor waiting; median */
    double expert_ns; /* routed experts, all layers */
    double shared_ns, head_ns;
    double predict_ns; /* of one prediction, 0 if none was measured */
    double spread;     /* of the whole token: half of (90th - 10th percentile) / median */
    size_t tokens;     /* that the medians are over */
};

/* Runs `tokens` tokens twice over the same routing: the first time brings the experts in, the second one is
 * timed. Passes that still waited for a read do not count. `s` says model, threads, layout and so on; its cache is made as large as
 * all experts. */
MUST_CHECK enum status measure_engine(struct engine_costs *out, const struct engine_setup *s,
                                      size_t tokens, struct diag *dg);

#endif
