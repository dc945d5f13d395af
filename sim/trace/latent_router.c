/* latent_router.c -- see latent_router.h. */
#include "sim/trace/latent_router.h"

#include "base/fixed.h"
#include "base/pcg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BIAS_MAX  (INT32_C(1) << 29)
#define RATIO_ONE UINT64_C(1000000000)

/* Four bytes summed are near enough to Gaussian for a row that is then brought to length
 * sqrt(dimension), so that no expert is favoured except by its bias. */
static void draw_row(struct pcg *draws, int16_t *row, uint32_t dimension)
{
    int32_t raw[LATENT_DIMENSION_MAX];
    uint64_t square = 0;
    for (uint32_t i = 0; i < dimension; i++) {
        uint32_t draw = pcg_u32(draws);
        raw[i] =
            (int32_t)((draw & 255) + (draw >> 8 & 255) + (draw >> 16 & 255) + (draw >> 24)) - 510;
        square += (uint64_t)(raw[i] * raw[i]);
    }
    uint64_t length = fixed_sqrt_u64(square << 20);              /* Q10 */
    uint64_t wanted = fixed_sqrt_u64((uint64_t)dimension << 40); /* Q20 */
    int64_t factor_q20 = length ? (int64_t)((wanted << 20) / length) : 0;
    for (uint32_t i = 0; i < dimension; i++)
        row[i] = latent_clamp((int32_t)((raw[i] * factor_q20 + (1 << 19)) >> 20));
}

/* Q20, in units of a logit's deviation, which is sqrt(dimension). */
static int32_t draw_bias(struct pcg *draws, uint64_t spread, uint32_t dimension)
{
    int64_t unit_q16 = (int64_t)fixed_sqrt_u64((uint64_t)dimension << 32);
    int64_t spread_q16 = (int64_t)fixed_mul_div(spread, UINT64_C(1) << 16, RATIO_ONE);
    int64_t bias_q20 = (unit_q16 * spread_q16 >> 16) * pcg_gauss_q16(draws) / (1 << 12);
    if (bias_q20 > BIAS_MAX)
        return BIAS_MAX;
    return bias_q20 < -BIAS_MAX ? -BIAS_MAX : (int32_t)bias_q20;
}

/* A random perfect matching of the coordinates, each pair in random order (the sense of turning). */
static void draw_pairs(struct pcg *draws, struct latent_pair *pairs, uint32_t dimension)
{
    uint16_t order[LATENT_DIMENSION_MAX];
    for (uint32_t i = 0; i < dimension; i++)
        order[i] = (uint16_t)i;
    for (uint32_t i = dimension; i > 1; i--) {
        uint32_t j = pcg_below(draws, i);
        uint16_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
    for (uint32_t i = 0; i < dimension / 2; i++)
        pairs[i] = (struct latent_pair){order[2 * i], order[2 * i + 1]};
}

static void open_stream(struct pcg *draws, uint64_t seed, uint32_t layer, const char *what)
{
    char name[40];
    snprintf(name, sizeof name, "router%" PRIu32 "/%s", layer, what);
    pcg_stream(draws, seed, name);
}

enum status latent_router_init(struct latent_router *r, uint64_t seed, uint32_t layer,
                               uint32_t experts, uint32_t dimension, uint64_t spread,
                               struct diag *dg)
{
    *r = (struct latent_router){
        .experts = experts,
        .dimension = dimension,
        .stride = LATENT_STRIDE(dimension),
        .rows = calloc((size_t)experts * LATENT_STRIDE(dimension) + 1, sizeof *r->rows),
        .bias = calloc(experts, sizeof *r->bias),
        .pairs = calloc(dimension / 2 + 1, sizeof *r->pairs),
    };
    if (!r->rows || !r->bias || !r->pairs)
        return diag_no_memory(dg);
    struct pcg draws;
    open_stream(&draws, seed, layer, "rows");
    for (uint32_t e = 0; e < experts; e++)
        draw_row(&draws, r->rows + (size_t)e * r->stride, dimension);
    open_stream(&draws, seed, layer, "bias");
    for (uint32_t e = 0; e < experts; e++)
        r->bias[e] = draw_bias(&draws, spread, dimension);
    open_stream(&draws, seed, layer, "turning");
    draw_pairs(&draws, r->pairs, dimension);
    return ST_OK;
}

void latent_router_free(struct latent_router *r)
{
    free(r->rows);
    free(r->bias);
    free(r->pairs);
    *r = (struct latent_router){0};
}

void latent_router_turn(const struct latent_router *r, int64_t cosine_q30, int64_t sine_q30,
                        int32_t *state)
{
    for (uint32_t i = 0; i < r->dimension / 2; i++) {
        int32_t *a = &state[r->pairs[i].first], *b = &state[r->pairs[i].second], old_a = *a;
        *a = latent_mix_q30(cosine_q30, old_a, -sine_q30, *b);
        *b = latent_mix_q30(sine_q30, old_a, cosine_q30, *b);
    }
}

/* The mask tells the compiler that no remainder is left after whole vectors. */
static int32_t dot(const int16_t *restrict row, const int16_t *restrict input, uint32_t stride)
{
    int32_t sum = 0;
    stride &= ~(LATENT_BLOCK - 1u);
    for (uint32_t i = 0; i < stride; i++)
        sum += (int32_t)row[i] * input[i];
    return sum;
}

void latent_router_logits(const struct latent_router *r, const int16_t *input, int32_t *logit)
{
    for (uint32_t e = 0; e < r->experts; e++)
        logit[e] = dot(r->rows + (size_t)e * r->stride, input, r->stride) + r->bias[e];
}
