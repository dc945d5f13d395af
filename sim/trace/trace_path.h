/* trace_path.h -- the tokens of one layer, in order.
 *
 * A trace lies pass by pass, measures run layer by layer: an index of its batches by layer gathers one layer's
 * tokens into a list, and each measure is a walk over that list. */
#ifndef SIM_TRACE_TRACE_PATH_H
#define SIM_TRACE_TRACE_PATH_H

#include "base/status.h"
#include "sim/trace/trace.h"

/* One token in one layer. */
struct spot {
    const uint16_t *ids;
    uint32_t count;
    uint32_t pass, step, turn;
    bool measured; /* decoded, or the trace has no decode pass at all */
};

struct trace_path {
    struct spot *spot;
    size_t count;
    uint64_t measured;
};

struct trace_index {
    const struct trace *t;
    bool decode_only;
    uint32_t *ordinal;   /* per layer: layers with rows before it; [layers]: all of them */
    size_t *batch;       /* batch indices sorted by layer, */
    size_t *first_batch; /* where each layer's begin (layers + 1) */
};

/* Free with trace_index_free also after a failure. */
MUST_CHECK enum status trace_index_init(struct trace_index *x, const struct trace *t,
                                        struct diag *dg);
void trace_index_free(struct trace_index *x);

bool trace_index_has(const struct trace_index *x, uint32_t layer);
/* Fills `path`, freeing what it held; free its `spot` in the end. */
MUST_CHECK enum status trace_index_gather(const struct trace_index *x, uint32_t layer,
                                          struct trace_path *path, struct diag *dg);

#endif
