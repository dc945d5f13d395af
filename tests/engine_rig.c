/* engine_rig.c -- see engine_rig.h. */
#include "tests/engine_rig.h"

#include <stdlib.h>

static enum status make_experts(struct engine_rig *r, struct diag *dg)
{
    struct experts_setup s = {
        .weights = r->weights,
        .decide = r->decide,
        .foreseen = {r->route, r->prompt, r->steps},
        .prefetch_timed = r->prefetch_timed,
        .decisions_path = r->decisions,
        .pack_path = r->pack,
        .loader = {.backend = r->backend, .depth = 8, .ops = r->ops},
        .direct = !r->buffered,
        .overlap = !r->serial,
        .chunk = r->chunk ? r->chunk : GOLDEN_TOKENS,
        .record = &r->record,
    };
    enum status st = isa_choose(&s.compute.isa, r->isa ? r->isa : "auto", dg);
    s.compute.workers = r->workers;
    s.compute.activations_f32 = r->activations_f32;
    if (!s.decide.policy)
        s.decide.policy = cache_policy_find("lru");
    if (!s.decide.budget_bytes)
        s.decide.budget_bytes = model_experts_bytes(r->weights->model) + (1 << 20);
    if (!s.decide.prefetch_distance)
        s.decide.prefetch_distance = r->predict_distance ? (uint32_t)r->predict_distance : 1;
    if (st == ST_OK)
        st = experts_new(&r->experts, &s, dg);
    if (st != ST_OK)
        return st;
    struct graph_setup g = {
        .weights = r->weights,
        .compute = s.compute,
        .experts = r->experts,
        .context = r->context ? r->context : 4 * GOLDEN_TOKENS,
        .chunk = s.chunk,
        .route = r->route,
        .predict_distance = r->predict_distance,
        .predict_count = experts_decisions(r->experts)->prefetch_experts_max,
        .predict = r->predict,
        .predict_self = r->predict_self,
        .record = &r->record,
    };
    return graph_new(&r->graph, &g, dg);
}

static enum status make_trace(struct engine_rig *r, struct diag *dg)
{
    const struct model *m = r->weights->model;
    struct trace_layer *layer = calloc(m->layer_count, sizeof *layer);
    if (!layer)
        return diag_no_memory(dg);
    for (size_t l = 0; l < m->layer_count; l++)
        layer[l].expert_bytes =
            m->layers[l].ffn.experts ? experts_decisions(r->experts)->expert_bytes[l] : 0;
    enum status st =
        trace_builder_new(&r->record.trace, "rig", (uint32_t)m->layer_count,
                          (uint32_t)model_experts(m), (uint32_t)model_top_k(m), layer, dg);
    free(layer);
    return st;
}

enum status engine_rig_open(struct engine_rig *r, struct diag *dg)
{
    r->record = (struct record){.start_ns = record_now_ns()};
    enum status st = graph_weights_load(&r->weights, r->path, NULL, NULL, dg);
    if (st == ST_OK)
        st = workers_new(&r->workers, r->threads ? r->threads : 1, dg);
    if (st == ST_OK)
        st = make_experts(r, dg);
    if (st == ST_OK && r->trace)
        st = make_trace(r, dg);
    if (st != ST_OK)
        engine_rig_close(r);
    return st;
}

void engine_rig_close(struct engine_rig *r)
{
    graph_free(r->graph);
    experts_free(r->experts);
    trace_builder_free(r->record.trace);
    workers_free(r->workers);
    graph_weights_free(r->weights);
    r->graph = NULL;
    r->experts = NULL;
    r->record.trace = NULL;
    r->workers = NULL;
    r->weights = NULL;
}

enum status engine_rig_prompt(struct engine_rig *r, const uint32_t *tokens, size_t n, float *logits,
                              struct diag *dg)
{
    enum status st = ST_OK;
    size_t vocab = r->weights->model->vocab;
    for (size_t at = 0; st == ST_OK && at < n;) {
        size_t count = n - at < graph_chunk(r->graph) ? n - at : graph_chunk(r->graph);
        st = graph_pass(r->graph, tokens + at, count, PHASE_PREFILL,
                        logits ? LOGITS_ALL : LOGITS_NONE, logits ? logits + at * vocab : NULL, dg);
        at += count;
    }
    return st;
}

enum status engine_rig_greedy(struct engine_rig *r, uint32_t last, uint32_t *out, size_t n,
                              struct diag *dg)
{
    size_t vocab = r->weights->model->vocab;
    float *logits = calloc(vocab, sizeof *logits);
    enum status st = logits ? ST_OK : diag_no_memory(dg);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        st = graph_pass(r->graph, &last, 1, PHASE_DECODE, LOGITS_LAST, logits, dg);
        last = 0;
        for (uint32_t v = 1; st == ST_OK && v < vocab; v++)
            if (logits[v] > logits[last])
                last = v;
        if (st == ST_OK)
            out[i] = last;
    }
    free(logits);
    return st;
}

void golden_prompt(uint32_t tokens[GOLDEN_TOKENS])
{
    for (uint32_t i = 0; i < GOLDEN_TOKENS; i++)
        tokens[i] = (i * 37 + 11) % GOLDEN_VOCAB;
}
