/* graph_numbers.h -- the figures of the graph that stand in a GGUF file's metadata. */
#ifndef KERNELS_GRAPH_GRAPH_NUMBERS_H
#define KERNELS_GRAPH_GRAPH_NUMBERS_H

#include "kernels/graph/graph_weights.h"

/* From w->file, w->model and w->recipe into w->numbers. ST_PARSE: missing or out of range;
 * ST_UNSUPPORTED: a form of rotary scaling or gating that the graph does not have. */
MUST_CHECK enum status graph_numbers_read(struct graph_weights *w, struct diag *dg);

#endif
