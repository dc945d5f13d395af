/* generate_trace.c -- see generate_trace.h. Tokens come from the generator layer by layer, a trace wants
 * a pass's rows layer by layer over all its tokens, so a prefill is buffered and then emitted. */
#include "sim/trace/generate_trace.h"

#include <inttypes.h>
#include <stdlib.h>

#define TOKENS_MAX UINT64_C(100000000)

struct maker {
    const struct generate_plan *plan;
    struct generator *generator;
    struct trace_builder *builder;
    uint16_t *ids;    /* tokens of a pass x layers x top_k */
    int64_t *weights; /* likewise */
    uint32_t turn, pass, step;
    uint32_t guess_count;
};

static enum status check_plan(const struct generate_plan *plan, struct diag *dg)
{
    uint64_t tokens = ((uint64_t)plan->prompt + plan->tokens) * plan->turns;
    if (plan->turns == 0 || tokens == 0 || tokens > TOKENS_MAX)
        return diag_set(dg, ST_RANGE,
                        "%" PRIu32 " turns of %" PRIu32 " + %" PRIu32
                        " tokens: expected 1..%" PRIu64 " tokens in all",
                        plan->turns, plan->prompt, plan->tokens, TOKENS_MAX);
    if (plan->guess_count > plan->shape.experts || plan->guess_count > GENERATE_TOP_K_MAX)
        return diag_set(dg, ST_RANGE, "%" PRIu32 " predictions a layer: expected at most %" PRIu32,
                        plan->guess_count,
                        plan->shape.experts < GENERATE_TOP_K_MAX ? plan->shape.experts
                                                                 : GENERATE_TOP_K_MAX);
    return ST_OK;
}

static bool is_routed(const struct generate_plan *plan, uint32_t layer)
{
    return plan->shape.layer[layer].expert_bytes > 0;
}

/* The rows of one layer for `tokens` buffered tokens. */
static enum status emit_layer(struct maker *m, uint32_t phase, uint32_t layer, uint32_t tokens,
                              struct diag *dg)
{
    uint32_t k = m->plan->shape.top_k;
    for (uint32_t t = 0; t < tokens; t++) {
        size_t first = ((size_t)t * m->plan->shape.layers + layer) * k;
        for (uint32_t slot = 0; slot < k; slot++) {
            enum status st =
                trace_builder_row(m->builder, m->turn, phase, m->pass, m->step + t, layer, slot,
                                  m->ids[first + slot], m->weights[first + slot], dg);
            if (st != ST_OK)
                return st;
        }
    }
    return ST_OK;
}

static enum status emit_guesses(struct maker *m, uint32_t made_at, struct diag *dg)
{
    uint16_t ids[GENERATE_TOP_K_MAX];
    int64_t scores[GENERATE_TOP_K_MAX];
    uint32_t left = m->plan->guess_distance;
    for (uint32_t target = made_at + 1; target < m->plan->shape.layers && left; target++) {
        if (!is_routed(m->plan, target))
            continue;
        left--;
        generate_guess(m->generator, made_at, target, m->guess_count, ids, scores);
        for (uint32_t rank = 0; rank < m->guess_count; rank++) {
            enum status st =
                trace_builder_guess(m->builder, m->turn, PHASE_DECODE, m->pass, made_at, target,
                                    rank, ids[rank], scores[rank], dg);
            if (st != ST_OK)
                return st;
        }
    }
    return ST_OK;
}

static enum status emit_pass(struct maker *m, uint32_t phase, uint32_t tokens, struct diag *dg)
{
    size_t stride = (size_t)m->plan->shape.layers * m->plan->shape.top_k;
    for (uint32_t t = 0; t < tokens; t++)
        generate_token(m->generator, m->ids + t * stride, m->weights + t * stride);
    for (uint32_t layer = 0; layer < m->plan->shape.layers; layer++) {
        if (!is_routed(m->plan, layer))
            continue;
        enum status st = emit_layer(m, phase, layer, tokens, dg);
        if (st == ST_OK && phase == PHASE_DECODE)
            st = emit_guesses(m, layer, dg);
        if (st != ST_OK)
            return st;
    }
    m->pass++;
    m->step += tokens;
    return ST_OK;
}

static enum status emit_turn(struct maker *m, struct diag *dg)
{
    generate_turn(m->generator);
    m->step = 0;
    enum status st = ST_OK;
    if (m->plan->prompt)
        st = emit_pass(m, PHASE_PREFILL, m->plan->prompt, dg);
    for (uint32_t t = 0; t < m->plan->tokens && st == ST_OK; t++)
        st = emit_pass(m, PHASE_DECODE, 1, dg);
    m->turn++;
    return st;
}

static enum status maker_open(struct maker *m, const struct generate_params *p, struct diag *dg)
{
    const struct generate_shape *shape = &m->plan->shape;
    enum status st = generate_new(&m->generator, p, shape, m->plan->seed, dg);
    if (st != ST_OK)
        return st;
    size_t entries = (size_t)(m->plan->prompt ? m->plan->prompt : 1) * shape->layers * shape->top_k;
    m->ids = calloc(entries, sizeof *m->ids);
    m->weights = calloc(entries, sizeof *m->weights);
    if (!m->ids || !m->weights)
        return diag_no_memory(dg);
    m->guess_count = m->plan->guess_count ? m->plan->guess_count : shape->top_k;
    return trace_builder_new(&m->builder, m->plan->model, shape->layers, shape->experts,
                             shape->top_k, shape->layer, dg);
}

enum status generate_trace(struct trace **out, const struct generate_params *p,
                           const struct generate_plan *plan, struct diag *dg)
{
    *out = NULL;
    enum status st = check_plan(plan, dg);
    if (st != ST_OK)
        return st;
    struct maker m = {.plan = plan};
    st = maker_open(&m, p, dg);
    while (st == ST_OK && m.turn < plan->turns)
        st = emit_turn(&m, dg);
    if (st == ST_OK)
        st = trace_builder_finish(m.builder, out, dg);
    else
        trace_builder_free(m.builder);
    generate_free(m.generator);
    free(m.ids);
    free(m.weights);
    return st;
}
