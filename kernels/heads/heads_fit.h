/* heads_fit.h -- heads learnt from a recording, and how well they do on what was held out. */
#ifndef KERNELS_HEADS_HEADS_FIT_H
#define KERNELS_HEADS_HEADS_FIT_H

#include "kernels/heads/heads.h"
#include "kernels/heads/recording.h"

/* Learns from the windows that are not held out, measures on those that are. ST_MISFIT: too short a
 * text for both. `progress` (may be NULL) is told layers. */
MUST_CHECK enum status heads_fit(struct heads **out, const struct recording *r,
                                 const struct compute_setup *c, double ridge,
                                 graph_progress_fn *progress, void *progress_self, struct diag *dg);
/* Share of the chosen experts of held-out tokens that are named, of `top_k` named a token. */
struct heads_recall {
    uint64_t wanted, early, found; /* choices; named by the early router; by the head */
};
MUST_CHECK enum status heads_measure(struct heads *h, const struct recording *r,
                                     const struct compute_setup *c, size_t source,
                                     struct heads_recall *out, struct diag *dg);

#endif
