/* run_setup.c -- builds a run from its descriptions: shape, memory, decisions, routing, resources. */
#include "base/fixed.h"
#include "sim/pipeline/run_state.h"
#include "sim/roofline/estimate.h"

#include <stdlib.h>

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
    r->layer_late = calloc(layers, sizeof *r->layer_late);
    if (!r->layer_late || !r->layer_bytes || !r->expert_bytes || !r->slot_of || !r->choice ||
        !r->choice_of)
        return diag_no_memory(dg);
    for (uint32_t l = 0; l < layers; l++) {
        r->expert_bytes[l] = t ? t->layer[l].expert_bytes : m->layers[l].expert_bytes;
        r->layer_bytes[l].expert_bytes = r->expert_bytes[l];
    }
    return ST_OK;
}

/* ---- memory ---- */

static uint64_t sequences(const struct run *r)
{
    return r->setup.batch ? r->setup.batch : 1;
}

bool run_keeps_cache(const struct run *r)
{
    return r->setup.policy && !r->setup.policy->keeps_nothing;
}

/* Dense weights are pages like any others: the cache may take the memory that they would need, and they are
 * read again and again then. */
static enum status place_beside_pages(struct run *r, struct diag *dg)
{
    struct placement *p = &r->placement;
    uint64_t used = p->state + p->buffers, room = p->given > used ? p->given - used : 0;
    uint64_t wanted = !run_keeps_cache(r)        ? 0
                      : r->setup.cache_given     ? r->setup.cache_bytes
                      : room > p->dense_resident ? room - p->dense_resident
                                                 : 0;
    if (wanted > room) {
        char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
        return diag_set(dg, ST_MISFIT, "a cache of %s does not fit: %s is left for it",
                        quantity_round(a, wanted, DIM_SIZE), quantity_round(b, room, DIM_SIZE));
    }
    p->cache = wanted < p->experts ? wanted : p->experts;
    p->dense_resident = p->stream_trunk = p->stream_bytes = 0;
    p->spare = room - p->cache;
    return ST_OK;
}

/* The expert cache is what dense weights, state and buffers leave of the unit's own memory. */
static enum status place_in_vram(struct run *r, struct diag *dg)
{
    struct placement *p = &r->placement;
    uint64_t used = p->dense_resident + p->state + p->buffers;
    uint64_t room = r->machine.memory_bytes > used ? r->machine.memory_bytes - used : 0;
    uint64_t wanted = r->setup.cache_given ? r->setup.cache_bytes : p->experts;
    if (r->setup.cache_given && wanted > room) {
        char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
        return diag_set(dg, ST_MISFIT, "a cache of %s does not fit: the %s has %s left",
                        quantity_round(a, wanted, DIM_SIZE), r->machine.unit,
                        quantity_round(b, room, DIM_SIZE));
    }
    if (!p->experts_on_unit)
        p->spare += p->cache; /* of the DRAM, which now holds no expert */
    p->cache = wanted < room ? wanted : room;
    return ST_OK;
}

/* Tokens of state at the end of the longest sequence, over all sequences that decode together. */
static uint64_t context_tokens(const struct run *r)
{
    const struct pipeline_setup *s = &r->setup;
    uint64_t each = (s->warmup + s->tokens + sequences(r) - 1) / sequences(r);
    uint64_t own =
        s->prompt_tokens + each + s->draft; /* the last pass may yield more than is asked */
    if (s->trace) {
        uint64_t last = 0;
        for (size_t i = 0; i < s->trace->row_count; i++)
            last = s->trace->step[i] > last ? s->trace->step[i] : last;
        own = last + 1;
    }
    return sequences(r) * (s->context + own);
}

static enum status place(struct run *r, struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    struct placement_request q = {
        .memory = r->setup.memory_bytes,
        .cache = run_keeps_cache(r) ? r->setup.cache_bytes : 0,
        .cache_given =
            (r->setup.cache_given || !run_keeps_cache(r)) && p->dense != DENSE_PAGE_CACHE,
        .context = context_tokens(r),
        .state_bits = r->setup.state_bits,
        .lanes = r->lanes,
        .pieces = r->pieces,
        .chunk = amount_or(&p->chunk, CHUNK),
        .stream_dense = p->dense != DENSE_RESIDENT,
        .dense_most = r->setup.dense_bytes,
    };
    enum status st = placement_find(&r->placement, r->model, r->setup.device, &r->machine, &q, dg);
    if (st != ST_OK)
        return st;
    if (r->machine.own_memory && p->cache_home == HOME_VRAM)
        st = place_in_vram(r, dg);
    else if (p->dense == DENSE_PAGE_CACHE)
        st = place_beside_pages(r, dg);
    if (st != ST_OK)
        return st;
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
        .budget_bytes = run_keeps_cache(r) ? r->placement.cache : 0,
        .prefetch_bytes_max = s->prefetch_bytes_max,
        .prefetch_distance = s->prefetch_distance,
        .prefetch_experts_max = s->prefetch_experts_max,
        .seed = s->seed,
    };
    uint64_t width = sequences(r) * (1 + s->draft);
    uint64_t most = width * r->top_k < r->experts ? width * r->top_k : r->experts;
    uint64_t batch_max = most * model_expert_bytes_max(r->model);
    enum status st = ST_OK;
    if (s->trace) {
        st = feed_new(&r->feed, s->trace, decide_batch_limit(&d), dg);
        if (st == ST_OK && s->policy->clairvoyant) {
            st = futures_new(&r->futures, r->feed, s->scope, dg);
            if (st == ST_OK)
                d.future = futures_list(r->futures);
        }
        if (st == ST_OK && r->feed->batch_bytes_max > batch_max)
            batch_max = r->feed->batch_bytes_max;
    }
    r->cache_least = decide_minimum_bytes(&d, batch_max);
    return st == ST_OK ? decide_new(&r->decide, &d, batch_max, dg) : st;
}

/* A generated prompt chunk must fit the budget whatever it unites. */
static uint64_t chunk_tokens(const struct run *r)
{
    uint64_t chunk = amount_or(&r->profile->chunk, CHUNK);
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
        .dram_Bps = r->machine.dram_Bps,
        .dram_weight = 1,
        .jitter_e3 = r->setup.jitter_e3,
        .seed = r->setup.seed,
    };
    return array_new(&r->array, r->q, &a, dg);
}

static enum status new_unit(struct run *r, const struct machine *m, struct unit **out,
                            struct diag *dg)
{
    uint64_t share = amount_or(&r->profile->kernel_efficiency, RATIO_ONE);
    uint64_t threads = r->setup.threads ? r->setup.threads : amount_or(&r->profile->threads, 4);
    struct unit_setup u = {
        .net = r->net,
        .memory = r->dram,
        .weight = (uint32_t)threads,
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
    return unit_new(out, r->q, &u, dg);
}

/* The unit of the experts, if the profile puts them elsewhere than the rest. */
static enum status start_units(struct run *r, struct diag *dg)
{
    enum status st = new_unit(r, &r->machine, &r->unit, dg);
    r->expert_unit = r->unit;
    if (st != ST_OK || r->setup.unit || r->profile->site != SITE_CPU || !r->machine.own_memory)
        return st;
    struct machine cpu;
    struct machine_choice choice = {
        .unit = "cpu", .cards = 1, .rates = RATES_REACHED, .eight_bit = true};
    st = machine_init(&cpu, r->setup.device, &choice, dg);
    if (st != ST_OK)
        return st;
    /* Hidden states cross the link both ways, in 16 bits. */
    r->hop_ns = 2 * (amount_or(&r->profile->copy_sync, 0) +
                     time_for(2 * r->model->hidden, r->machine.link_Bps));
    return new_unit(r, &cpu, &r->expert_unit, dg);
}

static bool experts_leave_dram(const struct run *r)
{
    return r->machine.own_memory && r->expert_unit == r->unit && !r->placement.experts_on_unit;
}

/* The profile's share is of the raw rate; without one the link reaches what machine.h says. */
static uint64_t link_rate(const struct run *r)
{
    uint64_t share = amount_or(&r->profile->copy_rate, 0);
    uint64_t rate = fixed_mul_div(r->machine.link_raw_Bps, share, RATIO_ONE);
    return rate ? rate : r->machine.link_Bps;
}

/* Experts that the DRAM keeps cross the link whenever they are computed; those that the unit's memory
 * keeps crossed it when they were read, which is the loader's business. */
static enum status start_link(struct run *r, struct loader_setup *l, struct diag *dg)
{
    uint32_t link;
    if (!experts_leave_dram(r))
        return ST_OK;
    if (r->machine.link_Bps == 0)
        return diag_set(dg, ST_MISSING, "%s: the %s states no link_bandwidth",
                        r->setup.device->name, r->machine.unit);
    enum status st = flow_resource_add(r->net, r->machine.link_Bps, &link, dg);
    if (st != ST_OK)
        return st;
    if (r->profile->cache_home == HOME_VRAM) {
        l->link = link;
        l->link_Bps = link_rate(r);
        l->link_sync_ns = amount_or(&r->profile->copy_sync, 0);
        return ST_OK;
    }
    r->link_Bps = link_rate(r);
    r->link_sync_ns = amount_or(&r->profile->copy_sync, 0);
    uint32_t path[] = {r->dram, link};
    return flow_class_add(r->net, &(struct flow_class){path, 2, r->link_Bps, 1}, &r->link_class,
                          dg);
}

/* The largest request that reaches the drive: the engine's own limit, or what the kernel reads ahead. */
static uint64_t request_max(const struct engine_profile *p)
{
    uint64_t own = amount_or(&p->request_max, 0);
    uint64_t ahead = p->io == IO_DIRECT ? 0 : amount_or(&p->readahead, 0);
    return own && (!ahead || own < ahead) ? own : ahead;
}

/* When a token's I/O time is given, its bytes (one token cycle, or the share of it that a fixed hit ratio
 * leaves) take that long. */
static uint64_t given_Bps(const struct run *r)
{
    bool fixed = !r->setup.trace && !r->setup.params;
    uint64_t cycle = 0;
    for (size_t l = 0; l < r->model->layer_count; l++)
        cycle += r->top_k * r->expert_bytes[l];
    if (fixed)
        cycle = fixed_mul_div(cycle, RATIO_ONE - r->setup.hit_ratio, RATIO_ONE);
    uint64_t rate =
        r->setup.given_io_ns ? fixed_mul_div(cycle, 1000000000, r->setup.given_io_ns) : 0;
    return r->setup.given_io_ns && rate == 0 ? 1 : rate;
}

/* What one copying thread moves, reads and writes both counted. Where the device does not say it: four threads
 * took 29 to 32 GB/s out of the page cache of an M3 Max (flash-moe), so one moves twice 7.5 GB/s. */
static uint64_t copy_Bps(const struct run *r)
{
    const struct value *thread = &r->setup.device->dram.thread_bandwidth;
    uint64_t usual = UINT64_C(15000000000), share = r->machine.dram_Bps / 4;
    return thread->given ? thread->amount : share < usual ? share : usual;
}

static enum status start_loader(struct run *r, struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    uint64_t keys = r->model->layer_count * r->experts;
    uint64_t slots = keys + r->experts;
    struct loader_setup l = {
        .array = r->array,
        .given_Bps = given_Bps(r),
        .unit = r->unit,
        .net = r->net,
        .dram = r->dram,
        .dram_weight = 1,
        .copy_Bps = copy_Bps(r),
        .page_cache = p->io == IO_DIRECT ? NULL : r->page_cache,
        .mapped = p->io == IO_MMAP,
        .fault_bytes = amount_or(&p->fault_bytes, 0),
        .lanes = (uint32_t)r->lanes,
        .slots = (uint32_t)slots,
        .loads_max = (uint32_t)(2 * keys + r->experts + 64),
        .pieces = r->pieces,
        .request_max = request_max(p),
        .copies = amount_or(&p->copies, 0),
        .storage = r->setup.device->storage,
        .shares_cores = p->loader_shares_cores,
        .open_ns = amount_or(&p->open, 0),
        .submit_ns = amount_or(&p->submit, 0) + (p->io == IO_MMAP ? amount_or(&p->fault, 0) : 0),
        .complete_ns = amount_or(&p->complete, 0),
        .wake_ns = amount_or(&p->wake, 0),
        .wake_busy_ns = amount_or(&p->wake_busy, 0),
    };
    enum status st = start_link(r, &l, dg);
    return st == ST_OK ? loader_new(&r->loader, r->q, &l, dg) : st;
}

/* What the operating system may keep of the file: all that the run leaves of the memory. */
static enum status start_page_cache(struct run *r, struct diag *dg)
{
    if (r->profile->io == IO_DIRECT && r->profile->dense != DENSE_PAGE_CACHE)
        return ST_OK;
    uint32_t keys = (uint32_t)(r->model->layer_count * (r->experts + 1) + 2);
    return page_cache_new(&r->page_cache, keys, r->placement.spare, dg);
}

static enum status start_resources(struct run *r, struct diag *dg)
{
    if (evq_new(&r->q, 4) != ST_OK)
        return diag_no_memory(dg);
    enum status st = flow_net_new(&r->net, r->q, (uint32_t)r->lanes * 4 + 64, dg);
    if (st == ST_OK)
        st = flow_resource_add(r->net, r->machine.dram_Bps, &r->dram, dg);
    if (st == ST_OK)
        st = start_array(r, dg);
    if (st == ST_OK)
        st = start_units(r, dg);
    if (st == ST_OK)
        st = start_page_cache(r, dg);
    return st == ST_OK ? start_loader(r, dg) : st;
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

enum status run_start(struct run *r, struct diag *dg)
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
    if (r->setup.prefetch_distance == 0)
        r->setup.prefetch_distance = 1;
    if (r->setup.prefetch_experts_max == 0)
        r->setup.prefetch_experts_max = r->top_k;
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
    if (st == ST_OK && r->setup.prefetch_timed)
        st = timed_init(&r->timed, 4 * r->experts, dg);
    if (st == ST_OK)
        st = environment_start(r, dg);
    if (st == ST_OK)
        st = start_timeline(r, dg);
    if (st != ST_OK)
        return st;
    r->token_ns = calloc(r->setup.tokens ? r->setup.tokens : 1, sizeof *r->token_ns);
    return r->token_ns ? ST_OK : diag_no_memory(dg);
}

void run_stop(struct run *r)
{
    routing_free(r->routing);
    decide_free(r->decide);
    futures_free(r->futures);
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
    free(r->token_ns);
    free(r->flash_read);
    free(r->layer_late);
    timed_free(&r->timed);
}
