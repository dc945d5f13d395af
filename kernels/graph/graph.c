/* graph.c -- see graph.h: the pass itself, and the layer of routed experts. */
#include "kernels/graph/graph.h"

#include "kernels/graph/graph_inside.h"
#include "kernels/graph/router.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- set-up ---- */

enum status graph_new(struct graph **out, const struct graph_setup *s, struct diag *dg)
{
    struct graph *g = calloc(1, sizeof *g);
    if (!g)
        return diag_no_memory(dg);
    g->setup = *s;
    if (s->experts && experts_chunk(s->experts) < s->chunk)
        g->setup.chunk = experts_chunk(s->experts);
    enum status st = kv_cache_new(&g->kv, s->weights->model, s->context, g->setup.chunk, dg);
    if (st == ST_OK)
        st = graph_buffers_new(g, dg);
    if (st != ST_OK) {
        graph_free(g);
        return st;
    }
    rope_frequencies(g->frequency, s->weights->numbers.rope_dims, &s->weights->numbers.rope);
    *out = g;
    return ST_OK;
}

void graph_free(struct graph *g)
{
    if (!g)
        return;
    graph_buffers_free(g);
    kv_cache_free(g->kv);
    free(g);
}

size_t graph_chunk(const struct graph *g)
{
    return g->setup.chunk;
}

size_t graph_position(const struct graph *g)
{
    return g->position;
}

size_t graph_state_bytes(const struct graph *g)
{
    return g->kv->bytes;
}

void graph_restart(struct graph *g)
{
    kv_cache_clear(g->kv);
    g->position = 0;
    g->turn++;
}

/* ---- steps ---- */

void graph_norm(struct graph *g, const float *weight)
{
    size_t hidden = g->normed.cols;
    for (size_t t = 0; t < g->tokens; t++)
        g->setup.compute.isa->rms_norm(g->normed.values + t * hidden, g->residual + t * hidden,
                                       weight, hidden, g->setup.weights->numbers.epsilon);
    input_ready(&g->normed, 0, g->tokens, &g->setup.compute);
}

void graph_add(struct graph *g)
{
    for (size_t i = 0; i < g->tokens * g->normed.cols; i++)
        g->residual[i] += g->delta[i];
}

static void embed(struct graph *g, const uint32_t *tokens)
{
    const struct weights *e = &g->setup.weights->embedding.weights;
    size_t row = block_row_bytes(e->format, e->cols);
    for (size_t t = 0; t < g->tokens; t++)
        block_dequantise(e->format, g->residual + t * e->cols,
                         (const char *)e->data + tokens[t] * row, e->cols);
}

static void set_angles(struct graph *g)
{
    const struct graph_numbers *n = &g->setup.weights->numbers;
    size_t pairs = n->rope_dims / 2;
    for (size_t t = 0; t < g->tokens; t++)
        rope_angles(g->cosine + t * pairs, g->sine + t * pairs, g->frequency, pairs,
                    g->position + t, n->rope_magnitude);
}

/* ---- routed experts ---- */

/* A model of damaged weights: from here on every number would be none. */
static enum status check_weights(const struct graph *g, size_t layer, struct diag *dg)
{
    size_t top_k = g->setup.weights->model->layers[layer].ffn.top_k;
    for (size_t i = 0; i < g->tokens * top_k; i++)
        if (!isfinite(g->weight[i]))
            return diag_set(dg, ST_RANGE,
                            "layer %zu, token %zu: the router's weights are not numbers: the model "
                            "is damaged",
                            layer, g->position + i / top_k);
    return ST_OK;
}

/* The router's choice of each token, or the one that is forced, into ids and weights. */
static enum status route_tokens(struct graph *g, size_t layer, struct diag *dg)
{
    const struct graph_weights *w = g->setup.weights;
    const struct ffn *f = &w->model->layers[layer].ffn;
    const struct isa *isa = g->setup.compute.isa;
    product_run(&g->setup.compute, &w->layers[layer].router, &g->normed, g->tokens, g->logit);
    for (size_t t = 0; t < g->tokens; t++) {
        float *probability = g->logit + t * f->experts, *score = g->score + t * f->experts;
        uint16_t *ids = g->ids + t * f->top_k;
        float *weights = g->weight + t * f->top_k;
        router_scores(w, isa, layer, probability, score);
        bool forced = g->setup.route.at &&
                      g->setup.route.at(g->setup.route.self, g->position + t, layer, ids);
        if (!forced)
            router_choose(score, f->experts, f->top_k, ids);
        router_weights(w, isa, probability, ids, f->top_k, weights);
    }
    return check_weights(g, layer, dg);
}

/* Parts of TRACE_WEIGHT_ONE. A score of heads may be anything; it only tells of itself. */
static int64_t trace_parts(float x)
{
    const double most = 1e6;
    double parts = isnan(x) ? 0 : (double)x;
    parts = parts > most ? most : parts < -most ? -most : parts;
    return llrint(parts * TRACE_WEIGHT_ONE);
}

static enum status trace_routing(struct graph *g, size_t layer, struct diag *dg)
{
    struct trace_builder *b = g->setup.record->trace;
    size_t top_k = g->setup.weights->model->layers[layer].ffn.top_k;
    enum status st = ST_OK;
    for (size_t i = 0; b && st == ST_OK && i < g->tokens * top_k; i++)
        st = trace_builder_row(b, g->turn, g->phase, g->pass, (uint32_t)(g->position + i / top_k),
                               (uint32_t)layer, (uint32_t)(i % top_k), g->ids[i],
                               trace_parts(g->weight[i]), dg);
    return st;
}

/* Scores of the target's experts, added up over the tokens of the pass, into the first row of `score`. */
static void foretell(struct graph *g, size_t layer, size_t target)
{
    const struct graph_weights *w = g->setup.weights;
    size_t experts = w->model->layers[target].ffn.experts;
    float *logit = g->logit, *score = g->score;
    if (g->setup.predict) {
        g->setup.predict(g->setup.predict_self, w, &g->setup.compute, layer, target, g->residual,
                         g->tokens, score);
    } else {
        graph_norm(g, w->layers[target].ffn_norm);
        product_run(&g->setup.compute, &w->layers[target].router, &g->normed, g->tokens, logit);
        for (size_t t = 0; t < g->tokens; t++)
            router_scores(w, g->setup.compute.isa, target, logit + t * experts,
                          score + t * experts);
    }
    for (size_t t = 1; t < g->tokens; t++)
        for (size_t i = 0; i < experts; i++)
            score[i] += score[t * experts + i];
}

/* A guess about the layer ahead, from the residual stream as it is after this layer's attention. */
static enum status predict_ahead(struct graph *g, size_t layer, struct diag *dg)
{
    size_t target = layer + g->setup.predict_distance,
           layers = g->setup.weights->model->layer_count;
    if (g->setup.predict_distance == 0 || target >= layers)
        return ST_OK;
    size_t experts = g->setup.weights->model->layers[target].ffn.experts;
    size_t n = g->setup.predict_count < experts ? g->setup.predict_count : experts;
    n = n < ROUTER_CHOICE_MAX ? n : ROUTER_CHOICE_MAX;
    if (experts == 0)
        return ST_OK;
    foretell(g, layer, target);
    router_choose(g->score, experts, n, g->guess);
    enum status st = ST_OK;
    for (size_t i = 0; g->setup.record->trace && st == ST_OK && i < n; i++)
        st = trace_builder_guess(g->setup.record->trace, g->turn, g->phase, g->pass,
                                 (uint32_t)layer, (uint32_t)target, (uint32_t)i, g->guess[i],
                                 trace_parts(g->score[g->guess[i]]), dg);
    if (st == ST_OK)
        st = experts_predict(g->setup.experts, g->pass, (uint32_t)layer, (uint32_t)target, g->guess,
                             n, dg);
    graph_norm(g, g->setup.weights->layers[layer].ffn_norm); /* as it was before the guess */
    return st;
}

static enum status experts_step(struct graph *g, size_t layer, struct diag *dg)
{
    struct record *r = g->setup.record;
    uint32_t l = (uint32_t)layer;
    uint64_t clock = record_now_ns();
    graph_norm(g, g->setup.weights->layers[layer].ffn_norm);
    enum status st = route_tokens(g, layer, dg);
    if (st == ST_OK)
        st = trace_routing(g, layer, dg);
    if (st == ST_OK)
        st = experts_choose(g->setup.experts, g->pass, l, g->ids, g->tokens, dg);
    if (st == ST_OK)
        st = predict_ahead(g, layer, dg);
    clock = record_operation(r, OPERATION_FIXED, g->pass, l, clock);
    bool shared = g->setup.weights->model->layers[layer].ffn.shared_width > 0;
    if (st == ST_OK && shared) {
        feed_forward_shared(g, layer);
        record_operation(r, OPERATION_SHARED, g->pass, l, clock);
    }
    if (st == ST_OK)
        st = experts_compute(g->setup.experts, g->pass, l, g->weight, &g->normed, g->tokens,
                             g->routed, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < g->tokens * g->normed.cols; i++)
        g->residual[i] += shared ? g->routed[i] + g->delta[i] : g->routed[i];
    return experts_layer_end(g->setup.experts, g->pass, l, dg);
}

static enum status layer_step(struct graph *g, size_t layer, struct diag *dg)
{
    uint64_t clock = record_now_ns();
    attention_step(g, layer);
    bool routed = g->setup.weights->model->layers[layer].ffn.experts > 0;
    if (!routed)
        feed_forward_dense(g, layer);
    record_operation(g->setup.record, OPERATION_FIXED, g->pass, (uint32_t)layer, clock);
    if (!routed)
        return ST_OK;
    enum status st = experts_poll(g->setup.experts, g->pass, (uint32_t)layer, dg);
    return st == ST_OK ? experts_step(g, layer, dg) : st;
}

/* ---- the pass ---- */

static enum status output_head(struct graph *g, enum graph_logits which, float *logits,
                               struct diag *dg)
{
    const struct graph_weights *w = g->setup.weights;
    const struct compute_setup *c = &g->setup.compute;
    size_t first = which == LOGITS_ALL ? 0 : g->tokens - 1, n = g->tokens - first;
    uint64_t clock = record_now_ns();
    graph_norm(g, w->final_norm);
    struct product p = {&w->head, input_view(&g->normed, first, n, c), logits,
                        w->head.weights.rows};
    products_run(c, &p, 1);
    record_operation(g->setup.record, OPERATION_HEAD, g->pass, TIMELINE_NONE, clock);
    for (size_t i = 0; i < n * p.y_stride; i++)
        if (isnan(logits[i]))
            return diag_set(dg, ST_RANGE,
                            "token %zu: the logit of %zu is not a number: the model is damaged",
                            g->position + first + i / p.y_stride, i % p.y_stride);
    return ST_OK;
}

static enum status check_tokens(const struct graph *g, const uint32_t *tokens, size_t n,
                                struct diag *dg)
{
    assert(n > 0 && n <= g->setup.chunk);
    if (g->position + n > g->setup.context)
        return diag_set(dg, ST_RANGE, "the context of %zu tokens is full: --context takes more",
                        g->setup.context);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= g->setup.weights->model->vocab)
            return diag_set(dg, ST_RANGE, "token %u: the model's vocabulary has %zu", tokens[i],
                            (size_t)g->setup.weights->model->vocab);
    return ST_OK;
}

enum status graph_pass(struct graph *g, const uint32_t *tokens, size_t n, enum trace_phase phase,
                       enum graph_logits which, float *logits, struct diag *dg)
{
    enum status st = check_tokens(g, tokens, n, dg);
    if (st == ST_OK && g->failure.status != ST_OK)
        st = diag_set(dg, g->failure.status, "%s", g->failure.text);
    if (st != ST_OK)
        return st;
    g->tokens = n;
    g->phase = phase;
    embed(g, tokens);
    set_angles(g);
    for (size_t l = 0; st == ST_OK && l < g->setup.weights->model->layer_count; l++)
        st = layer_step(g, l, dg);
    if (st == ST_OK && which != LOGITS_NONE)
        st = output_head(g, which, logits, dg);
    if (st != ST_OK) {
        g->failure = *dg;
        return st;
    }
    g->position += n;
    g->pass++;
    return ST_OK;
}
