/* policies.c -- the tables: one row a cache policy, one row a prefetcher. Tests, help and documentation
 * iterate over them. */
#include "sim/policy/cache_policy.h"
#include "sim/policy/prefetch_policy.h"

#include <string.h>

extern const struct cache_policy cache_none, cache_pinned, cache_fifo, cache_lru, cache_clock,
    cache_lfu, cache_lfu_aged, cache_slru, cache_sieve, cache_s3fifo, cache_arc, cache_least_stale,
    cache_random, cache_belady;

const struct cache_policy *const cache_policies[] = {
    &cache_none, &cache_pinned,      &cache_fifo,   &cache_lru,    &cache_clock,
    &cache_lfu,  &cache_lfu_aged,    &cache_slru,   &cache_sieve,  &cache_s3fifo,
    &cache_arc,  &cache_least_stale, &cache_random, &cache_belady, NULL,
};

const struct cache_policy *cache_policy_find(const char *name)
{
    for (const struct cache_policy *const *p = cache_policies; *p; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}

extern const struct prefetch_policy prefetch_previous_token, prefetch_frequency,
    prefetch_coactivation, prefetch_gate, prefetch_heads, prefetch_oracle;

const struct prefetch_policy *const prefetch_policies[] = {
    &prefetch_previous_token,
    &prefetch_frequency,
    &prefetch_coactivation,
    &prefetch_gate,
    &prefetch_heads,
    &prefetch_oracle,
    NULL,
};

const struct prefetch_policy *prefetch_policy_find(const char *name)
{
    for (const struct prefetch_policy *const *p = prefetch_policies; *p; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}
