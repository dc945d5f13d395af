/* sampler.h -- chooses the next token from the logits of one position.
 *
 * At temperature 0 it is the token of the largest logit, of equal ones the lowest id. Otherwise
 * token i has the weight e^((logit_i - largest) / temperature), of which top_k keeps the k largest
 * (of equal ones the lower ids) and top_p, of those, the fewest largest whose sum reaches that
 * share of theirs (Holtzman et al. 2020, section 3.1); one is drawn in proportion.
 *
 * The same logits, bit by bit, give the same tokens on every machine: the exponential is isa_exp(),
 * weights are whole numbers (2^40 = 1), so sums do not depend on their order, and chance is the
 * stream "engine/sampler" of the seed. A weight below 2^-41 of the largest is 0: such a token is
 * never drawn. One draw is taken from the stream for each token, none at temperature 0.
 */
#ifndef KERNELS_GRAPH_SAMPLER_H
#define KERNELS_GRAPH_SAMPLER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct sampler_options {
    double temperature; /* >= 0 */
    double top_p;       /* above 0, up to 1: keep all */
    size_t top_k;       /* 0: keep all */
    uint64_t seed;
};

struct sampler;

/* For logits of up to `tokens_max` tokens, at least 1. ST_RANGE: an option outside its limits, or
 * more than 2^23 tokens. */
MUST_CHECK enum status sampler_new(struct sampler **out, const struct sampler_options *options,
                                   size_t tokens_max, struct diag *dg);
void sampler_free(struct sampler *s); /* NULL is fine */

/* Picks one of n tokens, 1 to tokens_max, without allocating. ST_RANGE: a logit is no number or
 * +infinity, or all are -infinity (which otherwise rules a token out); no chance is spent then. */
MUST_CHECK enum status sampler_pick(struct sampler *s, uint32_t *token, const float *logits,
                                    size_t n, struct diag *dg);

#endif
