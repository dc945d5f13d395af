/* block_small.c -- the formats with 32 weights a block: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4.
 *
 * All but Q8_0 keep weight i in the low half of byte i and weight 16 + i in its high half; a fifth bit
 * stands in a word of 32 bits, bit i for weight i. */
#include "kernels/formats/block_code.h"

#include "kernels/formats/half.h"

const int8_t values_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};
const int8_t values_mxfp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void split_nibbles(uint8_t codes[32], const uint8_t bytes[16])
{
    for (int i = 0; i < 16; i++) {
        codes[i] = bytes[i] & 15;
        codes[16 + i] = bytes[i] >> 4;
    }
}

static void join_nibbles(uint8_t bytes[16], const uint8_t codes[32])
{
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)((codes[i] & 15) | (codes[16 + i] & 15) << 4);
}

static void split_fifth_bits(uint8_t codes[32], const uint8_t bytes[4])
{
    for (int i = 0; i < 32; i++)
        codes[i] |= (uint8_t)((bytes[i / 8] >> i % 8 & 1) << 4);
}

static void join_fifth_bits(uint8_t bytes[4], const uint8_t codes[32])
{
    memset(bytes, 0, 4);
    for (int i = 0; i < 32; i++)
        bytes[i / 8] |= (uint8_t)((codes[i] >> 4 & 1) << i % 8);
}

void split_q4_0(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 2);
    split_nibbles(codes, block + 2);
}

void join_q4_0(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 2);
    join_nibbles(block + 2, codes);
}

void split_q4_1(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 4);
    split_nibbles(codes, block + 4);
}

void join_q4_1(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 4);
    join_nibbles(block + 4, codes);
}

void split_q5_0(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 2);
    split_nibbles(codes, block + 6);
    split_fifth_bits(codes, block + 2);
}

void join_q5_0(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 2);
    join_fifth_bits(block + 2, codes);
    join_nibbles(block + 6, codes);
}

void split_q5_1(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 4);
    split_nibbles(codes, block + 8);
    split_fifth_bits(codes, block + 4);
}

void join_q5_1(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 4);
    join_fifth_bits(block + 4, codes);
    join_nibbles(block + 8, codes);
}

/* Signed bytes; the code is the byte plus 128. */
void split_q8_0(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 2);
    for (int i = 0; i < 32; i++)
        codes[i] = block[2 + i] ^ 0x80;
}

void join_q8_0(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 2);
    for (int i = 0; i < 32; i++)
        block[2 + i] = codes[i] ^ 0x80;
}

void split_mxfp4(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    scales[0] = block[0];
    split_nibbles(codes, block + 1);
}

void join_mxfp4(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    block[0] = scales[0];
    join_nibbles(block + 1, codes);
}

void scale_half(float *factor, float *minimum, const uint8_t *scales)
{
    (void)minimum;
    factor[0] = half_to_float(load_u16(scales));
}

void scale_half_pair(float *factor, float *minimum, const uint8_t *scales)
{
    factor[0] = half_to_float(load_u16(scales));
    minimum[0] = half_to_float(load_u16(scales + 2));
}

void scale_e8m0(float *factor, float *minimum, const uint8_t *scales)
{
    (void)minimum;
    factor[0] = e8m0_to_half_scale(scales[0]);
}
