/* passage.h -- a text read by an open engine for what can be learnt on the way (engine.h: watch,
 * predict, on_pass), window by window, each from an empty context. */
#ifndef KERNELS_HEADS_PASSAGE_H
#define KERNELS_HEADS_PASSAGE_H

#include "kernels/graph/engine.h"

/* `window`: tokens, at most the engine's context; the last one may be shorter. `progress` (or NULL)
 * is told tokens. */
MUST_CHECK enum status passage_run(struct engine *e, const uint32_t *tokens, size_t count,
                                   size_t window, graph_progress_fn *progress, void *progress_self,
                                   struct diag *dg);

#endif
