/* array.c -- see array.h. */
#include "sim/pipeline/array.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARE_ALIGN UINT64_C(4096)
#define NO_SLOT     UINT32_MAX

struct striped { /* a read whose shares are under way */
    struct array *array;
    struct drive_read order;
    uint32_t shares_left, next_free;
};

struct array {
    struct evq *q;
    enum array_layout layout;
    size_t drive_count;
    size_t first; /* drive of the next read's first share */
    struct meter present;
    struct striped *read; /* reads_max */
    uint32_t free_head;
    struct drive *drive[];
};

static void landed(struct evq *q, void *self)
{
    struct striped *r = self;
    struct array *a = r->array;
    struct drive_read order = r->order;
    if (--r->shares_left)
        return;
    r->next_free = a->free_head;
    a->free_head = (uint32_t)(r - a->read);
    meter_fall(&a->present, evq_now_ns(q), 1);
    meter_pass(&a->present, order.bytes);
    if (order.done)
        order.done(q, order.self);
}

static size_t least_loaded(const struct array *a)
{
    size_t best = 0;
    uint32_t fewest = UINT32_MAX;
    for (size_t i = 0; i < a->drive_count; i++) {
        uint32_t reads = drive_in_flight(a->drive[i]) + drive_waiting(a->drive[i]);
        if (reads < fewest) {
            fewest = reads;
            best = i;
        }
    }
    return best;
}

static uint64_t share_of(uint64_t bytes, size_t drives)
{
    uint64_t share = (bytes + drives - 1) / drives;
    return (share + SHARE_ALIGN - 1) / SHARE_ALIGN * SHARE_ALIGN;
}

static void submit_share(struct array *a, size_t drive, struct striped *r, uint64_t bytes)
{
    struct drive_read share = r->order;
    share.bytes = bytes;
    share.done = landed;
    share.self = r;
    enum status status = drive_submit(a->drive[drive], &share, NULL);
    assert(status == ST_OK); /* a drive has room for a share of every read */
    (void)status;
}

enum status array_submit(struct array *a, const struct drive_read *r)
{
    uint32_t slot = a->free_head;
    if (slot == NO_SLOT)
        return ST_RANGE;
    struct striped *own = &a->read[slot];
    a->free_head = own->next_free;
    *own = (struct striped){.array = a, .order = *r};
    meter_rise(&a->present, evq_now_ns(a->q), 1);
    if (a->layout == ARRAY_MIRRORED || a->drive_count == 1) {
        own->shares_left = 1;
        submit_share(a, least_loaded(a), own, r->bytes);
        return ST_OK;
    }
    uint64_t share = share_of(r->bytes, a->drive_count), left = r->bytes;
    size_t drive = a->first;
    own->shares_left = (uint32_t)((left + share - 1) / share);
    for (; left > share; left -= share) {
        submit_share(a, drive, own, share);
        drive = (drive + 1) % a->drive_count;
    }
    submit_share(a, drive, own, left);
    a->first = (drive + 1) % a->drive_count;
    return ST_OK;
}

void array_set_speed(struct array *a, uint32_t speed_e3)
{
    for (size_t i = 0; i < a->drive_count; i++)
        drive_set_speed(a->drive[i], speed_e3);
}

size_t array_drive_count(const struct array *a)
{
    return a->drive_count;
}

const struct drive *array_drive(const struct array *a, size_t i)
{
    assert(i < a->drive_count);
    return a->drive[i];
}

struct array_counts array_counts(const struct array *a, uint64_t now_ns)
{
    assert(now_ns == evq_now_ns(a->q));
    return (struct array_counts){
        .reads = a->present.passed_count,
        .bytes = (uint64_t)a->present.passed_units,
        .busy_ns = meter_busy_ns(&a->present, now_ns),
        .area_present = meter_area(&a->present, now_ns),
    };
}

static enum status open_drives(struct array *a, const struct array_setup *s, struct diag *dg)
{
    enum status status = ST_OK;
    for (size_t i = 0; i < s->device->storage_count && status == ST_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "storage%zu", i);
        const struct drive_setup setup = {.storage = &s->device->storage[i],
                                          .name = name,
                                          .lanes = s->lanes,
                                          .reads_max = s->reads_max,
                                          .net = s->net,
                                          .dram = s->dram,
                                          .dram_Bps = s->dram_Bps / s->device->storage_count,
                                          .dram_weight = s->dram_weight,
                                          .jitter_e3 = s->jitter_e3,
                                          .seed = s->seed};
        status = drive_new(&a->drive[i], a->q, &setup, dg);
        a->drive_count += status == ST_OK;
    }
    return status;
}

enum status array_new(struct array **out, struct evq *q, const struct array_setup *s,
                      struct diag *dg)
{
    size_t drives = s->device->storage_count;
    if (drives == 0)
        return diag_set(dg, ST_MISFIT, "device %s has no storage to read from", s->device->name);
    struct array *a = calloc(1, sizeof *a + drives * sizeof a->drive[0]);
    if (!a)
        return diag_no_memory(dg);
    a->q = q;
    a->layout = s->layout;
    meter_init(&a->present, evq_now_ns(q));
    enum status status = open_drives(a, s, dg); /* refuses a reads_max out of range */
    if (status == ST_OK) {
        a->read = calloc(s->reads_max, sizeof *a->read);
        if (!a->read)
            status = diag_no_memory(dg);
    }
    if (status != ST_OK) {
        array_free(a);
        return status;
    }
    for (uint32_t slot = 0; slot < s->reads_max; slot++)
        a->read[slot].next_free = slot + 1;
    a->read[s->reads_max - 1].next_free = NO_SLOT;
    *out = a;
    return ST_OK;
}

void array_free(struct array *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->drive_count; i++)
        drive_free(a->drive[i]);
    free(a->read);
    free(a);
}
