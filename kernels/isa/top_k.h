/* top_k.h -- the k largest of a router's scores, in order. */
#ifndef KERNELS_ISA_TOP_K_H
#define KERNELS_ISA_TOP_K_H

#include <stddef.h>
#include <stdint.h>

/* Indices of the k largest of n scores (k <= n), largest first; of equal scores the lower index first,
 * and a NaN after all numbers. */
void top_k(uint32_t *indices, size_t k, const float *scores, size_t n);

#endif
