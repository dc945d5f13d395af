/* read_roof.c -- see read_roof.h. Sixteen bytes at a time, which every processor has registers for. */
#include "kernels/bench/read_roof.h"

#include <assert.h>

typedef uint64_t vector __attribute__((vector_size(16)));

#define VECTORS (READ_ROOF_STEP / sizeof(vector))

uint64_t read_roof_pass(const void *data, size_t bytes)
{
    assert(bytes % READ_ROOF_STEP == 0);
    const vector *p = data, *end = p + bytes / sizeof *p;
    vector sums[VECTORS] = {{0}};
    for (; p < end; p += VECTORS)
        for (size_t i = 0; i < VECTORS; i++)
            sums[i] ^= p[i];
    for (size_t i = 1; i < VECTORS; i++)
        sums[0] ^= sums[i];
    return sums[0][0] ^ sums[0][1];
}
