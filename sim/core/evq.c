/* evq.c -- see evq.h.
 *
 * An implicit 4-ary heap of 128-bit keys. A key holds everything that orders an event, and where
 * the rest of it is kept:
 *
 *     127              64 63      60 59                20 19        0
 *     when_ns             priority   order                slot
 *
 * `order` is unique, so comparing whole keys compares (when, priority, order) and never gets as far
 * as the slot. Four children are 64 bytes, aligned to a cache line; the entries behind the last are
 * larger than any key, so that the least of four children is found without branches and without
 * asking how many there are. where[slot] is the key's place in the heap, for cancelling, and the
 * next free slot while the slot is free.
 *
 * Replace-top: a fired event leaves its place at the root vacant. What it schedules first, most
 * often its own successor, goes there and sinks, which costs one walk down the heap where a removal
 * and an insertion would cost two. Only if it schedules nothing does the last entry fill the root.
 * While the root is vacant the fired key stays there, and it is below all others, so cancelling
 * needs no special case.
 */
#include "sim/core/evq.h"

#include "base/hash.h"
#include "sim/core/wide.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ARITY      4
#define SLOT_BITS  20
#define ORDER_BITS 40
#define SLOT_MASK  ((UINT64_C(1) << SLOT_BITS) - 1)
#define NO_SLOT    UINT32_MAX
#define KEY_NONE   (~(wide)0)
#define LINE_BYTES 64

struct action {
    evq_fn *fn;
    void *self;
};

struct evq {
    wide *heap; /* memory + ARITY - 1, so that heap[1] begins a cache line */
    uint32_t *where;
    struct action *action; /* per slot */
    size_t count;          /* entries of the heap, a vacant root included */
    bool vacant;
    uint32_t free_slot;
    size_t capacity;
    wide *memory;
    uint64_t now_ns, scheduled, fired, fingerprint;
};

static uint64_t when_of(wide key)
{
    return (uint64_t)(key >> 64);
}

static uint32_t slot_of(wide key)
{
    return (uint32_t)((uint64_t)key & SLOT_MASK);
}

static inline void place(struct evq *q, size_t at, wide key)
{
    q->heap[at] = key;
    q->where[slot_of(key)] = (uint32_t)at;
}

/* The index of the least of the four keys at `c`. Written so that compilers select, not branch:
 * which child is least is a coin toss that no branch predictor learns. */
static inline size_t least_of_four(const wide *c)
{
    bool b1 = c[1] < c[0], b3 = c[3] < c[2];
    size_t low = b1, high = 2 + (size_t)b3;
    size_t take_high = -(size_t)(c[high] < c[low]); /* all ones or none */
    return low ^ ((low ^ high) & take_high);
}

static void sink(struct evq *q, size_t at, wide key)
{
    for (size_t child; (child = at * ARITY + 1) < q->count; at = child) {
        child += least_of_four(q->heap + child);
        if (key < q->heap[child])
            break;
        place(q, at, q->heap[child]);
    }
    place(q, at, key);
}

static void rise(struct evq *q, size_t at, wide key)
{
    for (size_t parent; at > 0; at = parent) {
        parent = (at - 1) / ARITY;
        if (q->heap[parent] < key)
            break;
        place(q, at, q->heap[parent]);
    }
    place(q, at, key);
}

/* Takes the last entry off the heap. */
static wide cut(struct evq *q)
{
    wide last = q->heap[--q->count];
    q->heap[q->count] = KEY_NONE;
    return last;
}

static void fill_root(struct evq *q)
{
    wide last = cut(q);
    q->vacant = false;
    if (q->count)
        sink(q, 0, last);
}

static void release_slot(struct evq *q, uint32_t slot)
{
    q->where[slot] = q->free_slot;
    q->free_slot = slot;
}

enum status evq_new(struct evq **out, size_t capacity)
{
    struct evq *q = calloc(1, sizeof *q);
    if (!q)
        return ST_NO_MEMORY;
    q->free_slot = NO_SLOT;
    q->fingerprint = HASH_SEED;
    enum status status = evq_reserve(q, capacity);
    if (status != ST_OK) {
        evq_free(q);
        return status;
    }
    *out = q;
    return ST_OK;
}

void evq_free(struct evq *q)
{
    if (!q)
        return;
    free(q->memory);
    free(q->where);
    free(q->action);
    free(q);
}

enum status evq_reserve(struct evq *q, size_t more)
{
    if (more > EVQ_CAPACITY_MAX - q->capacity)
        return ST_RANGE;
    size_t capacity = q->capacity + more;
    size_t entries =
        (capacity + 3 * ARITY) / ARITY * ARITY; /* offset, keys, and a line of KEY_NONE */
    uint32_t *where = realloc(q->where, (capacity + 1) * sizeof *where);
    if (!where)
        return ST_NO_MEMORY;
    q->where = where;
    struct action *action = realloc(q->action, (capacity + 1) * sizeof *action);
    if (!action)
        return ST_NO_MEMORY;
    q->action = action;
    wide *memory = aligned_alloc(LINE_BYTES, entries * sizeof *memory);
    if (!memory)
        return ST_NO_MEMORY;
    memset(memory, 0xff, entries * sizeof *memory);
    if (q->count)
        memcpy(memory + ARITY - 1, q->heap, q->count * sizeof *memory);
    free(q->memory);
    q->memory = memory;
    q->heap = memory + ARITY - 1;
    for (size_t slot = capacity; slot-- > q->capacity;)
        release_slot(q, (uint32_t)slot);
    q->capacity = capacity;
    return ST_OK;
}

uint64_t evq_now_ns(const struct evq *q)
{
    return q->now_ns;
}

enum status evq_at(struct evq *q, uint64_t when_ns, evq_fn *fn, void *self)
{
    return evq_at_priority(q, when_ns, EVQ_NORMAL, fn, self, NULL);
}

enum status evq_at_priority(struct evq *q, uint64_t when_ns, unsigned priority, evq_fn *fn,
                            void *self, uint64_t *ticket)
{
    assert(when_ns >= q->now_ns && priority <= EVQ_LAST);
    uint32_t slot = q->free_slot;
    if (slot == NO_SLOT)
        return ST_NO_MEMORY;
    if (q->scheduled == EVQ_ORDER_MAX)
        return ST_RANGE;
    uint64_t order = ++q->scheduled; /* from 1, so that no ticket is 0 */
    uint64_t tie = (uint64_t)priority << (SLOT_BITS + ORDER_BITS) | order << SLOT_BITS | slot;
    wide key = (wide)when_ns << 64 | tie;
    q->free_slot = q->where[slot];
    q->action[slot] = (struct action){fn, self};
    if (ticket)
        *ticket = tie;
    if (q->vacant) {
        q->vacant = false;
        sink(q, 0, key);
    } else {
        rise(q, q->count++, key);
    }
    return ST_OK;
}

bool evq_cancel(struct evq *q, uint64_t ticket)
{
    uint32_t slot = (uint32_t)(ticket & SLOT_MASK);
    if (slot >= q->capacity)
        return false;
    size_t at = q->where[slot];
    if (at >= q->count || (uint64_t)q->heap[at] != ticket || (at == 0 && q->vacant))
        return false;
    release_slot(q, slot);
    wide last = cut(q);
    if (at == q->count)
        return true;
    if (at > 0 && last < q->heap[(at - 1) / ARITY])
        rise(q, at, last);
    else
        sink(q, at, last);
    return true;
}

bool evq_step(struct evq *q)
{
    assert(!q->vacant);
    if (!q->count)
        return false;
    wide key = q->heap[0];
    uint32_t slot = slot_of(key);
    struct action action = q->action[slot];
    q->now_ns = when_of(key);
    q->vacant = true;
    release_slot(q, slot);
    q->fired++;
    q->fingerprint = hash_add(hash_add(q->fingerprint, q->now_ns), (uint64_t)key >> SLOT_BITS);
    action.fn(q, action.self);
    if (q->vacant)
        fill_root(q);
    return true;
}

size_t evq_pending(const struct evq *q)
{
    return q->count - q->vacant;
}

uint64_t evq_next_ns(const struct evq *q)
{
    assert(!q->vacant);
    return q->count ? when_of(q->heap[0]) : NEVER_NS;
}

uint64_t evq_fired(const struct evq *q)
{
    return q->fired;
}

uint64_t evq_fingerprint(const struct evq *q)
{
    return q->fingerprint;
}

void evq_note(struct evq *q, uint64_t field)
{
    q->fingerprint = hash_add(q->fingerprint, field);
}
