/* key_heap.c -- see key_heap.h. */
#include "sim/policy/key_heap.h"

#include <assert.h>

size_t key_heap_bytes(uint32_t keys)
{
    return (size_t)keys * (sizeof(uint64_t) + 2 * sizeof(uint32_t));
}

void key_heap_start(struct key_heap *h, void *memory, uint32_t keys)
{
    h->priority = memory;
    h->heap = (uint32_t *)(h->priority + keys);
    h->place = h->heap + keys;
    h->count = 0;
    for (uint32_t k = 0; k < keys; k++)
        h->place[k] = NO_KEY;
}

static bool goes_first(const struct key_heap *h, uint32_t a, uint32_t b)
{
    return h->priority[a] != h->priority[b] ? h->priority[a] > h->priority[b] : a < b;
}

static void set(struct key_heap *h, uint32_t place, uint32_t key)
{
    h->heap[place] = key;
    h->place[key] = place;
}

static void sift_up(struct key_heap *h, uint32_t place, uint32_t key)
{
    while (place > 0 && goes_first(h, key, h->heap[(place - 1) / 2])) {
        set(h, place, h->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    set(h, place, key);
}

static void sift_down(struct key_heap *h, uint32_t place, uint32_t key)
{
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && goes_first(h, h->heap[child + 1], h->heap[child]))
            child++;
        if (!goes_first(h, h->heap[child], key))
            break;
        set(h, place, h->heap[child]);
        place = child;
    }
    set(h, place, key);
}

void key_heap_put(struct key_heap *h, uint32_t key, uint64_t priority)
{
    bool present = h->place[key] != NO_KEY;
    bool up = !present || priority > h->priority[key];
    h->priority[key] = priority;
    uint32_t place = present ? h->place[key] : h->count++;
    if (up)
        sift_up(h, place, key);
    else
        sift_down(h, place, key);
}

bool key_heap_has(const struct key_heap *h, uint32_t key)
{
    return h->place[key] != NO_KEY;
}

void key_heap_remove(struct key_heap *h, uint32_t key)
{
    uint32_t place = h->place[key];
    assert(place != NO_KEY);
    uint32_t last = h->heap[--h->count];
    h->place[key] = NO_KEY;
    if (last == key)
        return;
    if (place > 0 && goes_first(h, last, h->heap[(place - 1) / 2]))
        sift_up(h, place, last);
    else
        sift_down(h, place, last);
}

/* The best key of the subtree at `place` that is not held: children are only looked at below a held key,
 * so the walk touches the held members and their children, not the heap. */
static uint32_t best_below(const struct key_heap *h, uint32_t place, const struct guard *g)
{
    if (place >= h->count)
        return NO_KEY;
    uint32_t key = h->heap[place];
    if (!guard_holds(g, key))
        return key;
    uint32_t left = best_below(h, 2 * place + 1, g);
    uint32_t right = best_below(h, 2 * place + 2, g);
    if (left == NO_KEY || right == NO_KEY)
        return left == NO_KEY ? right : left;
    return goes_first(h, left, right) ? left : right;
}

uint32_t key_heap_take(struct key_heap *h, const struct guard *g)
{
    uint32_t key = best_below(h, 0, g);
    if (key != NO_KEY)
        key_heap_remove(h, key);
    return key;
}
