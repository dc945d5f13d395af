/* gram.c -- see gram.h. */
#include "kernels/heads/gram.h"

#define BLOCK_ROWS 32 /* of rows that stay in a near cache while others pass */

static void gram_block(double *out, const struct isa *isa, const float *a, size_t rows, size_t cols,
                       size_t first)
{
    size_t last = first + BLOCK_ROWS < rows ? first + BLOCK_ROWS : rows;
    for (size_t j = first; j < rows; j++)
        for (size_t i = first; i < last && i <= j; i++) {
            double x = (double)isa->dot(a + i * cols, a + j * cols, cols);
            out[i * rows + j] = x;
            out[j * rows + i] = x;
        }
}

void gram(double *out, const struct isa *isa, const float *a, size_t rows, size_t cols)
{
    for (size_t first = 0; first < rows; first += BLOCK_ROWS)
        gram_block(out, isa, a, rows, cols, first);
}
