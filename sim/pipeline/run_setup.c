/* run_setup.c -- builds a run from its descriptions: shape, decisions, routing; run_memory.c and run_resources.c
 * do the rest. */
#include "sim/pipeline/run_state.h"

#include "base/fixed.h"

#include <stdlib.h>
#include <string.h>

uint64_t run_amount(const struct value *v, uint64_t fallback)
{
    return v->given ? v->amount : fallback;
}

/* ---- which layers have experts, and how large ---- */

static enum status find_shape(struct run *r, struct diag *dg)
{
    const struct model *m = r->model;
    const struct trace *t = r->setup.trace;
    uint32_t layers = (uint32_t)m->layer_count;
    r->experts = (uint32_t)model_experts(m);
    r->top_k = t ? t->top_k : (uint32_t)model_top_k(m);
    if (r->experts == 0)
        return diag_set(dg, ST_UNSUPPORTED,
                        "%s has no routed experts: see `memwall roofline` for dense models",
                        m->name);
    if (t && (t->layers != layers || t->experts != r->experts))
        return diag_set(dg, ST_MISFIT, "the trace has %u layers of %u experts, %s has %u of %u",
                        t->layers, t->experts, m->name, layers, r->experts);
    r->layer_bytes = calloc(layers, sizeof *r->layer_bytes);
    r->expert_bytes = calloc(layers, sizeof *r->expert_bytes);
    r->slot_of = calloc((size_t)layers * r->experts, sizeof *r->slot_of);
    r->choice = calloc(r->experts, sizeof *r->choice);
    r->choice_of = calloc(r->experts, sizeof *r->choice_of);
    r->ahead = calloc(r->experts, sizeof *r->ahead);
    r->guessed = calloc(r->experts, sizeof *r->guessed);
    r->layer_late = calloc(layers, sizeof *r->layer_late);
    if (!r->layer_late || !r->layer_bytes || !r->expert_bytes || !r->slot_of || !r->choice ||
        !r->choice_of || !r->ahead || !r->guessed)
        return diag_no_memory(dg);
    for (uint32_t l = 0; l < layers; l++) {
        r->expert_bytes[l] = t ? t->layer[l].expert_bytes : m->layers[l].expert_bytes;
        r->layer_bytes[l].expert_bytes = r->expert_bytes[l];
    }
    return ST_OK;
}

/* ---- decisions ---- */

/* A generated prompt chunk must fit the budget whatever it unites. */
static uint64_t chunk_tokens(const struct run *r)
{
    uint64_t chunk = run_amount(&r->profile->chunk, RUN_CHUNK);
    if (!run_keeps_cache(r) || r->setup.evict == EVICT_AFTER)
        return chunk;
    uint64_t share =
        r->placement.cache / (r->setup.scope == SCOPE_LAYER ? r->model->layer_count : 1);
    uint64_t fit = share / (r->top_k * model_expert_bytes_max(r->model));
    uint64_t all = r->experts * model_expert_bytes_max(r->model);
    if (share >= all || fit >= chunk)
        return chunk;
    return fit ? fit : 1;
}

static enum status start_decisions(struct run *r, struct diag *dg)
{
    const struct pipeline_setup *s = &r->setup;
    bool fixed = !s->trace && !s->params;
    if (fixed) {
        pcg_stream(&r->fixed_chance, s->seed, "routing/fixed");
        return ST_OK;
    }
    pcg_stream(&r->recall_chance, s->seed, "prefetch/recall");
    struct decide_setup d = {
        .policy = s->policy,
        .prefetch = s->prefetch,
        .scope = s->scope,
        .evict = s->evict,
        .layers = (uint32_t)r->model->layer_count,
        .experts = r->experts,
        .expert_bytes = r->expert_bytes,
        .budget_bytes = run_keeps_cache(r) ? r->placement.cache : 0,
        .prefetch_bytes_max = s->prefetch_bytes_max,
        .prefetch_distance = s->prefetch_distance,
        .prefetch_experts_max = s->prefetch_experts_max,
        .seed = s->seed,
    };
    uint64_t width = run_sequences(r) * (1 + s->draft);
    uint64_t most = width * r->top_k < r->experts ? width * r->top_k : r->experts;
    uint64_t batch_max = most * model_expert_bytes_max(r->model);
    enum status st = ST_OK;
    if (s->trace) {
        st = feed_new(&r->feed, s->trace, decide_batch_limit(&d), dg);
        if (st == ST_OK && s->policy->clairvoyant) {
            st = feed_future(&r->future, r->feed, s->scope, dg);
            if (st == ST_OK)
                d.future = future_list(r->future);
        }
        if (st == ST_OK && r->feed->batch_bytes_max > batch_max)
            batch_max = r->feed->batch_bytes_max;
    }
    /* A cache that shrinks while it runs still holds what a chunk of the prompt unites. */
    uint64_t chunk = chunk_tokens(r);
    chunk = (chunk < s->prompt_tokens ? chunk : s->prompt_tokens) * r->top_k;
    chunk = (chunk < r->experts ? chunk : r->experts) * model_expert_bytes_max(r->model);
    r->cache_least = decide_minimum_bytes(&d, s->trace ? batch_max : fixed_max(batch_max, chunk));
    return st == ST_OK ? decide_new(&r->decide, &d, batch_max, dg) : st;
}

static enum status start_routing(struct run *r, struct diag *dg)
{
    const struct pipeline_setup *s = &r->setup;
    struct routing_setup q = {
        .kind = s->trace    ? ROUTING_TRACE
                : s->params ? ROUTING_GENERATED
                            : ROUTING_FIXED,
        .feed = r->feed,
        .params = s->params,
        .layers = (uint32_t)r->model->layer_count,
        .experts = r->experts,
        .top_k = r->top_k,
        .layer = r->layer_bytes,
        .prompt_tokens = s->prompt_tokens,
        .chunk = chunk_tokens(r),
        .decode_tokens = s->warmup + s->tokens,
        .requests = s->requests,
        .batch = s->batch,
        .draft = s->draft,
        .acceptance = s->acceptance,
        .seed = s->seed,
    };
    if (s->prefetch && s->prefetch->from_outside && !s->prefetch->needs_future) {
        q.guess_distance = s->prefetch_distance;
        q.guess_count = s->prefetch_experts_max;
    }
    return routing_new(&r->routing, &q, dg);
}

static enum status start_timeline(struct run *r, struct diag *dg)
{
    struct timeline *t = r->setup.timeline;
    uint32_t lane;
    if (!t)
        return ST_OK;
    enum status st = timeline_lane(&lane, t, r->machine.unit, dg);
    if (st == ST_OK) {
        unit_trace(r->unit, t, lane);
        unit_trace(r->expert_unit, t, lane);
        st = timeline_lane(&r->stall_lane, t, "waiting", dg);
    }
    if (st == ST_OK)
        st = timeline_lane(&lane, t, "storage", dg);
    if (st == ST_OK) {
        loader_trace(r->loader, t, lane, r->experts);
        st = timeline_track(&r->cache_track, t, "expert cache", "bytes", 0, dg);
    }
    if (st == ST_OK)
        st = timeline_track(&r->heat_track, t, "chip temperature", "C", 3, dg);
    return st;
}

static void adopt(struct value *of_profile, const struct value *of_machine)
{
    if (of_machine->given)
        *of_profile = *of_machine;
}

/* What the machine was measured to cost this very engine takes the place of the profile's figures. */
static void adopt_host(struct run *r)
{
    const struct host_costs *h = &r->setup.device->host;
    if (!h->engine || strcmp(h->engine, r->profile->name) != 0)
        return;
    r->adopted = *r->profile;
    adopt(&r->adopted.submit, &h->submit);
    adopt(&r->adopted.complete, &h->complete);
    adopt(&r->adopted.wake, &h->wake);
    adopt(&r->adopted.wake_busy, &h->wake_busy);
    adopt(&r->adopted.predict, &h->predict);
    adopt(&r->adopted.layer_overhead, &h->layer_overhead);
    adopt(&r->adopted.token_overhead, &h->token_overhead);
    r->resume_ns = run_amount(&h->resume, 0);
    r->resume_layer_ns = run_amount(&h->resume_layer, 0);
    r->profile = &r->adopted;
}

enum status run_start(struct run *r, struct diag *dg)
{
    adopt_host(r);
    const struct engine_profile *p = r->profile;
    r->lanes = r->setup.lanes ? r->setup.lanes : run_amount(&p->lanes, 4);
    r->pieces = r->setup.pieces ? r->setup.pieces : run_amount(&p->pieces, 3);
    r->overlap = r->setup.overlap >= 0 ? (enum overlap)r->setup.overlap : (enum overlap)p->overlap;
    if (r->overlap == OVERLAP_EXPERT && p->overlap == OVERLAP_READY)
        r->overlap = OVERLAP_READY; /* as this engine overlaps */
    struct machine_choice choice = {
        .cards = 1,
        .rates = RATES_REACHED,
        .eight_bit = true,
    };
    machine_name_units(&choice, r->setup.unit, r->unit_names);
    enum status st = machine_init(&r->machine, r->setup.device, &choice, dg);
    if (st == ST_OK)
        st = find_shape(r, dg);
    if (r->setup.prefetch_distance == 0)
        r->setup.prefetch_distance = 1;
    if (r->setup.prefetch_experts_max == 0)
        r->setup.prefetch_experts_max = r->top_k;
    if (st == ST_OK)
        st = run_place(r, dg);
    if (st == ST_OK)
        st = run_start_resources(r, dg);
    if (st == ST_OK)
        st = start_decisions(r, dg);
    if (st == ST_OK)
        st = start_routing(r, dg);
    if (st != ST_OK)
        return st;
    if (st == ST_OK && evq_reserve(r->q, 2) != ST_OK) /* reads ahead of this layer and the next */
        st = diag_no_memory(dg);
    if (st == ST_OK && r->setup.prefetch_timed)
        st = timed_init(&r->timed, 4 * r->experts, dg);
    if (st == ST_OK)
        st = environment_start(r, dg);
    if (st == ST_OK)
        st = start_timeline(r, dg);
    if (st != ST_OK)
        return st;
    r->token_ns = calloc(RUN_PASS_TIMES, sizeof *r->token_ns);
    r->pass_stride = 1;
    return r->token_ns ? ST_OK : diag_no_memory(dg);
}

void run_stop(struct run *r)
{
    routing_free(r->routing);
    decide_free(r->decide);
    future_free(r->future);
    feed_free(r->feed);
    loader_free(r->loader);
    page_cache_free(r->page_cache);
    if (r->expert_unit != r->unit)
        unit_free(r->expert_unit);
    unit_free(r->unit);
    array_free(r->array);
    flow_net_free(r->net);
    evq_free(r->q);
    free(r->layer_bytes);
    free(r->expert_bytes);
    free(r->slot_of);
    free(r->choice);
    free(r->choice_of);
    free(r->ahead);
    free(r->guessed);
    free(r->token_ns);
    free(r->flash_read);
    free(r->layer_late);
    timed_free(&r->timed);
}
