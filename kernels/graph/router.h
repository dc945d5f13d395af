/* router.h -- from a token's router logits to the experts it takes and their weights. */
#ifndef KERNELS_GRAPH_ROUTER_H
#define KERNELS_GRAPH_ROUTER_H

#include "kernels/graph/graph_weights.h"

/* Experts that one choice may have, and groups of experts: more is refused when the model is opened. */
#define ROUTER_CHOICE_MAX 256u

/* What the choice goes by: probabilities (softmax or sigmoid) plus the layer's selection bias, or the
 * logits where softmax comes after the choice. Experts of groups that are left out are -infinity. A group is worth its
 * best expert (DeepSeek-V2, arXiv 2405.04434, section 2.1.2), or, where experts are sigmoids, its best two together
 * (DeepSeek-V3, arXiv 2412.19437, section 2.1.2). `probability` becomes what the weights are taken from. Both
 * are experts long; `probability` holds the logits at first. */
void router_scores(const struct graph_weights *w, const struct isa *isa, size_t layer,
                   float *probability, float *score);

/* The top_k experts in descending order of score. */
void router_choose(const float *score, size_t experts, size_t top_k, uint16_t *ids);

/* Weights of given experts, in their order, from the probabilities. */
void router_weights(const struct graph_weights *w, const struct isa *isa, const float *probability,
                    const uint16_t *ids, size_t top_k, float *weights);

#endif
