/* store.h -- where cached experts live: slots in one arena of huge pages, of exactly the given
 * size.
 *
 * sim/policy/decide.h numbers slots and counts bytes; the store gives each slot number a contiguous
 * place. Where all experts are of one size (most models), a slot keeps its place for ever. Where
 * layers differ (mixed quantisation), places of unequal sizes leave gaps; if none is large enough,
 * places that nobody uses at the moment slide together, so what fits by its bytes always fits. That
 * copies memory and is counted.
 *
 * The arena is one mapping, aligned to 2 MiB, with huge pages asked for, and written to once at the
 * start: direct reads into huge pages are up to three times faster than into small ones, and no
 * page fault falls into a measured run. Memory is never given back before store_free.
 *
 * A slot that a read fills or a kernel reads must be pinned: then it does not move. One thread owns
 * the store (the one that executes commands); addresses may be used from any thread while pinned.
 */
#ifndef KERNELS_STORE_STORE_H
#define KERNELS_STORE_STORE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* `bytes` is the arena, rounded down to whole `align_bytes` (a power of two, at most 2 MiB; the
 * device's block or a multiple); slot numbers are below slots_max. ST_NO_MEMORY, ST_RANGE: the
 * arena cannot be had, or is smaller than one unit of alignment. */
MUST_CHECK enum status store_new(struct store **out, size_t bytes, size_t align_bytes,
                                 uint32_t slots_max, struct diag *dg);
void store_free(struct store *s); /* NULL is fine */

void *store_arena(const struct store *s); /* for registering it with the loader */
size_t store_arena_bytes(const struct store *s);

/* Gives the slot a place for `bytes` (> 0), aligned to align_bytes; what it held is gone. The
 * slot must not be pinned. False: there is no room, or none in one piece as long as others are
 * pinned: the slot is then empty. If the places together fit the arena, it succeeds at the latest
 * when nothing is pinned. */
MUST_CHECK bool store_take(struct store *s, uint32_t slot, size_t bytes);
void store_drop(struct store *s, uint32_t slot); /* must not be pinned; an empty slot is fine */

/* NULL for an empty slot. Valid until the next store_take, or, for a pinned slot, until it is
 * unpinned. */
void *store_address(const struct store *s, uint32_t slot);
size_t store_slot_bytes(const struct store *s, uint32_t slot); /* its place, rounded up; 0: empty */

/* Pins count. */
void store_pin(struct store *s, uint32_t slot);
void store_unpin(struct store *s, uint32_t slot);

size_t store_used_bytes(const struct store *s);
uint64_t store_moved_bytes(const struct store *s); /* copied so far to close gaps */

#endif
