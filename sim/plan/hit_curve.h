/* hit_curve.h -- from "how many distinct experts do M tokens use" to "what does a cache of C bytes hit".
 *
 * Let u(M) be the mean number of distinct experts of one layer in M tokens in a row. A global LRU of C
 * bytes holds what the last g tokens used, where u(g) experts a layer fill C. A look-up misses if its
 * expert was not used in those g tokens, and the mean number of such look-ups of a token is exactly
 * u(g+1) - u(g) (footprint theory: Denning and Schwartz 1972; Xiang et al., ASPLOS 2013). So
 *     h(C) = 1 - (u(g+1) - u(g))/K.
 * Half a token is taken from g, because the layer that looks up stands in the middle of the window's
 * last token. Against the published replays of two phone traces (data/bmoe) this lies within 2.5
 * points at every budget. Below one token cycle T the formula has no g: there global LRU hits exactly
 * nothing up to T less one layer's share (SYSTEMS F1). The same u(M) is the union of a prefill chunk.
 *
 * u(M) is counted on tokens drawn from the routing preset of the model, which costs a millisecond or
 * two, rather than stored: so it follows any number of experts and any top_k.
 */
#ifndef SIM_PLAN_HIT_CURVE_H
#define SIM_PLAN_HIT_CURVE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIT_CURVE_TOKENS 256 /* longest window that is counted */

struct hit_curve {
    uint64_t experts, top_k;
    /* u(M) in parts per 10^6 experts, M = 0..HIT_CURVE_TOKENS; u(0) = 0, u(1) = top_k, concave. */
    uint64_t distinct_e6[HIT_CURVE_TOKENS + 1];
};

/* Independent uniform routing: the worst case for a cache. */
void hit_curve_uniform(struct hit_curve *c, uint64_t experts, uint64_t top_k);
/* Counted on tokens of the routing preset `name` in folder `presets`, always the same ones. */
MUST_CHECK enum status hit_curve_preset(struct hit_curve *c, const char *presets, const char *name,
                                        uint64_t experts, uint64_t top_k, struct diag *dg);

/* Counts windows over choices: ids[(token * layers + layer) * top_k + slot]. tokens >= 2. */
MUST_CHECK enum status hit_curve_count(struct hit_curve *c, const uint16_t *ids, size_t tokens,
                                       size_t layers, uint64_t experts, uint64_t top_k,
                                       struct diag *dg);

/* Distinct experts of a layer in `tokens` tokens, parts per 1000; beyond the longest counted window
 * the experts not yet seen keep dwindling at its last rate. */
uint64_t hit_curve_distinct_e3(const struct hit_curve *c, uint64_t tokens);
/* The same as workload.h asks for it: `self` is a hit curve; layers of another shape than the curve's are
 * taken as uniform. */
uint64_t hit_curve_union_e3(const void *self, uint64_t experts, uint64_t top_k, uint64_t tokens);
/* Tokens whose experts fill `experts_e6` parts per 10^6 experts a layer, in parts per 10^6. */
uint64_t hit_curve_window_e6(const struct hit_curve *c, uint64_t experts_e6);

/* Hit ratio of decoding, parts in 10^9, with a global LRU of `cache` bytes: `cycle` is T, the bytes a
 * token looks up; `layers` those with experts; `all` the bytes of every expert. Never falls as
 * `cache` grows. */
uint64_t hit_curve_ratio(const struct hit_curve *c, uint64_t cache, uint64_t cycle, uint64_t layers,
                         uint64_t all);

#endif
