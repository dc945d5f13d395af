/* run.c -- builds a run from its descriptions, drives it pass by pass and reports. */
#include "sim/pipeline/pipeline.h"

#include "base/fixed.h"
#include "sim/pipeline/run_state.h"
#include "sim/roofline/estimate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512 }; /* prompt tokens a pass takes unless the profile says */

static uint64_t amount_or(const struct value *v, uint64_t fallback)
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
    if (!r->layer_bytes || !r->expert_bytes || !r->slot_of || !r->choice || !r->choice_of)
        return diag_no_memory(dg);
    for (uint32_t l = 0; l < layers; l++) {
        r->expert_bytes[l] = t ? t->layer[l].expert_bytes : m->layers[l].expert_bytes;
        r->layer_bytes[l].expert_bytes = r->expert_bytes[l];
    }
    return ST_OK;
}

/* ---- memory ---- */

static bool keeps_cache(const struct run *r)
{
    return r->setup.policy && !r->setup.policy->keeps_nothing;
}

static enum status place(struct run *r, struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    struct placement_request q = {
        .memory = r->setup.memory_bytes,
        .cache = keeps_cache(r) ? r->setup.cache_bytes : 0,
        .cache_given = r->setup.cache_given || !keeps_cache(r),
        .context = r->setup.context + r->setup.prompt_tokens + r->setup.tokens,
        .state_bits = r->setup.state_bits,
        .lanes = r->lanes,
        .pieces = r->pieces,
        .chunk = amount_or(&p->chunk, CHUNK),
        .stream_dense = p->dense == DENSE_STREAMED,
    };
    enum status st = placement_find(&r->placement, r->model, r->setup.device, &r->machine, &q, dg);
    if (st != ST_OK)
        return st;
    if (p->dense == DENSE_STREAMED && r->placement.stream_trunk == 0 && !p->embed_streamed)
        return ST_OK;
    if (p->embed_streamed) { /* the engine re-reads everything, whatever would fit */
        r->placement.stream_trunk = RATIO_ONE;
        r->placement.stream_bytes = r->model->bytes_embedding + r->model->bytes_head;
    }
    return ST_OK;
}

/* ---- decisions ---- */

static enum status start_decisions(struct run *r, struct diag *dg)
{
    const struct pipeline_setup *s = &r->setup;
    bool fixed = !s->trace && !s->params;
    if (fixed) {
        pcg_stream(&r->fixed_chance, s->seed, "routing/fixed");
        return ST_OK;
    }
    struct decide_setup d = {
        .policy = s->policy,
        .prefetch = s->prefetch,
        .scope = s->scope,
        .evict = s->evict,
        .layers = (uint32_t)r->model->layer_count,
        .experts = r->experts,
        .expert_bytes = r->expert_bytes,
        .budget_bytes = keeps_cache(r) ? r->placement.cache : 0,
        .prefetch_bytes_max = s->prefetch_bytes_max,
        .prefetch_distance = s->prefetch_distance ? s->prefetch_distance : 1,
        .prefetch_experts_max = s->prefetch_experts_max ? s->prefetch_experts_max : r->top_k,
        .seed = s->seed,
    };
    uint64_t batch_max = r->top_k * model_expert_bytes_max(r->model);
    enum status st = ST_OK;
    if (s->trace) {
        st = feed_new(&r->feed, s->trace, decide_batch_limit(&d), dg);
        if (st == ST_OK && s->policy->clairvoyant) {
            st = futures_new(&r->futures, r->feed, s->scope, dg);
            if (st == ST_OK)
                d.future = futures_list(r->futures);
        }
        if (st == ST_OK)
            batch_max = r->feed->batch_bytes_max;
    }
    return st == ST_OK ? decide_new(&r->decide, &d, batch_max, dg) : st;
}

/* A generated prompt chunk must fit the budget whatever it unites. */
static uint64_t chunk_tokens(const struct run *r)
{
    uint64_t chunk = amount_or(&r->profile->chunk, CHUNK);
    if (!keeps_cache(r) || r->setup.evict == EVICT_AFTER)
        return chunk;
    uint64_t share =
        r->placement.cache / (r->setup.scope == SCOPE_LAYER ? r->model->layer_count : 1);
    uint64_t fit = share / (r->top_k * model_expert_bytes_max(r->model));
    uint64_t all = r->experts * model_expert_bytes_max(r->model);
    if (share >= all || fit >= chunk)
        return chunk;
    return fit ? fit : 1;
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
        .decode_tokens = s->tokens,
        .seed = s->seed,
    };
    if (s->prefetch && s->prefetch->from_outside && !s->prefetch->needs_future) {
        q.guess_distance = s->prefetch_distance ? s->prefetch_distance : 1;
        q.guess_count = s->prefetch_experts_max ? s->prefetch_experts_max : r->top_k;
    }
    return routing_new(&r->routing, &q, dg);
}

/* ---- resources ---- */

static enum status start_array(struct run *r, struct diag *dg)
{
    if (r->setup.given_io_ns)
        return ST_OK;
    struct array_setup a = {
        .device = r->setup.device,
        .layout = ARRAY_STRIPED,
        .lanes = (uint32_t)r->lanes,
        .reads_max = (uint32_t)r->lanes + 16,
        .net = r->net,
        .dram = r->dram,
        .dram_weight = 1,
        .jitter_e3 = r->setup.jitter_e3,
        .seed = r->setup.seed,
    };
    return array_new(&r->array, r->q, &a, dg);
}

static enum status start_unit(struct run *r, struct diag *dg)
{
    const struct machine *m = &r->machine;
    uint64_t share = amount_or(&r->profile->kernel_efficiency, RATIO_ONE);
    struct unit_setup u = {
        .net = r->net,
        .memory = r->dram,
        .weight =
            (uint32_t)(r->setup.threads ? r->setup.threads : amount_or(&r->profile->threads, 4)),
        .memory_Bps = fixed_mul_div(m->memory_Bps, share, RATIO_ONE),
        .ops_per_s = m->reached_ops,
        .call_ns = m->call_ns,
        .given_ns = r->setup.given_compute_ns,
    };
    if (m->own_memory) { /* kernels read the unit's own memory, not the DRAM that reads land in */
        enum status st = flow_resource_add(r->net, m->memory_Bps, &u.memory, dg);
        if (st != ST_OK)
            return st;
    }
    return unit_new(&r->unit, r->q, &u, dg);
}

/* The largest request that reaches the drive: the engine's own limit, or what the kernel reads ahead. */
static uint64_t request_max(const struct engine_profile *p)
{
    uint64_t own = amount_or(&p->request_max, 0);
    uint64_t ahead = p->io == IO_DIRECT ? 0 : amount_or(&p->readahead, 0);
    return own && (!ahead || own < ahead) ? own : ahead;
}

static enum status start_loader(struct run *r, struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    const struct value *thread = &r->setup.device->dram.thread_bandwidth;
    uint64_t smallest = UINT64_MAX;
    for (size_t l = 0; l < r->model->layer_count; l++)
        if (r->expert_bytes[l] && r->expert_bytes[l] < smallest)
            smallest = r->expert_bytes[l];
    uint64_t keys = r->model->layer_count * r->experts;
    uint64_t slots = keys + r->experts;
    struct loader_setup l = {
        .array = r->array,
        .unit = r->unit,
        .net = r->net,
        .dram = r->dram,
        .dram_weight = 1,
        .copy_Bps = thread->given ? thread->amount : r->machine.dram_Bps / 4,
        .page_cache = r->page_cache,
        .lanes = (uint32_t)r->lanes,
        .slots = (uint32_t)slots,
        .loads_max = (uint32_t)(2 * keys + r->experts + 64),
        .pieces = r->pieces,
        .request_max = request_max(p),
        .copies = amount_or(&p->copies, 0),
        .shares_cores = p->loader_shares_cores,
        .open_ns = amount_or(&p->open, 0),
        .submit_ns = amount_or(&p->submit, 0) + (p->io == IO_MMAP ? amount_or(&p->fault, 0) : 0),
        .complete_ns = amount_or(&p->complete, 0),
        .wake_ns = amount_or(&p->wake, 0),
        .wake_busy_ns = amount_or(&p->wake_busy, 0),
    };
    return loader_new(&r->loader, r->q, &l, dg);
}

/* What the operating system may keep of the file: all that the run leaves of the memory. */
static enum status start_page_cache(struct run *r, struct diag *dg)
{
    if (r->profile->io == IO_DIRECT)
        return ST_OK;
    uint32_t keys = (uint32_t)(r->model->layer_count * (r->experts + 1) + 2);
    return page_cache_new(&r->page_cache, keys, r->placement.spare, dg);
}

static enum status start_resources(struct run *r, struct diag *dg)
{
    if (evq_new(&r->q, 64) != ST_OK)
        return diag_no_memory(dg);
    enum status st = flow_net_new(&r->net, r->q, (uint32_t)r->lanes * 4 + 64, dg);
    if (st == ST_OK)
        st = flow_resource_add(r->net, r->machine.dram_Bps, &r->dram, dg);
    if (st == ST_OK)
        st = start_array(r, dg);
    if (st == ST_OK)
        st = start_unit(r, dg);
    if (st == ST_OK)
        st = start_page_cache(r, dg);
    return st == ST_OK ? start_loader(r, dg) : st;
}

static enum status start(struct run *r, struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    r->lanes = r->setup.lanes ? r->setup.lanes : amount_or(&p->lanes, 4);
    r->pieces = r->setup.pieces ? r->setup.pieces : amount_or(&p->pieces, 3);
    r->overlap = r->setup.overlap >= 0 ? (enum overlap)r->setup.overlap : (enum overlap)p->overlap;
    struct machine_choice choice = {
        .unit = r->setup.unit,
        .cards = 1,
        .rates = RATES_REACHED,
        .eight_bit = true,
    };
    enum status st = machine_init(&r->machine, r->setup.device, &choice, dg);
    if (st == ST_OK)
        st = find_shape(r, dg);
    if (st == ST_OK)
        st = place(r, dg);
    if (st == ST_OK)
        st = start_resources(r, dg);
    if (st == ST_OK)
        st = start_decisions(r, dg);
    if (st == ST_OK)
        st = start_routing(r, dg);
    if (st != ST_OK)
        return st;
    r->token_ns = calloc(r->setup.tokens ? r->setup.tokens : 1, sizeof *r->token_ns);
    return r->token_ns ? ST_OK : diag_no_memory(dg);
}

static void stop(struct run *r)
{
    routing_free(r->routing);
    decide_free(r->decide);
    futures_free(r->futures);
    feed_free(r->feed);
    loader_free(r->loader);
    page_cache_free(r->page_cache);
    unit_free(r->unit);
    array_free(r->array);
    flow_net_free(r->net);
    evq_free(r->q);
    free(r->layer_bytes);
    free(r->expert_bytes);
    free(r->slot_of);
    free(r->choice);
    free(r->choice_of);
    free(r->token_ns);
}

/* ---- passes ---- */

static void look_ups(const struct run *r, uint64_t *lookups, uint64_t *hits)
{
    *lookups = r->decide ? decide_counts(r->decide)->lookups : r->fixed_lookups;
    *hits = r->decide ? decide_counts(r->decide)->hits : r->fixed_hits;
}

static void begin_accounts(struct run *r)
{
    uint64_t now = evq_now_ns(r->q);
    struct loader_counts c = loader_counts(r->loader, now);
    r->pass_start_ns = now;
    r->pass_compute_ns = unit_busy_ns(r->unit);
    r->pass_io_ns = c.demand_busy_ns;
    r->pass_read_bytes = c.bytes;
    r->pass_stall_ns = r->stall_ns;
    r->pass_late_hits = r->late_hits;
    look_ups(r, &r->pass_lookups, &r->pass_hits);
}

static void count_token(struct run *r, uint64_t now)
{
    struct pipeline_result *out = r->result;
    struct loader_counts c = loader_counts(r->loader, now);
    uint64_t lookups, hits;
    look_ups(r, &lookups, &hits);
    struct pipeline_token t = {
        .index = out->tokens,
        .start_ns = r->pass_start_ns,
        .end_ns = now,
        .compute_ns = unit_busy_ns(r->unit) - r->pass_compute_ns,
        .io_ns = c.demand_busy_ns - r->pass_io_ns,
        .stall_ns = r->stall_ns - r->pass_stall_ns,
        .read_bytes = c.bytes - r->pass_read_bytes,
        .lookups = lookups - r->pass_lookups,
        .hits = hits - r->pass_hits,
        .late_hits = r->late_hits - r->pass_late_hits,
    };
    if (out->tokens == 0)
        out->first_token_ns = t.end_ns - t.start_ns;
    r->token_ns[out->tokens++] = t.end_ns - t.start_ns;
    out->decode_ns += t.end_ns - t.start_ns;
    out->compute_ns += t.compute_ns;
    out->io_ns += t.io_ns;
    out->stall_ns += t.stall_ns;
    out->flash_bytes += t.read_bytes;
    out->lookups += t.lookups;
    out->hits += t.hits;
    out->late_hits += t.late_hits;
    if (r->setup.token)
        r->setup.token(r->setup.token_self, &t);
}

static void next_pass(struct run *r)
{
    if (!routing_next(r->routing, &r->pass)) {
        r->over = true;
        return;
    }
    begin_accounts(r);
    layer_begin_pass(r);
}

void run_pass_over(struct run *r)
{
    uint64_t now = evq_now_ns(r->q);
    if (r->pass.phase == PHASE_DECODE)
        count_token(r, now);
    else
        r->result->prefill_ns += now - r->pass_start_ns;
    r->position += r->pass.tokens;
    r->pass_count++;
    next_pass(r);
}

/* ---- the measured time of a token's kernels, shared out ---- */

/* Closed-form time of one decode token's kernels at the starting context: what given_ns is shared by. */
static uint64_t kernels_ns(struct run *r)
{
    uint64_t sum = 0;
    r->pass.tokens = 1;
    for (r->layer = 0; r->layer < r->model->layer_count; r->layer++) {
        layer_kernels(r, r->layer, &r->kernels);
        struct kernel experts = {.ops = r->top_k * r->kernels.expert_ops,
                                 .bytes = r->top_k * r->kernels.expert_bytes,
                                 .calls = r->kernels.expert_bytes > 0};
        sum += unit_estimate_ns(r->unit, &r->kernels.fixed) +
               unit_estimate_ns(r->unit, &r->kernels.shared) + unit_estimate_ns(r->unit, &experts);
    }
    struct kernel head = head_kernel(r);
    return sum + unit_estimate_ns(r->unit, &head);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void finish(struct run *r)
{
    struct pipeline_result *out = r->result;
    qsort(r->token_ns, out->tokens, sizeof *r->token_ns, by_size);
    if (out->tokens > 0) {
        out->token_ns_p50 = r->token_ns[(out->tokens - 1) / 2];
        out->token_ns_p99 = r->token_ns[(out->tokens * 99 + 99) / 100 - 1];
    }
    if (r->decide)
        out->counts = *decide_counts(r->decide);
    out->cut = r->feed && r->feed->cut;
    out->cache_bytes = keeps_cache(r) ? r->placement.cache : 0;
    out->page_cache_bytes = r->page_cache ? page_cache_used(r->page_cache) : 0;
    out->peak_bytes =
        r->placement.dense_resident + r->placement.state + r->placement.buffers +
        (r->decide ? decide_peak_bytes(r->decide) : r->top_k * model_expert_bytes_max(r->model));
    out->events = evq_fired(r->q);
    out->fingerprint = evq_fingerprint(r->q);
    uint64_t busy = out->compute_ns, wait = out->stall_ns;
    out->bound = wait > busy ? "flash" : "compute";
}

enum status pipeline_run(struct pipeline_result *out, const struct pipeline_setup *s,
                         struct diag *dg)
{
    struct run r = {.setup = *s, .model = s->model, .profile = s->profile, .result = out};
    *out = (struct pipeline_result){0};
    r.position = s->context;
    enum status st = start(&r, dg);
    if (st == ST_OK) {
        if (s->given_compute_ns)
            unit_share(r.unit, kernels_ns(&r));
        next_pass(&r);
        while (evq_step(r.q))
            ;
        if (r.failure == ST_MISFIT)
            st = diag_set(dg, ST_MISFIT,
                          "prefetches pile up faster than the drive reads: lower the prefetch "
                          "budget");
        else if (r.failure != ST_OK)
            st = diag_no_memory(dg);
        assert(st != ST_OK || r.over);
    }
    if (st == ST_OK)
        finish(&r);
    stop(&r);
    return st;
}
