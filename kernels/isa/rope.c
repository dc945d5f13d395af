/* rope.c -- see rope.h. Angles are computed in double: at position 100,000 a float angle is off by 0.004. */
#include "kernels/isa/rope.h"

#include <math.h>

/* The pair that turns `turns` times within the original context, a fraction. */
static double pair_of_turns(const struct rope_scaling *s, size_t dims, double turns)
{
    return (double)dims * log((double)s->original / (turns * 2 * M_PI)) / (2 * log(s->base));
}

void rope_frequencies(float *frequency, size_t dims, const struct rope_scaling *s)
{
    double low = 0, high = 0;
    if (s->original) {
        low = pair_of_turns(s, dims, s->beta_fast);
        high = pair_of_turns(s, dims, s->beta_slow);
        if (!s->unrounded) {
            low = fmax(0, floor(low));
            high = fmin((double)dims - 1, ceil(high));
        }
    }
    for (size_t i = 0; i < dims / 2; i++) {
        double plain = pow(s->base, -2.0 * (double)i / (double)dims);
        double divided = plain / s->factor;
        double ramp = s->original ? ((double)i - low) / fmax(0.001, high - low) : 1;
        double share = fmin(1, fmax(0, ramp)); /* of the divided frequency */
        double f = divided * share + plain * (1 - share);
        frequency[i] = (float)(s->divisors ? f / (double)s->divisors[i] : f);
    }
}

float rope_magnitude(const struct rope_scaling *s)
{
    return s->original && s->factor > 1 ? (float)(0.1 * log(s->factor) + 1) : 1.0f;
}

void rope_angles(float *cosine, float *sine, const float *frequency, size_t pairs,
                 uint64_t position, float magnitude)
{
    for (size_t i = 0; i < pairs; i++) {
        double angle = (double)position * (double)frequency[i];
        cosine[i] = (float)(cos(angle) * (double)magnitude);
        sine[i] = (float)(sin(angle) * (double)magnitude);
    }
}
