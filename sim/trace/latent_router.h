/* latent_router.h -- one layer of the latent-state router (generate.h): rows, biases and rotation, all integers.
 *
 * A layer's input and the router's rows are 16-bit numbers with 1.0 = 2^10, clamped to +-4, so that a
 * logit, a sum of at most 64 products of 2^12 * 2^12, stays below 2^30: exact in 32 bits whatever the order
 * of addition. Rows are whole vectors of LATENT_BLOCK entries, and the compiler turns the dot product
 * into multiply-add instructions of the width it is allowed. */
#ifndef SIM_TRACE_LATENT_ROUTER_H
#define SIM_TRACE_LATENT_ROUTER_H

#include "base/status.h"

#include <stdint.h>

#define LATENT_DIMENSION_MAX 64
#define LATENT_BLOCK         16
/* Entries of a row or an input: whole vectors, zeros after the first `dimension`. */
#define LATENT_STRIDE(dimension) (((dimension) + LATENT_BLOCK - 1u) & ~(LATENT_BLOCK - 1u))
#define LATENT_INPUT_BITS        10
#define LATENT_INPUT_MAX         (4 << LATENT_INPUT_BITS)

/* Two coordinates that a rotation mixes. */
struct latent_pair {
    uint16_t first, second;
};

struct latent_router {
    uint32_t experts;
    uint32_t dimension;        /* even, at most LATENT_DIMENSION_MAX */
    uint32_t stride;           /* LATENT_STRIDE(dimension) */
    int16_t *rows;             /* experts x stride, each of length sqrt(dimension), zeros behind */
    int32_t *bias;             /* experts, 1.0 = 2^20 */
    struct latent_pair *pairs; /* dimension / 2 */
};

/* Draws the router of `layer` from streams of its own; `spread` is the biases' deviation over the
 * logits', in parts of 10^9. Free with latent_router_free also after a failure. */
MUST_CHECK enum status latent_router_init(struct latent_router *r, uint64_t seed, uint32_t layer,
                                          uint32_t experts, uint32_t dimension, uint64_t spread,
                                          struct diag *dg);
void latent_router_free(struct latent_router *r);

/* Turns the state (Q16) of the layer before into this layer's, by the angle whose cosine and sine
 * are given. */
void latent_router_turn(const struct latent_router *r, int64_t cosine_q30, int64_t sine_q30,
                        int32_t *state);
/* Logits of all experts for an input of `stride` entries, 1.0 = 2^20; their deviation is sqrt(dimension). */
void latent_router_logits(const struct latent_router *r, const int16_t *input, int32_t *logit);

/* a * x + b * y, rounded, for factors in Q30. */
static inline int32_t latent_mix_q30(int64_t a_q30, int32_t x, int64_t b_q30, int32_t y)
{
    return (int32_t)((a_q30 * x + b_q30 * y + (INT64_C(1) << 29)) >> 30);
}

static inline int16_t latent_clamp(int32_t value)
{
    int32_t high = value < LATENT_INPUT_MAX ? value : LATENT_INPUT_MAX;
    return (int16_t)(high > -LATENT_INPUT_MAX ? high : -LATENT_INPUT_MAX);
}

#endif
