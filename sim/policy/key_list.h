/* key_list.h -- doubly linked lists of keys in arrays: what most replacement policies are made of.
 *
 * All lists of a policy share one array of links, indexed by key; list number i has its sentinel at
 * index keys + i. A key is in at most one list. `next` runs from the newest end (head) to the oldest. */
#ifndef SIM_POLICY_KEY_LIST_H
#define SIM_POLICY_KEY_LIST_H

#include "sim/policy/cache_policy.h"

struct key_link {
    uint32_t previous, next;
};

static inline void key_list_start(struct key_link *link, uint32_t sentinel)
{
    link[sentinel] = (struct key_link){sentinel, sentinel};
}

static inline void key_list_remove(struct key_link *link, uint32_t key)
{
    link[link[key].previous].next = link[key].next;
    link[link[key].next].previous = link[key].previous;
}

static inline void key_list_push(struct key_link *link, uint32_t sentinel, uint32_t key)
{
    uint32_t second = link[sentinel].next;
    link[key] = (struct key_link){sentinel, second};
    link[sentinel].next = key;
    link[second].previous = key;
}

static inline void key_list_to_front(struct key_link *link, uint32_t sentinel, uint32_t key)
{
    key_list_remove(link, key);
    key_list_push(link, sentinel, key);
}

/* The oldest key of the list that the guard does not hold, or NO_KEY. It stays in the list. */
static inline uint32_t key_list_oldest(const struct key_link *link, uint32_t sentinel,
                                       const struct guard *g)
{
    uint32_t key = link[sentinel].previous;
    while (key != sentinel && guard_holds(g, key))
        key = link[key].previous;
    return key == sentinel ? NO_KEY : key;
}

#endif
