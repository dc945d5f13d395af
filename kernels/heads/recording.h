/* recording.h -- what a model's routers see and choose while it reads a text: the examples that
 * heads learn from.
 *
 * For each token and each layer `source` whose target layer, `distance` further on, has routed
 * experts:
 *
 *     state   the residual stream after the source's attention, divided by its root mean square:
 *             F16, hidden
 *     logit   what the target's router gave for the token when its turn came: F16, experts
 *     chosen  the experts that the token took in the target: top_k
 *     early   the experts that the target's own norm and router name when run on the source's
 *             state: top_k
 *
 * Tokens are read in windows, each from an empty context; every RECORDING_HELD_OUTth window is held
 * out: it is measured on, not learnt from.
 */
#ifndef KERNELS_HEADS_RECORDING_H
#define KERNELS_HEADS_RECORDING_H

#include "kernels/graph/engine.h"

#define RECORDING_HELD_OUT 5

struct recorded_layer {
    bool is_source;        /* its target exists and has experts */
    size_t experts, top_k; /* of the target */
    uint16_t *state, *logit;
    uint16_t *chosen, *early;
};

struct recording {
    const struct graph_weights *weights;
    const struct isa *isa;
    size_t distance, hidden, layers, window;
    size_t tokens, room;          /* recorded; what there is room for */
    struct recorded_layer *layer; /* by source */
    float *ones;                  /* hidden: a norm's weights that change nothing */
    float *row, *scores;          /* of one token: hidden, experts */
    float *logits;                /* of a chunk: tokens x experts */
    struct input in;              /* of a chunk */
};

/* Makes an engine that is yet to be opened tell the recording what it sees. */
void recording_attach(struct recording *r, struct engine_setup *s, size_t distance);
/* Reads the text, window by window. ST_MISFIT: no layer has a target at this distance. `progress`
 * (may be NULL) is told tokens. */
MUST_CHECK enum status recording_run(struct recording *r, struct engine *e, const uint32_t *tokens,
                                     size_t count, size_t window, graph_progress_fn *progress,
                                     void *progress_self, struct diag *dg);
void recording_free(struct recording *r);

/* Memory that `count` tokens take, in bytes. */
uint64_t recording_bytes(const struct model *m, size_t distance, size_t count);

static inline bool recording_is_held_out(const struct recording *r, size_t token)
{
    return token / r->window % RECORDING_HELD_OUT == RECORDING_HELD_OUT - 1;
}

#endif
