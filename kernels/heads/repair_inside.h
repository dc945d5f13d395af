/* repair_inside.h -- one tensor of a repair, for its own files. */
#ifndef KERNELS_HEADS_REPAIR_INSIDE_H
#define KERNELS_HEADS_REPAIR_INSIDE_H

#include "kernels/graph/tensor_floats.h"
#include "kernels/heads/repair.h"
#include "models/gguf_write.h"

struct repair_sources {
    struct tensor_floats base, full;
};

struct repair_item {
    const struct gguf_tensor *base, *full;
    size_t layer; /* SIZE_MAX: outside the layers */
    bool routed;
    size_t member; /* offset of the dense matrix, or enum expert_part */
    struct repair_row row;
};

/* Fits all matrices of the tensor, fills the row's errors, and writes the two tensors. */
MUST_CHECK enum status repair_item_write(struct repair_item *item,
                                         const struct repair_sources *sources,
                                         const struct repair_setup *s, struct gguf_write *out,
                                         struct diag *dg);

#endif
