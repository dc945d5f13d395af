/* cache_policy.h -- what a cache replacement policy is: one file, one row of the table.
 *
 * A policy orders the members of one cache (the whole cache, or one layer's share of it) by key, a
 * dense number 0..keys-1, so it needs arrays and no hashing. It never sees a clock, a byte count or
 * an I/O: it is told of hits and inserts in logical order and asked for victims. Which keys must not
 * be chosen right now (the current batch, prefetched experts) it asks guard_holds().
 */
#ifndef SIM_POLICY_CACHE_POLICY_H
#define SIM_POLICY_CACHE_POLICY_H

#include "base/pcg.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_KEY UINT32_MAX

/* The keys that must stay for the moment: held[key] is not 0. */
struct guard {
    const uint8_t *held;
};
static inline bool guard_holds(const struct guard *g, uint32_t key)
{
    return g->held[key] != 0;
}

/* The future of one cache: key k is used in the batches use[first[k]] .. use[first[k + 1] - 1], ascending
 * ordinals of this cache's batches, the first of which is 0. */
struct policy_future {
    const uint32_t *first;
    const uint32_t *use;
};

/* What a policy may know when it starts. */
struct policy_setup {
    uint32_t keys;     /* dense keys of this cache */
    uint32_t slots;    /* members it holds when full, by its mean expert size; >= 1 */
    uint32_t layers;   /* layers that share this cache, visited in a cycle */
    uint32_t experts;  /* keys per layer: layer of a key = key / experts */
    struct pcg chance; /* its own stream */
    const struct policy_future *future; /* for clairvoyant policies, else NULL */
    const uint32_t *rank; /* hotness rank of each key, 0 = hottest, NO_KEY = unranked; or NULL */
};

struct cache_policy {
    const char *name;
    const char *summary; /* one line, for --help and the docs */
    bool clairvoyant;    /* needs the future: replay and simulation of a recorded trace only */
    bool keeps_nothing;  /* every member leaves at the end of its batch (policy none) */
    size_t (*state_bytes)(const struct policy_setup *s);
    void (*start)(void *state,
                  const struct policy_setup *s); /* state is zeroed, aligned for any type */
    void (*hit)(void *state, uint32_t key);      /* key is a member */
    /* Optional: a member that its own batch asks for once more, which is promotion and no further use. */
    void (*again)(void *state, uint32_t key);
    void (*insert)(void *state, uint32_t key); /* key was no member; it is one now */
    /* Chooses a member that the guard does not hold, forgets it as a member and returns it; NO_KEY if
     * all are held. `incoming` is the key that needs the room, or NO_KEY. */
    uint32_t (*victim)(void *state, const struct guard *g, uint32_t incoming);
    /* Optional: a new (pass, layer) batch begins; `layer` is within this cache's layers. */
    void (*batch)(void *state, uint32_t layer);
};

/* All policies, in the order in which they are documented; ends with NULL. */
extern const struct cache_policy *const cache_policies[];
const struct cache_policy *cache_policy_find(const char *name);

#endif
