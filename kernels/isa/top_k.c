/* top_k.c -- insertion into a short sorted list: k is 2 to 10 of 8 to 512, so most scores end at one
 * comparison with the worst of the list, and no instruction set does better. */
#include "kernels/isa/top_k.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

static bool beats(float a, float b)
{
    return a > b || (isnan(b) && !isnan(a));
}

void top_k(uint32_t *indices, size_t k, const float *scores, size_t n)
{
    assert(k <= n);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (used == k && (k == 0 || !beats(scores[i], scores[indices[k - 1]])))
            continue;
        size_t at = used < k ? used++ : k - 1;
        while (at > 0 && beats(scores[i], scores[indices[at - 1]])) {
            indices[at] = indices[at - 1];
            at--;
        }
        indices[at] = (uint32_t)i;
    }
}
