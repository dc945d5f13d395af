/* gram.h -- all inner products of a matrix's rows: what ridge regression and truncated SVD are
 * solved from. */
#ifndef KERNELS_HEADS_GRAM_H
#define KERNELS_HEADS_GRAM_H

#include "kernels/isa/isa.h"

/* out[i * rows + j] = row i . row j of a (rows x cols), symmetric. Each product is F32 as isa.h
 * defines dot, so an entry is good to about one part in 10^6 of its diagonal: ample for a
 * regression with a ridge, and for the leading directions of an SVD. */
void gram(double *out, const struct isa *isa, const float *a, size_t rows, size_t cols);

#endif
