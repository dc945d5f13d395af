/* layer.c -- what happens within a pass, layer by layer: who waits for whom.
 *
 *     dense weights there -> fixed kernel -> decisions -> reads  -> expert kernels -> next layer
 *                                                    \-> shared expert, hits (if the profile overlaps)
 *
 * `serial` waits for all reads and then runs all experts as one kernel; `expert` runs each expert as soon
 * as it is there, hits first. A thread that slept on a read needs its wake-up before it computes again.
 */
#include "sim/pipeline/run_state.h"

#include "base/fixed.h"
#include "models/work.h"
#include "sim/roofline/estimate.h"

#include <assert.h>
#include <string.h>

static void begin_layer(struct run *r);
static void routed(struct evq *q, void *self);
static void proceed(struct run *r);
static void feed_idle_drive(struct evq *q, void *self);

/* ---- kernels ---- */

static uint64_t fixed_ops(const struct work *w)
{
    return work_ops_total(w) - w->ops[GROUP_EXPERT] - w->ops[GROUP_SHARED_EXPERT];
}

static uint64_t fixed_bytes(const struct work *w)
{
    return work_weight_bytes_total(w) - w->weight_bytes[GROUP_EXPERT] -
           w->weight_bytes[GROUP_SHARED_EXPERT];
}

void layer_kernels(const struct run *r, uint32_t layer, struct layer_kernels *out)
{
    struct work w;
    const struct ffn *f = &r->model->layers[layer].ffn;
    uint64_t overhead = r->profile->layer_overhead.given ? r->profile->layer_overhead.amount : 0;
    bool split = r->overlap == OVERLAP_EXPERT || r->profile->overlap_shared_expert;
    work_layer(&w, r->model, layer, r->pass.tokens, r->position, f->experts > 0,
               r->setup.state_bits);
    *out = (struct layer_kernels){0};
    uint64_t users = r->pass.phase == PHASE_DECODE && r->setup.batch ? r->setup.batch : 1;
    if (users > 1) { /* each reads and extends a state of its own */
        struct work one;
        work_layer(&one, r->model, layer, 1 + r->setup.draft, r->position, f->experts > 0,
                   r->setup.state_bits);
        w.state_read_bytes = users * one.state_read_bytes;
        w.state_write_bytes = users * one.state_write_bytes;
        w.attention_ops = users * one.attention_ops;
    }
    out->trunk_bytes = work_weight_bytes_total(&w) - w.weight_bytes[GROUP_EXPERT];
    out->fixed =
        (struct kernel){.operation = TIMELINE_FIXED,
                        .ops = fixed_ops(&w),
                        .bytes = fixed_bytes(&w) + w.state_read_bytes + w.state_write_bytes,
                        .calls = 1,
                        .fixed_ns = overhead};
    out->shared = (struct kernel){.operation = TIMELINE_SHARED,
                                  .ops = w.ops[GROUP_SHARED_EXPERT],
                                  .bytes = w.weight_bytes[GROUP_SHARED_EXPERT],
                                  .calls = w.ops[GROUP_SHARED_EXPERT] > 0};
    if (!split) {
        out->fixed.ops += out->shared.ops;
        out->fixed.bytes += out->shared.bytes;
        out->shared = (struct kernel){0};
    }
    if (f->experts == 0 || r->expert_bytes[layer] == 0)
        return;
    out->expert_bytes = r->expert_bytes[layer];
    out->expert_ops = 2 * r->model->layers[layer].expert_params;
}

static struct kernel experts_kernel(const struct run *r, const struct choice *c, uint32_t count)
{
    struct kernel k = {.operation = TIMELINE_EXPERT, .calls = 1};
    uint64_t expand =
        r->profile->expand_experts ? 16 * r->model->layers[r->layer].expert_params / 8 : 0;
    for (uint32_t i = 0; i < count; i++) {
        k.ops += c[i].tokens * r->kernels.expert_ops;
        k.bytes += r->kernels.expert_bytes + 2 * expand;
    }
    return k;
}

/* ---- waiting ---- */

static void stall(struct run *r)
{
    if (r->stalled)
        return;
    r->stalled = true;
    r->stall_from_ns = evq_now_ns(r->q);
}

static uint64_t unstall(struct run *r)
{
    if (!r->stalled)
        return 0;
    r->stalled = false;
    r->stall_ns += evq_now_ns(r->q) - r->stall_from_ns;
    timeline_span(r->setup.timeline, &(struct timeline_span){.lane = r->stall_lane,
                                                             .operation = TIMELINE_STALL,
                                                             .start_ns = r->stall_from_ns,
                                                             .end_ns = evq_now_ns(r->q),
                                                             .pass = r->pass_count,
                                                             .layer = r->layer,
                                                             .expert = TIMELINE_NONE});
    if (r->setup.given_io_ns) /* the measured time holds the wake-ups too */
        return 0;
    return r->profile->wake.given ? r->profile->wake.amount : 0;
}

/* ---- experts ---- */

static void end_layer(struct run *r)
{
    size_t count;
    if (r->decide && r->choice_count > 0) {
        const struct decision *d = decide_layer_end(r->decide, r->pass_count, r->layer, &count);
        for (size_t i = 0; i < count; i++)
            assert(d[i].class_of == COMMAND_DROP);
    }
    r->layer++;
    begin_layer(r);
}

static void experts_done(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    r->computed_count += r->running;
    r->running = 0;
    proceed(r);
}

static void shared_done(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    r->shared_done = true;
    proceed(r);
}

/* Moves the ready but uncomputed choices to the front of the uncomputed ones; returns their number. */
static uint32_t gather_ready(struct run *r)
{
    uint32_t n = r->computed_count;
    for (uint32_t i = r->computed_count; i < r->choice_count; i++) {
        if (!r->choice[i].ready)
            continue;
        struct choice c = r->choice[i];
        memmove(&r->choice[n + 1], &r->choice[n], (i - n) * sizeof c);
        r->choice[n++] = c;
    }
    return n - r->computed_count;
}

static void run_experts(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    struct kernel k = experts_kernel(r, &r->choice[r->computed_count], r->running);
    k.fixed_ns = unstall(r) + r->hop_ns;
    unit_run(r->expert_unit, &k, experts_done, r);
}

static void link_experts(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    struct flow f = {.bytes = r->running * r->kernels.expert_bytes, .done = run_experts, .self = r};
    enum status st = flow_start(r->net, r->link_class, &f);
    assert(st == ST_OK && "the net has room for every flow of the pipeline");
    (void)st;
}

/* Whatever can run now, runs; else the layer waits or is over. */
static void proceed(struct run *r)
{
    if (unit_busy(r->unit) || r->running > 0)
        return;
    if (!r->shared_done && r->kernels.shared.calls > 0) {
        unit_run(r->unit, &r->kernels.shared, shared_done, r);
        return;
    }
    if (r->computed_count == r->choice_count) {
        end_layer(r);
        return;
    }
    bool each = r->overlap == OVERLAP_EXPERT;
    if (!each && r->pending_count > 0) {
        stall(r);
        return;
    }
    uint32_t ready = gather_ready(r);
    if (ready == 0) {
        stall(r);
        return;
    }
    r->running = each ? 1 : ready;
    if (r->link_Bps == 0) {
        run_experts(r->q, r);
        return;
    }
    r->link_ns += r->link_sync_ns + time_for(r->running * r->kernels.expert_bytes, r->link_Bps);
    enum status st = evq_at(r->q, evq_now_ns(r->q) + r->link_sync_ns, link_experts, r);
    assert(st == ST_OK && "one event is reserved for the run itself");
    (void)st;
}

static void slot_landed(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    for (uint32_t i = 0; i < r->choice_count; i++)
        if (!r->choice[i].ready && !loader_pending(r->loader, r->choice[i].slot)) {
            r->choice[i].ready = true;
            r->pending_count--;
        }
    if (r->setup.prefetch_timed)
        feed_idle_drive(r->q, r);
    proceed(r);
}

/* ---- decisions ---- */

static void execute(struct run *r, const struct decision *d, size_t count)
{
    for (size_t i = 0; i < count && r->failure == ST_OK; i++) {
        if (d[i].class_of == COMMAND_DROP)
            continue;
        r->slot_of[d[i].key] = d[i].slot;
        struct load l = {.slot = d[i].slot,
                         .key = d[i].key,
                         .bytes = r->expert_bytes[d[i].key / r->experts],
                         .level = d[i].class_of == COMMAND_PREFETCH,
                         .operation =
                             d[i].class_of == COMMAND_PREFETCH ? TIMELINE_PREFETCH : TIMELINE_READ,
                         .landed = r->setup.prefetch_timed ? feed_idle_drive : NULL,
                         .self = r};
        r->failure = loader_load(r->loader, &l);
    }
}

/* The unique experts of the batch, in order of first choice, with how many tokens chose each. */
static void list_choices(struct run *r, const uint16_t *ids, size_t n)
{
    r->choice_count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t *of = &r->choice_of[ids[i]];
        if (*of == 0) {
            *of = ++r->choice_count;
            r->choice[*of - 1] = (struct choice){.expert = ids[i]};
        }
        r->choice[*of - 1].tokens++;
    }
    for (uint32_t i = 0; i < r->choice_count; i++)
        r->choice_of[r->choice[i].expert] = 0;
}

/* Only a hit ratio is known: each look-up is drawn, a miss is read into a slot of its own. An engine that
 * keeps nothing hits the page cache, and so copies its hits. */
static void decide_fixed(struct run *r)
{
    uint64_t unique = (work_unique_experts_e3(r->experts, r->top_k, r->pass.tokens) + 500) / 1000;
    r->choice_count = (uint32_t)unique;
    for (uint32_t i = 0; i < r->choice_count && r->failure == ST_OK; i++) {
        bool hit = (uint64_t)pcg_u32(&r->fixed_chance) * RATIO_ONE >> 32 < r->setup.hit_ratio;
        bool copied = hit && r->page_cache && !run_keeps_cache(r) && !r->setup.given_io_ns;
        r->choice[i] =
            (struct choice){.expert = (uint16_t)i,
                            .tokens = (uint32_t)((r->pass.tokens * r->top_k + unique - 1) / unique),
                            .slot = i,
                            .ready = hit && !copied};
        r->fixed_lookups++;
        r->fixed_hits += hit;
        if (r->choice[i].ready)
            continue;
        struct load l = {.slot = i,
                         .key = r->layer * r->experts + i,
                         .bytes = r->kernels.expert_bytes,
                         .resident = copied,
                         .operation = TIMELINE_READ,
                         .uncached = !copied};
        r->failure = loader_load(r->loader, &l);
        r->choice[i].ready = !loader_pending(r->loader, i); /* mapped pages are there at once */
    }
}

/* Timed: one guess at a time, and only while the drive has nothing else to do. */
static void feed_idle_drive(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    struct timed_guess g;
    size_t count;
    while (loader_idle(r->loader) && r->failure == ST_OK &&
           timed_take(&r->timed, r->pass_count, r->layer, &g)) {
        const struct decision *d = decide_predict(r->decide, r->pass_count, r->layer, g.target,
                                                  &g.expert, NULL, 1, &count);
        execute(r, d, count);
    }
}

static void remember_guesses(struct run *r, uint32_t target, const uint16_t *ids, size_t n)
{
    for (size_t i = 0; i < n && i < r->setup.prefetch_experts_max; i++)
        timed_add(&r->timed, &(struct timed_guess){r->pass_count, r->layer, target, ids[i]});
    feed_idle_drive(r->q, r);
}

static void predict(struct run *r)
{
    const struct prefetch_policy *p = r->setup.prefetch;
    if (!p || !p->from_outside)
        return;
    uint32_t target = 0;
    size_t n = 0, count;
    const uint16_t *ids = p->needs_future ? routing_ahead(r->routing, r->layer,
                                                          r->setup.prefetch_distance, &target, &n)
                                          : routing_guess(r->routing, r->layer, &target, &n);
    if (!ids || n == 0)
        return;
    if (!p->needs_future && r->profile->predict.given)
        unit_charge(r->unit, r->profile->predict.amount); /* the next kernel waits for it */
    if (r->setup.prefetch_timed) {
        remember_guesses(r, target, ids, n);
        return;
    }
    const struct decision *d =
        decide_predict(r->decide, r->pass_count, r->layer, target, ids, NULL, n, &count);
    execute(r, d, count);
}

static void decide_layer(struct run *r)
{
    size_t n, count;
    const uint16_t *ids = routing_batch(r->routing, r->layer, &n);
    if (!r->decide) {
        decide_fixed(r);
        return;
    }
    list_choices(r, ids, n);
    if (r->choice_count == 0)
        return;
    const struct decision *d = decide_batch(r->decide, r->pass_count, r->layer, ids, n, &count);
    size_t demands = 0;
    for (size_t i = 0; i < count; i++)
        demands += d[i].class_of == COMMAND_DEMAND;
    execute(r, d, count);
    predict(r);
    uint32_t late = 0;
    for (uint32_t i = 0; i < r->choice_count; i++) {
        struct choice *c = &r->choice[i];
        c->slot = r->slot_of[r->layer * r->experts + c->expert];
        c->ready = !loader_pending(r->loader, c->slot);
        late += !c->ready;
    }
    r->late_hits += late > demands ? late - demands : 0;
    r->layer_late[r->layer] += late - demands;
}

/* The fixed kernel is over: the router has spoken. */
static void routed(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    r->choice_count = r->computed_count = r->running = r->pending_count = 0;
    r->shared_done = false;
    if (r->kernels.expert_bytes > 0)
        decide_layer(r);
    for (uint32_t i = 0; i < r->choice_count; i++) {
        if (r->choice[i].ready)
            continue;
        r->pending_count++;
        loader_await(r->loader, r->choice[i].slot, slot_landed, r);
    }
    proceed(r);
}

/* ---- dense weights that are streamed ---- */

static void trunk_landed(struct evq *q, void *self);

/* What of a layer's dense weights has to be read: a share that does not fit, or all of it if the page cache
 * that should hold it has dropped it (mapped weights need no copy when they are there). */
static uint64_t trunk_to_read(struct run *r, uint32_t layer, uint32_t key)
{
    struct layer_kernels k;
    layer_kernels(r, layer, &k);
    if (r->profile->dense == DENSE_PAGE_CACHE)
        return page_cache_use(r->page_cache, key, k.trunk_bytes) ? 0 : k.trunk_bytes;
    return fixed_mul_div(k.trunk_bytes, r->placement.stream_trunk, RATIO_ONE);
}

static void ask_trunk(struct run *r, uint32_t layer)
{
    for (; r->trunk_asked <= layer && r->trunk_asked < r->model->layer_count && r->failure == ST_OK;
         r->trunk_asked++) {
        uint32_t key = (uint32_t)(r->model->layer_count * r->experts) + r->trunk_asked;
        uint64_t bytes = trunk_to_read(r, r->trunk_asked, key);
        if (bytes == 0) {
            r->trunk_landed++;
            continue;
        }
        struct load l = {.slot = SLOT_NONE,
                         .key = key,
                         .bytes = bytes,
                         .level = r->trunk_asked > r->layer,
                         .operation = TIMELINE_TRUNK,
                         .uncached = r->profile->dense == DENSE_PAGE_CACHE,
                         .landed = trunk_landed,
                         .self = r};
        r->failure = loader_load(r->loader, &l);
    }
}

static void run_fixed(struct run *r)
{
    r->kernels.fixed.fixed_ns += unstall(r);
    unit_run(r->unit, &r->kernels.fixed, routed, r);
}

static void trunk_landed(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    r->trunk_landed++;
    if (r->trunk_awaited && r->trunk_landed > r->layer) {
        r->trunk_awaited = false;
        run_fixed(r);
    }
}

/* ---- the pass ---- */

static void head_done(struct evq *q, void *self)
{
    (void)q;
    run_pass_over(self);
}

struct kernel head_kernel(const struct run *r)
{
    struct work w;
    work_ends(&w, r->model, r->pass.tokens, r->pass.phase == PHASE_DECODE ? r->pass.tokens : 1);
    return (struct kernel){
        .operation = TIMELINE_HEAD,
        .ops = work_ops_total(&w),
        .bytes = work_weight_bytes_total(&w),
        .calls = 1,
        .fixed_ns = r->profile->token_overhead.given ? r->profile->token_overhead.amount : 0};
}

static void run_head(struct run *r)
{
    struct kernel k = head_kernel(r);
    unit_run(r->unit, &k, head_done, r);
}

static void ends_landed(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    unstall(r);
    run_head(r);
}

static void begin_layer(struct run *r)
{
    if (r->failure != ST_OK)
        return; /* nothing is scheduled: the queue runs empty and the run reports */
    unit_mark_place(r->unit, r->pass_count, r->layer);
    unit_mark_place(r->expert_unit, r->pass_count, r->layer);
    if (r->layer < r->model->layer_count) {
        layer_kernels(r, r->layer, &r->kernels);
        if (r->placement.stream_trunk > 0 || r->profile->dense == DENSE_PAGE_CACHE) {
            ask_trunk(r, r->layer + (uint32_t)r->profile->dense_ahead.amount);
            if (r->trunk_landed <= r->layer) {
                r->trunk_awaited = true;
                stall(r);
                return;
            }
        }
        run_fixed(r);
        return;
    }
    if (r->placement.stream_bytes > 0) { /* embedding and head are read anew */
        struct load l = {.slot = SLOT_NONE,
                         .key = (uint32_t)(r->model->layer_count * (r->experts + 1)),
                         .bytes = r->placement.stream_bytes,
                         .operation = TIMELINE_TRUNK,
                         .landed = ends_landed,
                         .self = r};
        r->failure = loader_load(r->loader, &l);
        stall(r);
        return;
    }
    run_head(r);
}

void layer_begin_pass(struct run *r)
{
    r->layer = 0;
    r->trunk_asked = r->trunk_landed = 0;
    r->trunk_awaited = false;
    begin_layer(r);
}
