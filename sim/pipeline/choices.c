/* choices.c -- what the router's choice sets in motion: the decisions of sim/policy, executed as loads, and the
 * guesses about later layers. */
#include "sim/pipeline/run_state.h"

#include "models/work.h"

#include <assert.h>

/* A read ahead waits for its moment, if the profile has one; a cache that leaves no time asks at once. */
static bool wait_for_moment(struct run *r, const struct load *l)
{
    if (l->level == 0 || r->setup.prefetch_timed || run_amount(&r->profile->prefetch_lead, 0) == 0)
        return false;
    assert(r->ahead_count < r->experts && "one prediction names no expert twice");
    r->ahead[r->ahead_count++] = *l;
    return true;
}

static void start_ahead(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    for (uint32_t i = 0; i < r->ahead_count && r->failure == ST_OK; i++)
        r->failure = loader_load(r->loader, &r->ahead[i]);
    r->ahead_count = 0;
}

void choices_schedule_ahead(struct run *r)
{
    if (r->ahead_count == 0)
        return;
    uint64_t lead = r->profile->prefetch_lead.amount;
    uint64_t whole = unit_expected_ns(r->unit, &r->kernels.fixed);
    uint64_t wait = whole > lead ? whole - lead : 0;
    enum status st = evq_at(r->q, evq_now_ns(r->q) + wait, start_ahead, r);
    assert(st == ST_OK && "run_start() reserved the event");
    (void)st;
}

static void execute(struct run *r, const struct decision *d, size_t count)
{
    for (size_t i = 0; i < count && r->failure == ST_OK; i++) {
        if (d[i].class_of == COMMAND_DROP)
            continue;
        r->slot_of[d[i].key] = d[i].slot;
        struct load l = {.slot = d[i].slot,
                         .key = d[i].key,
                         .bytes = r->expert_bytes[d[i].key / r->experts],
                         .level = d[i].class_of == COMMAND_PREFETCH,
                         .operation =
                             d[i].class_of == COMMAND_PREFETCH ? TIMELINE_PREFETCH : TIMELINE_READ,
                         .landed = r->setup.prefetch_timed ? choices_feed_idle : NULL,
                         .self = r};
        if (!wait_for_moment(r, &l))
            r->failure = loader_load(r->loader, &l);
    }
}

/* The unique experts of the batch, in order of first choice, with how many tokens chose each. */
static void list_choices(struct run *r, const uint16_t *ids, size_t n)
{
    r->choice_count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t *of = &r->choice_of[ids[i]];
        if (*of == 0) {
            *of = ++r->choice_count;
            r->choice[*of - 1] = (struct choice){.expert = ids[i]};
        }
        r->choice[*of - 1].tokens++;
    }
    for (uint32_t i = 0; i < r->choice_count; i++)
        r->choice_of[r->choice[i].expert] = 0;
}

/* Only a hit ratio is known: each look-up is drawn, a miss is read into a slot of its own. An engine that
 * keeps nothing hits the page cache, and so copies its hits. */
static void decide_fixed(struct run *r)
{
    uint64_t unique = (work_unique_experts_e3(r->experts, r->top_k, r->pass.tokens) + 500) / 1000;
    r->choice_count = (uint32_t)unique;
    for (uint32_t i = 0; i < r->choice_count && r->failure == ST_OK; i++) {
        bool hit = (uint64_t)pcg_u32(&r->fixed_chance) * RATIO_ONE >> 32 < r->setup.hit_ratio;
        bool copied = hit && r->page_cache && !run_keeps_cache(r) && !r->setup.given_io_ns;
        r->choice[i] =
            (struct choice){.expert = (uint16_t)i,
                            .tokens = (uint32_t)((r->pass.tokens * r->top_k + unique - 1) / unique),
                            .slot = i,
                            .ready = hit && !copied};
        r->fixed_lookups++;
        r->fixed_hits += hit;
        if (r->choice[i].ready)
            continue;
        struct load l = {.slot = i,
                         .key = r->layer * r->experts + i,
                         .bytes = r->kernels.expert_bytes,
                         .resident = copied,
                         .operation = TIMELINE_READ,
                         .uncached = !copied};
        r->failure = loader_load(r->loader, &l);
        r->choice[i].ready = !loader_pending(r->loader, i); /* mapped pages are there at once */
    }
}

/* Timed: one guess at a time, and only while the drive has nothing else to do. */
void choices_feed_idle(struct evq *q, void *self)
{
    (void)q;
    struct run *r = self;
    struct timed_guess g;
    size_t count;
    while (loader_idle(r->loader) && r->failure == ST_OK &&
           timed_take(&r->timed, r->pass_count, r->layer, &g)) {
        const struct decision *d = decide_predict(r->decide, r->pass_count, r->layer, g.target,
                                                  &g.expert, NULL, 1, &count);
        execute(r, d, count);
    }
}

static void remember_guesses(struct run *r, uint32_t target, const uint16_t *ids, size_t n)
{
    for (size_t i = 0; i < n && i < r->setup.prefetch_experts_max; i++)
        timed_add(&r->timed, &(struct timed_guess){r->pass_count, r->layer, target, ids[i]});
    choices_feed_idle(r->q, r);
}

static bool is_guessed(const struct run *r, size_t n, uint16_t id)
{
    for (size_t i = 0; i < n; i++)
        if (r->guessed[i] == id)
            return true;
    return false;
}

/* A predictor of a stated recall: each guess is the true expert or, with what is left, any expert. */
static const uint16_t *spoil(struct run *r, const uint16_t *ids, size_t *n)
{
    size_t used = 0;
    if (r->setup.prefetch_recall == 0 || r->setup.prefetch_recall >= RATIO_ONE)
        return ids;
    for (size_t i = 0; i < *n && used < r->setup.prefetch_experts_max; i++) {
        bool right =
            (uint64_t)pcg_u32(&r->recall_chance) * RATIO_ONE >> 32 < r->setup.prefetch_recall;
        uint16_t id = right ? ids[i] : (uint16_t)pcg_below(&r->recall_chance, r->experts);
        if (used < r->experts && !is_guessed(r, used, id))
            r->guessed[used++] = id;
    }
    *n = used;
    return r->guessed;
}

static void predict(struct run *r)
{
    const struct prefetch_policy *p = r->setup.prefetch;
    if (!p || !p->from_outside)
        return;
    uint32_t target = 0;
    size_t n = 0, count;
    const uint16_t *ids = p->needs_future ? routing_ahead(r->routing, r->layer,
                                                          r->setup.prefetch_distance, &target, &n)
                                          : routing_guess(r->routing, r->layer, &target, &n);
    if (!ids || n == 0)
        return;
    if (p->needs_future)
        ids = spoil(r, ids, &n);
    if (!p->needs_future && r->profile->predict.given)
        unit_charge(r->unit, r->profile->predict.amount); /* the next kernel waits for it */
    if (r->setup.prefetch_timed) {
        remember_guesses(r, target, ids, n);
        return;
    }
    const struct decision *d =
        decide_predict(r->decide, r->pass_count, r->layer, target, ids, NULL, n, &count);
    execute(r, d, count);
}

void choices_decide(struct run *r)
{
    size_t n, count;
    const uint16_t *ids = routing_batch(r->routing, r->layer, &n);
    start_ahead(r->q, r); /* whose moment has not come: the kernel was shorter than expected */
    if (!r->decide) {
        decide_fixed(r);
        return;
    }
    list_choices(r, ids, n);
    if (r->choice_count == 0)
        return;
    const struct decision *d = decide_batch(r->decide, r->pass_count, r->layer, ids, n, &count);
    size_t demands = 0;
    for (size_t i = 0; i < count; i++)
        demands += d[i].class_of == COMMAND_DEMAND;
    execute(r, d, count);
    predict(r);
    uint32_t late = 0;
    for (uint32_t i = 0; i < r->choice_count; i++) {
        struct choice *c = &r->choice[i];
        c->slot = r->slot_of[r->layer * r->experts + c->expert];
        c->ready = !loader_pending(r->loader, c->slot);
        late += !c->ready;
    }
    r->late_hits += late > demands ? late - demands : 0;
    r->layer_late[r->layer] += late - demands;
}
