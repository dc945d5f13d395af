/* drive.c -- see drive.h: the front that both models share.
 *
 * Places are a station of held jobs (station.h), which gives the order of service, promotion and
 * Little's sums. `iops` closes the station for a moment after every start: its servers are set to
 * those that are busy, until the next start is due.
 */
#include "sim/pipeline/drive.h"

#include "base/fixed.h"
#include "sim/pipeline/drive_model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_READ      UINT32_MAX
#define BYTES_MAX    (UINT64_C(1) << 46)
#define GAUSS_ONE_E3 (INT64_C(65536) * 1000)

uint64_t drive_scaled_Bps(const struct drive *d, uint64_t rate_Bps)
{
    uint64_t scaled = fixed_mul_div(rate_Bps, d->speed_e3, 1000);
    return scaled ? scaled : 1;
}

uint64_t drive_draw_latency_ns(struct drive *d, const struct read *r)
{
    uint64_t latency = d->latency_ns;
    if (d->jitter_e3) {
        int64_t deviation_e3 = (int64_t)pcg_gauss_q16(&d->jitter) * d->jitter_e3;
        if (deviation_e3 < 0 && -deviation_e3 >= GAUSS_ONE_E3)
            latency = 0;
        else
            latency = fixed_mul_div(latency, (uint64_t)(GAUSS_ONE_E3 + deviation_e3), GAUSS_ONE_E3);
    }
    return latency + r->order.extra_ns;
}

void drive_read_at(struct read *r, uint64_t when_ns, evq_fn *fn)
{
    enum status status = evq_at_priority(r->drive->q, when_ns, EVQ_NORMAL, fn, r, &r->event);
    assert(status == ST_OK); /* reserved by the model's open: one for each place */
    (void)status;
}

static void start_due(struct evq *q, void *self)
{
    (void)q;
    struct drive *d = self;
    d->start_blocked = false;
    station_set_servers(d->places, d->place_count);
}

/* No start before 1/iops from now. The rest of the division is carried from start to start, so that
 * a drive kept busy does exactly iops a second. */
static void block_starts(struct drive *d)
{
    uint64_t now = evq_now_ns(d->q);
    if (now != d->next_start_ns)
        d->next_start_rest = 0;
    uint64_t gap = NS_PER_S + d->next_start_rest;
    d->next_start_ns = now + gap / d->iops;
    d->next_start_rest = gap % d->iops;
    if (d->next_start_ns == now)
        return;
    d->start_blocked = true;
    station_set_servers(d->places, station_serving(d->places));
    enum status status = evq_at(d->q, d->next_start_ns, start_due, d);
    assert(status == ST_OK); /* reserved by drive_new */
    (void)status;
}

static void read_starts(struct evq *q, void *self)
{
    (void)q;
    struct read *r = self;
    r->in_flight = true;
    if (r->drive->iops)
        block_starts(r->drive);
    r->drive->model->begin(r->drive, r);
}

static void read_over(struct evq *q, void *self)
{
    struct read *r = self;
    struct drive *d = r->drive;
    struct drive_read order = r->order;
    meter_fall(&d->present, evq_now_ns(q), 1);
    d->finished_reads++;
    d->finished_bytes += order.bytes;
    r->in_flight = false;
    r->next_free = d->free_head;
    d->free_head = r->slot;
    if (d->start_blocked)
        station_set_servers(d->places, station_serving(d->places));
    if (order.done)
        order.done(q, order.self);
}

void drive_end_read(struct drive *d, struct read *r)
{
    bool held = station_finish(d->places, r->ticket);
    assert(held);
    (void)held;
}

enum status drive_submit(struct drive *d, const struct drive_read *r, uint64_t *ticket)
{
    assert(r->bytes > 0 && r->bytes <= BYTES_MAX && r->level <= DRIVE_PREFETCH);
    uint32_t slot = d->free_head;
    if (slot == NO_READ)
        return ST_RANGE;
    struct read *own = &d->read[slot];
    d->free_head = own->next_free;
    *own = (struct read){.drive = d, .order = *r, .slot = slot};
    meter_rise(&d->present, evq_now_ns(d->q), 1);
    evq_note(d->q, r->place);
    const struct station_job job = {.work = STATION_HELD,
                                    .level = r->level,
                                    .tag = r->bytes,
                                    .start = read_starts,
                                    .done = read_over,
                                    .self = own};
    enum status status = station_submit(d->places, &job, &own->ticket);
    assert(status == ST_OK); /* as many jobs as reads */
    if (ticket)
        *ticket = own->ticket;
    return status;
}

bool drive_promote(struct drive *d, uint64_t ticket)
{
    if (!station_promote(d->places, ticket, DRIVE_DEMAND))
        return false;
    uint32_t slot = 0;
    while (d->read[slot].ticket != ticket)
        slot++;
    d->read[slot].order.level = DRIVE_DEMAND;
    return true;
}

void drive_set_speed(struct drive *d, uint32_t speed_e3)
{
    assert(speed_e3 > 0);
    if (speed_e3 == d->speed_e3)
        return;
    d->speed_e3 = speed_e3;
    drive_pipe_set_rate(&d->pipe, drive_scaled_Bps(d, d->pipe_Bps));
    d->model->set_speed(d);
}

uint32_t drive_in_flight(const struct drive *d)
{
    return station_serving(d->places);
}

uint32_t drive_waiting(const struct drive *d)
{
    return station_waiting(d->places, DRIVE_DEMAND) + station_waiting(d->places, DRIVE_PREFETCH);
}

struct drive_counts drive_counts(const struct drive *d, uint64_t now_ns)
{
    assert(now_ns == evq_now_ns(d->q));
    const struct station_little sums = station_little(d->places);
    return (struct drive_counts){
        .reads = d->finished_reads,
        .bytes = d->finished_bytes,
        .busy_ns = meter_busy_ns(&d->present, now_ns),
        .area_in_flight = sums.area_serving,
        .area_waiting = sums.area_waiting,
        .latency_ns = sums.sojourn_left,
        .latency_present_ns = sums.sojourn_present,
    };
}

static void chunk_passed(void *owner, struct parcel *p)
{
    struct drive *d = owner;
    d->model->passed(d, (struct read *)p);
}

static enum status open_places(struct drive *d, const struct drive_setup *s, struct diag *dg)
{
    const struct value *depth = &s->storage->queue_depth;
    d->place_count = s->lanes;
    if (depth->given && depth->amount < d->place_count)
        d->place_count = (uint32_t)depth->amount;
    if (s->reads_max < d->place_count)
        d->place_count = s->reads_max;
    const struct station_setup places = {.servers = d->place_count,
                                         .speed_per_s = NS_PER_S,
                                         .levels = DRIVE_PREFETCH + 1,
                                         .jobs_max = s->reads_max};
    enum status status = station_new(&d->places, d->q, &places, dg);
    if (status != ST_OK)
        return status;
    d->read = calloc(s->reads_max, sizeof *d->read);
    if (!d->read)
        return diag_no_memory(dg);
    for (uint32_t slot = 0; slot < s->reads_max; slot++)
        d->read[slot] = (struct read){.slot = slot, .next_free = slot + 1};
    d->read[s->reads_max - 1].next_free = NO_READ;
    d->reads_max = s->reads_max;
    return ST_OK;
}

static uint32_t dram_inflation(const struct drive *d, const struct drive_setup *s)
{
    const struct value *v = &s->storage->dram_inflation;
    uint64_t inflation = v->given ? v->amount : 1;
    if (s->dram_Bps && inflation > s->dram_Bps / d->pipe_Bps)
        inflation = s->dram_Bps / d->pipe_Bps;
    return inflation ? (uint32_t)inflation : 1;
}

/* Everything but the places: chance, rates, the pipe and the model. */
static enum status open_model(struct drive *d, const struct drive_setup *s, struct diag *dg)
{
    char stream[128];
    snprintf(stream, sizeof stream, "%s/latency", s->name);
    pcg_stream(&d->jitter, s->seed, stream);
    const struct storage *storage = s->storage;
    d->jitter_e3 = s->jitter_e3;
    d->speed_e3 = 1000;
    d->iops = storage->iops.given ? storage->iops.amount : 0;
    d->model = storage->model == STORAGE_NAND ? &drive_model_nand : &drive_model_curve;
    if (evq_reserve(d->q, 1) != ST_OK)
        return diag_no_memory(dg);
    enum status status = d->model->open(d, storage, dg);
    if (status != ST_OK)
        return status;
    uint32_t inflation = dram_inflation(d, s);
    const struct flow_class chunks = {.resources = &s->dram,
                                      .resource_count = 1,
                                      .cap_Bps = d->pipe_Bps * inflation,
                                      .weight = s->dram_weight * inflation};
    status = drive_pipe_init(&d->pipe, d->q, s->net, &chunks, inflation, dg);
    d->pipe.owner = d;
    d->pipe.passed = chunk_passed;
    return status;
}

enum status drive_new(struct drive **out, struct evq *q, const struct drive_setup *s,
                      struct diag *dg)
{
    assert(s->lanes > 0);
    struct drive *d = calloc(1, sizeof *d);
    if (!d)
        return diag_no_memory(dg);
    d->q = q;
    meter_init(&d->present, evq_now_ns(q));
    enum status status = open_places(d, s, dg);
    if (status == ST_OK)
        status = open_model(d, s, dg);
    if (status != ST_OK) {
        drive_free(d);
        return status;
    }
    *out = d;
    return ST_OK;
}

void drive_free(struct drive *d)
{
    if (!d)
        return;
    if (d->state)
        d->model->close(d);
    station_free(d->places);
    free(d->read);
    free(d);
}
