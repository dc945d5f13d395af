/* outside.c -- prefetchers whose guesses come from outside: the driver passes them to decide_predict().
 * The engine computes them; replay and simulator take them from a recorded or generated trace, and the
 * oracle's from the routing itself. */
#include "sim/policy/prefetch_policy.h"

static size_t no_state(const struct prefetch_setup *s)
{
    (void)s;
    return 0;
}

static void no_start(void *state, const struct prefetch_setup *s)
{
    (void)state, (void)s;
}

const struct prefetch_policy prefetch_gate = {
    .name = "gate",
    .summary = "a later layer's router run early on this layer's state (predictions of the trace)",
    .from_outside = true,
    .state_bytes = no_state,
    .start = no_start,
};

const struct prefetch_policy prefetch_heads = {
    .name = "heads",
    .summary = "trained linear heads (predictions of the trace)",
    .from_outside = true,
    .state_bytes = no_state,
    .start = no_start,
};

const struct prefetch_policy prefetch_oracle = {
    .name = "oracle",
    .summary = "knows the routing: the upper bound of any predictor",
    .from_outside = true,
    .needs_future = true,
    .state_bytes = no_state,
    .start = no_start,
};
