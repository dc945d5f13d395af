/* engine.c -- see engine.h. */
#include "kernels/graph/engine.h"

#include "kernels/graph/adapter.h"
#include "kernels/graph/forced_route.h"
#include "kernels/graph/memory_plan.h"
#include "kernels/heads/heads.h"

#include <stdlib.h>

struct engine {
    struct engine_setup setup;
    struct graph_weights *weights;
    struct adapters *adapters;
    struct heads *heads;
    struct workers *workers;
    struct forced_route *route;
    struct experts *experts;
    struct graph *graph;
    struct record record;
    struct compute_setup compute;
    uint64_t passes;
};

/* ---- memory ---- */

static uint64_t held_bytes(const struct engine *e)
{
    return adapters_bytes(e->adapters) + heads_bytes(e->heads);
}

static struct foreseen_setup foreseen_of(const struct engine *e)
{
    const struct engine_setup *s = &e->setup;
    size_t prompt = 0, generate = 0;
    if (e->route)
        forced_route_run(e->route, &prompt, &generate);
    if (s->run_prompt)
        prompt = s->run_prompt;
    if (s->run_generate != ENGINE_AS_TRACED)
        generate = s->run_generate;
    return (struct foreseen_setup){forced_route_of(e->route), prompt, generate ? generate - 1 : 0};
}

static struct experts_setup experts_setup_of(struct engine *e)
{
    const struct engine_setup *s = &e->setup;
    return (struct experts_setup){
        .weights = e->weights,
        .compute = e->compute,
        .decide = s->decide,
        .foreseen = foreseen_of(e),
        .prefetch_timed = s->prefetch_timed,
        .decisions_path = s->decisions,
        .pack_path = s->pack,
        .loader = s->loader,
        .direct = s->direct,
        .overlap = s->overlap,
        .chunk = s->chunk,
        .record = &e->record,
    };
}

/* What is left for the cache: of the memory given, or of what the system can give now. Passes become shorter where the
 * memory has no room for their buffers. */
static enum status choose_budget(struct engine *e, struct diag *dg)
{
    struct engine_setup *s = &e->setup;
    if (s->decide.budget_bytes || model_experts_bytes(e->weights->model) == 0)
        return ST_OK;
    struct experts_setup experts = experts_setup_of(e);
    struct memory_plan_setup plan = {.experts = &experts,
                                     .context = s->context,
                                     .chunk = s->chunk,
                                     .held_bytes = held_bytes(e),
                                     .memory_bytes = s->memory_bytes};
    struct memory_plan made;
    enum status st = memory_plan_make(&made, &plan, dg);
    if (st != ST_OK)
        return st;
    s->chunk = made.chunk;
    s->decide.budget_bytes = made.cache_bytes;
    return ST_OK;
}

/* ---- set-up ---- */

static enum status open_trace(struct engine *e, struct diag *dg)
{
    const struct model *m = e->weights->model;
    struct trace_layer *layer = calloc(m->layer_count, sizeof *layer);
    if (!layer)
        return diag_no_memory(dg);
    const uint64_t *expert_bytes = experts_decisions(e->experts)->expert_bytes;
    for (size_t l = 0; l < m->layer_count; l++) {
        for (int g = 0; g < GROUP_MAX; g++)
            if (g != GROUP_EXPERT)
                layer[l].dense_bytes += m->layers[l].weight_bytes[g];
        layer[l].expert_bytes = m->layers[l].ffn.experts ? expert_bytes[l] : 0;
    }
    enum status st =
        trace_builder_new(&e->record.trace, m->name, (uint32_t)m->layer_count,
                          (uint32_t)model_experts(m), (uint32_t)model_top_k(m), layer, dg);
    free(layer);
    return st;
}

static enum status open_timeline(struct engine *e, struct diag *dg)
{
    struct record *r = &e->record;
    enum status st = timeline_new(&r->timeline, TIMELINE_CAPACITY_USUAL, dg);
    if (st == ST_OK)
        st = timeline_lane(&r->compute_lane, r->timeline, "compute", dg);
    if (st == ST_OK)
        st = timeline_lane(&r->storage_lane, r->timeline, "storage", dg);
    if (st == ST_OK)
        st = timeline_note(r->timeline, "model", e->weights->model->name, dg);
    return st;
}

static enum status open_experts(struct engine *e, struct diag *dg)
{
    struct experts_setup x = experts_setup_of(e);
    return experts_new(&e->experts, &x, dg);
}

static enum status open_graph(struct engine *e, struct diag *dg)
{
    const struct engine_setup *s = &e->setup;
    const struct decide_setup *d = experts_decisions(e->experts);
    struct graph_setup g = {
        .weights = e->weights,
        .compute = e->compute,
        .experts = e->experts,
        .context = s->context,
        .chunk = s->chunk,
        .route = forced_route_of(e->route),
        .predict_distance = s->predict_distance,
        .predict_count = d->prefetch_experts_max,
        .predict = s->predict,
        .predict_self = s->predict_self,
        .record = &e->record,
    };
    return graph_new(&e->graph, &g, dg);
}

static enum status open_heads(struct engine *e, struct diag *dg)
{
    struct engine_setup *s = &e->setup;
    enum status st = heads_load(&e->heads, s->heads, e->weights, dg);
    if (st != ST_OK)
        return st;
    if (e->heads->distance != s->predict_distance)
        return diag_set(dg, ST_MISFIT, "%s: heads for a distance of %zu layers, not %zu", s->heads,
                        e->heads->distance, s->predict_distance);
    s->predict = heads_predict;
    s->predict_self = e->heads;
    return ST_OK;
}

static enum status open_parts(struct engine *e, struct diag *dg)
{
    struct engine_setup *s = &e->setup;
    enum status st = isa_choose(&e->compute.isa, s->isa, dg);
    if (st == ST_OK)
        st = graph_weights_load(&e->weights, s->model, s->progress, s->progress_self, dg);
    if (st == ST_OK && s->adapter_count > 0)
        st = adapters_load(&e->adapters, e->weights, s->adapters, s->adapter_count, dg);
    if (e->adapters)
        adapters_apply(e->adapters, e->weights);
    if (st == ST_OK && s->heads)
        st = open_heads(e, dg);
    if (st == ST_OK)
        st = workers_new(&e->workers, s->threads, dg);
    if (st == ST_OK && s->route)
        st = forced_route_load(&e->route, s->route, e->weights->model, dg);
    if (st != ST_OK)
        return st;
    e->compute.workers = e->workers;
    e->compute.activations_f32 = s->activations_f32;
    e->compute.watch = s->watch;
    e->compute.watch_self = s->watch_self;
    if (s->context == 0 && e->route)
        s->context = forced_route_tokens(e->route);
    if (s->context == 0)
        s->context = e->weights->model->max_context;
    st = choose_budget(e, dg);
    if (st == ST_OK)
        st = open_experts(e, dg);
    if (st == ST_OK && s->record_trace)
        st = open_trace(e, dg);
    if (st == ST_OK && s->record_timeline)
        st = open_timeline(e, dg);
    return st == ST_OK ? open_graph(e, dg) : st;
}

enum status engine_open(struct engine **out, const struct engine_setup *s, struct diag *dg)
{
    struct engine *e = calloc(1, sizeof *e);
    if (!e)
        return diag_no_memory(dg);
    e->setup = *s;
    if (e->setup.threads == 0)
        e->setup.threads = host_processors();
    if (e->setup.chunk == 0)
        e->setup.chunk = ENGINE_CHUNK;
    enum status st = open_parts(e, dg);
    if (st != ST_OK) {
        engine_close(e);
        return st;
    }
    e->record.start_ns = record_now_ns();
    *out = e;
    return ST_OK;
}

void engine_close(struct engine *e)
{
    if (!e)
        return;
    graph_free(e->graph);
    experts_free(e->experts);
    trace_builder_free(e->record.trace);
    timeline_free(e->record.timeline);
    forced_route_free(e->route);
    workers_free(e->workers);
    heads_free(e->heads);
    adapters_free(e->adapters);
    graph_weights_free(e->weights);
    free(e);
}

/* ---- passes ---- */

#define SINCE(member) p->member = now->member - before->member
static void sums_since(struct record_sums *p, const struct record_sums *now,
                       const struct record_sums *before)
{
    for (int o = 0; o < OPERATION_COUNT; o++)
        SINCE(operation_ns[o]);
    SINCE(late_hits);
    SINCE(payload_bytes);
    SINCE(device_bytes);
    SINCE(reads);
    SINCE(stalls);
    SINCE(read_span_ns);
    SINCE(overlap_ns);
}

static void counts_since(struct decide_counts *p, const struct decide_counts *now,
                         const struct decide_counts *before)
{
    SINCE(lookups);
    SINCE(hits);
    SINCE(misses);
    SINCE(prefetches);
    SINCE(prefetch_used);
    SINCE(prefetch_wasted);
    SINCE(evictions);
    SINCE(pollution);
    SINCE(demand_bytes);
    SINCE(prefetch_bytes);
    SINCE(prefetch_wasted_bytes);
    p->command_hash = now->command_hash;
}
#undef SINCE

static enum status run_pass(struct engine *e, const uint32_t *tokens, size_t n,
                            enum trace_phase phase, enum graph_logits which, float *logits,
                            struct diag *dg)
{
    struct record_sums sums = e->record.sums;
    struct decide_counts counts = *experts_counts(e->experts);
    struct engine_pass p = {.pass = e->passes, .phase = phase, .tokens = n, .first_token = *tokens};
    struct host_meter before = {0};
    bool heard = e->setup.on_pass; /* reading the meter costs; only for who listens */
    if (heard)
        host_meter_read(&before);
    uint64_t start = record_now_ns();
    enum status st = graph_pass(e->graph, tokens, n, phase, which, logits, dg);
    if (st != ST_OK)
        return st;
    e->passes++;
    p.start_ns = start - e->record.start_ns;
    p.wall_ns = record_now_ns() - start;
    sums_since(&p.sums, &e->record.sums, &sums);
    counts_since(&p.counts, experts_counts(e->experts), &counts);
    p.io_wait_ns = p.sums.operation_ns[OPERATION_STALL];
    p.compute_ns = p.wall_ns - (p.io_wait_ns < p.wall_ns ? p.io_wait_ns : p.wall_ns);
    if (!heard)
        return ST_OK;
    host_meter_read(&p.host);
    p.host.major_faults -= before.major_faults;
    p.host.stolen_ns -= before.stolen_ns < p.host.stolen_ns ? before.stolen_ns : p.host.stolen_ns;
    e->setup.on_pass(e->setup.on_pass_self, &p);
    return ST_OK;
}

enum status engine_prompt(struct engine *e, const uint32_t *tokens, size_t n, float *logits,
                          float *last, struct diag *dg)
{
    enum status st = ST_OK;
    size_t vocab = e->weights->model->vocab;
    for (size_t at = 0; st == ST_OK && at < n;) {
        size_t chunk = graph_chunk(e->graph), count = n - at < chunk ? n - at : chunk;
        bool ends = at + count == n;
        enum graph_logits which = logits ? LOGITS_ALL : ends && last ? LOGITS_LAST : LOGITS_NONE;
        st = run_pass(e, tokens + at, count, PHASE_PREFILL, which,
                      logits ? logits + at * vocab : last, dg);
        at += count;
    }
    return st;
}

enum status engine_step(struct engine *e, uint32_t token, float *logits, struct diag *dg)
{
    return run_pass(e, &token, 1, PHASE_DECODE, logits ? LOGITS_LAST : LOGITS_NONE, logits, dg);
}

/* ---- what was recorded, and what there is ---- */

enum status engine_save_trace(struct engine *e, const char *path, struct diag *dg)
{
    struct trace *t;
    enum status st = trace_builder_finish(e->record.trace, &t, dg);
    e->record.trace = NULL;
    if (st != ST_OK)
        return st;
    st = trace_save(t, path, dg);
    trace_free(t);
    return st;
}

enum status engine_save_decisions(struct engine *e, struct diag *dg)
{
    return experts_save_decisions(e->experts, dg);
}

enum status engine_save_timeline(struct engine *e, const char *path, struct diag *dg)
{
    return timeline_save(e->record.timeline, path, dg);
}

const struct graph_weights *engine_weights(const struct engine *e)
{
    return e->weights;
}

const struct compute_setup *engine_compute(const struct engine *e)
{
    return &e->compute;
}

struct graph *engine_graph(const struct engine *e)
{
    return e->graph;
}

const struct experts *engine_experts(const struct engine *e)
{
    return e->experts;
}

const struct record_sums *engine_sums(const struct engine *e)
{
    return &e->record.sums;
}

const struct forced_route *engine_route(const struct engine *e)
{
    return e->route;
}

const char *engine_isa(const struct engine *e)
{
    return e->compute.isa->name;
}

size_t engine_threads(const struct engine *e)
{
    return workers_threads(e->workers);
}

uint64_t engine_memory_bytes(const struct engine *e)
{
    return e->weights->dense_bytes + held_bytes(e) + experts_arena_bytes(e->experts) +
           graph_state_bytes(e->graph);
}
