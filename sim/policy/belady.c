/* belady.c -- Belady's MIN (1966): evicts the member whose next use lies farthest ahead. Optimal for
 * experts of equal size under the batch rule: a batch's own experts are loaded in any case and never
 * evicted by it, and there is no bypass. For unequal sizes it is a strong heuristic, not a bound.
 * It needs the future, so it exists for recorded traces only. */
#include "sim/policy/key_heap.h"

struct belady {
    struct key_heap heap; /* priority: ordinal of the batch of the next use */
    const struct policy_future *future;
    uint32_t now; /* ordinal of the current batch */
    uint32_t keys;
    uint64_t memory[]; /* the heap's; then one uint32_t a key: cursor into its uses */
};

static uint32_t *cursor(struct belady *b)
{
    return (uint32_t *)((char *)b->memory + key_heap_bytes(b->keys));
}

static size_t belady_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct belady) + key_heap_bytes(s->keys) + s->keys * sizeof(uint32_t);
}

static void belady_start(void *state, const struct policy_setup *s)
{
    struct belady *b = state;
    b->future = s->future;
    b->keys = s->keys;
    b->now = UINT32_MAX; /* before the first batch */
    key_heap_start(&b->heap, b->memory, s->keys);
    for (uint32_t k = 0; k < s->keys; k++)
        cursor(b)[k] = s->future->first[k];
}

static void belady_batch(void *state, uint32_t layer)
{
    (void)layer;
    struct belady *b = state;
    b->now++;
}

static void belady_touch(void *state, uint32_t key)
{
    struct belady *b = state;
    uint32_t end = b->future->first[key + 1];
    uint32_t *at = &cursor(b)[key];
    while (*at < end && b->now != UINT32_MAX && b->future->use[*at] <= b->now)
        ++*at;
    key_heap_put(&b->heap, key, *at < end ? b->future->use[*at] : UINT64_MAX);
}

static uint32_t belady_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct belady *b = state;
    return key_heap_take(&b->heap, g);
}

const struct cache_policy cache_belady = {
    .name = "belady",
    .summary = "optimal, knows the future: the upper bound (recorded traces only)",
    .clairvoyant = true,
    .state_bytes = belady_state_bytes,
    .start = belady_start,
    .hit = belady_touch,
    .insert = belady_touch,
    .victim = belady_victim,
    .batch = belady_batch,
};
