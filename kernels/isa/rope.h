/* rope.h -- rotary positions: the angles. The rotations are kernels of isa.h.
 *
 * Pair i of a head with d rotated dimensions turns by position * frequency[i], where
 * frequency[i] = base^(-2i / d) (Su et al. 2021, section 3.2.2). A long-context model divides its low
 * frequencies: all by one factor (linear), or smoothly by how often they turn within the training
 * context (YaRN, Peng et al. 2023, section 3.2), or by factors of its own from the file. */
#ifndef KERNELS_ISA_ROPE_H
#define KERNELS_ISA_ROPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rope_scaling {
    double base;       /* 10000, 1000000 ... */
    double factor;     /* context / original context; 1: none */
    uint64_t original; /* training context in tokens; 0: linear scaling by factor, no YaRN */
    double beta_fast;  /* turns within `original` above which a frequency stays, usually 32 */
    double beta_slow;  /* and below which it is divided by factor, usually 1 */
    bool
        unrounded; /* the pairs between which YaRN blends are not rounded to whole ones (gpt-oss) */
    const float *divisors; /* one a pair, applied to every frequency first, or NULL */
};

/* `dims` / 2 frequencies. */
void rope_frequencies(float *frequency, size_t dims, const struct rope_scaling *scaling);
/* YaRN's factor on cosine and sine: 0.1 ln(factor) + 1, its equation 22; 1 without YaRN. */
float rope_magnitude(const struct rope_scaling *scaling);
/* Cosines and sines of `pairs` angles at a position, times magnitude. */
void rope_angles(float *cosine, float *sine, const float *frequency, size_t pairs,
                 uint64_t position, float magnitude);

#endif
