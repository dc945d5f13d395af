/* prefetch_policy.h -- what a prefetcher is: one file, one row of the table.
 *
 * A prefetcher guesses which experts a later layer will want. Ordered ones see logical order only:
 * what was routed (learn) and, when asked at a layer, what they would load for a target layer
 * (guess). Guesses that come from outside (a router run early, trained heads, an oracle) enter through
 * decide_predict(); `from_outside` says that the driver must supply them.
 */
#ifndef SIM_POLICY_PREFETCH_POLICY_H
#define SIM_POLICY_PREFETCH_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prefetch_setup {
    uint32_t layers, experts;
    uint32_t distance; /* layers ahead */
};

struct prefetch_policy {
    const char *name;
    const char *summary;
    bool from_outside; /* guesses come through decide_predict() */
    bool needs_future; /* oracle: the driver passes the true routing */
    size_t (*state_bytes)(const struct prefetch_setup *s);
    void (*start)(void *state, const struct prefetch_setup *s);
    /* The unique experts of a finished (pass, layer) batch; called at layer_end, in order. */
    void (*learn)(void *state, uint32_t layer, const uint16_t *ids, size_t n);
    /* Up to `most` experts of `target`, best first, seen from the batch `ids` of `layer`. */
    size_t (*guess)(void *state, uint32_t layer, const uint16_t *ids, size_t n, uint32_t target,
                    uint16_t *out, size_t most);
};

/* All prefetchers in the order of the documentation; ends with NULL. */
extern const struct prefetch_policy *const prefetch_policies[];
const struct prefetch_policy *prefetch_policy_find(const char *name);

#endif
