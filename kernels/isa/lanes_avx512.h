/* lanes_avx512.h -- sixteen lanes in one 512-bit register (F, BW, VL, DQ, VNNI).
 *
 * The interface that kernels/isa/lanes/ is written over; lanes_avx2.h and lanes_neon.h have the same
 * names. Inline functions in a header because each is one instruction or a few.
 *
 *   vf  16 floats      vi  16 int32      vb  64 bytes, four for each lane
 *
 * Codes of weights are what lanes_dot4 wants: here unsigned, 2^bias_log2 above the values, so that a
 * kernel starts from -2^bias_log2 * (sum of activations) and adds. bias_log2 is a constant everywhere;
 * 0 means no bias. */
#ifndef KERNELS_ISA_LANES_AVX512_H
#define KERNELS_ISA_LANES_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Tokens for which codes are decoded once. */
#define LANES_TOKENS 4

typedef __m512 vf;
typedef __m512i vi;
typedef __m512i vb;

static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}

static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}

/* The first n lanes, n < 16; the others are zero. */
static inline vf vf_load_part(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

static inline void vf_store_part(float *p, vf x, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}

static inline vf vf_load_half(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline vf vf_load_half_part(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p));
}

static inline vf vf_load_bfloat(const uint16_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline vf vf_load_bfloat_part(const uint16_t *p, size_t n)
{
    __m256i narrow = _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
}

static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c */
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_negate(vf x)
{
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

/* a > b ? x : y, lane by lane; false for NaN. */
static inline vf vf_if_greater(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}

static inline vf vf_from_int(vi x)
{
    return _mm512_cvtepi32_ps(x);
}

/* To nearest, ties to even. */
static inline vi vi_round(vf x)
{
    return _mm512_cvtps_epi32(x);
}

static inline vi vi_max(vi a, vi b)
{
    return _mm512_max_epi32(a, b);
}

static inline int32_t vi_largest(vi x)
{
    return _mm512_reduce_max_epi32(x);
}

/* The low byte of each lane. */
static inline void vi_store_bytes(int8_t *p, vi x)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(x));
}

static inline vi vi_bits(vf x)
{
    return _mm512_castps_si512(x);
}

static inline vf vf_bits(vi x)
{
    return _mm512_castsi512_ps(x);
}

static inline vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}

static inline vi vi_and(vi a, int32_t mask)
{
    return _mm512_and_si512(a, _mm512_set1_epi32(mask));
}

static inline vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}

static inline vi vi_add_set(vi a, int32_t b)
{
    return _mm512_add_epi32(a, _mm512_set1_epi32(b));
}

#define vi_shift_left(x, n)  _mm512_slli_epi32(x, n)
#define vi_shift_right(x, n) _mm512_srli_epi32(x, n)

/* half_scale of E8M0 bytes: 2^(e - 128), subnormal for e < 2. */
static inline vf vf_load_e8m0(const uint8_t *p)
{
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    __mmask16 is_small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_small, normal, small));
}

static inline vi vi_load_unsigned(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}

static inline vi vi_load_signed(const uint8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}

static inline vi vi_load_words(const uint8_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}

/* Sixteen lanes into one, in halves. */
static inline float vf_sum(vf x)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline float vf_largest(vf x)
{
    return _mm512_reduce_max_ps(x);
}

static inline vb vb_load(const uint8_t *line)
{
    return _mm512_loadu_si512(line);
}

static inline vb vb_table(const int8_t values[16], int bias_log2)
{
    __m128i table = _mm_loadu_si128((const __m128i *)values);
    return _mm512_broadcast_i32x4(_mm_add_epi8(table, _mm_set1_epi8((char)(1 << bias_log2))));
}

/* Bits shift .. shift + bits - 1 of each byte, moved to bit `to`; all constants. */
static inline vb vb_field(vb line, int shift, int bits, int to)
{
    vb moved = shift > to   ? _mm512_srli_epi16(line, (unsigned)(shift - to))
               : shift < to ? _mm512_slli_epi16(line, (unsigned)(to - shift))
                            : line;
    return bits == 8 ? line
                     : _mm512_and_si512(moved, _mm512_set1_epi8((char)(((1 << bits) - 1) << to)));
}

static inline vb vb_or(vb a, vb b)
{
    return _mm512_or_si512(a, b);
}

/* Codes to what lanes_dot4 takes. */
static inline vb vb_biased(vb codes, int bias_log2)
{
    (void)bias_log2;
    return codes;
}

static inline vb vb_lookup(vb table, vb codes)
{
    return _mm512_shuffle_epi8(table, codes);
}

static inline vi lanes_start(int32_t minus_sum, int bias_log2)
{
    return bias_log2 ? _mm512_slli_epi32(_mm512_set1_epi32(minus_sum), (unsigned)bias_log2)
                     : _mm512_setzero_si512();
}

/* sum += codes[lane][0..3] . bytes[0..3] */
static inline vi lanes_dot4(vi sum, vb codes, const int8_t bytes[4], int bias_log2)
{
    int32_t four;
    (void)bias_log2;
    memcpy(&four, bytes, sizeof four);
    return _mm512_dpbusd_epi32(sum, codes, _mm512_set1_epi32(four));
}

/* Into the second-level cache. A macro: gcc drops calls of a function that does nothing but prefetch. */
#define lanes_prefetch(p) _mm_prefetch((const char *)(p), _MM_HINT_T1)

#endif
