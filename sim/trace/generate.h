/* generate.h -- routing traces made up by a latent-state router.
 *
 * A token t is a vector of `dimension` numbers, a mixture of five independent parts whose variances
 * (`*_share`) add up to 1:
 *     context    AR(1) noise: c_t = memory * c_{t-1} + sqrt(1 - memory^2) * noise
 *     sequence   drawn once a turn: what the text is about
 *     domain     one of `domains` fixed vectors, drawn anew with probability `domain_switch` a token
 *     token      one of `token_classes` fixed vectors, drawn by Zipf's law: the word itself
 *     layer      fresh noise in every layer
 * The first four make the state h_0; layer l sees h_l = R_l h_{l-1}, where R_l turns the coordinates
 * in pairs by an angle of cosine `layer_memory`. A rotation keeps the statistics in time the same in
 * all layers and lets neighbouring layers resemble each other. The router of layer l takes the top_k of
 *     logit_e = W_l[e] . (h_l + layer noise) + bias_l[e]         (larger first, then lower index)
 * with rows of W of equal length and biases of standard deviation `expert_spread`, in units of the
 * logits' own. A stale-gate predictor is then what it is in an engine, layer l + d's router run on
 * layer l's input, and makes its own honest errors. dimension 0 is no state at all: every choice is
 * independent and uniform.
 *
 * The router (W, biases, rotations, vectors of domains and token classes) follows from
 * `router_seed`, the text from `seed`: two traces that differ in seed alone come from one model.
 * All arithmetic is in integers, so a trace is the same bytes on any machine.
 */
#ifndef SIM_TRACE_GENERATE_H
#define SIM_TRACE_GENERATE_H

#include "base/status.h"
#include "sim/trace/trace.h"

#define GENERATE_DIMENSION_MAX 64 /* LATENT_DIMENSION_MAX */
#define GENERATE_TOP_K_MAX     256

/* Ratios are parts in 10^9. */
struct generate_params {
    uint64_t router_seed;
    uint64_t dimension; /* even, up to GENERATE_DIMENSION_MAX */
    uint64_t context_share, sequence_share, domain_share, token_share, layer_share;
    uint64_t context_memory; /* correlation of the context from one token to the next, below 1 */
    uint64_t domains, domain_switch;
    uint64_t token_classes, token_exponent; /* Zipf's exponent, at most 4 */
    uint64_t layer_memory;                  /* cosine of the angle between neighbouring layers */
    uint64_t expert_spread;                 /* at most 8 */
    uint64_t sharpness; /* weights are softmax(sharpness * logit / its deviation), at most 64 */
};

/* ST_RANGE, with a reason that names them, if parameters lie outside their limits. */
MUST_CHECK enum status generate_check(const struct generate_params *p, struct diag *dg);

/* Where the experts are. `layer` may be NULL: every layer has them. */
struct generate_shape {
    uint32_t layers, experts, top_k;
    const struct trace_layer *layer; /* copied; expert_bytes 0: no experts, no choices */
};

/* One token at a time, in constant memory. */
struct generator;
MUST_CHECK enum status generate_new(struct generator **out, const struct generate_params *p,
                                    const struct generate_shape *shape, uint64_t seed,
                                    struct diag *dg);
void generate_free(struct generator *g);
/* The next token begins a new turn; the first one does so by itself. */
void generate_turn(struct generator *g);
/* The next token. ids[layer * top_k + slot], best first; weights likewise, in parts of 10^9 that add
 * up to exactly 10^9 a layer, or NULL. Entries of layers without experts are left alone. */
void generate_token(struct generator *g, uint16_t *ids, int64_t *weights);
/* What layer `target`'s router makes of the last token's state at layer `made_at`: the `count` (at most
 * GENERATE_TOP_K_MAX and experts) likeliest experts, best first, with the softmax over them in parts
 * of 10^9. Both layers must have experts. With target == made_at it is the routing itself. */
void generate_guess(struct generator *g, uint32_t made_at, uint32_t target, uint32_t count,
                    uint16_t *ids, int64_t *scores);

#endif
