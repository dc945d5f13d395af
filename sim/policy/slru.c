/* slru.c -- segmented LRU (Karedla et al. 1994): new members are on probation; a hit promotes to the
 * protected segment, four fifths of the cache, whose oldest falls back. One-time experts leave without
 * touching those that were used twice. */
#include "sim/policy/key_list.h"

struct slru {
    uint32_t probation, protected; /* sentinels */
    uint32_t protected_count, protected_most;
    uint32_t keys;
    struct key_link link[]; /* keys + 2 of them, then one byte a key: is protected */
};

static uint8_t *is_protected(struct slru *s)
{
    return (uint8_t *)&s->link[s->keys + 2];
}

static size_t slru_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct slru) + (s->keys + 2) * sizeof(struct key_link) + s->keys;
}

static void slru_start(void *state, const struct policy_setup *setup)
{
    struct slru *s = state;
    s->keys = setup->keys;
    s->probation = setup->keys;
    s->protected = setup->keys + 1;
    s->protected_most = (uint32_t)((uint64_t)setup->slots * 4 / 5);
    key_list_start(s->link, s->probation);
    key_list_start(s->link, s->protected);
}

static void slru_again(void *state, uint32_t key)
{
    struct slru *s = state;
    key_list_to_front(s->link, is_protected(s)[key] ? s->protected : s->probation, key);
}

static void slru_hit(void *state, uint32_t key)
{
    struct slru *s = state;
    if (is_protected(s)[key] || s->protected_most == 0) {
        slru_again(s, key);
        return;
    }
    key_list_to_front(s->link, s->protected, key);
    is_protected(s)[key] = 1;
    if (++s->protected_count <= s->protected_most)
        return;
    uint32_t fallen = s->link[s->protected].previous;
    key_list_to_front(s->link, s->probation, fallen);
    is_protected(s)[fallen] = 0;
    s->protected_count--;
}

static void slru_insert(void *state, uint32_t key)
{
    struct slru *s = state;
    is_protected(s)[key] = 0;
    key_list_push(s->link, s->probation, key);
}

static uint32_t slru_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct slru *s = state;
    uint32_t key = key_list_oldest(s->link, s->probation, g);
    if (key == NO_KEY)
        key = key_list_oldest(s->link, s->protected, g);
    if (key == NO_KEY)
        return NO_KEY;
    key_list_remove(s->link, key);
    s->protected_count -= is_protected(s)[key];
    is_protected(s)[key] = 0;
    return key;
}

const struct cache_policy cache_slru = {
    .name = "slru",
    .summary = "segmented LRU: a protected segment for what was used twice",
    .state_bytes = slru_state_bytes,
    .start = slru_start,
    .hit = slru_hit,
    .again = slru_again,
    .insert = slru_insert,
    .victim = slru_victim,
};
