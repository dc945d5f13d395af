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
/* Lines of codes that lane_peak.c takes for two tokens. */
#define LANES_PEAK 6

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

/* 2^(e - 128), subnormal for e < 2: e8m0_to_half_scale. */
static inline vf half_e8m0(vi e)
{
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    __mmask16 is_small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_small, normal, small));
}

static inline vf vf_load_e8m0(const uint8_t *p)
{
    return half_e8m0(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static inline vi vi_zero(void)
{
    return _mm512_setzero_si512();
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

/* ---- For GGUF blocks: bytes and lanes of four rows, see lanes/block_rows.h. ---- */

/* Sixteen bytes of each of four places, one a 128-bit lane. */
static inline vb vb_four(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    vb x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)b), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)c), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)d), 3);
}

/* 32 bytes of each of two places. */
static inline vb vb_two(const uint8_t *a, const uint8_t *b)
{
    vb x = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)a));
    return _mm512_inserti64x4(x, _mm256_loadu_si256((const __m256i *)b), 1);
}

/* Of 128 bytes the 16-byte pieces 0, 2, 4, 6 into first, 1, 3, 5, 7 into second. */
static inline void vb_deal(vb *first, vb *second, const uint8_t *p)
{
    vb a = vb_load(p), b = vb_load(p + 64);
    *first = _mm512_permutex2var_epi64(a, _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0), b);
    *second = _mm512_permutex2var_epi64(a, _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2), b);
}

/* From even = (a0 a1 c0 c1), odd = (b0 b1 d0 d1) in 128-bit lanes to (a0 b0 c0 d0) and (a1 b1 c1 d1). */
static inline void vb_deal_pairs(vb *first, vb *second, vb even, vb odd)
{
    *first = _mm512_permutex2var_epi64(even, _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0), odd);
    *second = _mm512_permutex2var_epi64(even, _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2), odd);
}

/* vb_field with one shift for the first 32 bytes and one for the others. */
static inline vb vb_field_halves(vb x, int first, int second, int bits, int to)
{
    short down[2] = {(short)(first > to ? first - to : 0), (short)(second > to ? second - to : 0)};
    short up[2] = {(short)(first < to ? to - first : 0), (short)(second < to ? to - second : 0)};
    if (down[0] || down[1])
        x = _mm512_srlv_epi16(
            x, _mm512_inserti64x4(_mm512_set1_epi16(down[0]), _mm256_set1_epi16(down[1]), 1));
    if (up[0] || up[1])
        x = _mm512_sllv_epi16(
            x, _mm512_inserti64x4(_mm512_set1_epi16(up[0]), _mm256_set1_epi16(up[1]), 1));
    return _mm512_and_si512(x, _mm512_set1_epi8((char)(((1 << bits) - 1) << to)));
}

/* Sets bit `to` of byte i of 128-bit lane k where bit i of the k-th word is set. */
static inline vb vb_with_bits(vb codes, int to, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    __mmask64 set = a | b << 16 | c << 32 | d << 48;
    return _mm512_mask_add_epi8(codes, set, codes, _mm512_set1_epi8((char)(1 << to)));
}

/* Signed bytes, to what lanes_dot takes with a bias of 2^7. */
static inline vb vb_signed(vb bytes)
{
    return _mm512_xor_si512(bytes, _mm512_set1_epi8((char)0x80));
}

/* sum[lane] += codes[4 lane ..] . bytes[4 lane ..] */
static inline vi lanes_dot(vi sum, vb codes, vb bytes, int bias_log2)
{
    (void)bias_log2;
    return _mm512_dpbusd_epi32(sum, codes, bytes);
}

/* n[r] holds four partial sums in each 128-bit lane; the result has the sum of n[r] in element r. */
static inline vi lanes_add_partial(const vi n[4])
{
    vi ab = _mm512_add_epi32(_mm512_unpacklo_epi32(n[0], n[1]), _mm512_unpackhi_epi32(n[0], n[1]));
    vi cd = _mm512_add_epi32(_mm512_unpacklo_epi32(n[2], n[3]), _mm512_unpackhi_epi32(n[2], n[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* p[a] in all elements of 128-bit lane 0, p[b] in lane 1, p[c], p[d]; indices below 4. */
static inline vf lanes_spread(const float *p, int a, int b, int c, int d)
{
    __m512i index = _mm512_set_epi32(d, d, d, d, c, c, c, c, b, b, b, b, a, a, a, a);
    return _mm512_permutexvar_ps(index, _mm512_castps128_ps512(_mm_loadu_ps(p)));
}

/* The same of lanes_start. */
static inline vi lanes_spread_start(const int32_t *p, int a, int b, int c, int d, int bias_log2)
{
    __m512i index = _mm512_set_epi32(d, d, d, d, c, c, c, c, b, b, b, b, a, a, a, a);
    __m512i sums = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    return _mm512_slli_epi32(_mm512_permutexvar_epi32(index, sums), (unsigned)bias_log2);
}

/* The F16 at row[r] + offset, in all four lanes' element r. */
static inline vf lanes_half(const uint8_t *const row[4], int offset)
{
    uint16_t four[8] = {0};
    for (int r = 0; r < 4; r++)
        memcpy(&four[r], row[r] + offset, 2);
    return _mm512_broadcast_f32x4(_mm_cvtph_ps(_mm_loadu_si128((const __m128i *)four)));
}

/* The F16 at row[r] + offset + i * stride in element r of 128-bit lane i; stride even and at most 34. Reads
 * nothing behind four blocks of that size. */
static inline vf lanes_halves(const uint8_t *const row[4], int offset, int stride)
{
    short s = (short)(stride / 2), far = (short)(stride > 20 ? 0 : stride);
    short last = (short)(far + s);
    __m512i words = _mm512_setzero_si512();
    __m512i index = _mm512_castsi256_si512(
        _mm256_set_epi16(last, last, last, last, far, far, far, far, s, s, s, s, 0, 0, 0, 0));
    for (int r = 0; r < 4; r++) {
        const uint8_t *p = row[r] + offset, *q = p + 2 * stride;
        __m512i near = _mm512_loadu_si512(p);
        if (stride <= 20) {
            words = _mm512_mask_permutexvar_epi16(words, (__mmask32)(0x1111u << r), index, near);
            continue;
        }
        __m512i rest = stride < 32 ? _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)q))
                                   : _mm512_loadu_si512(q);
        words = _mm512_mask_permutexvar_epi16(words, (__mmask32)(0x0011u << r), index, near);
        words = _mm512_mask_permutexvar_epi16(words, (__mmask32)(0x1100u << r), index, rest);
    }
    return _mm512_cvtph_ps(_mm512_castsi512_si256(words));
}

/* The same of E8M0 bytes at row[r] + 17 i: byte i of 128-bit lane i. */
static inline vf lanes_e8m0(const uint8_t *const row[4], int stride)
{
    (void)stride;
    __m512i e = _mm512_setzero_si512();
    __m512i index = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    for (int r = 0; r < 4; r++)
        e = _mm512_mask_shuffle_epi8(e, UINT64_C(0x0001000100010001) << 4 * r,
                                     _mm512_loadu_si512(row[r]), index);
    return half_e8m0(e);
}

/* Dword i of the sixteen bytes at row[r] + offset in element r of 128-bit lane i. */
static inline vi lanes_by_dword(const uint8_t *const row[4], int offset)
{
    return _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0),
        vb_four(row[0] + offset, row[1] + offset, row[2] + offset, row[3] + offset));
}

static inline vi vi_spread_lane(vi x, int lane)
{
    return lane == 0   ? _mm512_shuffle_i32x4(x, x, 0x00)
           : lane == 1 ? _mm512_shuffle_i32x4(x, x, 0x55)
           : lane == 2 ? _mm512_shuffle_i32x4(x, x, 0xaa)
                       : _mm512_shuffle_i32x4(x, x, 0xff);
}

/* Elements of 128-bit lane 0 by a bits, of lane 1 by b, and so on. */
static inline vi vi_shift_right_each(vi x, int a, int b, int c, int d)
{
    return _mm512_srlv_epi32(x, _mm512_set_epi32(d, d, d, d, c, c, c, c, b, b, b, b, a, a, a, a));
}

/* The low byte as a signed number. */
static inline vi vi_sign_byte(vi x)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(x, 24), 24);
}

/* F16 in the low sixteen bits of each lane. */
static inline vf vf_low_halves(vi x)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
}

/* Into the second-level cache. A macro: gcc drops calls of a function that does nothing but prefetch. */
#define lanes_prefetch(p) _mm_prefetch((const char *)(p), _MM_HINT_T1)

#endif
