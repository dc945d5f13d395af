/* leading_vectors.h -- the eigenvectors of a symmetric matrix with the largest eigenvalues, by
 * Lanczos' iteration. */
#ifndef KERNELS_HEADS_LEADING_VECTORS_H
#define KERNELS_HEADS_LEADING_VECTORS_H

#include "base/status.h"

#include <stddef.h>

/* `matrix`: n x n, positive semidefinite. `vectors`: count x n, orthonormal rows, by falling
 * eigenvalue; `values`: count, at least 0. count <= n. The same matrix gives the same vectors. */
MUST_CHECK enum status leading_vectors(double *vectors, double *values, const double *matrix,
                                       size_t n, size_t count, struct diag *dg);

#endif
