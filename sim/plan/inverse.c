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
    (void)p;
    c->machine.reached_ops = amount;
    return amount > 0;
}

static uint64_t dram_now(const struct plan *p)
{
    return p->machine.memory_Bps;
}

static uint64_t dram_most(const struct plan *p)
{
    return dram_now(p) * REACH;
}

static bool set_dram(struct plan_case *c, const struct plan *p, uint64_t amount)
{
    c->machine.memory_Bps = amount;
    if (!p->machine.own_memory)
        c->machine.dram_Bps = amount;
    return amount > 0;
}

static const struct quest quests[WISH_COUNT] = {
    [WISH_FLASH] = {"flash rate", DIM_RATE, flash_now, flash_most, set_flash},
    [WISH_MEMORY] = {"memory", DIM_SIZE, memory_now, memory_most, set_memory},
    [WISH_CACHE] = {"expert cache", DIM_SIZE, cache_now, cache_most, set_cache},
    [WISH_COMPUTE] = {"compute reached", DIM_COMPUTE, compute_now, compute_most, set_compute},
    [WISH_DRAM_RATE] = {"DRAM rate reached", DIM_RATE, dram_now, dram_most, set_dram},
};

static bool enough(const struct plan *p, const struct quest *q, uint64_t amount, uint64_t wanted_ns)
{
    struct plan_case c;
    struct timing t;
    plan_base_case(&c, p);
    if (!q->set(&c, p, amount))
        return false;
    plan_token(&t, p, &c);
    return t.total_ns <= wanted_ns;
}

static void solve(struct answer *a, const struct plan *p, const struct quest *q, uint64_t wanted_ns)
{
    uint64_t low = 0, high = q->most(p);
    *a = (struct answer){.name = q->name, .dim = q->dim, .now = q->now(p)};
    if (a->now == 0 && q->most == flash_most)
        return; /* a device without storage */
    a->reachable = enough(p, q, high, wanted_ns);
    if (!a->reachable)
        return;
    if (enough(p, q, 0, wanted_ns)) {
        a->need = 0;
        return;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (enough(p, q, middle, wanted_ns))
            high = middle;
        else
            low = middle;
    }
    a->need = high;
}

void plan_want(struct answer answers[WISH_COUNT], const struct plan *p, uint64_t token_ns)
{
    for (size_t i = 0; i < WISH_COUNT; i++)
        solve(&answers[i], p, &quests[i], token_ns);
}
