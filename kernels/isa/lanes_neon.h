/* lanes_neon.h -- sixteen lanes in four 128-bit registers (ARMv8.2 with dot product); the interface of
 * lanes_avx512.h.
 *
 * SDOT multiplies signed bytes, so codes are brought down to their values and no bias is left. */
#ifndef KERNELS_ISA_LANES_NEON_H
#define KERNELS_ISA_LANES_NEON_H

#include "kernels/isa/lanes_gather.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Tokens for which codes are decoded once. */
#define LANES_TOKENS 2
/* Lines of codes that lane_peak.c takes for two tokens. */
#define LANES_PEAK 2

typedef struct {
    float32x4_t q[4];
} vf;
typedef struct {
    int32x4_t q[4];
} vi;
typedef struct {
    uint8x16_t q[4];
} vb;

/* `r` = a value of `expression` in i for each of the four registers. */
#define FOUR(type, expression)                                                                     \
    type r;                                                                                        \
    for (int i = 0; i < 4; i++)                                                                    \
        r.q[i] = expression;                                                                       \
    return r

static inline vf vf_set(float x)
{
    FOUR(vf, vdupq_n_f32(x));
}

static inline vf vf_zero(void)
{
    return vf_set(0);
}

static inline vf vf_load(const float *p)
{
    FOUR(vf, vld1q_f32(p + 4 * i));
}

static inline void vf_store(float *p, vf x)
{
    for (int i = 0; i < 4; i++)
        vst1q_f32(p + 4 * i, x.q[i]);
}

static inline vf vf_load_part(const float *p, size_t n)
{
    float all[16] = {0};
    memcpy(all, p, n * sizeof *p);
    return vf_load(all);
}

static inline void vf_store_part(float *p, vf x, size_t n)
{
    float all[16];
    vf_store(all, x);
    memcpy(p, all, n * sizeof *p);
}

static inline vf vf_load_half(const uint16_t *p)
{
    FOUR(vf, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))));
}

static inline vf vf_load_half_part(const uint16_t *p, size_t n)
{
    uint16_t all[16] = {0};
    memcpy(all, p, n * sizeof *p);
    return vf_load_half(all);
}

static inline vf vf_load_bfloat(const uint16_t *p)
{
    FOUR(vf, vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)));
}

static inline vf vf_load_bfloat_part(const uint16_t *p, size_t n)
{
    uint16_t all[16] = {0};
    memcpy(all, p, n * sizeof *p);
    return vf_load_bfloat(all);
}

static inline vf vf_add(vf a, vf b)
{
    FOUR(vf, vaddq_f32(a.q[i], b.q[i]));
}

static inline vf vf_sub(vf a, vf b)
{
    FOUR(vf, vsubq_f32(a.q[i], b.q[i]));
}

static inline vf vf_mul(vf a, vf b)
{
    FOUR(vf, vmulq_f32(a.q[i], b.q[i]));
}

static inline vf vf_div(vf a, vf b)
{
    FOUR(vf, vdivq_f32(a.q[i], b.q[i]));
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    FOUR(vf, vfmaq_f32(c.q[i], a.q[i], b.q[i]));
}

static inline vf vf_negate(vf x)
{
    FOUR(vf, vnegq_f32(x.q[i]));
}

static inline vf vf_if_greater(vf a, vf b, vf x, vf y)
{
    FOUR(vf, vbslq_f32(vcgtq_f32(a.q[i], b.q[i]), x.q[i], y.q[i]));
}

static inline vf vf_from_int(vi x)
{
    FOUR(vf, vcvtq_f32_s32(x.q[i]));
}

static inline vi vi_round(vf x)
{
    FOUR(vi, vcvtnq_s32_f32(x.q[i]));
}

static inline vi vi_bits(vf x)
{
    FOUR(vi, vreinterpretq_s32_f32(x.q[i]));
}

static inline vf vf_bits(vi x)
{
    FOUR(vf, vreinterpretq_f32_s32(x.q[i]));
}

static inline vi vi_max(vi a, vi b)
{
    FOUR(vi, vmaxq_s32(a.q[i], b.q[i]));
}

static inline int32_t vi_largest(vi x)
{
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(x.q[0], x.q[1]), vmaxq_s32(x.q[2], x.q[3])));
}

static inline void vi_store_bytes(int8_t *p, vi x)
{
    int16x8_t low = vcombine_s16(vmovn_s32(x.q[0]), vmovn_s32(x.q[1]));
    int16x8_t high = vcombine_s16(vmovn_s32(x.q[2]), vmovn_s32(x.q[3]));
    vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

static inline vi vi_add(vi a, vi b)
{
    FOUR(vi, vaddq_s32(a.q[i], b.q[i]));
}

static inline vi vi_and(vi a, int32_t mask)
{
    FOUR(vi, vandq_s32(a.q[i], vdupq_n_s32(mask)));
}

static inline vi vi_or(vi a, vi b)
{
    FOUR(vi, vorrq_s32(a.q[i], b.q[i]));
}

static inline vi vi_add_set(vi a, int32_t b)
{
    FOUR(vi, vaddq_s32(a.q[i], vdupq_n_s32(b)));
}

static inline vi vi_shift_left(vi x, int n)
{
    FOUR(vi, vshlq_s32(x.q[i], vdupq_n_s32(n)));
}

static inline vi vi_shift_right(vi x, int n)
{
    FOUR(vi, vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(x.q[i]), vdupq_n_s32(-n))));
}

static inline vi vi_load_unsigned(const uint8_t *p)
{
    uint8x16_t bytes = vld1q_u8(p);
    uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_u8(vget_high_u8(bytes));
    return (vi){{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
                 vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(low))),
                 vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
                 vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(high)))}};
}

static inline vi vi_load_signed(const uint8_t *p)
{
    int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(p));
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
    return (vi){{vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)),
                 vmovl_s16(vget_low_s16(high)), vmovl_s16(vget_high_s16(high))}};
}

static inline vi vi_load_words(const uint8_t *p)
{
    FOUR(vi, vreinterpretq_s32_u32(vmovl_u16(vreinterpret_u16_u8(vld1_u8(p + 8 * i)))));
}

static inline vf vf_load_e8m0(const uint8_t *p)
{
    vi e = vi_load_unsigned(p);
    vi normal = vi_shift_left(vi_add_set(e, -1), 23), r;
    for (int i = 0; i < 4; i++) {
        int32x4_t small = vshlq_s32(vdupq_n_s32(0x200000), e.q[i]);
        r.q[i] = vbslq_s32(vcltq_s32(e.q[i], vdupq_n_s32(2)), small, normal.q[i]);
    }
    return vf_bits(r);
}

static inline float vf_sum(vf x)
{
    float32x4_t four = vaddq_f32(vaddq_f32(x.q[0], x.q[2]), vaddq_f32(x.q[1], x.q[3]));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

static inline float vf_largest(vf x)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.q[0], x.q[1]), vmaxq_f32(x.q[2], x.q[3])));
}

static inline vb vb_load(const uint8_t *line)
{
    FOUR(vb, vld1q_u8(line + 16 * i));
}

static inline vb vb_table(const int8_t values[16], int bias_log2)
{
    (void)bias_log2;
    FOUR(vb, vreinterpretq_u8_s8(vld1q_s8(values)));
}

static inline vb vb_field(vb line, int shift, int bits, int to)
{
    uint8x16_t mask = vdupq_n_u8((uint8_t)(((1 << bits) - 1) << to));
    int8x16_t move = vdupq_n_s8((int8_t)(to - shift));
    if (bits == 8)
        return line;
    FOUR(vb, vandq_u8(vshlq_u8(line.q[i], move), mask));
}

static inline vb vb_or(vb a, vb b)
{
    FOUR(vb, vorrq_u8(a.q[i], b.q[i]));
}

static inline vb vb_biased(vb codes, int bias_log2)
{
    if (bias_log2 == 0)
        return codes;
    FOUR(vb, vsubq_u8(codes.q[i], vdupq_n_u8((uint8_t)(1 << bias_log2))));
}

static inline vb vb_lookup(vb table, vb codes)
{
    FOUR(vb, vqtbl1q_u8(table.q[0], codes.q[i]));
}

static inline vi lanes_start(int32_t minus_sum, int bias_log2)
{
    (void)minus_sum, (void)bias_log2;
    FOUR(vi, vdupq_n_s32(0));
}

static inline vi lanes_dot4(vi sum, vb codes, const int8_t bytes[4], int bias_log2)
{
    int32_t four;
    (void)bias_log2;
    memcpy(&four, bytes, sizeof four);
    int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(four));
    FOUR(vi, vdotq_s32(sum.q[i], vreinterpretq_s8_u8(codes.q[i]), all));
}

/* ---- For GGUF blocks, see lanes_avx512.h. ---- */

static inline vi vi_zero(void)
{
    FOUR(vi, vdupq_n_s32(0));
}

static inline vb vb_four(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    return (vb){{vld1q_u8(a), vld1q_u8(b), vld1q_u8(c), vld1q_u8(d)}};
}

static inline vb vb_two(const uint8_t *a, const uint8_t *b)
{
    return vb_four(a, a + 16, b, b + 16);
}

static inline void vb_deal(vb *first, vb *second, const uint8_t *p)
{
    *first = vb_four(p, p + 32, p + 64, p + 96);
    *second = vb_four(p + 16, p + 48, p + 80, p + 112);
}

static inline void vb_deal_pairs(vb *first, vb *second, vb even, vb odd)
{
    *first = (vb){{even.q[0], odd.q[0], even.q[2], odd.q[2]}};
    *second = (vb){{even.q[1], odd.q[1], even.q[3], odd.q[3]}};
}

static inline vb vb_field_halves(vb x, int first, int second, int bits, int to)
{
    uint8x16_t mask = vdupq_n_u8((uint8_t)(((1 << bits) - 1) << to));
    FOUR(vb, vandq_u8(vshlq_u8(x.q[i], vdupq_n_s8((int8_t)(to - (i < 2 ? first : second)))), mask));
}

static inline vb vb_with_bits(vb codes, int to, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t words[4] = {a, b, c, d};
    uint8x8_t bit = vcreate_u8(0x8040201008040201);
    uint8x16_t set = vdupq_n_u8((uint8_t)(1 << to));
    FOUR(vb, vorrq_u8(codes.q[i],
                      vandq_u8(set, vtstq_u8(vcombine_u8(vdup_n_u8((uint8_t)words[i]),
                                                         vdup_n_u8((uint8_t)(words[i] >> 8))),
                                             vcombine_u8(bit, bit)))));
}

static inline vb vb_signed(vb bytes)
{
    return bytes;
}

static inline vi lanes_dot(vi sum, vb codes, vb bytes, int bias_log2)
{
    (void)bias_log2;
    FOUR(vi, vdotq_s32(sum.q[i], vreinterpretq_s8_u8(codes.q[i]), vreinterpretq_s8_u8(bytes.q[i])));
}

static inline vi lanes_add_partial(const vi n[4])
{
    FOUR(vi, vpaddq_s32(vpaddq_s32(n[0].q[i], n[1].q[i]), vpaddq_s32(n[2].q[i], n[3].q[i])));
}

static inline vf lanes_spread(const float *p, int a, int b, int c, int d)
{
    return (vf){{vdupq_n_f32(p[a]), vdupq_n_f32(p[b]), vdupq_n_f32(p[c]), vdupq_n_f32(p[d])}};
}

static inline vi lanes_spread_start(const int32_t *p, int a, int b, int c, int d, int bias_log2)
{
    (void)p, (void)a, (void)b, (void)c, (void)d, (void)bias_log2;
    return vi_zero();
}

static inline vf lanes_half(const uint8_t *const row[4], int offset)
{
    uint16_t four[4];
    for (int r = 0; r < 4; r++)
        memcpy(&four[r], row[r] + offset, 2);
    float32x4_t x = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(four)));
    FOUR(vf, x);
}

static inline vf lanes_halves(const uint8_t *const row[4], int offset, int stride)
{
    uint16_t words[16];
    gather_words(words, row, offset, stride);
    return vf_load_half(words);
}

static inline vf lanes_e8m0(const uint8_t *const row[4], int stride)
{
    uint8_t bytes[16];
    gather_bytes(bytes, row, stride);
    return vf_load_e8m0(bytes);
}

static inline vi lanes_by_dword(const uint8_t *const row[4], int offset)
{
    int32_t words[4][4];
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 4; i++)
            memcpy(&words[i][r], row[r] + offset + 4 * i, 4);
    FOUR(vi, vld1q_s32(words[i]));
}

static inline vi vi_spread_lane(vi x, int lane)
{
    FOUR(vi, x.q[lane]);
}

static inline vi vi_shift_right_each(vi x, int a, int b, int c, int d)
{
    const int shift[4] = {-a, -b, -c, -d};
    FOUR(vi,
         vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(x.q[i]), vdupq_n_s32(shift[i]))));
}

static inline vi vi_sign_byte(vi x)
{
    FOUR(vi, vshrq_n_s32(vshlq_n_s32(x.q[i], 24), 24));
}

static inline vf vf_low_halves(vi x)
{
    FOUR(vf, vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(vreinterpretq_u32_s32(x.q[i])))));
}

/* Into the second-level cache. */
#define lanes_prefetch(p) __builtin_prefetch(p, 0, 2)

#endif
