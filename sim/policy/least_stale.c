/* least_stale.c -- layer-cycle aware staleness, after the idea of Least-Stale (Hoang et al., SpecMD, arXiv
 * 2602.03921) in a form of our own.
 *
 * A decoder visits its layers in a cycle, so "long ago" means "of the layers that come next": exactly
 * what LRU evicts. Here age counts visits of an expert's own layer since it was last used there. The
 * victim is the expert of the greatest age; among equals, that of the layer which will be visited last.
 * Each layer keeps its members by recency, so a victim costs one look at every layer. */
#include "sim/policy/key_list.h"

struct least_stale {
    uint32_t keys, layers, experts, current;
    uint32_t *visits;       /* by layer */
    uint32_t *used_at;      /* by key: visit of its layer in which it was last used */
    struct key_link link[]; /* keys, then one sentinel a layer; then visits and used_at */
};

static size_t least_stale_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct least_stale) + (s->keys + s->layers) * sizeof(struct key_link) +
           (s->keys + s->layers) * sizeof(uint32_t);
}

static void least_stale_start(void *state, const struct policy_setup *s)
{
    struct least_stale *p = state;
    p->keys = s->keys;
    p->layers = s->layers;
    p->experts = s->experts;
    p->visits = (uint32_t *)&p->link[s->keys + s->layers];
    p->used_at = p->visits + s->layers;
    for (uint32_t l = 0; l < s->layers; l++)
        key_list_start(p->link, s->keys + l);
}

static void least_stale_batch(void *state, uint32_t layer)
{
    struct least_stale *p = state;
    p->current = layer;
    p->visits[layer]++;
}

static void least_stale_insert(void *state, uint32_t key)
{
    struct least_stale *p = state;
    uint32_t layer = key / p->experts;
    p->used_at[key] = p->visits[layer];
    key_list_push(p->link, p->keys + layer, key);
}

static void least_stale_hit(void *state, uint32_t key)
{
    struct least_stale *p = state;
    key_list_remove(p->link, key);
    least_stale_insert(p, key);
}

static uint32_t least_stale_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct least_stale *p = state;
    uint32_t best = NO_KEY, best_age = 0;
    for (uint32_t ahead = p->layers; ahead > 0; ahead--) { /* the current layer comes again last */
        uint32_t layer = (p->current + ahead) % p->layers;
        uint32_t key = key_list_oldest(p->link, p->keys + layer, g);
        if (key == NO_KEY)
            continue;
        uint32_t age = p->visits[layer] - p->used_at[key];
        if (best == NO_KEY || age > best_age) {
            best = key;
            best_age = age;
        }
    }
    if (best != NO_KEY)
        key_list_remove(p->link, best);
    return best;
}

const struct cache_policy cache_least_stale = {
    .name = "least-stale",
    .summary = "most visits of its layer without use; among equals, the layer visited last",
    .state_bytes = least_stale_state_bytes,
    .start = least_stale_start,
    .hit = least_stale_hit,
    .again = least_stale_hit,
    .insert = least_stale_insert,
    .victim = least_stale_victim,
    .batch = least_stale_batch,
};
