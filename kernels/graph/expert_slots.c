/* expert_slots.c -- see expert_slots.h. */
#include "kernels/graph/expert_slots.h"

#include "base/fixed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* How many experts can be members at once, and the arena they need with their alignment. */
struct sizing {
    uint64_t bytes;
    uint32_t slots;
};

static struct sizing size_arena(const struct expert_source *s, uint64_t payload)
{
    uint64_t least = UINT64_MAX, slack = 0, all = 0, most = 0;
    const struct model *m = s->weights->model;
    for (size_t l = 0; l < m->layer_count; l++) {
        uint64_t bytes = s->expert_bytes[l], room = s->room_bytes[l];
        if (bytes == 0)
            continue;
        least = bytes < least ? bytes : least;
        slack = room - bytes > slack ? room - bytes : slack;
        most = room > most ? room : most;
        all += room * m->layers[l].ffn.experts;
    }
    uint64_t slots = payload / least + 1, keys = m->layer_count * model_experts(m);
    uint64_t bytes = fixed_add(payload, fixed_mul(slots, slack));
    bytes = bytes < all ? bytes : all;
    return (struct sizing){bytes > most ? bytes : most, (uint32_t)(slots < keys ? slots : keys)};
}

enum status expert_slots_new(struct expert_slots *s, struct expert_source *source,
                             struct loader_io_setup *loader, bool direct, uint64_t budget_bytes,
                             uint64_t reserve_bytes, struct record *record, struct diag *dg)
{
    const struct model *m = source->weights->model;
    uint32_t align;
    *s = (struct expert_slots){.source = source, .record = record};
    s->experts = (uint32_t)model_experts(m);
    size_t keys = m->layer_count * (size_t)(s->experts ? s->experts : 1);
    enum status st = expert_source_measure(source, loader, direct, &align, dg);
    if (st != ST_OK)
        return st;
    struct sizing z = size_arena(source, fixed_add(budget_bytes, reserve_bytes));
    s->slots = (uint32_t)keys;
    s->slot = calloc(keys, sizeof *s->slot);
    s->slot_of = calloc(keys, sizeof *s->slot_of);
    s->pending = calloc(keys, sizeof *s->pending);
    st = s->slot && s->slot_of && s->pending ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        st = store_new(&s->store, (z.bytes + align - 1) / align * align, align, s->slots, dg);
    if (st == ST_OK) {
        loader->arena = store_arena(s->store);
        loader->arena_bytes = store_arena_bytes(s->store);
        loader->loads_max = z.slots + 1;
        st = loader_io_new(&s->io, loader, dg);
    }
    if (st == ST_OK)
        st = expert_source_attach(source, s->io, direct, dg);
    if (st != ST_OK)
        expert_slots_free(s);
    return st;
}

void expert_slots_free(struct expert_slots *s)
{
    loader_io_free(s->io); /* waits for what is in flight before the arena goes */
    store_free(s->store);
    free(s->slot);
    free(s->slot_of);
    free(s->pending);
    *s = (struct expert_slots){0};
}

static void note_read(struct expert_slots *s, const struct expert_slot *slot,
                      const struct load_report *report)
{
    struct record *r = s->record;
    r->sums.reads++;
    if (!slot->prefetched && report->landed_ns > s->demand_landed_ns)
        s->demand_landed_ns = report->landed_ns;
    r->sums.payload_bytes += report->payload_bytes;
    r->sums.device_bytes += report->device_bytes;
    timeline_span(
        r->timeline,
        &(struct timeline_span){.lane = r->storage_lane,
                                .operation = slot->prefetched ? TIMELINE_PREFETCH : TIMELINE_READ,
                                .start_ns = report->submitted_ns - r->start_ns,
                                .end_ns = report->landed_ns - r->start_ns,
                                .pass = s->pass,
                                .layer = slot->key / s->experts,
                                .expert = slot->key % s->experts,
                                .bytes = report->payload_bytes});
}

static void forget_pending(struct expert_slots *s, uint32_t slot)
{
    uint32_t i = 0;
    while (s->pending[i] != slot)
        i++;
    memmove(&s->pending[i], &s->pending[i + 1], (s->pending_count - i - 1) * sizeof *s->pending);
    s->pending_count--;
}

enum status expert_slots_settle(struct expert_slots *s, uint32_t slot, struct diag *dg)
{
    struct expert_slot *x = &s->slot[slot];
    struct load_report report;
    if (!x->pending)
        return ST_OK;
    enum status st = loader_io_wait(s->io, x->ticket, &report, dg);
    x->pending = false;
    forget_pending(s, slot);
    decision_log_landed(s->log, x->key);
    if (st == ST_OK) {
        note_read(s, x, &report);
        st = expert_source_check(s->source, x->key / s->experts, x->key % s->experts,
                                 store_address(s->store, slot), dg);
    }
    store_unpin(s->store, slot);
    return st;
}

enum status expert_slots_poll(struct expert_slots *s, struct diag *dg)
{
    enum status st = ST_OK;
    for (uint32_t i = s->pending_count; st == ST_OK && i-- > 0;)
        if (loader_io_ready(s->io, s->slot[s->pending[i]].ticket))
            st = expert_slots_settle(s, s->pending[i], dg);
    return st;
}

/* A place for the slot. Reads in flight pin their places, which can leave a gap too small; once
 * they have landed all can slide together. */
static enum status take_place(struct expert_slots *s, uint32_t slot, uint64_t bytes,
                              struct diag *dg)
{
    enum status st = ST_OK;
    while (st == ST_OK && !store_take(s->store, slot, bytes)) {
        assert(s->pending_count > 0 && "the arena was sized for the budget");
        st = expert_slots_settle(s, s->pending[0], dg);
    }
    return st;
}

static enum status begin_read(struct expert_slots *s, const struct decision *d, struct diag *dg)
{
    struct expert_slot *slot = &s->slot[d->slot];
    uint32_t layer = d->key / s->experts;
    struct load load = {.class_of = d->class_of == COMMAND_PREFETCH ? LOAD_PREFETCH : LOAD_DEMAND};
    enum status st = take_place(s, d->slot, s->source->room_bytes[layer], dg);
    if (st != ST_OK)
        return st;
    expert_source_load(s->source, layer, d->key % s->experts, &load);
    load.room = store_address(s->store, d->slot);
    load.room_bytes = store_slot_bytes(s->store, d->slot);
    st = loader_io_submit(s->io, &load, &slot->ticket, dg);
    if (st != ST_OK)
        return st;
    store_pin(s->store, d->slot);
    *slot = (struct expert_slot){d->key, slot->ticket, true, d->class_of == COMMAND_PREFETCH};
    s->slot_of[d->key] = d->slot;
    s->pending[s->pending_count++] = d->slot;
    return ST_OK;
}

enum status expert_slots_execute(struct expert_slots *s, const struct decision *d, size_t count,
                                 struct diag *dg)
{
    enum status st = ST_OK;
    if (count == 0)
        return ST_OK;
    loader_io_gather(s->io, true);
    for (size_t i = 0; st == ST_OK && i < count; i++) {
        st = expert_slots_settle(s, d[i].slot, dg);
        if (st == ST_OK && d[i].class_of == COMMAND_DROP)
            store_drop(s->store, d[i].slot);
        else if (st == ST_OK)
            st = begin_read(s, &d[i], dg);
    }
    loader_io_gather(s->io, false);
    return st;
}
