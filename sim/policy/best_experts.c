/* best_experts.c -- see best_experts.h. Insertion into a short sorted list: `most` is a few dozen. */
#include "sim/policy/best_experts.h"

size_t best_experts(const uint32_t *score, uint32_t experts, uint16_t *out, size_t most)
{
    size_t count = 0;
    for (uint32_t e = 0; e < experts; e++) {
        if (score[e] == 0 || (count == most && (most == 0 || score[e] <= score[out[count - 1]])))
            continue;
        size_t i = count < most ? count++ : count - 1;
        for (; i > 0 && score[out[i - 1]] < score[e]; i--)
            out[i] = out[i - 1];
        out[i] = (uint16_t)e;
    }
    return count;
}
