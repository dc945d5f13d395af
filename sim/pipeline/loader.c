/* loader.c -- see loader.h. Loads wait in two queues by level; a load leaves its queue when its last piece is
 * taken. All structures are laid out at set-up. */
#include "sim/pipeline/loader.h"

#include "sim/roofline/estimate.h"

#include <assert.h>
#include <stdlib.h>

enum { LEVELS = 2, NO_JOB = UINT32_MAX };

struct job {
    struct load load;
    uint64_t piece_bytes, left; /* left: bytes not yet taken by a lane */
    uint64_t fault_bytes; /* of a mapping: what one fault brings; a piece is a chain of them */
    uint32_t in_flight, pass;
    uint64_t asked_ns;
    uint64_t after_ahead; /* loads ahead that must have landed before this one is taken */
    uint32_t next;        /* in its queue, or in the free list */
    uint32_t after;       /* next load of the same slot */
    uint32_t queue;
    bool queued, cached, ahead;
};

struct lane {
    struct loader *loader;
    uint32_t job;
    uint64_t bytes;
    bool idle;
};

struct loader {
    struct evq *q;
    struct loader_setup setup;
    struct job *job;
    uint32_t free_job;
    uint32_t head[LEVELS], tail[LEVELS];
    uint32_t *slot_first, *slot_last; /* by slot: its loads in order, the first one is active */
    struct lane *lane;
    uint32_t copy_class, link_class;
    uint64_t given_free_ns;             /* when the given-rate server is free */
    uint64_t ahead_asked, ahead_landed; /* experts asked for as prefetch, so far */
    uint64_t issued_ns;                 /* when the caller has issued all that it was given */
    uint32_t misses;                    /* of the mapping, less its hits */
    struct timeline *timeline;
    uint32_t present; /* loads that have not landed */
    uint32_t timeline_lane, experts, pass;
    struct meter demand; /* demand loads present */
    struct loader_counts counts;
};

void loader_free(struct loader *l)
{
    if (!l)
        return;
    free(l->job);
    free(l->slot_first);
    free(l->slot_last);
    free(l->lane);
    free(l);
}

static bool allocate(struct loader *l)
{
    const struct loader_setup *s = &l->setup;
    l->job = calloc(s->loads_max, sizeof *l->job);
    l->slot_first = malloc(((size_t)s->slots + 1) * sizeof *l->slot_first);
    l->slot_last = malloc(((size_t)s->slots + 1) * sizeof *l->slot_last);
    l->lane = calloc(s->lanes, sizeof *l->lane);
    if (!l->job || !l->slot_first || !l->slot_last || !l->lane)
        return false;
    for (uint32_t i = 0; i < s->loads_max; i++)
        l->job[i].next = i + 1 < s->loads_max ? i + 1 : NO_JOB;
    for (uint32_t i = 0; i < s->slots; i++)
        l->slot_first[i] = l->slot_last[i] = NO_JOB;
    for (uint32_t i = 0; i < s->lanes; i++)
        l->lane[i] = (struct lane){.loader = l, .idle = true};
    return evq_reserve(l->q, (size_t)s->lanes * 2 + s->loads_max) == ST_OK;
}

static enum status add_classes(struct loader *l, struct diag *dg)
{
    const struct loader_setup *s = &l->setup;
    struct flow_class copy = {&s->dram, 1, s->copy_Bps, s->dram_weight};
    enum status st = flow_class_add(s->net, &copy, &l->copy_class, dg);
    if (st != ST_OK || s->link_Bps == 0)
        return st;
    uint32_t path[] = {s->dram, s->link};
    struct flow_class transfer = {path, 2, s->link_Bps, s->dram_weight};
    return flow_class_add(s->net, &transfer, &l->link_class, dg);
}

enum status loader_new(struct loader **out, struct evq *q, const struct loader_setup *s,
                       struct diag *dg)
{
    struct loader *l = calloc(1, sizeof *l);
    if (!l)
        return diag_no_memory(dg);
    l->q = q;
    l->setup = *s;
    for (int i = 0; i < LEVELS; i++)
        l->head[i] = l->tail[i] = NO_JOB;
    meter_init(&l->demand, 0);
    enum status st = allocate(l) ? add_classes(l, dg) : diag_no_memory(dg);
    if (st != ST_OK) {
        loader_free(l);
        return st;
    }
    *out = l;
    return ST_OK;
}

static void after(struct loader *l, uint64_t ns, evq_fn *fn, void *self)
{
    enum status st = evq_at(l->q, evq_now_ns(l->q) + ns, fn, self);
    assert(st == ST_OK && "loader_new reserved the event");
    (void)st;
}

/* ---- queues ---- */

static void enqueue(struct loader *l, uint32_t j)
{
    uint32_t queue = l->job[j].queue;
    l->job[j].queued = true;
    l->job[j].next = NO_JOB;
    if (l->tail[queue] == NO_JOB)
        l->head[queue] = j;
    else
        l->job[l->tail[queue]].next = j;
    l->tail[queue] = j;
}

static void unlink_job(struct loader *l, uint32_t j)
{
    uint32_t queue = l->job[j].queue;
    uint32_t *at = &l->head[queue], before = NO_JOB;
    while (*at != j) {
        before = *at;
        at = &l->job[*at].next;
    }
    *at = l->job[j].next;
    if (l->tail[queue] == j)
        l->tail[queue] = before;
    l->job[j].queued = false;
}

/* What is taken next: demand first, unless it must wait for what was read ahead. */
static uint32_t next_job(const struct loader *l)
{
    uint32_t demand = l->head[0];
    return demand != NO_JOB && l->job[demand].after_ahead <= l->ahead_landed ? demand : l->head[1];
}

/* ---- pieces ---- */

static void take_next(struct lane *lane);
static void start_job(struct loader *l, uint32_t j);
static void wake_lanes(struct loader *l);

static void record(const struct loader *l, const struct job *job)
{
    uint32_t layer = job->load.slot == SLOT_NONE ? TIMELINE_NONE : job->load.key / l->experts;
    timeline_span(l->timeline, &(struct timeline_span){.lane = l->timeline_lane,
                                                       .operation = job->load.operation,
                                                       .start_ns = job->asked_ns,
                                                       .end_ns = evq_now_ns(l->q),
                                                       .pass = job->pass,
                                                       .layer = layer,
                                                       .expert = layer == TIMELINE_NONE
                                                                     ? layer
                                                                     : job->load.key % l->experts,
                                                       .bytes = job->load.bytes});
}

static void job_landed(struct loader *l, uint32_t j)
{
    if (l->timeline)
        record(l, &l->job[j]);
    l->present--;
    l->ahead_landed += l->job[j].ahead;
    struct load load = l->job[j].load;
    uint32_t next = l->job[j].after;
    if (load.level == 0)
        meter_fall(&l->demand, evq_now_ns(l->q), 1);
    l->job[j].next = l->free_job;
    l->free_job = j;
    if (load.slot != SLOT_NONE) {
        l->slot_first[load.slot] = next;
        if (next == NO_JOB)
            l->slot_last[load.slot] = NO_JOB;
        else
            start_job(l, next);
    }
    if (load.landed)
        load.landed(l->q, load.self);
    if (l->setup.await_ahead && !l->setup.given_Bps)
        wake_lanes(l); /* there may be demand that waited for this */
}

static void piece_over(struct lane *lane)
{
    struct loader *l = lane->loader;
    struct job *job = &l->job[lane->job];
    uint32_t j = lane->job;
    job->in_flight--;
    bool last = job->left == 0 && job->in_flight == 0;
    lane->job = NO_JOB;
    if (last)
        job_landed(l, j);
    take_next(lane);
}

static void transferred(struct evq *q, void *self)
{
    (void)q;
    piece_over(self);
}

static void transfer(struct evq *q, void *self)
{
    (void)q;
    struct lane *lane = self;
    struct loader *l = lane->loader;
    struct flow f = {.bytes = lane->bytes, .done = transferred, .self = lane};
    enum status st = flow_start(l->setup.net, l->link_class, &f);
    assert(st == ST_OK && "the net has room for every flow of the pipeline");
    (void)st;
}

/* The piece is in the DRAM, where the engine wants it. */
static void copied(struct evq *q, void *self)
{
    (void)q;
    struct lane *lane = self;
    if (lane->loader->setup.link_Bps > 0)
        after(lane->loader, lane->loader->setup.link_sync_ns, transfer, lane);
    else
        piece_over(lane);
}

static void copy_piece(struct lane *lane, uint64_t copies)
{
    struct loader *l = lane->loader;
    /* A copy reads every byte and writes it. */
    struct flow f = {.bytes = 2 * copies * lane->bytes, .done = copied, .self = lane};
    enum status st = flow_start(l->setup.net, l->copy_class, &f);
    assert(st == ST_OK && "the net has room for every flow of the pipeline");
    (void)st;
}

/* The thread runs again and sees its piece. */
static void noticed(struct evq *q, void *self)
{
    struct lane *lane = self;
    if (lane->loader->setup.copies > 0)
        copy_piece(lane, lane->loader->setup.copies);
    else
        copied(q, lane);
}

static void read_done(struct evq *q, void *self)
{
    (void)q;
    struct lane *lane = self;
    struct loader *l = lane->loader;
    const struct loader_setup *s = &l->setup;
    l->counts.reads++;
    l->counts.bytes += lane->bytes;
    uint64_t delay = s->complete_ns;
    if (s->caller_issues) {
        unit_charge(s->unit, s->complete_ns);
        delay = 0;
    } else if (s->shares_cores) {
        unit_charge(s->unit, unit_busy(s->unit) ? s->complete_ns : 0);
        delay += unit_busy(s->unit) ? s->wake_busy_ns : 0;
    }
    after(l, delay, noticed, lane);
}

/* A thread that faults through its piece waits for each of the chain's reads in turn; simulated is one read that
 * takes as long. */
static uint64_t chain_ns(const struct lane *lane)
{
    const struct loader_setup *s = &lane->loader->setup;
    const struct job *job = &lane->loader->job[lane->job];
    if (job->cached || job->fault_bytes == 0 || job->fault_bytes >= lane->bytes)
        return 0;
    uint64_t n = (lane->bytes + job->fault_bytes - 1) / job->fault_bytes;
    uint64_t apart = n * storage_closed_burst_ns(s->storage, 1, job->fault_bytes, 1) +
                     (n - 1) * (s->submit_ns + s->complete_ns);
    uint64_t whole = storage_closed_burst_ns(s->storage, 1, lane->bytes, 1);
    return apart > whole ? apart - whole : 0;
}

static void submit(struct evq *q, void *self)
{
    (void)q;
    struct lane *lane = self;
    struct loader *l = lane->loader;
    const struct job *job = &l->job[lane->job];
    if (job->cached) {
        l->counts.copied_bytes += lane->bytes;
        copy_piece(lane, 1);
        return;
    }
    struct drive_read r = {.bytes = lane->bytes,
                           .place = ((uint64_t)job->load.key << 20) + (job->left >> 12),
                           .level = job->load.level,
                           .extra_ns = chain_ns(lane),
                           .done = read_done,
                           .self = lane};
    enum status st = array_submit(l->setup.array, &r);
    assert(st == ST_OK && "the array has room for every lane");
    (void)st;
}

/* The lane's piece with everything to itself. */
static uint64_t alone_ns(const struct lane *lane, bool first)
{
    const struct loader_setup *s = &lane->loader->setup;
    bool cached = lane->loader->job[lane->job].cached;
    uint64_t woken = s->caller_issues ? 0 : s->wake_ns;
    uint64_t ns = s->submit_ns + woken + (first ? s->open_ns : 0);
    ns += time_for(2 * (cached ? 1 : s->copies) * lane->bytes, s->copy_Bps);
    ns += s->link_Bps ? s->link_sync_ns + time_for(lane->bytes, s->link_Bps) : 0;
    if (cached)
        return ns;
    ns += s->complete_ns + (s->shares_cores && !s->caller_issues ? s->wake_busy_ns : 0);
    return ns + storage_closed_burst_ns(s->storage, 1, lane->bytes, 1) + chain_ns(lane);
}

/* Until a piece that is taken now has been issued. The caller issues one after another, and computes only then;
 * a thread of the loader must be woken if it was idle, and takes its time from the kernel that runs. */
static uint64_t issue_ns(struct loader *l, bool was_idle)
{
    const struct loader_setup *s = &l->setup;
    uint64_t now = evq_now_ns(l->q);
    if (!s->caller_issues || unit_busy(s->unit)) {
        if (s->shares_cores && unit_busy(s->unit))
            unit_charge(s->unit, s->submit_ns);
        return s->submit_ns + (was_idle && !s->caller_issues ? s->wake_ns : 0);
    }
    l->issued_ns = (l->issued_ns > now ? l->issued_ns : now) + s->submit_ns;
    unit_hold(s->unit, l->issued_ns, TIMELINE_FIXED);
    return l->issued_ns - now;
}

static void take_next(struct lane *lane)
{
    struct loader *l = lane->loader;
    const struct loader_setup *s = &l->setup;
    uint32_t j = next_job(l);
    bool was_idle = lane->idle;
    lane->idle = j == NO_JOB;
    if (lane->idle)
        return;
    struct job *job = &l->job[j];
    bool first = job->left == job->load.bytes;
    lane->job = j;
    lane->bytes = job->left < job->piece_bytes ? job->left : job->piece_bytes;
    job->left -= lane->bytes;
    job->in_flight++;
    if (job->left == 0)
        unlink_job(l, j);
    l->counts.serial_ns += alone_ns(lane, first);
    after(l, issue_ns(l, was_idle) + (first ? s->open_ns : 0), submit, lane);
}

static void wake_lanes(struct loader *l)
{
    for (uint32_t i = 0; i < l->setup.lanes && next_job(l) != NO_JOB; i++)
        if (l->lane[i].idle)
            take_next(&l->lane[i]);
}

/* ---- loads ---- */

static void given_done(struct evq *q, void *self)
{
    (void)q;
    struct loader *l = ((struct lane *)self)->loader;
    uint32_t j = l->head[0] != NO_JOB ? l->head[0] : l->head[1];
    l->counts.reads++;
    l->counts.bytes += l->job[j].load.bytes;
    unlink_job(l, j);
    job_landed(l, j);
}

static void count_mapping(struct loader *l, struct job *job)
{
    if (job->cached)
        l->misses -= l->misses > 0;
    else
        l->misses += l->misses < LOADER_MISSES_MAX;
    uint64_t most = l->setup.fault_bytes;
    if (l->misses > LOADER_MISSES_MANY && most && most < job->piece_bytes)
        job->piece_bytes = most;
    job->fault_bytes = job->piece_bytes;
    if (job->piece_bytes < LOADER_CHAIN_BYTES)
        job->piece_bytes *= LOADER_CHAIN_BYTES / job->piece_bytes;
}

/* The active load of its slot begins: pieces become available to the lanes. */
static void start_job(struct loader *l, uint32_t j)
{
    const struct loader_setup *s = &l->setup;
    struct job *job = &l->job[j];
    job->cached =
        s->page_cache && !s->given_Bps && !job->load.uncached &&
        (job->load.resident || page_cache_use(s->page_cache, job->load.key, job->load.bytes));
    if (s->mapped && !s->given_Bps) {
        count_mapping(l, job);
        if (job->cached) {
            l->counts.copied_bytes += job->load.bytes;
            job_landed(l, j);
            return;
        }
    }
    enqueue(l, j);
    if (s->given_Bps) {
        uint64_t now = evq_now_ns(l->q);
        uint64_t from = l->given_free_ns > now ? l->given_free_ns : now;
        l->given_free_ns = from + time_for(job->load.bytes, s->given_Bps);
        l->counts.serial_ns += l->given_free_ns - from;
        after(l, l->given_free_ns - now, given_done, &l->lane[0]);
        return;
    }
    wake_lanes(l);
}

static uint64_t piece_bytes(const struct loader_setup *s, const struct load *load)
{
    uint64_t pieces = load->slot == SLOT_NONE ? 1 : s->pieces;
    uint64_t bytes = (load->bytes + pieces - 1) / pieces;
    return s->request_max && s->request_max < bytes ? s->request_max : bytes;
}

enum status loader_load(struct loader *l, const struct load *load)
{
    assert(load->bytes > 0 && load->level < LEVELS);
    uint32_t j = l->free_job;
    if (j == NO_JOB)
        return ST_MISFIT;
    l->free_job = l->job[j].next;
    l->present++;
    bool ahead = load->level > 0 && load->slot != SLOT_NONE;
    bool await = l->setup.await_ahead && !l->setup.given_Bps;
    l->ahead_asked += ahead;
    l->job[j] = (struct job){.load = *load,
                             .ahead = ahead,
                             .queue = load->level,
                             .after_ahead = await && load->level == 0 ? l->ahead_asked : 0,
                             .piece_bytes = piece_bytes(&l->setup, load),
                             .left = load->bytes,
                             .pass = l->pass,
                             .asked_ns = evq_now_ns(l->q),
                             .next = NO_JOB,
                             .after = NO_JOB};
    if (load->level == 0)
        meter_rise(&l->demand, evq_now_ns(l->q), 1);
    if (load->slot == SLOT_NONE) {
        start_job(l, j);
        return ST_OK;
    }
    uint32_t last = l->slot_last[load->slot];
    l->slot_last[load->slot] = j;
    if (last == NO_JOB) {
        l->slot_first[load->slot] = j;
        start_job(l, j);
        return ST_OK;
    }
    l->job[last].after = j;
    return ST_OK;
}

bool loader_idle(const struct loader *l)
{
    return l->present == 0;
}

void loader_trace(struct loader *l, struct timeline *t, uint32_t lane, uint32_t experts)
{
    l->timeline = t;
    l->timeline_lane = lane;
    l->experts = experts;
}

void loader_mark_pass(struct loader *l, uint32_t pass)
{
    l->pass = pass;
}

bool loader_pending(const struct loader *l, uint32_t slot)
{
    return l->slot_first[slot] != NO_JOB;
}

static void promote(struct loader *l, uint32_t j)
{
    struct job *job = &l->job[j];
    if (job->load.level == 0)
        return;
    bool queued = job->queued;
    if (queued)
        unlink_job(l, j);
    job->load.level = 0;
    meter_rise(&l->demand, evq_now_ns(l->q), 1);
    if (!l->setup.await_ahead || l->setup.given_Bps)
        job->queue = 0;
    if (queued)
        enqueue(l, j);
}

void loader_await(struct loader *l, uint32_t slot, evq_fn *landed, void *self)
{
    uint32_t j = l->slot_first[slot];
    assert(j != NO_JOB);
    for (; j != NO_JOB; j = l->job[j].after)
        promote(l, j);
    struct load *last = &l->job[l->slot_last[slot]].load;
    last->landed = landed;
    last->self = self;
}

struct loader_counts loader_counts(const struct loader *l, uint64_t now_ns)
{
    struct loader_counts c = l->counts;
    c.demand_busy_ns = meter_busy_ns(&l->demand, now_ns);
    return c;
}
