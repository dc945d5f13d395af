/* pinned.c -- a static set: the experts ranked hottest by an earlier trace stay, everything else passes
 * through. Without a ranking, those that came first stay. What an engine does that pins hot experts
 * at start-up; it cannot follow a change of topic and gains nothing on a balanced router. */
#include "sim/policy/key_heap.h"

struct pinned {
    struct key_heap heap; /* priority: the coldest, else the latest, leaves first */
    const uint32_t *rank;
    uint64_t arrivals;
    uint64_t memory[];
};

static size_t pinned_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct pinned) + key_heap_bytes(s->keys);
}

static void pinned_start(void *state, const struct policy_setup *s)
{
    struct pinned *p = state;
    p->rank = s->rank;
    key_heap_start(&p->heap, p->memory, s->keys);
}

static void pinned_hit(void *state, uint32_t key)
{
    (void)state, (void)key;
}

static void pinned_insert(void *state, uint32_t key)
{
    struct pinned *p = state;
    uint64_t rank = p->rank ? p->rank[key] : NO_KEY;
    key_heap_put(&p->heap, key, rank << 32 | (p->arrivals++ & UINT32_MAX));
}

static uint32_t pinned_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct pinned *p = state;
    return key_heap_take(&p->heap, g);
}

const struct cache_policy cache_pinned = {
    .name = "pinned",
    .summary =
        "a static set stays (hottest of --pin-from, else first come), the rest passes through",
    .state_bytes = pinned_state_bytes,
    .start = pinned_start,
    .hit = pinned_hit,
    .insert = pinned_insert,
    .victim = pinned_victim,
};
