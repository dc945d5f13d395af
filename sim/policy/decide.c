/* decide.c -- see decide.h. Everything is an array by key = layer * experts + expert; a cache is either all
 * keys (global) or one layer's (layer scope), so a policy's own keys are an offset away. Set-up
 * allocates, deciding does not. */
#include "sim/policy/decide.h"

#include "base/hash.h"
#include "base/quantity.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const scope_names[] = {"global", "layer", NULL};
const char *const evict_names[] = {"before", "after", NULL};

enum { NO_SLOT = 0 }; /* slots are stored plus one, so that zeroed memory means "no member" */

struct cache {
    void *state; /* the policy's */
    struct guard guard;
    uint32_t first_key, first_layer;
    uint64_t budget_bytes, used_bytes;
};

enum mark { MARK_PREFETCHED = 1, MARK_EVICTED_BY_PREFETCH = 2 };

struct decide {
    struct decide_setup setup;
    uint32_t cache_count;
    struct cache *cache;
    void *prefetch_state;
    uint32_t *slot_of; /* by key: slot + 1, or NO_SLOT */
    uint8_t *held;     /* by key */
    uint8_t *mark;     /* by key: enum mark */
    uint32_t *seen;    /* by key: stamp of the last batch that asked for it */
    uint32_t stamp;
    uint32_t *free_slot; /* stack */
    uint32_t free_count, slot_count;
    uint32_t *hold_list;  /* [layer][experts] */
    uint32_t *hold_count; /* by layer */
    uint16_t *unique;     /* the current batch without repeats */
    uint32_t unique_count;
    uint16_t *guess;
    uint64_t *prefetched_bytes; /* by target layer, since its last layer_end */
    struct decide_layer *layer;
    uint64_t prefetch_bytes_max, used_bytes, peak_bytes;
    struct decision *out;
    size_t out_count;
    struct decide_counts counts;
};

static struct cache *cache_of(struct decide *d, uint32_t layer)
{
    return &d->cache[d->setup.scope == SCOPE_LAYER ? layer : 0];
}

static uint64_t expert_bytes(const struct decide *d, uint32_t key)
{
    return d->setup.expert_bytes[key / d->setup.experts];
}

static uint64_t largest_expert(const struct decide_setup *s)
{
    uint64_t most = 0;
    for (uint32_t l = 0; l < s->layers; l++)
        if (s->expert_bytes[l] > most)
            most = s->expert_bytes[l];
    return most;
}

/* Most bytes prefetched for one layer: never more than all of its experts, however much is allowed. */
static uint64_t prefetch_allowance(const struct decide_setup *s)
{
    if (!s->prefetch)
        return 0;
    uint64_t largest = largest_expert(s), all = s->experts * largest;
    if (s->prefetch_bytes_max)
        return s->prefetch_bytes_max < all ? s->prefetch_bytes_max : all;
    return s->prefetch_experts_max < s->experts ? s->prefetch_experts_max * largest : all;
}

uint64_t decide_minimum_bytes(const struct decide_setup *s, uint64_t batch_bytes_max)
{
    if (s->policy->keeps_nothing || s->evict == EVICT_AFTER)
        return 0;
    uint64_t prefetch = prefetch_allowance(s);
    if (s->scope == SCOPE_LAYER)
        return s->layers * (batch_bytes_max + prefetch);
    /* Further ahead than all layers is a layer that was counted already. */
    return batch_bytes_max +
           prefetch * (s->prefetch_distance < s->layers ? s->prefetch_distance : s->layers);
}

uint64_t decide_batch_limit(const struct decide_setup *s)
{
    if (s->policy->keeps_nothing || s->evict == EVICT_AFTER)
        return UINT64_MAX;
    uint64_t reserved = decide_minimum_bytes(s, 0);
    uint64_t room = s->budget_bytes > reserved ? s->budget_bytes - reserved : 0;
    return s->scope == SCOPE_LAYER ? room / s->layers : room;
}

/* ---- set-up ---- */

static enum status start_cache(struct decide *d, uint32_t index, struct diag *dg)
{
    const struct decide_setup *s = &d->setup;
    struct cache *c = &d->cache[index];
    bool layered = s->scope == SCOPE_LAYER;
    c->first_layer = layered ? index : 0;
    c->first_key = c->first_layer * s->experts;
    c->budget_bytes = layered ? s->budget_bytes / s->layers : s->budget_bytes;
    c->guard.held = d->held + c->first_key;
    uint64_t sum = 0, with_experts = 0;
    for (uint32_t l = c->first_layer; l < (layered ? c->first_layer + 1 : s->layers); l++) {
        sum += s->expert_bytes[l];
        with_experts += s->expert_bytes[l] > 0;
    }
    uint64_t mean = with_experts ? (sum + with_experts / 2) / with_experts : 0;
    uint64_t slots = mean ? c->budget_bytes / mean : 0;
    struct policy_setup p = {
        .keys = layered ? s->experts : s->layers * s->experts,
        .layers = layered ? 1 : s->layers,
        .experts = s->experts,
        .future = s->future ? &s->future[index] : NULL,
        .rank = s->rank ? s->rank + c->first_key : NULL,
    };
    p.slots = slots == 0 ? 1 : slots > p.keys ? p.keys : (uint32_t)slots;
    char name[32];
    snprintf(name, sizeof name, "cache%u/policy", index);
    pcg_stream(&p.chance, s->seed, name);
    size_t bytes = s->policy->state_bytes(&p);
    c->state = calloc(1, bytes ? bytes : 1);
    if (!c->state)
        return diag_no_memory(dg);
    s->policy->start(c->state, &p);
    return ST_OK;
}

static bool allocate(struct decide *d)
{
    const struct decide_setup *s = &d->setup;
    size_t keys = (size_t)s->layers * s->experts;
    d->cache_count = s->scope == SCOPE_LAYER ? s->layers : 1;
    d->cache = calloc(d->cache_count, sizeof *d->cache);
    d->slot_of = calloc(keys, sizeof *d->slot_of);
    d->held = calloc(keys, sizeof *d->held);
    d->mark = calloc(keys, sizeof *d->mark);
    d->seen = calloc(keys, sizeof *d->seen);
    d->free_slot = calloc(keys, sizeof *d->free_slot);
    d->hold_list = calloc(keys, sizeof *d->hold_list);
    d->hold_count = calloc(s->layers, sizeof *d->hold_count);
    d->unique = calloc(s->experts, sizeof *d->unique);
    d->guess = calloc(s->experts, sizeof *d->guess);
    d->prefetched_bytes = calloc(s->layers, sizeof *d->prefetched_bytes);
    d->layer = calloc(s->layers, sizeof *d->layer);
    d->out = calloc(keys + 2 * (size_t)s->experts, sizeof *d->out);
    struct prefetch_setup p = {s->layers, s->experts, s->prefetch_distance};
    if (s->prefetch && s->prefetch->state_bytes(&p) > 0) {
        d->prefetch_state = calloc(1, s->prefetch->state_bytes(&p));
        if (!d->prefetch_state)
            return false;
        s->prefetch->start(d->prefetch_state, &p);
    }
    return d->cache && d->slot_of && d->held && d->mark && d->seen && d->free_slot &&
           d->hold_list && d->hold_count && d->unique && d->guess && d->prefetched_bytes &&
           d->layer && d->out;
}

void decide_free(struct decide *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; d->cache && i < d->cache_count; i++)
        free(d->cache[i].state);
    void *arrays[] = {d->cache, d->prefetch_state,   d->slot_of,   d->held,       d->mark,
                      d->seen,  d->free_slot,        d->hold_list, d->hold_count, d->unique,
                      d->guess, d->prefetched_bytes, d->layer,     d->out};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    free(d);
}

static enum status check_setup(const struct decide_setup *s, uint64_t batch_bytes_max,
                               struct diag *dg)
{
    assert(s->layers > 0 && s->experts > 0 && s->experts <= UINT16_MAX);
    assert(!s->prefetch || (s->prefetch_distance > 0 && s->prefetch_experts_max > 0));
    if (s->policy->clairvoyant && !s->future)
        return diag_set(dg, ST_UNSUPPORTED, "policy %s needs a recorded trace", s->policy->name);
    uint64_t least = decide_minimum_bytes(s, batch_bytes_max);
    if (s->budget_bytes >= least)
        return ST_OK;
    char have[QUANTITY_TEXT_MAX], need[QUANTITY_TEXT_MAX];
    return diag_set(
        dg, ST_MISFIT, "a cache of %s is too small: one batch%s%s needs %s (%" PRIu64 " bytes)",
        quantity_print(have, s->budget_bytes, DIM_SIZE),
        s->scope == SCOPE_LAYER ? " in every layer" : "", s->prefetch ? " with its prefetches" : "",
        quantity_round(need, least, DIM_SIZE), least);
}

enum status decide_new(struct decide **out, const struct decide_setup *s, uint64_t batch_bytes_max,
                       struct diag *dg)
{
    enum status st = check_setup(s, batch_bytes_max, dg);
    if (st != ST_OK)
        return st;
    struct decide *d = calloc(1, sizeof *d);
    if (!d)
        return diag_no_memory(dg);
    d->setup = *s;
    d->prefetch_bytes_max = prefetch_allowance(s);
    d->counts.command_hash = HASH_SEED;
    st = allocate(d) ? ST_OK : diag_no_memory(dg);
    for (uint32_t i = 0; st == ST_OK && i < d->cache_count; i++)
        st = start_cache(d, i, dg);
    if (st != ST_OK) {
        decide_free(d);
        return st;
    }
    *out = d;
    return ST_OK;
}

/* ---- commands ---- */

static void command(struct decide *d, enum command_class class_of, uint32_t key, uint32_t slot,
                    uint32_t victim)
{
    d->out[d->out_count++] = (struct decision){key, slot, victim, class_of};
    uint64_t h = d->counts.command_hash;
    h = hash_mix(h ^ ((uint64_t)slot << 32 | key));
    d->counts.command_hash = hash_mix(h ^ ((uint64_t)class_of << 32 | victim));
}

/* Takes `key` out of the books of its cache; its slot is returned, not freed. */
static uint32_t forget(struct decide *d, struct cache *c, uint32_t key, bool for_prefetch)
{
    uint32_t slot = d->slot_of[key] - 1;
    d->slot_of[key] = NO_SLOT;
    d->counts.evictions++;
    c->used_bytes -= expert_bytes(d, key);
    d->used_bytes -= expert_bytes(d, key);
    if (d->mark[key] & MARK_PREFETCHED) {
        d->counts.prefetch_wasted++;
        d->counts.prefetch_wasted_bytes += expert_bytes(d, key);
        d->layer[key / d->setup.experts].prefetch_wasted++;
    }
    d->mark[key] = for_prefetch ? MARK_EVICTED_BY_PREFETCH : 0;
    return slot;
}

static uint32_t policy_victim(struct decide *d, struct cache *c, uint32_t incoming)
{
    uint32_t key = d->setup.policy->victim(c->state, &c->guard, incoming);
    return key == NO_KEY ? NO_KEY : key + c->first_key;
}

/* Tells that a key that forget() took out leaves its slot to nobody. */
static void drop(struct decide *d, uint32_t key, uint32_t slot)
{
    d->free_slot[d->free_count++] = slot;
    command(d, COMMAND_DROP, key, slot, NO_KEY);
}

/* Evicts until `key` fits; the last victim is left to the caller to replace in place (its slot is
 * in *slot), those before it are dropped. False if what is held leaves no room: nothing more to evict. */
static bool make_room(struct decide *d, struct cache *c, uint32_t key, bool for_prefetch,
                      uint32_t *victim, uint32_t *slot)
{
    *victim = NO_KEY;
    while (c->used_bytes + expert_bytes(d, key) > c->budget_bytes) {
        uint32_t next = policy_victim(d, c, key - c->first_key);
        if (next == NO_KEY)
            return false;
        if (*victim != NO_KEY)
            drop(d, *victim, *slot);
        *victim = next;
        *slot = forget(d, c, next, for_prefetch);
    }
    return true;
}

static bool load(struct decide *d, struct cache *c, uint32_t key, enum command_class class_of)
{
    uint32_t victim = NO_KEY, slot = 0;
    bool roomy = d->setup.evict == EVICT_AFTER || d->setup.policy->keeps_nothing;
    if (!roomy && !make_room(d, c, key, class_of == COMMAND_PREFETCH, &victim, &slot)) {
        assert(class_of == COMMAND_PREFETCH && "decide_new admitted a budget that is too small");
        if (victim != NO_KEY)
            drop(d, victim, slot); /* evicted in vain, and to be told all the same */
        return false;
    }
    if (victim == NO_KEY)
        slot = d->free_count ? d->free_slot[--d->free_count] : d->slot_count++;
    d->slot_of[key] = slot + 1;
    c->used_bytes += expert_bytes(d, key);
    d->used_bytes += expert_bytes(d, key);
    if (d->used_bytes > d->peak_bytes)
        d->peak_bytes = d->used_bytes;
    d->setup.policy->insert(c->state, key - c->first_key);
    command(d, class_of, key, slot, victim);
    return true;
}

static void hold(struct decide *d, uint32_t layer, uint32_t key)
{
    if (d->held[key])
        return;
    d->held[key] = 1;
    d->hold_list[(size_t)layer * d->setup.experts + d->hold_count[layer]++] = key;
}

/* ---- the three calls ---- */

static void look_up(struct decide *d, struct cache *c, uint32_t layer, uint32_t key)
{
    d->counts.lookups++;
    d->layer[layer].lookups++;
    if (d->slot_of[key] != NO_SLOT) {
        d->counts.hits++;
        d->layer[layer].hits++;
        d->counts.prefetch_used += (d->mark[key] & MARK_PREFETCHED) != 0;
        d->layer[layer].prefetch_used += (d->mark[key] & MARK_PREFETCHED) != 0;
        d->mark[key] = 0;
        d->setup.policy->hit(c->state, key - c->first_key);
        return;
    }
    d->counts.misses++;
    d->counts.pollution += (d->mark[key] & MARK_EVICTED_BY_PREFETCH) != 0;
    d->layer[layer].pollution += (d->mark[key] & MARK_EVICTED_BY_PREFETCH) != 0;
    d->mark[key] = 0;
    d->counts.demand_bytes += expert_bytes(d, key);
    load(d, c, key, COMMAND_DEMAND);
}

/* Appends loads for up to prefetch_experts_max of the guessed experts that are no members yet. */
static void prefetch(struct decide *d, uint32_t target, const uint16_t *ids, size_t n)
{
    const struct decide_setup *s = &d->setup;
    struct cache *c = cache_of(d, target);
    uint64_t bytes = s->expert_bytes[target];
    if (bytes == 0)
        return;
    for (size_t i = 0; i < n && i < s->prefetch_experts_max; i++) {
        uint32_t key = target * s->experts + ids[i];
        if (d->slot_of[key] != NO_SLOT)
            continue;
        if (d->prefetched_bytes[target] + bytes > d->prefetch_bytes_max ||
            !load(d, c, key, COMMAND_PREFETCH))
            return;
        d->prefetched_bytes[target] += bytes;
        d->counts.prefetches++;
        d->layer[target].prefetches++;
        d->counts.prefetch_bytes += bytes;
        d->mark[key] = MARK_PREFETCHED;
        hold(d, target, key);
    }
}

const struct decision *decide_batch(struct decide *d, uint32_t pass, uint32_t layer,
                                    const uint16_t *ids, size_t n, size_t *count)
{
    (void)pass;
    const struct decide_setup *s = &d->setup;
    struct cache *c = cache_of(d, layer);
    uint32_t base = layer * s->experts, unique = 0;
    d->out_count = 0;
    d->stamp++;
    for (size_t i = 0; i < n; i++)
        hold(d, layer, base + ids[i]);
    if (s->policy->batch)
        s->policy->batch(c->state, layer - c->first_layer);
    for (size_t i = 0; i < n; i++) {
        uint32_t key = base + ids[i];
        if (d->seen[key] == d->stamp) {
            if (s->policy->again)
                s->policy->again(c->state, key - c->first_key);
            continue;
        }
        d->seen[key] = d->stamp;
        d->unique[unique++] = ids[i];
        look_up(d, c, layer, key);
    }
    d->unique_count = unique;
    if (s->prefetch && !s->prefetch->from_outside) {
        uint32_t target = (layer + s->prefetch_distance) % s->layers;
        size_t guessed = s->prefetch->guess(d->prefetch_state, layer, d->unique, unique, target,
                                            d->guess, s->prefetch_experts_max);
        prefetch(d, target, d->guess, guessed);
    }
    *count = d->out_count;
    return d->out;
}

const struct decision *decide_predict(struct decide *d, uint32_t pass, uint32_t layer,
                                      uint32_t target, const uint16_t *ids, const int64_t *scores,
                                      size_t n, size_t *count)
{
    (void)pass, (void)layer, (void)scores;
    d->out_count = 0;
    if (d->setup.prefetch && d->setup.prefetch->from_outside)
        prefetch(d, target, ids, n);
    *count = d->out_count;
    return d->out;
}

static void release_holds(struct decide *d, uint32_t layer)
{
    const uint32_t *list = &d->hold_list[(size_t)layer * d->setup.experts];
    for (uint32_t i = 0; i < d->hold_count[layer]; i++)
        d->held[list[i]] = 0;
    d->hold_count[layer] = 0;
}

/* Policy none: all experts of the layer leave with it, those guessed for it included. */
static void drop_all(struct decide *d, uint32_t layer)
{
    const uint32_t *list = &d->hold_list[(size_t)layer * d->setup.experts];
    for (uint32_t i = 0; i < d->hold_count[layer]; i++)
        if (d->slot_of[list[i]] != NO_SLOT)
            drop(d, list[i], forget(d, cache_of(d, layer), list[i], false));
}

/* Evict after: back to the budget. What the finished layer used is still held; if that alone exceeds the
 * budget, the reserve goes on carrying it. */
static void shrink(struct decide *d, struct cache *c)
{
    while (c->used_bytes > c->budget_bytes) {
        uint32_t key = policy_victim(d, c, NO_KEY);
        if (key == NO_KEY)
            return;
        drop(d, key, forget(d, c, key, false));
    }
}

const struct decision *decide_resize(struct decide *d, uint64_t budget_bytes, size_t *count)
{
    d->out_count = 0;
    d->setup.budget_bytes = budget_bytes;
    for (uint32_t i = 0; i < d->cache_count; i++) {
        d->cache[i].budget_bytes = budget_bytes / d->cache_count;
        if (!d->setup.policy->keeps_nothing)
            shrink(d, &d->cache[i]);
    }
    *count = d->out_count;
    return d->out;
}

const struct decision *decide_layer_end(struct decide *d, uint32_t pass, uint32_t layer,
                                        size_t *count)
{
    (void)pass;
    const struct decide_setup *s = &d->setup;
    d->out_count = 0;
    if (s->policy->keeps_nothing)
        drop_all(d, layer);
    else if (s->evict == EVICT_AFTER)
        shrink(d, cache_of(d, layer));
    release_holds(d, layer);
    d->prefetched_bytes[layer] = 0;
    if (s->prefetch && s->prefetch->learn)
        s->prefetch->learn(d->prefetch_state, layer, d->unique, d->unique_count);
    *count = d->out_count;
    return d->out;
}

/* ---- what happened ---- */

const struct decide_counts *decide_counts(const struct decide *d)
{
    return &d->counts;
}

uint64_t decide_used_bytes(const struct decide *d)
{
    return d->used_bytes;
}

uint64_t decide_peak_bytes(const struct decide *d)
{
    return d->peak_bytes;
}

bool decide_is_member(const struct decide *d, uint32_t layer, uint32_t expert)
{
    return d->slot_of[layer * d->setup.experts + expert] != NO_SLOT;
}

const struct decide_layer *decide_by_layer(const struct decide *d)
{
    return d->layer;
}
