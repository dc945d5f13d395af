/* graph.h -- one pass through the layers: tokens in, logits out.
 *
 * A pass takes a chunk of tokens of one sequence through all layers (recipe.h shows the steps); a prompt
 * is several chunks, a decode step a chunk of one. The result does not depend on how a prompt was cut,
 * on threads, on the instruction set, or on when experts arrive: all sums have a fixed order (isa.h,
 * experts.h).
 *
 * What is routed can be forced (`route`): the router runs all the same, but the given experts are taken.
 */
#ifndef KERNELS_GRAPH_GRAPH_H
#define KERNELS_GRAPH_GRAPH_H

#include "kernels/graph/experts.h"
#include "kernels/graph/graph_weights.h"
#include "kernels/graph/kv_cache.h"
#include "kernels/graph/record.h"

/* Foretells the experts of `target` from the residual stream after this layer's attention: `state` is
 * tokens x hidden, `scores` tokens x experts; larger ones are likelier. */
typedef void graph_predict_fn(void *self, const struct graph_weights *w,
                              const struct compute_setup *c, size_t layer, size_t target,
                              const float *state, size_t tokens, float *scores);

struct graph_setup {
    const struct graph_weights *weights;
    struct compute_setup compute;
    struct experts *experts;
    size_t context;            /* positions at most */
    size_t chunk;              /* tokens of a pass at most */
    struct route route;        /* at NULL: the router decides */
    size_t predict_distance;   /* layers ahead; 0: nothing is foretold */
    size_t predict_count;      /* experts named by a prediction */
    graph_predict_fn *predict; /* NULL: the target layer's own norm and router, run early */
    void *predict_self;
    struct record *record;
};

/* What a graph takes for the buffers of a pass, without its state (kv_cache_bytes). Of the set-up only weights, compute,
 * context and chunk matter. */
uint64_t graph_pass_bytes(const struct graph_setup *s);

struct graph;
MUST_CHECK enum status graph_new(struct graph **out, const struct graph_setup *s, struct diag *dg);
void graph_free(struct graph *g);

/* Runs `n` tokens (1..chunk) that follow those before. `logits`: one row of vocabulary size for each
 * token, or only for the last one, or (NULL) none at all. ST_RANGE: a token id beyond the vocabulary, or the context is full.
 * ST_IO: an expert could not be read, ST_RANGE: what came out is no number; nothing more can be computed then, and each
 * later pass says the same. */
enum graph_logits { LOGITS_NONE, LOGITS_LAST, LOGITS_ALL };
MUST_CHECK enum status graph_pass(struct graph *g, const uint32_t *tokens, size_t n,
                                  enum trace_phase phase, enum graph_logits which, float *logits,
                                  struct diag *dg);
/* Forgets the sequence: the next pass begins at position 0, in the next turn. Cached experts stay. */
void graph_restart(struct graph *g);
size_t graph_chunk(const struct graph *g); /* tokens that a pass may have */
size_t graph_position(const struct graph *g);
size_t graph_state_bytes(const struct graph *g);

#endif
