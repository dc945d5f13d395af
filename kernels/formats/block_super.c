/* block_super.c -- the formats with 256 weights a block: Q2_K to Q6_K and IQ4_XS.
 *
 * Their blocks hold 8 groups of 32 weights or 16 of 16, each with a small integer scale (and in Q2_K,
 * Q4_K, Q5_K a small integer minimum), and one or two F16 factors for the block. */
#include "kernels/formats/block_code.h"

#include "kernels/formats/half.h"

/* A plane of fields: `bits` wide, weight 32 * k + i of a run of 32 * (8 / bits) weights in byte i, field
 * k. This is where all but Q4_K, Q5_K and Q6_K keep the low bits, and all but Q6_K the high ones. */
static void split_plane(uint8_t *codes, const uint8_t bytes[32], unsigned bits, unsigned shift)
{
    unsigned mask = (1u << bits) - 1;
    for (unsigned k = 0; k < 8 / bits; k++)
        for (unsigned i = 0; i < 32; i++)
            codes[32 * k + i] |= (uint8_t)((bytes[i] >> k * bits & mask) << shift);
}

static void join_plane(uint8_t bytes[32], const uint8_t *codes, unsigned bits, unsigned shift)
{
    unsigned mask = (1u << bits) - 1;
    memset(bytes, 0, 32);
    for (unsigned k = 0; k < 8 / bits; k++)
        for (unsigned i = 0; i < 32; i++)
            bytes[i] |= (uint8_t)((codes[32 * k + i] >> shift & mask) << k * bits);
}

/* Q2_K: scales[16], codes[64], d, dmin. */
void split_q2_k(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memset(codes, 0, 256);
    memcpy(scales, block + 80, 4);
    memcpy(scales + 4, block, 16);
    for (int half = 0; half < 2; half++)
        split_plane(codes + 128 * half, block + 16 + 32 * half, 2, 0);
}

void join_q2_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block + 80, scales, 4);
    memcpy(block, scales + 4, 16);
    for (int half = 0; half < 2; half++)
        join_plane(block + 16 + 32 * half, codes + 128 * half, 2, 0);
}

void scale_q2_k(float *factor, float *minimum, const uint8_t *scales)
{
    float d = half_to_float(load_u16(scales)), dmin = half_to_float(load_u16(scales + 2));
    for (int g = 0; g < 16; g++) {
        factor[g] = d * (float)(scales[4 + g] & 15);
        minimum[g] = -(dmin * (float)(scales[4 + g] >> 4));
    }
}

/* Q3_K: high bits[32], low bits[64], scales[12], d. */
void split_q3_k(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memset(codes, 0, 256);
    memcpy(scales, block + 108, 2);
    memcpy(scales + 2, block + 96, 12);
    for (int half = 0; half < 2; half++)
        split_plane(codes + 128 * half, block + 32 + 32 * half, 2, 0);
    split_plane(codes, block, 1, 2);
}

void join_q3_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block + 108, scales, 2);
    memcpy(block + 96, scales + 2, 12);
    for (int half = 0; half < 2; half++)
        join_plane(block + 32 + 32 * half, codes + 128 * half, 2, 0);
    join_plane(block, codes, 1, 2);
}

/* Six bits a group: four in bytes 0 to 7, two in bytes 8 to 11. */
void scale_q3_k(float *factor, float *minimum, const uint8_t *scales)
{
    (void)minimum;
    float d = half_to_float(load_u16(scales));
    const uint8_t *bytes = scales + 2;
    for (int g = 0; g < 16; g++) {
        int low = bytes[g % 8] >> 4 * (g / 8) & 15;
        int high = bytes[8 + g % 4] >> 2 * (g / 4) & 3;
        factor[g] = d * (float)((low | high << 4) - 32);
    }
}

/* Chunk c of 32 bytes: group 2c in the low halves, 2c + 1 in the high halves. */
static void split_chunks(uint8_t codes[256], const uint8_t bytes[128])
{
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < 32; i++) {
            codes[64 * c + i] = bytes[32 * c + i] & 15;
            codes[64 * c + 32 + i] = bytes[32 * c + i] >> 4;
        }
}

static void join_chunks(uint8_t bytes[128], const uint8_t codes[256])
{
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < 32; i++)
            bytes[32 * c + i] =
                (uint8_t)((codes[64 * c + i] & 15) | (codes[64 * c + 32 + i] & 15) << 4);
}

/* Q4_K: d, dmin, scales[12], codes[128]. */
void split_q4_k(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 16);
    split_chunks(codes, block + 16);
}

void join_q4_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 16);
    join_chunks(block + 16, codes);
}

/* Q5_K: d, dmin, scales[12], high bits[32], low bits[128]. */
void split_q5_k(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 16);
    split_chunks(codes, block + 48);
    split_plane(codes, block + 16, 1, 4);
}

void join_q5_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 16);
    join_chunks(block + 48, codes);
    join_plane(block + 16, codes, 1, 4);
}

/* Six bits of scale and of minimum a group: groups 0 to 3 whole in bytes 0 to 7, groups 4 to 7 with four
 * bits in bytes 8 to 11 and two above those of the first eight. */
void scale_q4_k(float *factor, float *minimum, const uint8_t *scales)
{
    float d = half_to_float(load_u16(scales)), dmin = half_to_float(load_u16(scales + 2));
    const uint8_t *bytes = scales + 4;
    for (int g = 0; g < 4; g++) {
        factor[g] = d * (float)(bytes[g] & 63);
        minimum[g] = -(dmin * (float)(bytes[4 + g] & 63));
        factor[4 + g] = d * (float)((bytes[8 + g] & 15) | bytes[g] >> 6 << 4);
        minimum[4 + g] = -(dmin * (float)(bytes[8 + g] >> 4 | bytes[4 + g] >> 6 << 4));
    }
}

/* Q6_K: low bits[128], high bits[64], scales[16], d; in each half of 128 weights, weights 0 to 63 in
 * the low halves of 64 bytes, 64 to 127 in the high ones. */
void split_q6_k(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block + 208, 2);
    memcpy(scales + 2, block + 192, 16);
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 64; i++) {
            codes[128 * half + i] = block[64 * half + i] & 15;
            codes[128 * half + 64 + i] = block[64 * half + i] >> 4;
        }
        split_plane(codes + 128 * half, block + 128 + 32 * half, 2, 4);
    }
}

void join_q6_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block + 208, scales, 2);
    memcpy(block + 192, scales + 2, 16);
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 64; i++)
            block[64 * half + i] =
                (uint8_t)((codes[128 * half + i] & 15) | (codes[128 * half + 64 + i] & 15) << 4);
        join_plane(block + 128 + 32 * half, codes + 128 * half, 2, 4);
    }
}

void scale_q6_k(float *factor, float *minimum, const uint8_t *scales)
{
    (void)minimum;
    float d = half_to_float(load_u16(scales));
    for (int g = 0; g < 16; g++)
        factor[g] = d * (float)(int8_t)scales[2 + g];
}

/* IQ4_XS: d, high scale bits (16), low scale bits[4], codes[128] as eight blocks of IQ4_NL. */
void split_iq4_xs(uint8_t *codes, uint8_t *scales, const uint8_t *block)
{
    memcpy(scales, block, 8);
    for (int g = 0; g < 8; g++)
        for (int i = 0; i < 16; i++) {
            codes[32 * g + i] = block[8 + 16 * g + i] & 15;
            codes[32 * g + 16 + i] = block[8 + 16 * g + i] >> 4;
        }
}

void join_iq4_xs(uint8_t *block, const uint8_t *codes, const uint8_t *scales)
{
    memcpy(block, scales, 8);
    for (int g = 0; g < 8; g++)
        for (int i = 0; i < 16; i++)
            block[8 + 16 * g + i] =
                (uint8_t)((codes[32 * g + i] & 15) | (codes[32 * g + 16 + i] & 15) << 4);
}

void scale_iq4_xs(float *factor, float *minimum, const uint8_t *scales)
{
    (void)minimum;
    float d = half_to_float(load_u16(scales));
    unsigned high = load_u16(scales + 2);
    for (int g = 0; g < 8; g++) {
        int low = scales[4 + g / 2] >> 4 * (g % 2) & 15;
        factor[g] = d * (float)((low | (int)(high >> 2 * g & 3) << 4) - 32);
    }
}
