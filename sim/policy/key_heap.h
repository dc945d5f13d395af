/* key_heap.h -- an indexed binary heap of keys by priority: the member to evict first is on top.
 * Order is (priority descending, key ascending), so it is total. */
#ifndef SIM_POLICY_KEY_HEAP_H
#define SIM_POLICY_KEY_HEAP_H

#include "sim/policy/cache_policy.h"

struct key_heap {
    uint64_t *priority; /* by key */
    uint32_t *heap;     /* keys, the top first */
    uint32_t *place;    /* by key: index in heap, NO_KEY if absent */
    uint32_t count;
};

size_t key_heap_bytes(uint32_t keys);
/* Lays the heap out in `memory` of key_heap_bytes(keys), aligned for uint64_t. */
void key_heap_start(struct key_heap *h, void *memory, uint32_t keys);
/* Inserts the key, or moves it to its new priority. */
void key_heap_put(struct key_heap *h, uint32_t key, uint64_t priority);
bool key_heap_has(const struct key_heap *h, uint32_t key);
void key_heap_remove(struct key_heap *h, uint32_t key);
/* Removes and returns the first key that the guard does not hold; NO_KEY if all are held. */
uint32_t key_heap_take(struct key_heap *h, const struct guard *g);

#endif
