/* sieve.c -- SIEVE (Zhang et al., NSDI 2024): FIFO with a visited bit and a hand that keeps its place.
 * Chosen beside LRU because it needs no reordering on a hit, and resists the layer cycle that defeats LRU. */
#include "sim/policy/key_list.h"

struct sieve {
    uint32_t queue; /* sentinel; new members enter at the head */
    uint32_t
        hand; /* next candidate, moving from the oldest towards the head; the sentinel: start anew */
    uint32_t keys;
    struct key_link link[]; /* keys + 1 of them, then one byte a key: visited */
};

static uint8_t *visited(struct sieve *s)
{
    return (uint8_t *)&s->link[s->keys + 1];
}

static size_t sieve_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct sieve) + (s->keys + 1) * sizeof(struct key_link) + s->keys;
}

static void sieve_start(void *state, const struct policy_setup *setup)
{
    struct sieve *s = state;
    s->queue = s->hand = s->keys = setup->keys;
    key_list_start(s->link, s->queue);
}

static void sieve_hit(void *state, uint32_t key)
{
    visited(state)[key] = 1;
}

static void sieve_insert(void *state, uint32_t key)
{
    struct sieve *s = state;
    visited(s)[key] = 0;
    key_list_push(s->link, s->queue, key);
}

/* Two full rounds without a victim (the first may only have cleared bits) mean that all are held: then
 * the hand stays where it was. */
static uint32_t sieve_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct sieve *s = state;
    uint32_t hand = s->hand;
    for (int wraps = 0; wraps < 3;) {
        if (hand == s->queue) {
            hand = s->link[s->queue].previous;
            wraps++;
            if (hand == s->queue)
                return NO_KEY;
        }
        uint32_t key = hand;
        hand = s->link[key].previous;
        if (guard_holds(g, key))
            continue;
        if (!visited(s)[key]) {
            key_list_remove(s->link, key);
            s->hand = hand;
            return key;
        }
        visited(s)[key] = 0;
    }
    return NO_KEY;
}

const struct cache_policy cache_sieve = {
    .name = "sieve",
    .summary = "FIFO with a visited bit and a hand that keeps its place",
    .state_bytes = sieve_state_bytes,
    .start = sieve_start,
    .hit = sieve_hit,
    .insert = sieve_insert,
    .victim = sieve_victim,
};
