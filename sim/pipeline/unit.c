/* unit.c -- see unit.h. */
#include "sim/pipeline/unit.h"

#include "base/fixed.h"
#include "sim/roofline/estimate.h"

#include <assert.h>
#include <stdlib.h>

struct unit {
    struct evq *q;
    struct unit_setup setup;
    uint32_t kernel_class;
    bool busy;
    uint64_t share_ns;
    uint32_t speed_e3;
    struct timeline *timeline;
    uint32_t lane, pass, layer;
    uint64_t started_ns, charged_ns, held_until_ns;
    struct unit_totals totals;
    struct kernel kernel;
    evq_fn *done;
    void *self;
};

enum status unit_new(struct unit **out, struct evq *q, const struct unit_setup *s, struct diag *dg)
{
    struct unit *u = calloc(1, sizeof *u);
    if (!u)
        return diag_no_memory(dg);
    u->q = q;
    u->setup = *s;
    u->share_ns = 1;
    u->speed_e3 = 1000;
    struct flow_class c = {&s->memory, 1, s->memory_Bps, s->weight};
    enum status st = flow_class_add(s->net, &c, &u->kernel_class, dg);
    if (st == ST_OK && evq_reserve(q, 2) != ST_OK)
        st = diag_no_memory(dg);
    if (st != ST_OK) {
        free(u);
        return st;
    }
    *out = u;
    return ST_OK;
}

void unit_free(struct unit *u)
{
    free(u);
}

void unit_share(struct unit *u, uint64_t estimate_ns)
{
    u->share_ns = estimate_ns ? estimate_ns : 1;
}

void unit_set_speed(struct unit *u, uint32_t speed_e3)
{
    u->speed_e3 = speed_e3;
}

void unit_trace(struct unit *u, struct timeline *t, uint32_t lane)
{
    u->timeline = t;
    u->lane = lane;
}

void unit_mark_place(struct unit *u, uint32_t pass, uint32_t layer)
{
    u->pass = pass;
    u->layer = layer;
}

static uint64_t at_speed(const struct unit *u, uint64_t rate)
{
    return fixed_mul_div(rate, u->speed_e3, 1000);
}

bool unit_busy(const struct unit *u)
{
    return u->busy;
}

struct unit_totals unit_totals(const struct unit *u)
{
    return u->totals;
}

void unit_charge(struct unit *u, uint64_t cpu_ns)
{
    if (u->setup.given_ns)
        return; /* what was measured has it already */
    u->charged_ns += cpu_ns;
    u->totals.serial_ns += cpu_ns;
}

void unit_hold(struct unit *u, uint64_t until_ns, const char *operation)
{
    uint64_t now = evq_now_ns(u->q), from = u->held_until_ns > now ? u->held_until_ns : now;
    if (u->setup.given_ns || until_ns <= u->held_until_ns)
        return;
    u->held_until_ns = until_ns;
    if (operation && until_ns > from)
        timeline_span(u->timeline, &(struct timeline_span){.lane = u->lane,
                                                           .operation = operation,
                                                           .start_ns = from,
                                                           .end_ns = until_ns,
                                                           .pass = u->pass,
                                                           .layer = u->layer,
                                                           .expert = TIMELINE_NONE});
}

/* Operations/s of this kernel, cool. */
static uint64_t full_rate(const struct unit *u, const struct kernel *k)
{
    return machine_rows_ops(u->setup.ops_per_s, u->setup.gemm_ops_per_s, k->rows_e3);
}

static uint64_t rate_of(const struct unit *u, const struct kernel *k)
{
    return at_speed(u, full_rate(u, k));
}

/* Time of measured bytes at the present clock. */
static uint64_t measured_ns(const struct unit *u, const struct kernel *k)
{
    return fixed_mul_div(k->measured_ns, 1000, u->speed_e3);
}

uint64_t unit_estimate_ns(const struct unit *u, const struct kernel *k)
{
    if (k->measured_ns)
        return measured_ns(u, k) + k->calls * u->setup.call_ns + k->fixed_ns;
    uint64_t memory = time_for(k->bytes, at_speed(u, u->setup.memory_Bps)),
             compute = time_for(k->ops, rate_of(u, k));
    return (memory > compute ? memory : compute) + k->calls * u->setup.call_ns + k->fixed_ns;
}

uint64_t unit_expected_ns(const struct unit *u, const struct kernel *k)
{
    uint64_t estimate = unit_estimate_ns(u, k);
    return u->setup.given_ns ? fixed_mul_div(u->setup.given_ns, estimate, u->share_ns) : estimate;
}

static void after(struct unit *u, uint64_t ns, evq_fn *fn)
{
    enum status st = evq_at(u->q, evq_now_ns(u->q) + ns, fn, u);
    assert(st == ST_OK && "unit_new reserved the event");
    (void)st;
}

/* The kernel's own work is done; what reads took from its cores is still owed. */
static void finish(struct evq *q, void *self)
{
    struct unit *u = self;
    if (u->charged_ns > 0) {
        uint64_t owed = u->charged_ns;
        u->charged_ns = 0;
        after(u, owed, finish);
        return;
    }
    u->busy = false;
    u->totals.busy_ns += evq_now_ns(q) - u->started_ns;
    timeline_span(u->timeline, &(struct timeline_span){.lane = u->lane,
                                                       .operation = u->kernel.operation,
                                                       .start_ns = u->started_ns,
                                                       .end_ns = evq_now_ns(q),
                                                       .pass = u->pass,
                                                       .layer = u->layer,
                                                       .expert = TIMELINE_NONE,
                                                       .bytes = u->kernel.bytes});
    u->done(q, u->self);
}

/* The fastest this kernel can draw its bytes, so that its operations keep up. */
static uint64_t kernel_cap_Bps(const struct unit *u)
{
    if (u->kernel.measured_ns) {
        uint64_t reached = fixed_mul_div(u->kernel.bytes, 1000000000, measured_ns(u, &u->kernel));
        return reached ? reached : 1;
    }
    uint64_t compute_ns = time_for(u->kernel.ops, rate_of(u, &u->kernel));
    uint64_t cap = compute_ns ? fixed_mul_div(u->kernel.bytes, 1000000000, compute_ns) : UINT64_MAX;
    uint64_t memory_Bps = at_speed(u, u->setup.memory_Bps);
    cap = cap < memory_Bps ? cap : memory_Bps;
    return cap ? cap : 1;
}

static void stream(struct evq *q, void *self)
{
    (void)q;
    struct unit *u = self;
    flow_set_cap(u->setup.net, u->kernel_class, kernel_cap_Bps(u));
    enum status st =
        flow_start(u->setup.net, u->kernel_class,
                   &(struct flow){.bytes = u->kernel.bytes, .done = finish, .self = u});
    assert(st == ST_OK && "the net has room for every flow of the pipeline");
    (void)st;
}

void unit_run(struct unit *u, const struct kernel *k, evq_fn *done, void *self)
{
    assert(!u->busy);
    u->busy = true;
    u->started_ns = evq_now_ns(u->q);
    u->kernel = *k;
    u->done = done;
    u->self = self;
    u->totals.ops += k->ops;
    u->totals.bytes += k->bytes;
    u->totals.ops_ns += time_for(k->ops, full_rate(u, k));
    if (u->setup.given_ns) {
        uint64_t share = unit_expected_ns(u, k);
        u->totals.serial_ns += share;
        after(u, share, finish);
        return;
    }
    u->totals.serial_ns += unit_estimate_ns(u, k);
    uint64_t now = evq_now_ns(u->q), held = u->held_until_ns > now ? u->held_until_ns - now : 0;
    uint64_t fixed = held + k->calls * u->setup.call_ns + k->fixed_ns;
    u->totals.serial_ns += held;
    u->started_ns = now + held;
    if (k->cached)
        after(u, fixed + measured_ns(u, k), finish);
    else if (k->bytes > 0)
        after(u, fixed, stream);
    else
        after(u, fixed + time_for(k->ops, rate_of(u, k)), finish);
}
