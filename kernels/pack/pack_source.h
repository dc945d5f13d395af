/* pack_source.h -- the matrices and biases of one expert, read from the GGUF file: for writing a pack, and for
 * comparing one with its origin; and the conversion between both layouts, on several threads. Plain buffered
 * reads; nothing here is on the engine's path. */
#ifndef KERNELS_PACK_PACK_SOURCE_H
#define KERNELS_PACK_PACK_SOURCE_H

#include "kernels/graph/workers.h"
#include "kernels/pack/pack_shape.h"

struct pack_source {
    const struct pack_shape *shape;
    int *fd; /* by file */
    size_t files;
    uint8_t *blocks; /* room for the largest matrix of an expert */
    uint8_t *again;  /* another */
    struct workers *workers;
};

/* After a failure too, close it. */
MUST_CHECK enum status pack_source_open(struct pack_source *s, const struct pack_shape *shape,
                                        size_t threads, struct diag *dg);
void pack_source_close(struct pack_source *s);

/* The expert's matrix into s->blocks, its bias into `to`. The layer must have that part. */
MUST_CHECK enum status pack_source_matrix(struct pack_source *s, size_t layer, size_t expert,
                                          enum expert_part part, struct diag *dg);
MUST_CHECK enum status pack_source_bias(struct pack_source *s, void *to, size_t layer,
                                        size_t expert, enum expert_part part, struct diag *dg);

/* A matrix in s->blocks into the packed layout, and one in that layout into s->again. */
void pack_source_pack(struct pack_source *s, const struct pack_part *matrix, uint8_t *packed);
void pack_source_unpack(struct pack_source *s, const struct pack_part *matrix, uint8_t *packed);

/* All of `bytes` from a file that is open. */
MUST_CHECK enum status pack_read(int fd, const char *path, void *to, size_t bytes, uint64_t offset,
                                 struct diag *dg);

#endif
