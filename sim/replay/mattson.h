/* mattson.h -- LRU's hits for every cache size from one pass over a trace (Mattson et al., 1970).
 *
 * LRU is a stack algorithm: a lookup hits in every cache larger than its stack distance. Distances are
 * taken when the batch begins, because a batch's own experts are protected from each other; what the
 * batch before used is still there whatever the size (evict after), so such a lookup hits without any slot.
 * The curve therefore equals replay with `lru` and evict after at every size, and with evict before at
 * every size that holds the largest batch. Exact for experts of equal size; where sizes differ within
 * one cache a slot stands for the mean expert, and the curve is close but not exact (`exact` is false). */
#ifndef SIM_REPLAY_MATTSON_H
#define SIM_REPLAY_MATTSON_H

#include "sim/policy/decide.h"
#include "sim/trace/trace.h"

struct mattson {
    enum scope scope;
    bool exact;
    uint64_t lookups, decode_lookups;
    /* hits[c] and decode_hits[c]: lookups that hit with c slots, c = 0..slots; per layer for SCOPE_LAYER
     * (every layer has c slots), else of the whole cache. A slot is `slot_bytes`. */
    size_t slots;
    uint64_t slot_bytes; /* the mean expert for SCOPE_GLOBAL; summed over layers for SCOPE_LAYER */
    uint64_t *hits, *decode_hits;
};

MUST_CHECK enum status mattson_run(struct mattson *out, const struct trace *t, enum scope scope,
                                   struct diag *dg);
void mattson_free(struct mattson *m);

#endif
