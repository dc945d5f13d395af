/* foreseen.h -- the routing of a run that is known before it begins, because it is forced: what clairvoyant policies and
 * the oracle prefetcher are told in the engine, as replay tells them from the trace.
 *
 * How a prompt is cut into passes decides which experts make up a batch, so the batches are listed for the run as it
 * will be: a prompt in chunks, then one token a pass. A run that leaves that course is an error, not a worse guess. */
#ifndef KERNELS_GRAPH_FORESEEN_H
#define KERNELS_GRAPH_FORESEEN_H

#include "models/model.h"
#include "sim/policy/future.h"

/* Writes the experts that a token must take in a layer, top_k of them in slot order; their weights are what
 * the router gives them. False: the router decides. */
struct route {
    bool (*at)(void *self, size_t position, size_t layer, uint16_t *ids);
    void *self;
};

struct foreseen_setup {
    struct route route; /* at NULL: nothing is known */
    size_t prompt;      /* tokens */
    size_t steps;       /* passes of one token after it */
};

struct foreseen;
/* `chunk`: tokens of a pass of the prompt. ST_UNSUPPORTED without a route, ST_MISFIT if it leaves a choice to the
 * router. */
MUST_CHECK enum status foreseen_new(struct foreseen **out, const struct foreseen_setup *s,
                                    const struct model *m, size_t chunk, enum scope scope,
                                    struct diag *dg);
void foreseen_free(struct foreseen *f); /* NULL is fine */

const struct policy_future *foreseen_future(const struct foreseen *f);
/* This batch comes now. ST_MISFIT: it is not the next one. */
MUST_CHECK enum status foreseen_step(struct foreseen *f, uint32_t layer, const uint16_t *ids,
                                     size_t n, struct diag *dg);
/* The batch `distance` after the one that came last: its `*n` experts and layer, or NULL behind the end. */
const uint16_t *foreseen_ahead(const struct foreseen *f, size_t distance, uint32_t *layer,
                               size_t *n);

#endif
