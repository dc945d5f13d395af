/* lane_scales.h -- factors and minima of one block of a packed tile, sixteen rows at once.
 *
 * The same steps as the scale functions of block_super.c, a lane a row; `p` is the first scale byte of
 * the block in the tile (packed.h). Inline: they belong into the loop of packed_product.c. */
#ifndef KERNELS_ISA_LANES_LANE_SCALES_H
#define KERNELS_ISA_LANES_LANE_SCALES_H

#include "kernels/isa/lanes/lanes.h"
#include LANES_HEADER

static inline void lane_scale_half(vf *factor, vf *minimum, const uint8_t *p)
{
    (void)minimum;
    factor[0] = vf_load_half((const uint16_t *)(const void *)p);
}

static inline void lane_scale_half_pair(vf *factor, vf *minimum, const uint8_t *p)
{
    factor[0] = vf_load_half((const uint16_t *)(const void *)p);
    minimum[0] = vf_load_half((const uint16_t *)(const void *)(p + 32));
}

static inline void lane_scale_e8m0(vf *factor, vf *minimum, const uint8_t *p)
{
    (void)minimum;
    factor[0] = vf_load_e8m0(p);
}

static inline void lane_scale_q2_k(vf *factor, vf *minimum, const uint8_t *p)
{
    vf d = vf_load_half((const uint16_t *)(const void *)p);
    vf minus_dmin = vf_negate(vf_load_half((const uint16_t *)(const void *)(p + 32)));
    for (int g = 0; g < 16; g++) {
        vi both = vi_load_unsigned(p + 64 + 16 * g);
        factor[g] = vf_mul(d, vf_from_int(vi_and(both, 15)));
        minimum[g] = vf_mul(minus_dmin, vf_from_int(vi_shift_right(both, 4)));
    }
}

static inline void lane_scale_q3_k(vf *factor, vf *minimum, const uint8_t *p)
{
    (void)minimum;
    vf d = vf_load_half((const uint16_t *)(const void *)p);
    for (int g = 0; g < 16; g++) {
        vi low = vi_load_unsigned(p + 32 + 16 * (g % 8));
        vi high = vi_load_unsigned(p + 32 + 16 * (8 + g % 4));
        low = vi_and(g < 8 ? low : vi_shift_right(low, 4), 15);
        high = vi_shift_left(vi_and(vi_shift_right(high, 2 * (g / 4)), 3), 4);
        factor[g] = vf_mul(d, vf_from_int(vi_add_set(vi_or(low, high), -32)));
    }
}

static inline void lane_scale_q4_k(vf *factor, vf *minimum, const uint8_t *p)
{
    vf d = vf_load_half((const uint16_t *)(const void *)p);
    vf minus_dmin = vf_negate(vf_load_half((const uint16_t *)(const void *)(p + 32)));
    for (int g = 0; g < 4; g++) {
        vi a = vi_load_unsigned(p + 64 + 16 * g), b = vi_load_unsigned(p + 64 + 16 * (4 + g));
        vi c = vi_load_unsigned(p + 64 + 16 * (8 + g));
        factor[g] = vf_mul(d, vf_from_int(vi_and(a, 63)));
        minimum[g] = vf_mul(minus_dmin, vf_from_int(vi_and(b, 63)));
        vi scale = vi_or(vi_and(c, 15), vi_and(vi_shift_right(a, 2), 0x30));
        vi least = vi_or(vi_shift_right(c, 4), vi_and(vi_shift_right(b, 2), 0x30));
        factor[4 + g] = vf_mul(d, vf_from_int(scale));
        minimum[4 + g] = vf_mul(minus_dmin, vf_from_int(least));
    }
}

static inline void lane_scale_q6_k(vf *factor, vf *minimum, const uint8_t *p)
{
    (void)minimum;
    vf d = vf_load_half((const uint16_t *)(const void *)p);
    for (int g = 0; g < 16; g++)
        factor[g] = vf_mul(d, vf_from_int(vi_load_signed(p + 32 + 16 * g)));
}

static inline void lane_scale_iq4_xs(vf *factor, vf *minimum, const uint8_t *p)
{
    (void)minimum;
    vf d = vf_load_half((const uint16_t *)(const void *)p);
    vi high = vi_load_words(p + 32);
    for (int g = 0; g < 8; g++) {
        vi low = vi_load_unsigned(p + 64 + 16 * (g / 2));
        low = vi_and(g % 2 ? vi_shift_right(low, 4) : low, 15);
        vi above = vi_shift_left(vi_and(vi_shift_right(high, 2 * g), 3), 4);
        factor[g] = vf_mul(d, vf_from_int(vi_add_set(vi_or(low, above), -32)));
    }
}

#endif
