/* decide.h -- cache and prefetch decisions: the one piece of code that replay, simulator and engine run.
 *
 * A driver tells it, in logical order, which experts a layer's router chose (decide_batch), what was
 * predicted (decide_predict) and when a layer is done (decide_layer_end). It answers with an ordered
 * list of commands and nothing else: it knows no clock, no completion and no queue. Given the same
 * sequence, three drivers get the same commands, which the 64-bit command hash proves (tier E1).
 *
 * Rules (DESIGN.md, "Decisions"):
 * - An expert is a member from the moment its load is commanded. All ids of a batch are held before the
 *   first of them is looked up, so a lookup hits exactly if the expert was a member when the batch began.
 * - A lookup is counted once per unique expert of a (pass, layer) batch. An expert that comes again in
 *   the same batch is promoted, not counted.
 * - Evict `before`: room is made before a load, the budget is never exceeded. Evict `after`: loads go
 *   into a reserve of one batch beyond the budget and the cache shrinks back when the layer ends, never
 *   evicting that layer's own experts.
 * - Experts of the current batch are held until layer_end(layer), prefetched ones until
 *   layer_end(target).
 */
#ifndef SIM_POLICY_DECIDE_H
#define SIM_POLICY_DECIDE_H

#include "base/pcg.h"
#include "sim/policy/cache_policy.h"
#include "sim/policy/prefetch_policy.h"

enum scope { SCOPE_GLOBAL, SCOPE_LAYER };
enum evict_when { EVICT_BEFORE, EVICT_AFTER };
extern const char *const scope_names[]; /* by value; ends with NULL */
extern const char *const evict_names[];

enum command_class {
    COMMAND_DEMAND,   /* a miss: the layer waits for this load */
    COMMAND_PREFETCH, /* a guess */
    COMMAND_DROP /* no load: `key` leaves `slot` (further victims of an unequal size, or evict after) */
};

struct decision {
    uint32_t key;    /* layer * experts + expert */
    uint32_t slot;   /* which place in the cache it goes to (DROP: leaves) */
    uint32_t victim; /* key that leaves the slot first, or NO_KEY */
    enum command_class class_of;
};

struct decide_setup {
    const struct cache_policy *policy;
    const struct prefetch_policy *prefetch; /* NULL: none */
    enum scope scope;
    enum evict_when evict;
    uint32_t layers, experts;
    const uint64_t *expert_bytes; /* per layer; 0: no routed experts */
    uint64_t budget_bytes;
    uint32_t prefetch_distance;    /* layers ahead, >= 1, for prefetchers that guess themselves */
    uint32_t prefetch_experts_max; /* experts taken from one prediction, >= 1 */
    uint64_t prefetch_bytes_max;   /* commanded for a target since its last layer_end; 0: as
                                                 many as prefetch_experts_max of the largest experts */
    uint64_t seed;
    const struct policy_future *future; /* one a cache (1, or `layers` of them); NULL: unknown */
    const uint32_t *rank;               /* per key, for pinned; NULL: first come */
};

/* The most that one batch may ask for so that what is prefetched meanwhile still fits (each layer's share,
 * for SCOPE_LAYER): where to cut a prefill chunk. UINT64_MAX if nothing limits it. */
uint64_t decide_batch_limit(const struct decide_setup *s);

struct decide_counts {
    uint64_t lookups, hits, misses;
    uint64_t prefetches, prefetch_used, prefetch_wasted;
    uint64_t evictions, pollution;         /* evictions by a prefetch of what was then missed */
    uint64_t demand_bytes, prefetch_bytes; /* payload of the loads commanded */
    uint64_t prefetch_wasted_bytes;        /* of prefetch_bytes, what was evicted unused */
    uint64_t command_hash;
};

struct decide;

/* `batch_bytes_max` is the largest union of experts that one batch will ask for. Evicting before, the
 * budget (each layer's share of it, for SCOPE_LAYER) must hold that and what may be prefetched for the
 * targets in reach; otherwise ST_MISFIT names the minimum. decide_minimum_bytes() computes it. */
uint64_t decide_minimum_bytes(const struct decide_setup *s, uint64_t batch_bytes_max);
MUST_CHECK enum status decide_new(struct decide **out, const struct decide_setup *s,
                                  uint64_t batch_bytes_max, struct diag *dg);
void decide_free(struct decide *d);

/* Each returns the commands it issued, valid until the next call; *count is their number. An expert of
 * the batch without a COMMAND_DEMAND was a hit. decide_layer_end(layer) must follow decide_batch(layer)
 * before the next batch. */
const struct decision *decide_batch(struct decide *d, uint32_t pass, uint32_t layer,
                                    const uint16_t *ids, size_t n, size_t *count);
const struct decision *decide_predict(struct decide *d, uint32_t pass, uint32_t layer,
                                      uint32_t target, const uint16_t *ids, const int64_t *scores,
                                      size_t n, size_t *count);
const struct decision *decide_layer_end(struct decide *d, uint32_t pass, uint32_t layer,
                                        size_t *count);

/* Gives the cache another budget from now on and drops what does not fit it; what is held stays until its
 * layer ends. Returns commands as above. A budget below decide_minimum_bytes() is the caller's error. */
const struct decision *decide_resize(struct decide *d, uint64_t budget_bytes, size_t *count);

const struct decide_counts *decide_counts(const struct decide *d);
uint64_t decide_used_bytes(const struct decide *d);
uint64_t decide_peak_bytes(const struct decide *d);
bool decide_is_member(const struct decide *d, uint32_t layer, uint32_t expert);
struct decide_layer {
    uint64_t lookups, hits;
    uint64_t prefetches, prefetch_used, prefetch_wasted,
        pollution; /* for or of this layer's experts */
};
const struct decide_layer *decide_by_layer(const struct decide *d); /* one a layer */

#endif
