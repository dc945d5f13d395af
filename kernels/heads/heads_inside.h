/* heads_inside.h -- making heads, for its own files. */
#ifndef KERNELS_HEADS_HEADS_INSIDE_H
#define KERNELS_HEADS_HEADS_INSIDE_H

#include "kernels/heads/heads.h"

/* Heads of a model with room for every source's numbers, which are all zero. */
MUST_CHECK enum status heads_new(struct heads **out, const struct graph_weights *w, size_t distance,
                                 struct diag *dg);
/* The numbers of all heads are there: makes what the kernels compute with. */
void heads_ready(struct heads *h);

uint64_t heads_fingerprint(const struct graph_weights *w);

#endif
