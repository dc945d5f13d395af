/* page_cache.h -- the operating system's cache of file pages, as a tier of its own.
 *
 * It holds what is left of the DRAM, in whole loads (an expert, a layer's dense weights), on two lists as
 * Linux does: what is read once enters the inactive list, what is used again there moves to the active
 * one; room is taken from the inactive list's oldest first, and the active list falls back into it when it
 * holds more than half. Its capacity may change at any time (an application opens, a cache grows). */
#ifndef SIM_PIPELINE_PAGE_CACHE_H
#define SIM_PIPELINE_PAGE_CACHE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct page_cache;

MUST_CHECK enum status page_cache_new(struct page_cache **out, uint32_t keys,
                                      uint64_t capacity_bytes, struct diag *dg);
void page_cache_free(struct page_cache *p);
/* Asks for `bytes` of `key`: true if it was cached. If not it is from now on (its read is under way), as far
 * as the capacity allows. */
bool page_cache_use(struct page_cache *p, uint32_t key, uint64_t bytes);
void page_cache_resize(struct page_cache *p, uint64_t capacity_bytes);
uint64_t page_cache_used(const struct page_cache *p);

#endif
