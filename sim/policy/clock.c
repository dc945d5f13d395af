/* clock.c -- CLOCK, or second chance: a circle of members with one reference bit each. A hit sets the bit;
 * the hand clears bits until it finds one that is clear. LRU's behaviour at FIFO's price. A new member
 * goes in behind the hand with its bit clear. */
#include "sim/policy/key_list.h"

struct clock_state {
    uint32_t ring; /* sentinel; the hand stands at its oldest end */
    uint32_t keys;
    struct key_link link[]; /* keys + 1 of them, then one byte a key: referenced */
};

static uint8_t *referenced(struct clock_state *c)
{
    return (uint8_t *)&c->link[c->keys + 1];
}

static size_t clock_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct clock_state) + (s->keys + 1) * sizeof(struct key_link) + s->keys;
}

static void clock_start(void *state, const struct policy_setup *s)
{
    struct clock_state *c = state;
    c->ring = c->keys = s->keys;
    key_list_start(c->link, c->ring);
}

static void clock_hit(void *state, uint32_t key)
{
    referenced(state)[key] = 1;
}

static void clock_insert(void *state, uint32_t key)
{
    struct clock_state *c = state;
    referenced(c)[key] = 0;
    key_list_push(c->link, c->ring, key);
}

/* The hand passes a held member by giving it a second chance with its bit as it is; two rounds without
 * a victim mean that all are held. */
static uint32_t clock_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct clock_state *c = state;
    uint32_t first_held = NO_KEY;
    for (;;) {
        uint32_t key = c->link[c->ring].previous;
        if (key == c->ring || key == first_held)
            return NO_KEY;
        if (!guard_holds(g, key)) {
            if (!referenced(c)[key]) {
                key_list_remove(c->link, key);
                return key;
            }
            referenced(c)[key] = 0;
            first_held = NO_KEY; /* there is a candidate in the next round */
        } else if (first_held == NO_KEY) {
            first_held = key;
        }
        key_list_to_front(c->link, c->ring, key);
    }
}

const struct cache_policy cache_clock = {
    .name = "clock",
    .summary = "second chance: one reference bit, a rotating hand",
    .state_bytes = clock_state_bytes,
    .start = clock_start,
    .hit = clock_hit,
    .insert = clock_insert,
    .victim = clock_victim,
};
