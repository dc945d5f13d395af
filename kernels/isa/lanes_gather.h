/* lanes_gather.h -- scales of four rows brought into the order of the lanes, byte by byte: for instruction sets
 * without a faster way. Element r of 128-bit lane i is the i-th of row r. */
#ifndef KERNELS_ISA_LANES_GATHER_H
#define KERNELS_ISA_LANES_GATHER_H

#include <stdint.h>
#include <string.h>

/* The 16 bits at row[r] + offset + i * stride. */
static inline void gather_words(uint16_t out[16], const uint8_t *const row[4], int offset,
                                int stride)
{
    for (int i = 0; i < 4; i++)
        for (int r = 0; r < 4; r++)
            memcpy(&out[4 * i + r], row[r] + offset + i * stride, 2);
}

/* The byte at row[r] + i * stride. */
static inline void gather_bytes(uint8_t out[16], const uint8_t *const row[4], int stride)
{
    for (int i = 0; i < 4; i++)
        for (int r = 0; r < 4; r++)
            out[4 * i + r] = row[r][i * stride];
}

#endif
