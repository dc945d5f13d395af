/* page_cache.c -- see page_cache.h. */
#include "sim/pipeline/page_cache.h"

#include "sim/policy/key_list.h"

#include <stdlib.h>

enum home { ABSENT, INACTIVE, ACTIVE };

struct page_cache {
    uint64_t capacity, used, active_used;
    uint32_t inactive, active; /* sentinels */
    uint64_t *bytes;           /* by key */
    uint8_t *home;             /* by key */
    struct key_link *link;
};

enum status page_cache_new(struct page_cache **out, uint32_t keys, uint64_t capacity_bytes,
                           struct diag *dg)
{
    struct page_cache *p = calloc(1, sizeof *p);
    if (p) {
        p->bytes = calloc(keys, sizeof *p->bytes);
        p->home = calloc(keys, sizeof *p->home);
        p->link = calloc((size_t)keys + 2, sizeof *p->link);
    }
    if (!p || !p->bytes || !p->home || !p->link) {
        page_cache_free(p);
        return diag_no_memory(dg);
    }
    p->capacity = capacity_bytes;
    p->inactive = keys;
    p->active = keys + 1;
    key_list_start(p->link, p->inactive);
    key_list_start(p->link, p->active);
    *out = p;
    return ST_OK;
}

void page_cache_free(struct page_cache *p)
{
    if (!p)
        return;
    free(p->bytes);
    free(p->home);
    free(p->link);
    free(p);
}

static void take(struct page_cache *p, uint32_t key)
{
    key_list_remove(p->link, key);
    p->used -= p->bytes[key];
    if (p->home[key] == ACTIVE)
        p->active_used -= p->bytes[key];
    p->home[key] = ABSENT;
}

static void put(struct page_cache *p, uint32_t key, enum home home)
{
    key_list_push(p->link, home == ACTIVE ? p->active : p->inactive, key);
    p->used += p->bytes[key];
    if (home == ACTIVE)
        p->active_used += p->bytes[key];
    p->home[key] = (uint8_t)home;
}

/* The active list keeps at most half of what there is. */
static void balance(struct page_cache *p)
{
    while (p->active_used > p->used / 2 && p->link[p->active].previous != p->active) {
        uint32_t oldest = p->link[p->active].previous;
        take(p, oldest);
        put(p, oldest, INACTIVE);
    }
}

static void shrink(struct page_cache *p, uint64_t most)
{
    while (p->used > most) {
        uint32_t key = p->link[p->inactive].previous;
        if (key == p->inactive)
            key = p->link[p->active].previous;
        take(p, key);
    }
}

bool page_cache_use(struct page_cache *p, uint32_t key, uint64_t bytes)
{
    bool hit = p->home[key] != ABSENT;
    if (hit) {
        take(p, key);
        put(p, key, ACTIVE);
        balance(p);
        return true;
    }
    if (bytes > p->capacity)
        return false;
    shrink(p, p->capacity - bytes);
    p->bytes[key] = bytes;
    put(p, key, INACTIVE);
    return false;
}

void page_cache_resize(struct page_cache *p, uint64_t capacity_bytes)
{
    p->capacity = capacity_bytes;
    shrink(p, capacity_bytes);
}

uint64_t page_cache_used(const struct page_cache *p)
{
    return p->used;
}
