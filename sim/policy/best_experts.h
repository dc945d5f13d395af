/* best_experts.h -- picks the highest scores of a layer's experts: what predictors end with. */
#ifndef SIM_POLICY_BEST_EXPERTS_H
#define SIM_POLICY_BEST_EXPERTS_H

#include <stddef.h>
#include <stdint.h>

/* Writes up to `most` experts with a score above 0 to `out`, best first, the lower number among equals;
 * returns how many. */
size_t best_experts(const uint32_t *score, uint32_t experts, uint16_t *out, size_t most);

#endif
