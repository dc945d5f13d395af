/* work.h -- what a layer does to n tokens: operations, weight bytes, state bytes.
 *
 * The one estimator: roofline, planner, simulator and engine take these figures from here.
 * One multiply-add is 2 operations. Sources: SYSTEMS 1.2 (bytes), 1.6 (operations), 1.7 (union). */
#ifndef MODELS_WORK_H
#define MODELS_WORK_H

#include "models/model.h"

struct work {
    uint64_t ops[GROUP_MAX]; /* matrix products by tensor group */
    uint64_t weight_bytes
        [GROUP_MAX];           /* each weight read once a pass; experts: `unique_experts` of them */
    uint64_t attention_ops;    /* scores, weighted sums, index scores, state updates */
    uint64_t state_read_bytes; /* KV cache (once a pass) or recurrent state (once a token) */
    uint64_t state_write_bytes;
};

/* One pass of `tokens` tokens over layer `layer`, the first of them at position `context` (so
 * `context` tokens of state exist already). `unique_experts` is the size of the union of the experts
 * chosen (top_k for one token). `state_bits` as in state.h: STATE_BITS_F16 unless quantised.
 *
 * The pass is one sequence: its tokens attend to all before them and share one read of the cache. A
 * batch of independent users is one call for the weights and one for each user's state. */
void work_layer(struct work *out, const struct model *m, size_t layer, uint64_t tokens,
                uint64_t context, uint64_t unique_experts, uint32_t state_bits);

/* Embedding look-up of `tokens` rows, final norm, and the head for `logits` of them. */
void work_ends(struct work *out, const struct model *m, uint64_t tokens, uint64_t logits);

void work_add(struct work *sum, const struct work *w);
uint64_t work_ops_total(const struct work *w);
uint64_t work_weight_bytes_total(const struct work *w);

/* Expected size of the union for independent uniform routing, E*(1-(1-K/E)^M) (SYSTEMS 1.7), in
 * parts per 1000 experts. Real routing unites less: take unions from traces where there are any. */
uint64_t work_unique_experts_e3(uint64_t experts, uint64_t top_k, uint64_t tokens);

#endif
