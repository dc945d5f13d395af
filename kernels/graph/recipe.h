/* recipe.h -- what an architecture's name means: the choices that no tensor and no metadata key tells.
 *
 * All supported architectures are one sequence of steps (graph.h); they differ in a few choices, and a
 * row of this table holds them. A new architecture that makes other choices is a new row; one that takes a step
 * no other has is that step beside it.
 *
 *   norm -> q, k, v (or latent) -> norm of q and k -> rotary positions -> attention -> output -> residual
 *   norm -> router -> gating -> experts (+ shared expert) -> residual          or a dense feed-forward
 */
#ifndef KERNELS_GRAPH_RECIPE_H
#define KERNELS_GRAPH_RECIPE_H

#include "base/status.h"
#include "models/gguf.h"

#include <stdbool.h>

/* Which elements of a head turn together: (i, i + n/2), or (2i, 2i + 1). */
enum rope_pairs { ROPE_NEOX, ROPE_ADJACENT };

/* Norm of queries and keys: each head by itself, or the vector of all heads. */
enum norm_span { NORM_NONE, NORM_HEAD, NORM_ALL };

/* From router logits to the weights of the chosen experts. Numbers as the key expert_gating_func. */
enum gating {
    GATING_SOFTMAX = 1,       /* over all experts, then the largest are chosen */
    GATING_SIGMOID = 2,       /* of each; chosen with a bias that does not count in the weight */
    GATING_SOFTMAX_CHOSEN = 3 /* the largest logits are chosen, softmax over them */
};

/* Tensors that a file of the architecture must have, beside those that every one needs: without them something else would
 * be computed, without a word. */
enum must {
    MUST_QKV_BIAS = 1,
    MUST_OUTPUT_BIAS = 2,
    MUST_SINKS = 4,
    MUST_ROUTER_BIAS = 8,
    MUST_EXPERT_BIAS = 16,
    MUST_SHARED = 32 /* a shared expert with its gate */
};

enum expert_activation { ACTIVATION_SWIGLU, ACTIVATION_SWIGLU_CLAMPED };

struct recipe {
    const char *architecture; /* general.architecture */
    const char *ffn_norm;     /* tensor of the second norm, without "blk.N." */
    enum rope_pairs rope;
    enum norm_span qk_norm;
    enum gating gating; /* unless expert_gating_func says otherwise */
    bool
        normalised; /* weights of the chosen add up to 1; unless expert_weights_norm says otherwise */
    enum expert_activation activation;
    bool latent;         /* MLA */
    bool yarn_unrounded; /* YaRN blends between fractional pairs, as the model's reference does */
    unsigned must;       /* of enum must */
};

/* gpt-oss: alpha and limit of its clamped SwiGLU (its reference implementation, torch/model.py). */
#define CLAMPED_ALPHA 1.702f
#define CLAMPED_LIMIT 7.0f

/* ST_UNSUPPORTED names the architectures that are supported. */
MUST_CHECK enum status recipe_find(const struct recipe **out, const struct gguf *g,
                                   struct diag *dg);

#endif
