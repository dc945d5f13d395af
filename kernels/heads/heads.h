/* heads.h -- trained heads: one small matrix a layer that foretells the experts of a later one.
 *
 * The guess that needs no training runs the target layer's own router early, on the source layer's
 * state x (the residual stream after its attention, divided by its root mean square). A head is
 * that router with its norm, W, and a correction D learnt from recorded states (recording.h). With
 * X the states of n tokens, a row each, with a 1 appended, and Y the logits that the target's
 * router really gave for them:
 *
 *     D = argmin |Y - X (W + D)|^2 + n ridge |D|^2
 *         solved from (X'X + n ridge I) D = X' (Y - X W)
 *
 * Elements of a state have the mean square 1, so `ridge` is relative to them. This is ridge
 * regression (Hoerl and Kennard 1970) that shrinks towards the early router instead of towards
 * nothing: however few the tokens, heads begin where the untrained guess is; a large ridge gives
 * just that.
 *
 * The router always decides what is computed. A head that is wrong costs time and changes no token.
 *
 * The file, MODEL.heads beside the model; little-endian, what is not named is zero:
 *
 *     0  u8[8]   "MWHEADS\n"
 *     8  u32     version, 1
 *    12  u32     distance
 *    16  u32     elements of a state (the model's hidden size)
 *    20  u32     heads
 *    24  u64     fingerprint of the model's routers (below)
 *    32  f64     ridge
 *    40  u64     tokens learnt from
 *    48          the heads, by source layer:
 *                  u32 source layer, u32 experts,
 *                  f32 held-out recall of the early router, f32 of the head,
 *                  f32[experts] bias, f16[experts][hidden] weights
 *   end  u64     hash_bytes of all before
 *
 * The fingerprint covers each layer's router and the norm before it, as the engine holds them:
 * files of one model whose quantisation leaves the routers alone share their heads, another
 * training state has its own.
 */
#ifndef KERNELS_HEADS_HEADS_H
#define KERNELS_HEADS_HEADS_H

#include "kernels/graph/graph.h"

struct head {
    size_t source, experts;     /* experts of layer source + distance */
    float recall_early, recall; /* on the held-out windows it was measured on */
    float *bias;                /* experts */
    uint16_t *rows;             /* experts x hidden, F16 */
    void *packed;               /* the same for the kernels */
    struct matrix matrix;
};

struct heads {
    size_t distance, hidden, count;
    uint64_t fingerprint, tokens;
    double ridge;
    struct head *head; /* by source, ascending */
    float *ones;
    struct input in; /* HEADS_BATCH tokens */
};
#define HEADS_BATCH 32

void heads_free(struct heads *h);          /* NULL is fine */
size_t heads_bytes(const struct heads *h); /* memory that they take; of NULL: none */

MUST_CHECK enum status heads_save(const struct heads *h, const char *path, struct diag *dg);
/* ST_PARSE: no heads, or truncated or altered; ST_MISFIT: of another model. */
MUST_CHECK enum status heads_load(struct heads **out, const char *path,
                                  const struct graph_weights *w, struct diag *dg);

/* A graph_predict_fn whose `self` is the heads. The graph's predict_distance must be theirs. One
 * graph at a time. */
void heads_predict(void *self, const struct graph_weights *w, const struct compute_setup *c,
                   size_t layer, size_t target, const float *state, size_t tokens, float *scores);

#endif
