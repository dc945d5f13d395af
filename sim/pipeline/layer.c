/* layer.c -- what happens within a pass, layer by layer: who waits for whom.
 *
 *     dense weights there -> fixed kernel -> decisions -> reads  -> expert kernels -> next layer
 *                                                    \-> shared expert, hits (if the profile overlaps)
 *
 * `serial` waits for all reads and then runs all experts as one kernel; `expert` runs each expert as soon
 * as it is there, hits first; `ready` runs those that are there as one kernel. A thread that slept on a read needs its wake-up before it computes again.
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

/* ---- waiting ---- */

static void stall(struct run *r)
{
    if (r->stalled)
        return;
    r->stalled = true;
    r->stall_from_ns = evq_now_ns(r->q);
}

/* The wait is over, but for the wake-up of the thread that slept; no kernel starts before it. Returns what the
 * kernel after a wait takes longer. */
static uint64_t unstall(struct run *r)
{
    if (!r->stalled)
        return 0;
    uint64_t now = evq_now_ns(r->q);
    /* A measured I/O time holds the wake-ups too. */
    uint64_t wake = r->setup.given_io_ns ? 0 : run_amount(&r->profile->wake, 0);
    r->stalled = false;
    r->waited = true;
    r->stall_ns += now + wake - r->stall_from_ns;
    timeline_span(r->setup.timeline, &(struct timeline_span){.lane = r->stall_lane,
                                                             .operation = TIMELINE_STALL,
                                                             .start_ns = r->stall_from_ns,
                                                             .end_ns = now + wake,
                                                             .pass = r->pass_count,
                                                             .layer = r->layer,
                                                             .expert = TIMELINE_NONE});
    unit_hold(r->unit, now + wake, NULL);
    unit_hold(r->expert_unit, now + wake, NULL);
    return r->setup.given_io_ns ? 0 : r->resume_ns;
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
    struct kernel k = kernels_experts(r, &r->choice[r->computed_count], r->running);
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
    if (r->overlap == OVERLAP_SERIAL && r->pending_count > 0) {
        stall(r);
        return;
    }
    uint32_t ready = gather_ready(r);
    if (ready == 0) {
        stall(r);
        return;
    }
    r->running = r->overlap == OVERLAP_EXPERT ? 1 : ready;
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
        choices_feed_idle(r->q, r);
    proceed(r);
}

/* The fixed kernel is over: the router has spoken. */
static void routed(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    r->choice_count = r->computed_count = r->running = r->pending_count = 0;
    r->shared_done = false;
    if (r->kernels.expert_bytes > 0)
        choices_decide(r);
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
    kernels_of_layer(r, layer, &k);
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
    uint64_t resumed = r->waited ? r->resume_layer_ns : 0;
    r->kernels.fixed.fixed_ns +=
        resumed + unstall(r); /* streamed dense weights are waited for, too */
    r->waited = false;
    choices_schedule_ahead(r);
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

static void run_head(struct run *r)
{
    struct kernel k = kernels_head(r);
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
        kernels_of_layer(r, r->layer, &r->kernels);
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
