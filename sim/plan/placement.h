/* placement.h -- where each byte lives: dense weights, expert cache, state, buffers, reserve.
 *
 * Memory is never exceeded silently: what does not fit is refused with the least amount that would do,
 * or, when the caller asks for it, dense weights stay on flash in part and are read again for every
 * token. A unit with memory of its own (VRAM) holds dense weights, state and buffers there; its
 * expert cache is in the machine's DRAM unless everything fits beside the unit. Dense weights that are
 * streamed pass through it one layer after another: counted are the last layer and the head behind it, which is
 * what AirLLM's published peak is made of (SYSTEMS V05).
 */
#ifndef SIM_PLAN_PLACEMENT_H
#define SIM_PLAN_PLACEMENT_H

#include "models/state.h"
#include "sim/roofline/machine.h"

struct placement_request {
    uint64_t memory; /* bytes the run may use; 0: the device's capacity less its reserve */
    uint64_t cache;  /* bytes of expert cache; 0: all that is left */
    bool cache_given;
    uint64_t context;
    uint32_t state_bits;
    uint64_t lanes, pieces;
    uint64_t chunk;    /* prompt tokens run at once */
    bool stream_dense; /* dense weights that do not fit stay on flash */
    uint64_t
        dense_most; /* with stream_dense: no more of them stay, whatever would fit; 0: all that fits */
    bool hypothetical; /* `memory` may exceed what the device has */
};

struct placement {
    uint64_t given;       /* bytes the run may use */
    uint64_t reserve;     /* kept by the system; 0 if `memory` was asked for */
    bool reserve_by_rule; /* not in the description: a quarter of the capacity */
    uint64_t weights;     /* of the whole model */
    uint64_t experts;     /* of all routed experts */
    uint64_t dense;       /* everything else that has to be at hand */
    uint64_t dense_resident;
    uint64_t cache; /* for experts; at most `experts` */
    uint64_t state, buffers;
    uint64_t spare;   /* given, used by nothing */
    uint64_t minimum; /* least memory for this context with dense weights resident */
    bool fits;        /* everything is resident: nothing streams */
    bool experts_on_unit;
    /* What estimate.h needs of it. */
    uint64_t stream_trunk; /* share of layer weights read again every pass, parts in 10^9 */
    uint64_t stream_bytes; /* of embedding and head */
};

/* ST_MISFIT, naming the minimum, if the model cannot be placed. */
MUST_CHECK enum status placement_find(struct placement *out, const struct model *m,
                                      const struct device *d, const struct machine *machine,
                                      const struct placement_request *r, struct diag *dg);

/* Reads in flight, activations of a chunk (hidden, FFN and residual in 32 bits: 16 bytes an element)
 * and logits. */
uint64_t placement_buffers(const struct model *m, const struct placement_request *r);

#endif
