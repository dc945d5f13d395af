/* routing.h -- where a run's routing comes from: a recorded trace, a generator, or only a hit ratio.
 *
 * Several sequences that decode together, and drafts of several tokens, ask for the union of their tokens'
 * experts. A recorded trace lends its decode tokens to them: sequence i of b starts at the i-th b-th of
 * the trace, a draft takes the tokens that follow, and those that are not accepted come again.
 *
 * One pass at a time. A recorded trace goes through feed.h, so replay and simulator see the same batches.
 * The generator makes one token at a time in constant memory. `fixed` draws for every look-up whether it
 * hits, for runs of which only a hit ratio was published: no cache policy takes part then. */
#ifndef SIM_PIPELINE_ROUTING_H
#define SIM_PIPELINE_ROUTING_H

#include "sim/replay/feed.h"
#include "sim/trace/generate.h"

enum routing_kind { ROUTING_TRACE, ROUTING_GENERATED, ROUTING_FIXED };

struct routing_setup {
    enum routing_kind kind;
    const struct feed *feed;              /* ROUTING_TRACE */
    const struct generate_params *params; /* ROUTING_GENERATED */
    uint32_t layers, experts, top_k;
    const struct trace_layer *layer;              /* which layers have experts */
    uint64_t prompt_tokens, chunk, decode_tokens; /* of one request; a trace has its own prompts */
    uint64_t requests;                    /* one after another, each with its prompt; 0 is 1 */
    uint32_t batch;                       /* sequences that decode together; 0 is 1 */
    uint32_t draft;                       /* tokens a draft proposes for each sequence */
    uint64_t acceptance;                  /* of a drafted token, parts in 10^9 */
    uint32_t guess_distance, guess_count; /* predictions wanted of the generator; 0: none */
    uint64_t seed;
};

struct routing;

MUST_CHECK enum status routing_new(struct routing **out, const struct routing_setup *s,
                                   struct diag *dg);
void routing_free(struct routing *r);

struct routing_pass {
    uint32_t phase;  /* enum trace_phase */
    uint32_t tokens; /* that go through the layers: chunk, or batch x (1 + draft) */
    uint32_t
        produced; /* tokens that the pass yields: a prefill chunk's own, or 1 + accepted drafts a sequence */
    bool new_turn; /* state begins anew */
};
/* Moves to the next pass; false after the last. */
bool routing_next(struct routing *r, struct routing_pass *out);
/* The present pass's choices in `layer`, token by token, best first; ROUTING_FIXED: none, *n is what one
 * token chooses times the tokens. */
const uint16_t *routing_batch(const struct routing *r, uint32_t layer, size_t *n);
/* What was predicted at `layer` for a later one; 0 guesses if nothing was. */
const uint16_t *routing_guess(const struct routing *r, uint32_t layer, uint32_t *target, size_t *n);
/* The true choices `distance` layers with experts ahead (of the next pass if need be): the oracle's. NULL if
 * it is not known. */
const uint16_t *routing_ahead(const struct routing *r, uint32_t layer, uint32_t distance,
                              uint32_t *target, size_t *n);

#endif
