/* lru.c -- least recently used. The reference policy: a stack algorithm, so one pass gives its hit ratio
 * for every size (Mattson et al. 1970). On a cycle of layers it hits nothing below one token cycle. */
#include "sim/policy/key_list.h"

struct lru {
    uint32_t stack; /* the list's sentinel; the head is the most recent */
    struct key_link link[];
};

static size_t lru_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct lru) + (s->keys + 1) * sizeof(struct key_link);
}

static void lru_start(void *state, const struct policy_setup *s)
{
    struct lru *l = state;
    l->stack = s->keys;
    key_list_start(l->link, l->stack);
}

static void lru_hit(void *state, uint32_t key)
{
    struct lru *l = state;
    key_list_to_front(l->link, l->stack, key);
}

static void lru_insert(void *state, uint32_t key)
{
    struct lru *l = state;
    key_list_push(l->link, l->stack, key);
}

static uint32_t lru_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct lru *l = state;
    uint32_t key = key_list_oldest(l->link, l->stack, g);
    if (key != NO_KEY)
        key_list_remove(l->link, key);
    return key;
}

const struct cache_policy cache_lru = {
    .name = "lru",
    .summary = "least recently used",
    .state_bytes = lru_state_bytes,
    .start = lru_start,
    .hit = lru_hit,
    .again = lru_hit,
    .insert = lru_insert,
    .victim = lru_victim,
};
