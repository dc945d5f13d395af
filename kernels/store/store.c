/* store.c -- places in the arena, kept in an array sorted by address.
 *
 * A cache holds some thousand experts, and a place is looked for once per read of about a
 * megabyte: a scan of a sorted array takes some microseconds at worst, and none where sizes are
 * equal. */
#include "kernels/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES  ((size_t)2 << 20)
#define SMALL_PAGE_BYTES ((size_t)4096)

struct place {
    size_t offset, bytes; /* bytes 0: empty */
    uint32_t pins;
};

struct store {
    char *arena, *mapping;
    size_t arena_bytes, mapping_bytes, align_bytes, used_bytes;
    uint64_t moved_bytes;
    struct place *place; /* by slot */
    uint32_t *order;     /* the slots that have a place, by its offset */
    uint32_t slots_max, count;
};

static bool map_arena(struct store *s)
{
    size_t whole = (s->arena_bytes + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
    s->mapping_bytes = whole + HUGE_PAGE_BYTES;
    void *m =
        mmap(NULL, s->mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        return false;
    s->mapping = m;
    size_t ahead = (HUGE_PAGE_BYTES - (uintptr_t)m % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    s->arena = s->mapping + ahead;
    /* Without huge pages it is slower and otherwise the same, so a refusal is none of ours. */
    madvise(s->arena, whole, MADV_HUGEPAGE);
    for (size_t i = 0; i < s->arena_bytes; i += SMALL_PAGE_BYTES)
        *(volatile char *)(s->arena + i) = 0;
    return true;
}

enum status store_new(struct store **out, size_t bytes, size_t align_bytes, uint32_t slots_max,
                      struct diag *dg)
{
    assert(align_bytes > 0 && (align_bytes & (align_bytes - 1)) == 0 &&
           align_bytes <= HUGE_PAGE_BYTES && slots_max > 0);
    *out = NULL;
    if (bytes < align_bytes || bytes > SIZE_MAX / 2)
        return diag_set(dg, ST_RANGE, "expert cache: expected at least %zu bytes, not %zu",
                        align_bytes, bytes);
    struct store *s = calloc(1, sizeof *s);
    if (!s)
        return diag_no_memory(dg);
    *s = (struct store){.arena_bytes = bytes & ~(align_bytes - 1),
                        .align_bytes = align_bytes,
                        .place = calloc(slots_max, sizeof *s->place),
                        .order = calloc(slots_max, sizeof *s->order),
                        .slots_max = slots_max};
    if (!s->place || !s->order || !map_arena(s)) {
        store_free(s);
        return diag_set(dg, ST_NO_MEMORY, "expert cache: no memory for %zu bytes", bytes);
    }
    *out = s;
    return ST_OK;
}

void store_free(struct store *s)
{
    if (!s)
        return;
    if (s->mapping)
        munmap(s->mapping, s->mapping_bytes);
    free(s->place);
    free(s->order);
    free(s);
}

void *store_arena(const struct store *s)
{
    return s->arena;
}

size_t store_arena_bytes(const struct store *s)
{
    return s->arena_bytes;
}

/* Where the places end before the i-th, and where the i-th begins: the gap between. */
static size_t gap_before(const struct store *s, uint32_t i, size_t *from)
{
    const struct place *before = i > 0 ? &s->place[s->order[i - 1]] : NULL;
    size_t until = i < s->count ? s->place[s->order[i]].offset : s->arena_bytes;
    *from = before ? before->offset + before->bytes : 0;
    return until - *from;
}

/* The smallest gap that is large enough; count + 1 if none is. */
static uint32_t best_gap(const struct store *s, size_t bytes)
{
    uint32_t best = s->count + 1;
    size_t best_bytes = SIZE_MAX, from;
    for (uint32_t i = 0; i <= s->count; i++) {
        size_t gap = gap_before(s, i, &from);
        if (gap >= bytes && gap < best_bytes) {
            best = i;
            best_bytes = gap;
        }
    }
    return best;
}

/* Slides places towards the start, around the pinned ones, until a gap is large enough. */
static uint32_t close_gaps(struct store *s, size_t bytes)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct place *p = &s->place[s->order[i]];
        size_t from, gap = gap_before(s, i, &from);
        if (gap >= bytes)
            return i;
        if (gap == 0 || p->pins > 0)
            continue;
        memmove(s->arena + from, s->arena + p->offset, p->bytes);
        p->offset = from;
        s->moved_bytes += p->bytes;
    }
    return best_gap(s, bytes);
}

static void insert(struct store *s, uint32_t slot, uint32_t at, size_t bytes)
{
    size_t from;
    gap_before(s, at, &from);
    memmove(&s->order[at + 1], &s->order[at], (s->count - at) * sizeof *s->order);
    s->order[at] = slot;
    s->count++;
    s->place[slot].offset = from;
    s->place[slot].bytes = bytes;
    s->used_bytes += bytes;
}

bool store_take(struct store *s, uint32_t slot, size_t bytes)
{
    assert(slot < s->slots_max && bytes > 0 && s->place[slot].pins == 0);
    if (bytes > s->arena_bytes) {
        store_drop(s, slot);
        return false;
    }
    size_t rounded = (bytes + s->align_bytes - 1) & ~(s->align_bytes - 1);
    if (s->place[slot].bytes == rounded)
        return true;
    store_drop(s, slot);
    if (rounded > s->arena_bytes - s->used_bytes)
        return false;
    uint32_t at = best_gap(s, rounded);
    if (at > s->count)
        at = close_gaps(s, rounded);
    if (at > s->count)
        return false;
    insert(s, slot, at, rounded);
    return true;
}

void store_drop(struct store *s, uint32_t slot)
{
    assert(slot < s->slots_max && s->place[slot].pins == 0);
    if (s->place[slot].bytes == 0)
        return;
    uint32_t i = 0;
    while (s->order[i] != slot)
        i++;
    s->count--;
    memmove(&s->order[i], &s->order[i + 1], (s->count - i) * sizeof *s->order);
    s->used_bytes -= s->place[slot].bytes;
    s->place[slot].bytes = 0;
}

void *store_address(const struct store *s, uint32_t slot)
{
    assert(slot < s->slots_max);
    return s->place[slot].bytes ? s->arena + s->place[slot].offset : NULL;
}

size_t store_slot_bytes(const struct store *s, uint32_t slot)
{
    assert(slot < s->slots_max);
    return s->place[slot].bytes;
}

void store_pin(struct store *s, uint32_t slot)
{
    assert(slot < s->slots_max && s->place[slot].bytes > 0);
    s->place[slot].pins++;
}

void store_unpin(struct store *s, uint32_t slot)
{
    assert(slot < s->slots_max && s->place[slot].pins > 0);
    s->place[slot].pins--;
}

size_t store_used_bytes(const struct store *s)
{
    return s->used_bytes;
}

uint64_t store_moved_bytes(const struct store *s)
{
    return s->moved_bytes;
}
