/* generate.c -- the latent-state router; see generate.h for the model.
 *
 * A token's state lives in Q16 between layers, where rounding is far below the noise; what a router sees of
 * it is rounded to 16 bits, because nearly all the time goes into its dot products (latent_router.h).
 */
#include "sim/trace/generate.h"

#include "base/fixed.h"
#include "base/pcg.h"
#include "sim/trace/latent_router.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define RATIO_ONE        UINT64_C(1000000000)
#define LOG2_E_Q30       INT64_C(1549082005)
#define SHARES_TOLERANCE 1000

struct generator {
    struct generate_shape shape;
    uint32_t dimension, stride;   /* as in latent_router.h */
    bool *routed;                 /* layers: has experts */
    struct latent_router *router; /* layers */
    int32_t *domain_vector;       /* domains x dimension, Q16, scaled by the domain's share */
    int32_t *token_vector;        /* token_classes x dimension, likewise */
    struct pcg_table token_law;
    uint64_t sequence_share;
    int64_t context_scale_q16, layer_scale_q16;
    int64_t memory_q30, innovation_q30; /* of the context */
    int64_t cosine_q30, sine_q30;       /* of the angle between layers */
    uint32_t domains;
    uint32_t switch_below; /* a draw of 30 bits below this leaves the domain */
    int64_t sharpness_q24; /* log2 of the weight that 1.0 of logit gives */
    bool fresh_turn;
    uint32_t domain;
    int32_t context[GENERATE_DIMENSION_MAX];  /* Q16, deviation 1 */
    int32_t sequence[GENERATE_DIMENSION_MAX]; /* Q16, scaled */
    int16_t *input; /* layers x stride: what each layer's router saw of the last token */
    int32_t *logit; /* experts, scratch */
    struct pcg context_draws, sequence_draws, domain_draws, token_draws, layer_draws, guess_draws;
};

/* ---- fixed point ---- */

static int64_t to_q30(uint64_t ratio)
{
    return (int64_t)fixed_mul_div(ratio, UINT64_C(1) << 30, RATIO_ONE);
}

/* sqrt(share) in Q16, for a share in parts of 10^9. */
static int64_t amplitude_q16(uint64_t share)
{
    return (int64_t)fixed_sqrt_u64(fixed_mul_div(share, UINT64_C(1) << 32, RATIO_ONE));
}

static int32_t scale_q16(int64_t factor_q16, int32_t value)
{
    return (int32_t)((factor_q16 * value + (1 << 15)) >> 16);
}

/* sqrt(1 - x^2) for x in Q30. */
static int64_t complement_q30(int64_t x)
{
    return (int64_t)fixed_sqrt_u64((UINT64_C(1) << 60) - (uint64_t)(x * x));
}

/* A random direction, in Q16, of length sqrt(dimension * share): the parts that last are all of one
 * length, or one text would be far more repetitive than the next by luck alone. */
static void draw_direction(struct pcg *draws, int32_t *out, uint32_t dimension, uint64_t share)
{
    uint64_t square = 0;
    for (uint32_t i = 0; i < dimension; i++) {
        out[i] = pcg_gauss_q16(draws);
        square += (uint64_t)((int64_t)out[i] * out[i]);
    }
    uint64_t length_q16 = fixed_sqrt_u64(square);
    uint64_t unit_q16 = fixed_sqrt_u64((uint64_t)dimension << 32);
    uint64_t wanted_q16 = (uint64_t)amplitude_q16(share) * unit_q16 >> 16;
    int64_t factor_q16 = length_q16 ? (int64_t)((wanted_q16 << 16) / length_q16) : 0;
    for (uint32_t i = 0; i < dimension; i++)
        out[i] = scale_q16(factor_q16, out[i]);
}

static enum status build_vectors(int32_t **out, uint64_t count, uint32_t dimension, uint64_t share,
                                 uint64_t seed, const char *name, struct diag *dg)
{
    int32_t *v = calloc((size_t)count * dimension + 1, sizeof *v);
    if (!v)
        return diag_no_memory(dg);
    struct pcg draws;
    pcg_stream(&draws, seed, name);
    for (uint64_t i = 0; i < count; i++)
        draw_direction(&draws, v + i * dimension, dimension, share);
    *out = v;
    return ST_OK;
}

enum status generate_check(const struct generate_params *p, struct diag *dg)
{
    if (p->dimension % 2 || p->dimension > GENERATE_DIMENSION_MAX)
        return diag_set(dg, ST_RANGE, "dimension %" PRIu64 ": expected an even number up to %d",
                        p->dimension, GENERATE_DIMENSION_MAX);
    if (p->dimension == 0)
        return ST_OK;
    uint64_t limit = 2 * RATIO_ONE, sum = 0;
    const uint64_t share[] = {p->context_share, p->sequence_share, p->domain_share, p->token_share,
                              p->layer_share};
    for (size_t i = 0; i < sizeof share / sizeof *share; i++)
        sum += share[i] < limit ? share[i] : limit;
    if (sum > RATIO_ONE + SHARES_TOLERANCE || sum < RATIO_ONE - SHARES_TOLERANCE)
        return diag_set(
            dg, ST_RANGE,
            "the five shares of variance add up to %" PRIu64 " parts in 10^9, expected 10^9", sum);
    if (p->context_memory >= RATIO_ONE || p->domain_switch > RATIO_ONE ||
        p->layer_memory > RATIO_ONE)
        return diag_set(dg, ST_RANGE, "context_memory, domain_switch and layer_memory lie in 0..1");
    if (p->domains < 1 || p->domains > 4096 || p->token_classes < 1 || p->token_classes > 65536)
        return diag_set(dg, ST_RANGE, "expected 1..4096 domains and 1..65536 token classes");
    if (p->token_exponent > 4 * RATIO_ONE || p->expert_spread > 8 * RATIO_ONE ||
        p->sharpness > 64 * RATIO_ONE)
        return diag_set(dg, ST_RANGE,
                        "expected token_exponent <= 4, expert_spread <= 8, sharpness <= 64");
    return ST_OK;
}

static enum status check_shape(const struct generate_shape *s, struct diag *dg)
{
    if (s->layers < 1 || s->layers > TRACE_LAYERS_MAX || s->experts < 1 ||
        s->experts > TRACE_EXPERTS_MAX)
        return diag_set(dg, ST_RANGE,
                        "%" PRIu32 " layers of %" PRIu32
                        " experts: expected 1..%d layers and 1..%d experts",
                        s->layers, s->experts, TRACE_LAYERS_MAX, TRACE_EXPERTS_MAX);
    if (s->top_k < 1 || s->top_k > s->experts || s->top_k > GENERATE_TOP_K_MAX)
        return diag_set(dg, ST_RANGE,
                        "top_k %" PRIu32 " of %" PRIu32 " experts: expected 1..%" PRIu32, s->top_k,
                        s->experts,
                        s->experts < GENERATE_TOP_K_MAX ? s->experts : GENERATE_TOP_K_MAX);
    return ST_OK;
}

static void set_constants(struct generator *g, const struct generate_params *p, uint64_t seed)
{
    g->context_scale_q16 = amplitude_q16(p->context_share);
    g->sequence_share = p->sequence_share;
    g->layer_scale_q16 = amplitude_q16(p->layer_share);
    g->memory_q30 = to_q30(p->context_memory);
    g->innovation_q30 = complement_q30(g->memory_q30);
    g->cosine_q30 = to_q30(p->layer_memory);
    g->sine_q30 = complement_q30(g->cosine_q30);
    g->domains = (uint32_t)p->domains;
    g->switch_below = (uint32_t)to_q30(p->domain_switch);
    /* A logit's deviation is sqrt(dimension) in Q20. */
    uint64_t deviation_q20 = fixed_sqrt_u64(p->dimension << 40);
    uint64_t sharpness_q30 = fixed_mul_div(p->sharpness, (uint64_t)LOG2_E_Q30, RATIO_ONE);
    if (deviation_q20)
        g->sharpness_q24 = (int64_t)fixed_mul_div(sharpness_q30, UINT64_C(1) << 14, deviation_q20);
    pcg_stream(&g->context_draws, seed, "routing/context");
    pcg_stream(&g->sequence_draws, seed, "routing/sequence");
    pcg_stream(&g->domain_draws, seed, "routing/domain");
    pcg_stream(&g->token_draws, seed, "routing/token");
    pcg_stream(&g->layer_draws, seed, "routing/layer");
    pcg_stream(&g->guess_draws, seed, "routing/guess");
}

static enum status build(struct generator *g, const struct generate_params *p,
                         const struct generate_shape *shape, struct diag *dg)
{
    g->routed = calloc(shape->layers, sizeof *g->routed);
    g->router = calloc(shape->layers, sizeof *g->router);
    g->input = calloc((size_t)shape->layers * g->stride + 1, sizeof *g->input);
    g->logit = calloc(shape->experts, sizeof *g->logit);
    if (!g->routed || !g->router || !g->input || !g->logit)
        return diag_no_memory(dg);
    for (uint32_t l = 0; l < shape->layers; l++) {
        g->routed[l] = !shape->layer || shape->layer[l].expert_bytes > 0;
        enum status st = ST_OK;
        if (g->routed[l] && g->dimension)
            st = latent_router_init(&g->router[l], p->router_seed, l, shape->experts, g->dimension,
                                    p->expert_spread, dg);
        if (st != ST_OK)
            return st;
    }
    if (g->dimension == 0)
        return ST_OK;
    enum status st = build_vectors(&g->domain_vector, p->domains, g->dimension, p->domain_share,
                                   p->router_seed, "routing/domains", dg);
    if (st == ST_OK)
        st = build_vectors(&g->token_vector, p->token_classes, g->dimension, p->token_share,
                           p->router_seed, "routing/tokens", dg);
    if (st == ST_OK)
        st = pcg_table_zipf(&g->token_law, p->token_classes,
                            (uint32_t)(p->token_exponent / 1000000), dg);
    return st;
}

enum status generate_new(struct generator **out, const struct generate_params *p,
                         const struct generate_shape *shape, uint64_t seed, struct diag *dg)
{
    *out = NULL;
    enum status st = generate_check(p, dg);
    if (st == ST_OK)
        st = check_shape(shape, dg);
    if (st != ST_OK)
        return st;
    struct generator *g = calloc(1, sizeof *g);
    if (!g)
        return diag_no_memory(dg);
    g->shape = *shape;
    g->shape.layer = NULL;
    g->dimension = (uint32_t)p->dimension;
    g->stride = LATENT_STRIDE(g->dimension);
    g->fresh_turn = true;
    set_constants(g, p, seed);
    st = build(g, p, shape, dg);
    if (st != ST_OK) {
        generate_free(g);
        return st;
    }
    *out = g;
    return ST_OK;
}

void generate_free(struct generator *g)
{
    if (!g)
        return;
    for (uint32_t l = 0; g->router && l < g->shape.layers; l++)
        latent_router_free(&g->router[l]);
    free(g->router);
    free(g->routed);
    free(g->domain_vector);
    free(g->token_vector);
    pcg_table_free(&g->token_law);
    free(g->input);
    free(g->logit);
    free(g);
}

/* ---- a token's state ---- */

void generate_turn(struct generator *g)
{
    g->fresh_turn = true;
}

/* A turn starts in a domain and a context of its own, drawn from their stationary laws. */
static void begin_turn(struct generator *g)
{
    for (uint32_t i = 0; i < g->dimension; i++)
        g->context[i] = pcg_gauss_q16(&g->context_draws);
    draw_direction(&g->sequence_draws, g->sequence, g->dimension, g->sequence_share);
    if (g->dimension)
        g->domain = pcg_below(&g->domain_draws, g->domains);
    g->fresh_turn = false;
}

static void step_domain(struct generator *g)
{
    if (pcg_u32(&g->domain_draws) >> 2 < g->switch_below)
        g->domain = pcg_below(&g->domain_draws, g->domains);
}

static void step_state(struct generator *g, int32_t *state)
{
    for (uint32_t i = 0; i < g->dimension; i++)
        g->context[i] = latent_mix_q30(g->memory_q30, g->context[i], g->innovation_q30,
                                       pcg_gauss_q16(&g->context_draws));
    step_domain(g);
    const int32_t *domain = g->domain_vector + (size_t)g->domain * g->dimension;
    const int32_t *token =
        g->token_vector + pcg_pick(&g->token_draws, &g->token_law) * g->dimension;
    for (uint32_t i = 0; i < g->dimension; i++)
        state[i] =
            scale_q16(g->context_scale_q16, g->context[i]) + g->sequence[i] + domain[i] + token[i];
}

/* Adds the layer's own noise and rounds to what the router sees. */
static void see_state(struct generator *g, const int32_t *state, int16_t *input)
{
    for (uint32_t i = 0; i < g->dimension; i++) {
        int32_t seen = state[i] + scale_q16(g->layer_scale_q16, pcg_gauss_q16(&g->layer_draws));
        input[i] =
            latent_clamp((seen + (1 << (15 - LATENT_INPUT_BITS))) >> (16 - LATENT_INPUT_BITS));
    }
}

/* ---- choosing ---- */

/* `draws` decide where there is no state. */
static void compute_logits(struct generator *g, uint32_t layer, const int16_t *input,
                           struct pcg *draws)
{
    if (g->dimension) {
        latent_router_logits(&g->router[layer], input, g->logit);
        return;
    }
    for (uint32_t e = 0; e < g->shape.experts; e++)
        g->logit[e] = (int32_t)(pcg_u32(draws) >> 1);
}

/* The `count` largest logits, by insertion into a sorted list: after the first few experts most fail
 * the one comparison with its last entry. */
static void choose(const int32_t *logit, uint32_t experts, uint32_t count, uint16_t *ids)
{
    uint32_t held = 0;
    for (uint32_t e = 0; e < experts; e++) {
        if (held == count && logit[e] <= logit[ids[held - 1]])
            continue;
        uint32_t at = held < count ? held++ : held - 1;
        for (; at > 0 && logit[e] > logit[ids[at - 1]]; at--)
            ids[at] = ids[at - 1];
        ids[at] = (uint16_t)e;
    }
}

/* Softmax over the chosen; what rounding leaves over goes to the first. */
static void weigh(const struct generator *g, const uint16_t *ids, uint32_t count, int64_t *weights)
{
    uint64_t power[GENERATE_TOP_K_MAX], sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t below = (int64_t)g->logit[ids[i]] - g->logit[ids[0]]; /* <= 0 */
        power[i] = fixed_exp2_q32(below * g->sharpness_q24 >> 12);
        sum += power[i];
    }
    int64_t left = TRACE_WEIGHT_ONE;
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = (int64_t)fixed_mul_div(power[i], TRACE_WEIGHT_ONE, sum);
        left -= weights[i];
    }
    weights[0] += left;
}

void generate_token(struct generator *g, uint16_t *ids, int64_t *weights)
{
    int32_t state[GENERATE_DIMENSION_MAX];
    if (g->fresh_turn)
        begin_turn(g);
    if (g->dimension)
        step_state(g, state);
    uint32_t k = g->shape.top_k;
    for (uint32_t l = 0; l < g->shape.layers; l++) {
        if (!g->routed[l])
            continue;
        int16_t *input = g->input + (size_t)l * g->stride;
        latent_router_turn(&g->router[l], g->cosine_q30, g->sine_q30, state);
        see_state(g, state, input);
        compute_logits(g, l, input, &g->layer_draws);
        choose(g->logit, g->shape.experts, k, ids + (size_t)l * k);
        if (weights)
            weigh(g, ids + (size_t)l * k, k, weights + (size_t)l * k);
    }
}

void generate_guess(struct generator *g, uint32_t made_at, uint32_t target, uint32_t count,
                    uint16_t *ids, int64_t *scores)
{
    assert(made_at < g->shape.layers && target < g->shape.layers);
    assert(g->routed[made_at] && g->routed[target]);
    assert(count >= 1 && count <= GENERATE_TOP_K_MAX && count <= g->shape.experts);
    compute_logits(g, target, g->input + (size_t)made_at * g->stride, &g->guess_draws);
    choose(g->logit, g->shape.experts, count, ids);
    weigh(g, ids, count, scores);
}
