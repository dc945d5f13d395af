/* random.c -- evicts a member at random, from its own stream of chance. Memoryless, hence immune to the
 * layer cycle: what a clever policy must beat. */
#include "sim/policy/cache_policy.h"

struct random_state {
    struct pcg chance;
    uint32_t count, keys;
    uint32_t member[]; /* keys of them; then keys more: where a key stands in `member` */
};

static size_t random_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct random_state) + 2 * (size_t)s->keys * sizeof(uint32_t);
}

static void random_start(void *state, const struct policy_setup *s)
{
    struct random_state *r = state;
    r->chance = s->chance;
    r->keys = s->keys;
}

static void random_hit(void *state, uint32_t key)
{
    (void)state, (void)key;
}

static void random_insert(void *state, uint32_t key)
{
    struct random_state *r = state;
    r->member[r->keys + key] = r->count;
    r->member[r->count++] = key;
}

/* Draws a place and, where that member is held, takes the next one that is not. */
static uint32_t random_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct random_state *r = state;
    if (r->count == 0)
        return NO_KEY;
    uint32_t start = pcg_below(&r->chance, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t place = (start + i) % r->count;
        uint32_t key = r->member[place];
        if (guard_holds(g, key))
            continue;
        uint32_t last = r->member[--r->count];
        r->member[place] = last;
        r->member[r->keys + last] = place;
        return key;
    }
    return NO_KEY;
}

const struct cache_policy cache_random = {
    .name = "random",
    .summary = "a random member",
    .state_bytes = random_state_bytes,
    .start = random_start,
    .hit = random_hit,
    .insert = random_insert,
    .victim = random_victim,
};
