/* inverse.c -- the least of each resource that gives a wanted rate, everything else as it is.
 *
 * A token never takes longer when a resource grows, so the least amount is found by bisection on
 * whole bytes or bytes/s, on the very estimate that plan_token() makes: the inverse is consistent with
 * the forward answer to the last unit. A floating-point root finder would add nothing but rounding.
 */
#include "sim/plan/planner.h"

#include "base/fixed.h"

#define REACH 1000 /* a rate is sought up to this many times what there is */

struct quest {
    const char *name;
    enum dimension dim;
    uint64_t (*now)(const struct plan *p);
    uint64_t (*most)(const struct plan *p);
    /* False where the amount cannot hold the model at all. */
    bool (*set)(struct plan_case *c, const struct plan *p, uint64_t amount);
};

static uint64_t flash_now(const struct plan *p)
{
    return p->machine.input[INPUT_FLASH_BANDWIDTH].value.amount;
}

static uint64_t flash_most(const struct plan *p)
{
    return flash_now(p) * REACH;
}

static void in_proportion(struct machine *m, enum input_id id, uint64_t amount, uint64_t now)
{
    struct value *v = &m->input[id].value;
    v->amount = fixed_mul_div(v->amount, amount, now);
    v->amount = v->amount ? v->amount : v->given;
}

static bool set_flash(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    uint64_t now = flash_now(p);
    in_proportion(&c->machine, INPUT_FLASH_BANDWIDTH, amount, now);
    in_proportion(&c->machine, INPUT_FLASH_LANE, amount, now);
    in_proportion(&c->machine, INPUT_FLASH_IOPS, amount, now);
    c->machine.flash.link_bandwidth.given = false;
    machine_derive(&c->machine);
    return amount > 0;
}

static uint64_t memory_now(const struct plan *p)
{
    return p->place.given;
}

static uint64_t memory_most(const struct plan *p)
{
    return 2 * (p->place.weights + p->place.state + p->place.buffers);
}

static bool set_memory(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    struct placement_request r = p->request.place;
    struct placement place;
    struct diag dg;
    r.memory = amount;
    r.cache_given = false;
    r.hypothetical = true;
    if (amount == 0 || placement_find(&place, p->model, p->device, &p->machine, &r, &dg) != ST_OK)
        return false;
    c->cache = place.cache;
    c->stream_trunk = place.stream_trunk;
    c->stream_bytes = place.stream_bytes;
    return true;
}

static uint64_t cache_now(const struct plan *p)
{
    return p->place.cache;
}

static uint64_t cache_most(const struct plan *p)
{
    return p->place.experts;
}

static bool set_cache(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    (void)p;
    c->cache = amount;
    return true;
}

static uint64_t compute_now(const struct plan *p)
{
    return p->machine.reached_ops;
}

static uint64_t compute_most(const struct plan *p)
{
    return compute_now(p) * REACH;
}

static bool set_compute(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    c->machine.reached_ops = amount;
    c->machine.host_ops = fixed_mul_div(p->machine.host_ops, amount, compute_now(p));
    return amount > 0;
}

static uint64_t dram_now(const struct plan *p)
{
    return p->machine.dram_Bps;
}

static uint64_t dram_most(const struct plan *p)
{
    return dram_now(p) * REACH;
}

static bool set_dram(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    c->machine.dram_Bps = amount;
    if (!p->machine.own_memory)
        c->machine.memory_Bps = amount;
    return amount > 0;
}

static uint64_t unit_now(const struct plan *p)
{
    return p->machine.own_memory ? p->machine.memory_Bps : 0;
}

static uint64_t unit_most(const struct plan *p)
{
    return unit_now(p) * REACH;
}

static bool set_unit(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    (void)p;
    c->machine.memory_Bps = amount;
    return amount > 0;
}

static uint64_t link_now(const struct plan *p)
{
    return p->machine.link_Bps;
}

static uint64_t link_most(const struct plan *p)
{
    return link_now(p) * REACH;
}

static bool set_link(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    (void)p;
    c->machine.link_Bps = amount;
    return amount > 0;
}

static const struct quest quests[WISH_COUNT] = {
    [WISH_FLASH] = {"flash rate", DIM_RATE, flash_now, flash_most, set_flash},
    [WISH_MEMORY] = {"memory", DIM_SIZE, memory_now, memory_most, set_memory},
    [WISH_CACHE] = {"expert cache", DIM_SIZE, cache_now, cache_most, set_cache},
    [WISH_COMPUTE] = {"compute reached", DIM_COMPUTE, compute_now, compute_most, set_compute},
    [WISH_DRAM_RATE] = {"DRAM rate reached", DIM_RATE, dram_now, dram_most, set_dram},
    [WISH_UNIT_RATE] = {"unit memory rate", DIM_RATE, unit_now, unit_most, set_unit},
    [WISH_LINK] = {"link rate", DIM_RATE, link_now, link_most, set_link},
};

/* UINT64_MAX where the amount cannot hold the model. */
static uint64_t token_with(const struct plan *p, const struct quest *q, uint64_t amount)
{
    struct plan_case c;
    struct timing t;
    plan_base_case(&c, p);
    if (!q->set(&c, p, amount))
        return UINT64_MAX;
    plan_token(&t, p, &c);
    return t.total_ns;
}

/* The least amount, or UINT64_MAX. */
static uint64_t least(const struct plan *p, const struct quest *q, uint64_t wanted_ns)
{
    uint64_t low = 0, high = q->most(p);
    if (token_with(p, q, high) > wanted_ns)
        return UINT64_MAX;
    if (token_with(p, q, 1) <= wanted_ns)
        return 0;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (token_with(p, q, middle) <= wanted_ns)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* A token really takes `end`/mid of what is estimated: so much less, or more, may be estimated. */
static uint64_t wanted_at(const struct plan *p, uint64_t wanted_ns, uint64_t end)
{
    return fixed_mul_div(wanted_ns, p->token_ns.mid, end);
}

static void solve(struct answer *a, const struct plan *p, const struct quest *q, uint64_t wanted_ns)
{
    *a = (struct answer){.name = q->name, .dim = q->dim, .now = q->now(p)};
    if (q->most(p) == 0)
        return; /* a device without it, or a model without experts */
    a->best_ns = token_with(p, q, q->most(p));
    a->need = least(p, q, wanted_ns);
    a->need_low = least(p, q, wanted_at(p, wanted_ns, p->token_ns.low));
    a->need_high = least(p, q, wanted_at(p, wanted_ns, p->token_ns.high));
    a->reachable = a->need != UINT64_MAX;
}

void plan_want(struct answer answers[WISH_COUNT], const struct plan *p, uint64_t token_ns)
{
    for (size_t i = 0; i < WISH_COUNT; i++)
        solve(&answers[i], p, &quests[i], token_ns);
}

static uint64_t token_with_both(const struct plan *p, uint64_t factor)
{
    struct plan_case c;
    struct timing t;
    plan_base_case(&c, p);
    if (flash_now(p))
        set_flash(&c, p, fixed_mul_div(flash_now(p), factor, RATIO_ONE));
    uint64_t memory = fixed_mul_div(memory_now(p), factor, RATIO_ONE);
    if (!set_memory(&c, p, memory < memory_most(p) ? memory : memory_most(p)))
        return UINT64_MAX;
    plan_token(&t, p, &c);
    return t.total_ns;
}

void plan_want_together(struct together *out, const struct plan *p, uint64_t token_ns)
{
    uint64_t low = 0, high = RATIO_ONE * REACH;
    *out = (struct together){.best_ns = token_with_both(p, high)};
    out->reachable = out->best_ns <= token_ns;
    if (!out->reachable)
        return;
    while (high - low > 1000) { /* to a millionth of what there is */
        uint64_t middle = low + (high - low) / 2;
        if (token_with_both(p, middle) <= token_ns)
            high = middle;
        else
            low = middle;
    }
    out->factor = high;
    out->flash = fixed_mul_div(flash_now(p), high, RATIO_ONE);
    out->memory = fixed_mul_div(memory_now(p), high, RATIO_ONE);
}
