/* what_if.c -- the ranges of a plan and the factors of its questions.
 *
 * Every question is a function that changes a case. For draw i all questions see the same machine,
 * scaled input by input, the same route and the same miss factor: common random numbers.
 */
#include "sim/plan/planner.h"

#include "base/fixed.h"
#include "base/pcg.h"
#include "sim/plan/spread.h"

#include <string.h>

struct question {
    const char *name, *key;
    void (*ask)(struct plan_case *c, const struct plan *p);
};

static void twice_flash(struct plan_case *c, const struct plan *p)
{
    (void)p;
    machine_scale_flash(&c->machine, 2 * RATIO_ONE);
}

static void twice_cache(struct plan_case *c, const struct plan *p)
{
    c->cache = c->cache > p->place.experts / 2 ? p->place.experts : 2 * c->cache;
}

static void perfect_prefetch(struct plan_case *c, const struct plan *p)
{
    (void)p;
    c->profile = PROFILE_PERFECT;
}

static void overlap_reads(struct plan_case *c, const struct plan *p)
{
    (void)p;
    if (c->profile == PROFILE_SERIAL)
        c->profile = PROFILE_OVERLAP;
}

static void twice_compute(struct plan_case *c, const struct plan *p)
{
    (void)p;
    machine_scale(&c->machine, INPUT_PEAK, 2 * RATIO_ONE);
    machine_scale(&c->machine, INPUT_HOST_PEAK, 2 * RATIO_ONE);
}

static void twice_link(struct plan_case *c, const struct plan *p)
{
    (void)p;
    machine_scale(&c->machine, INPUT_LINK, 2 * RATIO_ONE);
}

static void twice_dram(struct plan_case *c, const struct plan *p)
{
    (void)p;
    machine_scale(&c->machine, INPUT_DRAM, 2 * RATIO_ONE);
    machine_scale(&c->machine, INPUT_UNIT_DRAM, 2 * RATIO_ONE);
}

static void whole_experts(struct plan_case *c, const struct plan *p)
{
    (void)p;
    c->pieces = 1;
}

static void fewer_bits(struct plan_case *c, const struct plan *p)
{
    c->decode = &p->fewer_bits;
    c->expert_factor = p->place.experts ? p->fewer_factor : RATIO_ONE;
}

static const struct question questions[] = {
    {"2x flash", "flash_2x", twice_flash},
    {"2x cache", "cache_2x", twice_cache},
    {"perfect prefetch", "perfect_prefetch", perfect_prefetch},
    {"reads beside compute", "overlap", overlap_reads},
    {"2x compute", "compute_2x", twice_compute},
    {"2x DRAM rate", "dram_2x", twice_dram},
    {"2x link", "link_2x", twice_link},
    {"experts in one piece", "packed", whole_experts},
    {NULL, NULL, fewer_bits},
};
#define QUESTIONS (sizeof questions / sizeof *questions)

_Static_assert(QUESTIONS <= PLAN_WHAT_IF_MAX, "a plan has room for every question");

enum { DRAW_MISSES = INPUT_COUNT, DRAW_RESIDUAL, DRAW_COUNT };

struct draws {
    uint64_t factor[DRAW_COUNT][PLAN_DRAWS];
    size_t route[PLAN_DRAWS];
    uint64_t token_ns[PLAN_DRAWS], first_ns[PLAN_DRAWS];
    uint64_t gain[PLAN_WHAT_IF_MAX][PLAN_DRAWS];
};

/* A stated efficiency was found together with its peak: the spread of the product is its own. */
static bool drawn(const struct plan *p, size_t i)
{
    return p->machine.input[i].value.given && i != INPUT_PEAK && i != INPUT_HOST_PEAK;
}

/* Where the routing is unknown each of the routes is as likely as another. */
static void draw_routes(struct draws *d, const struct plan *p)
{
    struct pcg chance;
    pcg_stream(&chance, p->request.seed, "plan/routing/preset");
    for (size_t i = 0; i < PLAN_DRAWS; i++)
        d->route[i] = pcg_below(&chance, (uint32_t)p->route_count);
}

static void draw_inputs(struct draws *d, const struct plan *p)
{
    for (size_t i = 0; i < INPUT_COUNT; i++)
        if (drawn(p, i))
            spread_draw(d->factor[i], PLAN_DRAWS, p->request.seed, p->machine.input[i].path,
                        &p->machine.input[i].value);
    spread_draw(d->factor[DRAW_MISSES], PLAN_DRAWS, p->request.seed, "routing/misses", &p->misses);
    spread_draw(d->factor[DRAW_RESIDUAL], PLAN_DRAWS, p->request.seed, "residual", &p->residual);
    draw_routes(d, p);
}

static void apply_draw(struct plan_case *c, const struct plan *p, const struct draws *d,
                       size_t draw)
{
    for (size_t i = 0; i < INPUT_COUNT; i++)
        if (drawn(p, i)) {
            uint64_t *amount = &c->machine.input[i].value.amount;
            *amount = fixed_mul_div(*amount, d->factor[i][draw], RATIO_ONE);
            *amount =
                *amount ? *amount : 1; /* a rate of one unit a second may not be drawn to nothing */
        }
    c->route = &p->route[d->route[draw]];
    c->miss_factor = d->factor[DRAW_MISSES][draw];
    machine_derive(&c->machine);
}

static uint64_t gain_of(const struct plan *p, const struct plan_case *base, uint64_t base_ns,
                        const struct question *q)
{
    struct plan_case c = *base;
    struct timing t;
    q->ask(&c, p);
    plan_token(&t, p, &c);
    return fixed_mul_div(base_ns, RATIO_ONE, t.total_ns);
}

static size_t asked(const struct plan *p)
{
    return p->fewer_name ? QUESTIONS : QUESTIONS - 1;
}

static void run_draw(struct draws *d, const struct plan *p, size_t draw)
{
    struct plan_case c;
    struct timing t;
    plan_base_case(&c, p);
    apply_draw(&c, p, d, draw);
    plan_token(&t, p, &c);
    uint64_t residual = d->factor[DRAW_RESIDUAL][draw]; /* the same in every question: no gain */
    d->token_ns[draw] = fixed_mul_div(t.total_ns, residual, RATIO_ONE);
    d->first_ns[draw] = fixed_mul_div(plan_first_ns(p, &c), residual, RATIO_ONE);
    for (size_t q = 0; q < asked(p); q++)
        d->gain[q][draw] = gain_of(p, &c, t.total_ns, &questions[q]);
}

static struct range range_of(uint64_t mid, uint64_t *x)
{
    return (struct range){mid, spread_quantile(x, PLAN_DRAWS, 5),
                          spread_quantile(x, PLAN_DRAWS, 95)};
}

void plan_spread(struct plan *p)
{
    struct draws d;
    struct plan_case c;
    draw_inputs(&d, p);
    for (size_t i = 0; i < PLAN_DRAWS; i++)
        run_draw(&d, p, i);
    plan_base_case(&c, p);
    p->token_ns = range_of(p->timing.total_ns, d.token_ns);
    p->first_ns = range_of(plan_first_ns(p, &c), d.first_ns);
    p->what_if_count = asked(p);
    for (size_t q = 0; q < p->what_if_count; q++) {
        uint64_t mid = gain_of(p, &c, p->timing.total_ns, &questions[q]);
        p->what_if[q] = (struct what_if){questions[q].name ? questions[q].name : p->fewer_name,
                                         questions[q].key ? questions[q].key : p->fewer_key,
                                         range_of(mid, d.gain[q])};
    }
}
