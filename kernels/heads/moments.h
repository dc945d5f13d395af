/* moments.h -- how large the inputs of each matrix are, column by column, while a model reads a
 * text.
 *
 * The second moment of an input is the mean of its square over tokens; it says how much an error in
 * that column of a matrix matters (low_rank_fit.h). A routed expert sees only the tokens that chose
 * it. With few of them its moments are mixed with those of its layer, which count as
 * MOMENTS_PRIOR_TOKENS tokens.
 */
#ifndef KERNELS_HEADS_MOMENTS_H
#define KERNELS_HEADS_MOMENTS_H

#include "kernels/graph/engine.h"

#define MOMENTS_PRIOR_TOKENS 32

struct moments;

/* Makes an engine that is yet to be opened tell the moments what goes through it. */
MUST_CHECK enum status moments_new(struct moments **out, struct engine_setup *s, struct diag *dg);
void moments_free(struct moments *m); /* NULL is fine */
/* When the engine is open, before the first pass. */
MUST_CHECK enum status moments_begin(struct moments *m, const struct graph_weights *w,
                                     struct diag *dg);

/* Into weight[cols], all above 0. False: nothing went through that matrix. */
bool moments_dense(const struct moments *m, const struct matrix *matrix, float *weight);
bool moments_expert(const struct moments *m, size_t layer, size_t expert, enum expert_part part,
                    float *weight);

#endif
