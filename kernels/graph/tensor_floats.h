/* tensor_floats.h -- weights of a GGUF file as floats, piece by piece, whatever their format. */
#ifndef KERNELS_GRAPH_TENSOR_FLOATS_H
#define KERNELS_GRAPH_TENSOR_FLOATS_H

#include "models/gguf.h"

struct tensor_floats {
    const struct gguf *file;
    int *fd; /* by file of the model */
};

/* `g` must outlive it. ST_IO: a file cannot be opened. */
MUST_CHECK enum status tensor_floats_open(struct tensor_floats *r, const struct gguf *g,
                                          struct diag *dg);
void tensor_floats_close(struct tensor_floats *r); /* one that is all zero is fine */

/* Weights first .. first + count - 1 of a tensor; both must be multiples of its format's block.
 * Several threads may read. ST_UNSUPPORTED: a format without kernels; ST_IO: cannot be read, or
 * ends early. */
MUST_CHECK enum status tensor_floats_read(const struct tensor_floats *r,
                                          const struct gguf_tensor *t, uint64_t first, size_t count,
                                          float *out, struct diag *dg);

#endif
