/* low_rank_fit.h -- the best product of two thin matrices in place of a matrix: its truncated SVD.
 *
 * The leading singular vectors of E (rows x cols) on its smaller side are the leading eigenvectors
 * of E E' or E' E. Those come from Lanczos' iteration with full reorthogonalisation (Golub and Van
 * Loan, Matrix Computations, section 10.1): about twice as many vectors as the rank asks for
 * instead of all of them, which for an expert of 768 x 2048 is hundreds of times less work than a
 * full decomposition. What is left is then within a thousandth of the least that can be, and from
 * half of the smaller side on the iteration runs to its end and the result is exact.
 *
 * Weighted, columns count by how large the inputs are that meet them: with w[c] the mean square of
 * input c, the sum over c of w[c] * (what is left in column c)^2 is what a typical output loses if
 * inputs are uncorrelated, and it is this sum that becomes least.
 */
#ifndef KERNELS_HEADS_LOW_RANK_FIT_H
#define KERNELS_HEADS_LOW_RANK_FIT_H

#include "kernels/isa/isa.h"

/* up (rows x rank) times down (rank x cols) is nearest to `e`. rank <= rows and cols. `weight`:
 * cols numbers > 0, or NULL: all are 1. The two factors are of about equal size, so that both may
 * be stored in F16. */
MUST_CHECK enum status low_rank_fit(float *down, float *up, const float *e, size_t rows,
                                    size_t cols, const float *weight, size_t rank,
                                    const struct isa *isa, struct diag *dg);

/* The sum of weight * square of an element of `e`, and of what up x down leaves of it (up NULL:
 * nothing is taken off). `scratch`: cols floats. */
double low_rank_left(const float *e, const float *down, const float *up, size_t rows, size_t cols,
                     const float *weight, size_t rank, const struct isa *isa, float *scratch);

#endif
