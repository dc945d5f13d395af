/* generate_trace.h -- a whole routing trace from the latent-state router of generate.h: turns of a prompt
 * that is read in one pass and tokens that are decoded one by one. */
#ifndef SIM_TRACE_GENERATE_TRACE_H
#define SIM_TRACE_GENERATE_TRACE_H

#include "sim/trace/generate.h"

/* `turns` times a prefill of `prompt` tokens in one pass (none if 0), then `tokens` decode passes of one
 * token each. In a decode pass every layer predicts the next `guess_distance` layers with experts
 * (0: none), `guess_count` experts each (0: top_k); a prefill pass makes no predictions, as it uses
 * nearly every expert. */
struct generate_plan {
    const char *model;           /* name for the trace's preamble */
    struct generate_shape shape; /* `layer` must be given: its sizes go into the preamble */
    uint64_t seed;
    uint32_t turns, prompt, tokens;
    uint32_t guess_distance, guess_count;
};

/* ST_RANGE for a shape, parameters or lengths out of range. Memory grows with the trace. */
MUST_CHECK enum status generate_trace(struct trace **out, const struct generate_params *p,
                                      const struct generate_plan *plan, struct diag *dg);

#endif
