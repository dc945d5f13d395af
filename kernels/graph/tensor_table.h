/* tensor_table.h -- which tensor of a GGUF file goes where, and what shape it must have: one row a tensor. */
#ifndef KERNELS_GRAPH_TENSOR_TABLE_H
#define KERNELS_GRAPH_TENSOR_TABLE_H

#include "kernels/graph/graph_weights.h"

#include <stddef.h>

enum tensor_kind {
    TENSOR_VECTOR, /* to floats */
    TENSOR_MATRIX, /* packed */
    TENSOR_ROWS,   /* as it lies in the file: rows are looked up */
    TENSOR_BIAS,   /* a vector that belongs to a matrix */
    TENSOR_EXPERTS /* stays in the file */
};

struct tensor_place {
    const char *name; /* without "blk.N." */
    enum tensor_kind kind;
    size_t
        offset; /* of the member in struct layer_weights, or in struct graph_weights for global ones */
    uint64_t rows, cols; /* what its extents must be; a vector has 1 row */
};

/* "blk.12.attn_q.weight" -> 12, "attn_q.weight"; a name without layer stays, and its layer is SIZE_MAX. */
void tensor_name_split(struct gguf_text *name, size_t *layer_idx);

/* The place of a layer's tensor, or of one without a layer (layer_idx SIZE_MAX). False: there is none of
 * that name for this recipe. */
bool tensor_place_find(struct tensor_place *out, const struct graph_weights *w, size_t layer_idx,
                       struct gguf_text name);

/* The first tensor that the layer's kind needs and lacks, or NULL. */
const char *tensor_missing(const struct graph_weights *w, size_t layer_idx);

#endif
