/* environment.c -- what surrounds a run: the memory ledger with applications that open, energy, heat.
 *
 * Memory is booked when the run starts and as state grows; an application that opens takes the page cache first
 * and then part of the expert cache. Energy and heat are counted pass by pass: the temperature at the end
 * of a pass sets the speed of the next. */
#include "sim/pipeline/run_state.h"

#include "base/fixed.h"
#include "base/text.h"
#include "models/state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void mark(void *self, const struct ledger_event *e)
{
    struct run *r = self;
    timeline_mark(r->setup.timeline, e->when_ns, ledger_event_name(e->kind));
    r->result->pressure_events += e->kind != LEDGER_PRESSURE;
    if (e->kind == LEDGER_KILLED || e->kind == LEDGER_REFUSED)
        r->lacking = e->bytes;
}

/* The expert cache gives whole experts, down to what one batch needs; the page cache gives what is asked. */
static uint64_t give(void *self, enum ledger_account account, uint64_t bytes)
{
    struct run *r = self;
    if (account == LEDGER_PAGE_CACHE || !r->decide)
        return account == LEDGER_PAGE_CACHE ? bytes : 0;
    uint64_t least = r->cache_least, now = r->placement.cache;
    uint64_t gift = now > least ? now - least : 0;
    gift = gift < bytes ? gift : bytes;
    size_t count;
    r->placement.cache -= gift;
    decide_resize(r->decide, r->placement.cache, &count); /* drops need no execution */
    return gift;
}

static void open_application(struct evq *q, void *self)
{
    struct run *r = self;
    const struct pressure *p = &r->setup.pressure[r->pressure_next++];
    if (r->over)
        return;
    if (!ledger_pressure(&r->ledger, evq_now_ns(q), p->bytes)) {
        r->failure = ST_NO_MEMORY;
        r->killed_ns = evq_now_ns(q);
        r->asked_bytes = p->bytes;
        return;
    }
    if (r->page_cache)
        page_cache_resize(r->page_cache, ledger_page_cache_room(&r->ledger));
}

enum status environment_refuse(const struct run *r, struct diag *dg)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], holders[200] = "", who[80];
    for (int i = 0; i < LEDGER_ACCOUNTS; i++) {
        uint64_t held = ledger_held(&r->ledger, (enum ledger_account)i);
        if (held > 0)
            text_list(holders, sizeof holders, ", ", "%s %s",
                      ledger_account_name((enum ledger_account)i),
                      quantity_round(a, held, DIM_SIZE));
    }
    snprintf(who, sizeof who, "%s%s", r->asked_bytes ? "pressure of " : "the state of the sequence",
             r->asked_bytes ? quantity_round(b, r->asked_bytes, DIM_SIZE) : "");
    return diag_set(
        dg, ST_MISFIT,
        "out of memory %.3f s into the run: %s lacks %s when the caches have given what "
        "they can; held: %s",
        (double)r->killed_ns / 1e9, who, quantity_round(a, r->lacking, DIM_SIZE), holders);
}

static void book(struct run *r, enum ledger_account account, uint64_t bytes)
{
    uint64_t held = ledger_grow(&r->ledger, 0, account, bytes);
    assert(held == bytes && "the placement left room for everything");
    (void)held;
}

enum status environment_start(struct run *r, struct diag *dg)
{
    const struct placement *p = &r->placement;
    uint64_t dense = p->dense_resident, cache = run_keeps_cache(r) ? p->cache : 0;
    uint64_t elsewhere = r->machine.own_memory ? r->machine.memory_bytes : 0;
    struct ledger_setup s = {.capacity_bytes = p->given + p->reserve + elsewhere,
                             .give = give,
                             .event = mark,
                             .self = r};
    s.policy[LEDGER_STATE].shrinks_cache = true; /* tokens go on, with a smaller cache */
    ledger_init(&r->ledger, &s);
    book(r, LEDGER_RESERVE, p->reserve);
    book(r, LEDGER_DENSE, dense);
    book(r, LEDGER_BUFFERS, p->buffers);
    book(r, LEDGER_CACHE, cache);
    if (r->page_cache)
        book(r, LEDGER_PAGE_CACHE, ledger_free(&r->ledger));
    for (size_t i = 0; i < r->setup.pressure_count; i++)
        if (evq_reserve(r->q, 1) != ST_OK ||
            evq_at(r->q, r->setup.pressure[i].when_ns, open_application, r) != ST_OK)
            return diag_no_memory(dg);
    const char *missing;
    struct heat_setup heat;
    r->warm = heat_setup_from_device(&heat, r->setup.device, &missing);
    if (r->warm)
        heat_init(&r->heat, &heat);
    r->flash_read = calloc(r->setup.device->storage_count ? r->setup.device->storage_count : 1,
                           sizeof *r->flash_read);
    return r->flash_read ? ST_OK : diag_no_memory(dg);
}

/* State grows with the sequence; what has no room is a failure of the run, never a silent clamp. */
static void grow_state(struct run *r)
{
    uint64_t users = r->setup.batch ? r->setup.batch : 1;
    uint64_t now =
        users * state_bytes(r->model, r->position + r->pass.produced, r->setup.state_bits);
    uint64_t held = ledger_held(&r->ledger, LEDGER_STATE);
    if (now < held) { /* a new turn begins with an empty state */
        ledger_shrink(&r->ledger, LEDGER_STATE, held - now);
    } else if (ledger_grow(&r->ledger, evq_now_ns(r->q), LEDGER_STATE, now - held) < now - held) {
        r->failure = ST_NO_MEMORY;
        r->killed_ns = evq_now_ns(r->q);
    }
    if (r->page_cache)
        page_cache_resize(r->page_cache, ledger_page_cache_room(&r->ledger));
}

static struct energy pass_energy(struct run *r, uint64_t span_ns)
{
    struct unit_totals t = unit_totals(r->expert_unit), u = unit_totals(r->unit);
    bool two = r->expert_unit != r->unit;
    uint64_t ops = u.ops + (two ? t.ops : 0), bytes = u.bytes + (two ? t.bytes : 0);
    uint64_t busy = u.busy_ns + (two ? t.busy_ns : 0);
    uint64_t read = loader_counts(r->loader, evq_now_ns(r->q)).bytes;
    r->flash_read[0] = read - r->energy_read;
    struct energy_use use = {
        .span_ns = span_ns,
        .busy_ns = busy - r->energy_busy_ns < span_ns ? busy - r->energy_busy_ns : span_ns,
        .operations = ops - r->energy_ops,
        .dram_bytes = bytes - r->energy_bytes,
        .flash_bytes = r->flash_read};
    struct energy e;
    energy_of(&e, r->setup.device, r->machine.unit_idx, &use);
    r->energy_ops = ops;
    r->energy_bytes = bytes;
    r->energy_busy_ns = busy;
    r->energy_read = read;
    return e;
}

void environment_end_pass(struct run *r)
{
    uint64_t now = evq_now_ns(r->q), span = now - r->pass_start_ns;
    struct energy e = pass_energy(r, span);
    grow_state(r);
    if (r->pass.phase == PHASE_DECODE && e.form != ENERGY_UNKNOWN)
        r->pass_energy_pJ = e.total_pJ;
    r->result->energy_missing |= e.missing;
    timeline_counter(r->setup.timeline, r->cache_track, now,
                     r->decide ? decide_used_bytes(r->decide) : 0);
    if (!r->warm)
        return;
    heat_step(&r->heat, span, energy_mean_uW(e.total_pJ, span));
    timeline_counter(r->setup.timeline, r->heat_track, now, heat_chip_mC(&r->heat));
    unit_set_speed(r->unit, heat_compute_e3(&r->heat));
    unit_set_speed(r->expert_unit, heat_compute_e3(&r->heat));
    if (r->array)
        array_set_speed(r->array, heat_flash_e3(&r->heat, r->setup.device->storage));
}
