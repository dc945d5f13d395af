/* shape.h -- the matrices of a layer, one by one: from shapes to parameters and bytes.
 *
 * shape_layer() is the only list of what a layer of each family contains. Parameters, bytes and
 * through them operations are sums over it, so they cannot disagree. Sources of the lists: the
 * modelling code of each family in Hugging Face transformers and the vendors' repositories; totals
 * are tested against the figures published for the models of the catalogue.
 */
#ifndef MODELS_SHAPE_H
#define MODELS_SHAPE_H

#include "models/model.h"

struct tensor {
    enum tensor_group group;
    int part;            /* enum quant_part */
    uint64_t rows, cols; /* cols: the inner dimension, along which blocks lie */
    uint64_t count;      /* equal matrices: experts, output groups; 0 is none */
    bool vector;         /* never quantised: stored in the format of GROUP_OTHER */
};
typedef void tensor_fn(void *self, const struct tensor *t);

/* Calls back for each matrix and vector of a layer. */
void shape_layer(const struct layer *l, uint64_t hidden, tensor_fn *fn, void *self);

/* Fills params, weight_bytes and the per-expert figures of every layer, and those of the embedding,
 * the head and the last norm, from the shapes and m->quant. A model of more than 10^15 parameters or
 * 10^16 bytes is ST_RANGE: no such thing exists, and sums stay far from overflow. */
MUST_CHECK enum status shape_fill(struct model *m, struct diag *dg);

#endif
