/* half.h -- the small floating-point types of weight files as bits: F16, BF16 and E8M0, to and from F32.
 *
 * Integer arithmetic on the bits, so the result is the same on every machine. Inline because a format
 * converts one for each of its 32 weights. */
#ifndef KERNELS_FORMATS_HALF_H
#define KERNELS_FORMATS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Exact; a NaN keeps its payload and becomes quiet, as the instructions of x86 and ARM do it. */
static inline float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = (uint32_t)(half & 0x7fffu) << 13;
    if (magnitude < 0x0f800000u) /* finite: the exponents' biases differ by 112 */
        return float_of_bits(sign | bits_of_float(float_of_bits(magnitude) * 0x1p112f));
    return float_of_bits(sign | magnitude | 0x7f800000u |
                         (magnitude > 0x0f800000u ? 0x400000u : 0));
}

/* To nearest, ties to even; beyond 65504 infinity, below 2^-25 zero. */
static inline uint16_t half_of_float(float value)
{
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000u,
             magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x47800000u) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves a multiple of 2^-24 */
        float shifted = float_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (bits_of_float(shifted) - 0x3f000000u));
    }
    uint32_t odd = magnitude >> 13 & 1;
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

static inline float bfloat_to_float(uint16_t bfloat)
{
    return float_of_bits((uint32_t)bfloat << 16);
}

/* To nearest, ties to even; a NaN becomes quiet. */
static inline uint16_t bfloat_of_float(float value)
{
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* Half of 2^(e - 127): MXFP4's values are stored doubled, as integers. */
static inline float e8m0_to_half_scale(uint8_t e)
{
    return float_of_bits(e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23);
}

/* Little-endian words of a file at any address. */
static inline uint16_t load_u16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t load_u32(const uint8_t *bytes)
{
    return load_u16(bytes) | (uint32_t)load_u16(bytes + 2) << 16;
}

static inline void store_u16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

#endif
