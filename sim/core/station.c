/* station.c -- see station.h.
 *
 * Jobs live in a pool. Free ones form a list, waiting ones a list per level, those in service a
 * list of their own. All servers are equally fast, so one counter of nano-units done per server
 * since the beginning (`done_at`) serves all jobs: a job ends when the counter has grown by work x
 * 10^9 since its start. As long as the speed stays, each job has one event, at its end, that
 * nothing moves.
 */
#include "sim/core/station.h"

#include <assert.h>
#include <stdlib.h>

#define NO_JOB    UINT32_MAX
#define SLOT_BITS 20
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)

enum phase { JOB_FREE, JOB_WAITS, JOB_SERVED };

struct job {
    uint64_t ticket; /* sequence number from 1, then the slot in SLOT_BITS */
    enum phase phase;
    uint32_t previous, next;
    struct station *station;
    struct station_job order;
    uint64_t arrived_ns;
    wide end;       /* counter value at which it ends */
    uint64_t event; /* its end in the event queue; 0: none */
};

struct list {
    uint32_t head, tail, count;
};

struct station {
    struct evq *q;
    struct station_setup setup;
    struct list waiting[STATION_LEVELS_MAX], serving;
    uint32_t free_head, waiting_count;
    uint64_t submitted;
    wide done; /* nano-units a busy server has done, up to done_ns */
    uint64_t done_ns;
    wide arrivals_present; /* sum of arrived_ns of the jobs there */
    wide sojourn_left;
    struct station_level level[STATION_LEVELS_MAX];
    struct meter meter_waiting, meter_serving;
    struct job job[];
};

static void list_append(struct station *st, struct list *l, uint32_t slot)
{
    struct job *j = &st->job[slot];
    j->previous = l->tail;
    j->next = NO_JOB;
    if (l->tail == NO_JOB)
        l->head = slot;
    else
        st->job[l->tail].next = slot;
    l->tail = slot;
    l->count++;
}

static void list_remove(struct station *st, struct list *l, uint32_t slot)
{
    struct job *j = &st->job[slot];
    if (j->previous == NO_JOB)
        l->head = j->next;
    else
        st->job[j->previous].next = j->next;
    if (j->next == NO_JOB)
        l->tail = j->previous;
    else
        st->job[j->next].previous = j->previous;
    l->count--;
}

enum status station_new(struct station **out, struct evq *q, const struct station_setup *s,
                        struct diag *dg)
{
    if (s->levels < 1 || s->levels > STATION_LEVELS_MAX)
        return diag_set(dg, ST_RANGE, "station: levels %u are not within 1..%u", s->levels,
                        STATION_LEVELS_MAX);
    if (s->jobs_max < 1 || s->jobs_max > SLOT_MASK + 1)
        return diag_set(dg, ST_RANGE, "station: jobs_max %u is not within 1..2^%d", s->jobs_max,
                        SLOT_BITS);
    struct station *st = calloc(1, sizeof *st + s->jobs_max * sizeof st->job[0]);
    if (!st)
        return diag_no_memory(dg);
    enum status status = evq_reserve(q, s->jobs_max);
    if (status != ST_OK) {
        free(st);
        return diag_set(dg, status, "station: no room for %u events", s->jobs_max);
    }
    const struct list empty = {.head = NO_JOB, .tail = NO_JOB};
    st->q = q;
    st->setup = *s;
    st->serving = empty;
    for (size_t i = 0; i < STATION_LEVELS_MAX; i++)
        st->waiting[i] = empty;
    for (uint32_t slot = 0; slot < s->jobs_max; slot++)
        st->job[slot] = (struct job){.next = slot + 1, .station = st};
    st->job[s->jobs_max - 1].next = NO_JOB;
    st->done_ns = evq_now_ns(q);
    meter_init(&st->meter_waiting, st->done_ns);
    meter_init(&st->meter_serving, st->done_ns);
    *out = st;
    return ST_OK;
}

void station_free(struct station *st)
{
    free(st);
}

static wide done_at(const struct station *st, uint64_t now_ns)
{
    return st->done + wide_mul(st->setup.speed_per_s, now_ns - st->done_ns);
}

/* The job leaves the station, and its slot is free again. */
static void leave(struct station *st, uint32_t slot)
{
    struct job *j = &st->job[slot];
    st->arrivals_present -= j->arrived_ns;
    st->sojourn_left += evq_now_ns(st->q) - j->arrived_ns;
    j->phase = JOB_FREE;
    j->ticket = 0;
    j->next = st->free_head;
    st->free_head = slot;
}

static void dispatch(struct station *st);

/* The job has ended: it leaves, tells its owner, and the server looks for another. */
static void end_service(struct station *st, struct job *j)
{
    struct station_job order = j->order;
    uint64_t now = evq_now_ns(st->q);
    uint32_t slot = (uint32_t)(j - st->job);
    list_remove(st, &st->serving, slot);
    meter_fall(&st->meter_serving, now, 1);
    meter_pass(&st->meter_serving, order.work == STATION_HELD ? 0 : order.work);
    st->level[order.level].finished++;
    leave(st, slot);
    evq_note(st->q, order.tag);
    if (order.done)
        order.done(st->q, order.self);
    dispatch(st);
}

static void service_over(struct evq *q, void *self)
{
    (void)q;
    struct job *j = self;
    end_service(j->station, j);
}

/* Schedules the end of a job in service, which has no event, at the present speed. */
static void schedule_end(struct station *st, struct job *j)
{
    uint64_t now = evq_now_ns(st->q);
    j->event = 0;
    if (j->order.work == STATION_HELD)
        return;
    wide done = done_at(st, now);
    uint64_t end = wide_end_ns(now, j->end > done ? j->end - done : 0, st->setup.speed_per_s);
    if (end == NEVER_NS)
        return;
    enum status status = evq_at_priority(st->q, end, EVQ_NORMAL, service_over, j, &j->event);
    assert(status == ST_OK); /* reserved by station_new */
    (void)status;
}

static void begin_service(struct station *st, uint32_t slot)
{
    struct job *j = &st->job[slot];
    uint64_t now = evq_now_ns(st->q), wait = now - j->arrived_ns;
    struct station_level *level = &st->level[j->order.level];
    list_remove(st, &st->waiting[j->order.level], slot);
    st->waiting_count--;
    list_append(st, &st->serving, slot);
    meter_fall(&st->meter_waiting, now, 1);
    meter_rise(&st->meter_serving, now, 1);
    level->started++;
    level->wait_ns += wait;
    if (wait > level->wait_ns_max)
        level->wait_ns_max = wait;
    j->phase = JOB_SERVED;
    j->end = done_at(st, now) + wide_mul(j->order.work, NS_PER_S);
    schedule_end(st, j);
    if (j->order.start)
        j->order.start(st->q, j->order.self);
}

/* Starts waiting jobs while servers are idle. Reentered by what a job's `start` does: the lists are
 * whole whenever one is called. */
static void dispatch(struct station *st)
{
    while (st->waiting_count && st->serving.count < st->setup.servers) {
        uint32_t level = 0;
        while (!st->waiting[level].count)
            level++;
        begin_service(st, st->waiting[level].head);
    }
}

enum status station_submit(struct station *st, const struct station_job *job, uint64_t *ticket)
{
    assert(job->level < st->setup.levels);
    uint32_t slot = st->free_head;
    if (slot == NO_JOB)
        return ST_RANGE;
    struct job *j = &st->job[slot];
    st->free_head = j->next;
    j->ticket = ++st->submitted << SLOT_BITS | slot;
    j->phase = JOB_WAITS;
    j->order = *job;
    j->arrived_ns = evq_now_ns(st->q);
    if (ticket)
        *ticket = j->ticket;
    st->arrivals_present += j->arrived_ns;
    st->level[job->level].submitted++;
    list_append(st, &st->waiting[job->level], slot);
    st->waiting_count++;
    meter_rise(&st->meter_waiting, j->arrived_ns, 1);
    dispatch(st);
    return ST_OK;
}

/* The job a ticket speaks of, if it is in this phase. */
static struct job *find(struct station *st, uint64_t ticket, enum phase phase)
{
    uint64_t slot = ticket & SLOT_MASK;
    if (ticket == 0 || slot >= st->setup.jobs_max)
        return NULL;
    struct job *j = &st->job[slot];
    return j->ticket == ticket && j->phase == phase ? j : NULL;
}

bool station_promote(struct station *st, uint64_t ticket, uint32_t level)
{
    assert(level < st->setup.levels);
    struct job *j = find(st, ticket, JOB_WAITS);
    if (!j)
        return false;
    uint32_t slot = (uint32_t)(j - st->job);
    if (level != j->order.level) {
        list_remove(st, &st->waiting[j->order.level], slot);
        j->order.level = level;
        list_append(st, &st->waiting[level], slot);
    }
    return true;
}

bool station_withdraw(struct station *st, uint64_t ticket)
{
    struct job *j = find(st, ticket, JOB_WAITS);
    if (!j)
        return false;
    uint32_t slot = (uint32_t)(j - st->job);
    list_remove(st, &st->waiting[j->order.level], slot);
    st->waiting_count--;
    meter_fall(&st->meter_waiting, evq_now_ns(st->q), 1);
    st->level[j->order.level].withdrawn++;
    leave(st, slot);
    return true;
}

bool station_finish(struct station *st, uint64_t ticket)
{
    struct job *j = find(st, ticket, JOB_SERVED);
    if (!j || j->order.work != STATION_HELD)
        return false;
    end_service(st, j);
    return true;
}

void station_set_servers(struct station *st, uint32_t servers)
{
    st->setup.servers = servers;
    dispatch(st);
}

void station_set_speed(struct station *st, uint64_t speed_per_s)
{
    uint64_t now = evq_now_ns(st->q);
    if (speed_per_s == st->setup.speed_per_s)
        return;
    st->done = done_at(st, now);
    st->done_ns = now;
    st->setup.speed_per_s = speed_per_s;
    for (uint32_t slot = st->serving.head; slot != NO_JOB; slot = st->job[slot].next) {
        struct job *j = &st->job[slot];
        if (j->event)
            evq_cancel(st->q, j->event);
        schedule_end(st, j);
    }
}

uint32_t station_waiting(const struct station *st, uint32_t level)
{
    assert(level < st->setup.levels);
    return st->waiting[level].count;
}

uint32_t station_serving(const struct station *st)
{
    return st->serving.count;
}

const struct station_level *station_level(const struct station *st, uint32_t level)
{
    assert(level < st->setup.levels);
    return &st->level[level];
}

struct station_little station_little(const struct station *st)
{
    uint64_t now = evq_now_ns(st->q);
    uint64_t present = (uint64_t)st->waiting_count + st->serving.count;
    return (struct station_little){
        .area_waiting = meter_area(&st->meter_waiting, now),
        .area_serving = meter_area(&st->meter_serving, now),
        .sojourn_left = st->sojourn_left,
        .sojourn_present = wide_mul(present, now) - st->arrivals_present,
    };
}

const struct meter *station_meter_waiting(const struct station *st)
{
    return &st->meter_waiting;
}

const struct meter *station_meter_serving(const struct station *st)
{
    return &st->meter_serving;
}
