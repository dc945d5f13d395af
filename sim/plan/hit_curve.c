/* hit_curve.c -- see hit_curve.h. */
#include "sim/plan/hit_curve.h"

#include "base/fixed.h"
#include "models/work.h"
#include "sim/trace/preset.h"

#include <assert.h>
#include <stdlib.h>

#define E6        UINT64_C(1000000)
#define RATIO_ALL UINT64_C(1000000000)

#define SAMPLE_LAYERS 2
#define SAMPLE_TOKENS (HIT_CURVE_TOKENS + 128)
#define SAMPLE_SEED   1

/* A window that is one longer never meets more new experts: what noise in the count says otherwise is
 * levelled, so that hits never fall as the cache grows. */
static void make_concave(struct hit_curve *c)
{
    uint64_t step = c->top_k * E6;
    for (size_t m = 1; m <= HIT_CURVE_TOKENS; m++) {
        uint64_t before = c->distinct_e6[m - 1], here = c->distinct_e6[m];
        uint64_t rise = here > before ? here - before : 0;
        step = rise < step ? rise : step;
        c->distinct_e6[m] = before + step;
    }
}

void hit_curve_uniform(struct hit_curve *c, uint64_t experts, uint64_t top_k)
{
    uint64_t rest = experts * E6;
    *c = (struct hit_curve){.experts = experts, .top_k = top_k};
    for (size_t m = 1; m <= HIT_CURVE_TOKENS; m++) {
        rest = experts ? fixed_mul_div(rest, experts - top_k, experts) : 0;
        c->distinct_e6[m] = experts * E6 - rest;
    }
    make_concave(c);
}

/* For every start, the window grows token by token; stamp[e] == start + 1 marks what it holds. */
static void count_layer(uint64_t *sum, const uint16_t *ids, size_t tokens, size_t stride,
                        uint64_t top_k, uint32_t *stamp)
{
    for (size_t start = 0; start < tokens; start++) {
        uint64_t distinct = 0;
        for (size_t m = 1; m <= HIT_CURVE_TOKENS && start + m <= tokens; m++) {
            const uint16_t *row = ids + (start + m - 1) * stride;
            for (uint64_t k = 0; k < top_k; k++) {
                distinct += stamp[row[k]] != start + 1;
                stamp[row[k]] = (uint32_t)start + 1;
            }
            sum[m] += distinct;
        }
    }
}

enum status hit_curve_count(struct hit_curve *c, const uint16_t *ids, size_t tokens, size_t layers,
                            uint64_t experts, uint64_t top_k, struct diag *dg)
{
    assert(tokens >= 2 && layers >= 1);
    uint64_t sum[HIT_CURVE_TOKENS + 1] = {0};
    *c = (struct hit_curve){.experts = experts, .top_k = top_k};
    for (size_t l = 0; l < layers; l++) {
        uint32_t *stamp = calloc(experts, sizeof *stamp);
        if (!stamp)
            return diag_no_memory(dg);
        count_layer(sum, ids + l * top_k, tokens, layers * top_k, top_k, stamp);
        free(stamp);
    }
    for (size_t m = 1; m <= HIT_CURVE_TOKENS; m++) {
        uint64_t windows = m <= tokens ? (tokens - m + 1) * layers : 0;
        c->distinct_e6[m] = windows ? sum[m] * E6 / windows : c->distinct_e6[m - 1];
    }
    make_concave(c);
    return ST_OK;
}

/* One long turn, so that windows do not cross from one text to another; the tokens are always the same,
 * so a plan is too. */
static enum status draw_tokens(uint16_t *ids, const struct generate_params *params,
                               const struct generate_shape *shape, size_t tokens, struct diag *dg)
{
    struct generator *g;
    enum status st = generate_new(&g, params, shape, SAMPLE_SEED, dg);
    if (st != ST_OK)
        return st;
    for (size_t t = 0; t < tokens; t++)
        generate_token(g, ids + t * shape->layers * shape->top_k, NULL);
    generate_free(g);
    return ST_OK;
}

static enum status count_preset(struct hit_curve *c, const struct preset *p, uint64_t experts,
                                uint64_t top_k, struct diag *dg)
{
    struct generate_shape shape = {
        .layers = SAMPLE_LAYERS, .experts = (uint32_t)experts, .top_k = (uint32_t)top_k};
    uint16_t *ids = calloc(SAMPLE_TOKENS * SAMPLE_LAYERS, top_k * sizeof *ids);
    if (!ids)
        return diag_no_memory(dg);
    enum status st = draw_tokens(ids, &p->params, &shape, SAMPLE_TOKENS, dg);
    if (st == ST_OK)
        st = hit_curve_count(c, ids, SAMPLE_TOKENS, SAMPLE_LAYERS, experts, top_k, dg);
    free(ids);
    return st;
}

enum status hit_curve_preset(struct hit_curve *c, const char *presets, const char *name,
                             uint64_t experts, uint64_t top_k, struct diag *dg)
{
    struct preset *p;
    enum status st = preset_load(&p, name, presets, NULL, 0, dg);
    if (st != ST_OK)
        return st;
    st = count_preset(c, p, experts, top_k, dg);
    preset_free(p);
    return st;
}

uint64_t hit_curve_distinct_e3(const struct hit_curve *c, uint64_t tokens)
{
    if (tokens <= HIT_CURVE_TOKENS)
        return c->distinct_e6[tokens] / 1000;
    uint64_t all = c->experts * E6, last = c->distinct_e6[HIT_CURVE_TOKENS];
    uint64_t rest = all - last, rest_before = all - c->distinct_e6[HIT_CURVE_TOKENS - 1];
    for (uint64_t m = HIT_CURVE_TOKENS; m < tokens && rest && rest_before > all - last; m++)
        rest = fixed_mul_div(rest, all - last, rest_before);
    return (all - rest) / 1000;
}

uint64_t hit_curve_union_e3(const void *self, uint64_t experts, uint64_t top_k, uint64_t tokens)
{
    const struct hit_curve *c = self;
    if (c->experts == experts && c->top_k == top_k)
        return hit_curve_distinct_e3(c, tokens);
    return work_unique_experts_e3(experts, top_k, tokens);
}

uint64_t hit_curve_window_e6(const struct hit_curve *c, uint64_t experts_e6)
{
    size_t m = 0;
    while (m < HIT_CURVE_TOKENS && c->distinct_e6[m + 1] <= experts_e6)
        m++;
    if (m == HIT_CURVE_TOKENS)
        return m * E6;
    uint64_t step = c->distinct_e6[m + 1] - c->distinct_e6[m];
    return m * E6 + fixed_mul_div(experts_e6 - c->distinct_e6[m], E6, step);
}

/* Hit ratio where the cache remembers m whole tokens. */
static uint64_t ratio_at(const struct hit_curve *c, size_t m)
{
    assert(m < HIT_CURVE_TOKENS);
    uint64_t missed = c->distinct_e6[m + 1] - c->distinct_e6[m];
    return RATIO_ALL - fixed_mul_div(missed, RATIO_ALL, c->top_k * E6);
}

static uint64_t between(uint64_t a, uint64_t b, uint64_t at, uint64_t length)
{
    return a + fixed_mul_div(b - a, at, length);
}

/* Whole tokens that a look-up can count on when the cache holds `window_e6` of them: half a token less,
 * but for the first step. All layers share the gap of one token, so between one and two tokens the
 * ratio stays at the overlap of neighbours and then rises quickly (SYSTEMS F1). */
static uint64_t remembered_e6(uint64_t window_e6)
{
    if (window_e6 <= 2 * E6)
        return E6;
    return window_e6 < 2 * E6 + E6 / 2 ? E6 + 2 * (window_e6 - 2 * E6) : window_e6 - E6 / 2;
}

static uint64_t ratio_in_window(const struct hit_curve *c, uint64_t window_e6)
{
    uint64_t g = remembered_e6(window_e6);
    size_t m = g / E6;
    if (m >= HIT_CURVE_TOKENS - 1)
        return ratio_at(c, HIT_CURVE_TOKENS - 1);
    return between(ratio_at(c, m), ratio_at(c, m + 1), g % E6, E6);
}

uint64_t hit_curve_ratio(const struct hit_curve *c, uint64_t cache, uint64_t cycle, uint64_t layers,
                         uint64_t all)
{
    if (all == 0 || cache >= all)
        return RATIO_ALL;
    assert(layers && cycle && c->top_k);
    uint64_t share = cycle / layers;
    if (cache <= cycle - share)
        return 0;
    if (cache < cycle)
        return between(0, ratio_at(c, 1), cache - (cycle - share), share);
    uint64_t held = fixed_mul_div(cache, c->top_k * E6, cycle);
    uint64_t longest = c->distinct_e6[HIT_CURVE_TOKENS];
    if (held <= longest)
        return ratio_in_window(c, hit_curve_window_e6(c, held));
    uint64_t last = ratio_at(c, HIT_CURVE_TOKENS - 1), whole = c->experts * E6;
    return held >= whole ? RATIO_ALL : between(last, RATIO_ALL, held - longest, whole - longest);
}
