/* lanes_avx2.h -- sixteen lanes in two 256-bit registers (AVX2, FMA, F16C); the interface of lanes_avx512.h.
 *
 * There is no dot product of unsigned and signed bytes that does not saturate, but pairs of products fit
 * 16 bits if codes are at most 63, or at most 127 in magnitude: codes with a bias of 128 are therefore
 * made signed, and take the sign of the weight to the activation. Others stay unsigned above their bias. */
#ifndef KERNELS_ISA_LANES_AVX2_H
#define KERNELS_ISA_LANES_AVX2_H

#include "kernels/isa/lanes_gather.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Tokens for which codes are decoded once. */
#define LANES_TOKENS 4
/* Lines of codes that lane_peak.c takes for two tokens. */
#define LANES_PEAK 2

typedef struct {
    __m256 low, high;
} vf;
typedef struct {
    __m256i low, high;
} vi;
typedef vi vb;

#define VF(l, h)         ((vf){l, h})
#define VI(l, h)         ((vi){l, h})
#define SIGNED_BIAS_LOG2 7

static inline vf vf_set(float x)
{
    return VF(_mm256_set1_ps(x), _mm256_set1_ps(x));
}

static inline vf vf_zero(void)
{
    return VF(_mm256_setzero_ps(), _mm256_setzero_ps());
}

static inline vf vf_load(const float *p)
{
    return VF(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}

static inline void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
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
    return VF(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
              _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8))));
}

static inline vf vf_load_half_part(const uint16_t *p, size_t n)
{
    uint16_t all[16] = {0};
    memcpy(all, p, n * sizeof *p);
    return vf_load_half(all);
}

static inline vi vi_load_words(const uint8_t *p)
{
    return VI(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)),
              _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 16))));
}

#define vi_shift_left(x, n)  VI(_mm256_slli_epi32((x).low, n), _mm256_slli_epi32((x).high, n))
#define vi_shift_right(x, n) VI(_mm256_srli_epi32((x).low, n), _mm256_srli_epi32((x).high, n))

static inline vf vf_bits(vi x)
{
    return VF(_mm256_castsi256_ps(x.low), _mm256_castsi256_ps(x.high));
}

static inline vi vi_bits(vf x)
{
    return VI(_mm256_castps_si256(x.low), _mm256_castps_si256(x.high));
}

static inline vf vf_load_bfloat(const uint16_t *p)
{
    vi words = vi_load_words((const uint8_t *)p);
    return vf_bits(vi_shift_left(words, 16));
}

static inline vf vf_load_bfloat_part(const uint16_t *p, size_t n)
{
    uint16_t all[16] = {0};
    memcpy(all, p, n * sizeof *p);
    return vf_load_bfloat(all);
}

static inline vf vf_add(vf a, vf b)
{
    return VF(_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high));
}

static inline vf vf_sub(vf a, vf b)
{
    return VF(_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high));
}

static inline vf vf_mul(vf a, vf b)
{
    return VF(_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high));
}

static inline vf vf_div(vf a, vf b)
{
    return VF(_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high));
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return VF(_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high));
}

static inline vf vf_negate(vf x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return VF(_mm256_xor_ps(x.low, sign), _mm256_xor_ps(x.high, sign));
}

static inline vf vf_if_greater(vf a, vf b, vf x, vf y)
{
    return VF(_mm256_blendv_ps(y.low, x.low, _mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ)),
              _mm256_blendv_ps(y.high, x.high, _mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ)));
}

static inline vf vf_from_int(vi x)
{
    return VF(_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high));
}

static inline vi vi_round(vf x)
{
    return VI(_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high));
}

static inline vi vi_max(vi a, vi b)
{
    return VI(_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high));
}

static inline int32_t vi_largest(vi x)
{
    __m256i eight = _mm256_max_epi32(x.low, x.high);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

/* Values within -128 .. 127. */
static inline void vi_store_bytes(int8_t *p, vi x)
{
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.low, x.high), 0xd8);
    __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)p, bytes);
}

static inline vi vi_add(vi a, vi b)
{
    return VI(_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high));
}

static inline vi vi_and(vi a, int32_t mask)
{
    __m256i m = _mm256_set1_epi32(mask);
    return VI(_mm256_and_si256(a.low, m), _mm256_and_si256(a.high, m));
}

static inline vi vi_or(vi a, vi b)
{
    return VI(_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high));
}

static inline vi vi_add_set(vi a, int32_t b)
{
    return vi_add(a, VI(_mm256_set1_epi32(b), _mm256_set1_epi32(b)));
}

static inline vi vi_load_unsigned(const uint8_t *p)
{
    return VI(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)),
              _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))));
}

static inline vi vi_load_signed(const uint8_t *p)
{
    return VI(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)),
              _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))));
}

static inline __m256 half_e8m0(__m256i e)
{
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, small, is_small));
}

static inline vf vf_load_e8m0(const uint8_t *p)
{
    vi e = vi_load_unsigned(p);
    return VF(half_e8m0(e.low), half_e8m0(e.high));
}

static inline float vf_sum(vf x)
{
    __m256 eight = _mm256_add_ps(x.low, x.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline float vf_largest(vf x)
{
    __m256 eight = _mm256_max_ps(x.low, x.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static inline vb vb_load(const uint8_t *line)
{
    return VI(_mm256_loadu_si256((const __m256i *)line),
              _mm256_loadu_si256((const __m256i *)(line + 32)));
}

static inline int stored_bias(int bias_log2)
{
    return bias_log2 == SIGNED_BIAS_LOG2 ? 0 : 1 << bias_log2;
}

static inline vb vb_table(const int8_t values[16], int bias_log2)
{
    __m128i table = _mm_add_epi8(_mm_loadu_si128((const __m128i *)values),
                                 _mm_set1_epi8((char)stored_bias(bias_log2)));
    __m256i both = _mm256_broadcastsi128_si256(table);
    return VI(both, both);
}

static inline __m256i half_field(__m256i line, int shift, int bits, int to)
{
    __m256i moved = shift > to   ? _mm256_srli_epi16(line, shift - to)
                    : shift < to ? _mm256_slli_epi16(line, to - shift)
                                 : line;
    if (bits == 8)
        return line;
    return _mm256_and_si256(moved, _mm256_set1_epi8((char)(((1 << bits) - 1) << to)));
}

static inline vb vb_field(vb line, int shift, int bits, int to)
{
    return VI(half_field(line.low, shift, bits, to), half_field(line.high, shift, bits, to));
}

static inline vb vb_or(vb a, vb b)
{
    return vi_or(a, b);
}

static inline vb vb_biased(vb codes, int bias_log2)
{
    __m256i flip = _mm256_set1_epi8((char)0x80);
    if (bias_log2 != SIGNED_BIAS_LOG2)
        return codes;
    return VI(_mm256_xor_si256(codes.low, flip), _mm256_xor_si256(codes.high, flip));
}

static inline vb vb_lookup(vb table, vb codes)
{
    return VI(_mm256_shuffle_epi8(table.low, codes.low),
              _mm256_shuffle_epi8(table.high, codes.high));
}

static inline vi lanes_start(int32_t minus_sum, int bias_log2)
{
    if (bias_log2 == 0 || bias_log2 == SIGNED_BIAS_LOG2)
        return VI(_mm256_setzero_si256(), _mm256_setzero_si256());
    __m256i start = _mm256_slli_epi32(_mm256_set1_epi32(minus_sum), bias_log2);
    return VI(start, start);
}

static inline __m256i half_dot4(__m256i sum, __m256i codes, __m256i bytes, int bias_log2)
{
    __m256i pairs =
        bias_log2 == SIGNED_BIAS_LOG2
            ? _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(bytes, codes))
            : _mm256_maddubs_epi16(codes, bytes);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

static inline vi lanes_dot4(vi sum, vb codes, const int8_t bytes[4], int bias_log2)
{
    int32_t four;
    memcpy(&four, bytes, sizeof four);
    __m256i all = _mm256_set1_epi32(four);
    return VI(half_dot4(sum.low, codes.low, all, bias_log2),
              half_dot4(sum.high, codes.high, all, bias_log2));
}

/* ---- For GGUF blocks, see lanes_avx512.h. ---- */

static inline vi vi_zero(void)
{
    return VI(_mm256_setzero_si256(), _mm256_setzero_si256());
}

static inline __m256i two_of_16(const uint8_t *a, const uint8_t *b)
{
    __m256i x = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a));
    return _mm256_inserti128_si256(x, _mm_loadu_si128((const __m128i *)b), 1);
}

static inline vb vb_four(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    return VI(two_of_16(a, b), two_of_16(c, d));
}

static inline vb vb_two(const uint8_t *a, const uint8_t *b)
{
    return VI(_mm256_loadu_si256((const __m256i *)a), _mm256_loadu_si256((const __m256i *)b));
}

static inline void vb_deal(vb *first, vb *second, const uint8_t *p)
{
    vb a = vb_load(p), b = vb_load(p + 64);
    *first = VI(_mm256_permute2x128_si256(a.low, a.high, 0x20),
                _mm256_permute2x128_si256(b.low, b.high, 0x20));
    *second = VI(_mm256_permute2x128_si256(a.low, a.high, 0x31),
                 _mm256_permute2x128_si256(b.low, b.high, 0x31));
}

static inline void vb_deal_pairs(vb *first, vb *second, vb even, vb odd)
{
    *first = VI(_mm256_permute2x128_si256(even.low, odd.low, 0x20),
                _mm256_permute2x128_si256(even.high, odd.high, 0x20));
    *second = VI(_mm256_permute2x128_si256(even.low, odd.low, 0x31),
                 _mm256_permute2x128_si256(even.high, odd.high, 0x31));
}

static inline vb vb_field_halves(vb x, int first, int second, int bits, int to)
{
    return VI(half_field(x.low, first, bits, to), half_field(x.high, second, bits, to));
}

static inline __m256i half_with_bits(__m256i codes, int to, uint64_t a, uint64_t b)
{
    __m256i words = _mm256_setr_m128i(_mm_set1_epi16((short)a), _mm_set1_epi16((short)b));
    __m256i byte = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i index = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0101010101010101, 0));
    __m256i set =
        _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(words, index), byte), byte);
    return _mm256_or_si256(codes, _mm256_and_si256(set, _mm256_set1_epi8((char)(1 << to))));
}

static inline vb vb_with_bits(vb codes, int to, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return VI(half_with_bits(codes.low, to, a, b), half_with_bits(codes.high, to, c, d));
}

static inline vb vb_signed(vb bytes)
{
    return bytes;
}

static inline vi lanes_dot(vi sum, vb codes, vb bytes, int bias_log2)
{
    return VI(half_dot4(sum.low, codes.low, bytes.low, bias_log2),
              half_dot4(sum.high, codes.high, bytes.high, bias_log2));
}

static inline vi lanes_add_partial(const vi n[4])
{
    __m256i ab_low = _mm256_hadd_epi32(n[0].low, n[1].low);
    __m256i ab_high = _mm256_hadd_epi32(n[0].high, n[1].high);
    return VI(_mm256_hadd_epi32(ab_low, _mm256_hadd_epi32(n[2].low, n[3].low)),
              _mm256_hadd_epi32(ab_high, _mm256_hadd_epi32(n[2].high, n[3].high)));
}

static inline vf lanes_spread(const float *p, int a, int b, int c, int d)
{
    return VF(_mm256_setr_m128(_mm_set1_ps(p[a]), _mm_set1_ps(p[b])),
              _mm256_setr_m128(_mm_set1_ps(p[c]), _mm_set1_ps(p[d])));
}

static inline vi lanes_spread_start(const int32_t *p, int a, int b, int c, int d, int bias_log2)
{
    if (bias_log2 == SIGNED_BIAS_LOG2)
        return vi_zero();
    vi sums = VI(_mm256_setr_m128i(_mm_set1_epi32(p[a]), _mm_set1_epi32(p[b])),
                 _mm256_setr_m128i(_mm_set1_epi32(p[c]), _mm_set1_epi32(p[d])));
    return vi_shift_left(sums, bias_log2);
}

static inline vf lanes_half(const uint8_t *const row[4], int offset)
{
    uint16_t four[8] = {0};
    for (int r = 0; r < 4; r++)
        memcpy(&four[r], row[r] + offset, 2);
    __m128 x = _mm_cvtph_ps(_mm_loadu_si128((const __m128i *)four));
    return VF(_mm256_setr_m128(x, x), _mm256_setr_m128(x, x));
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
    __m128i r[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm_loadu_si128((const __m128i *)(row[i] + offset));
    __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpacklo_epi32(r[2], r[3]);
    __m128i c = _mm_unpackhi_epi32(r[0], r[1]), d = _mm_unpackhi_epi32(r[2], r[3]);
    return VI(_mm256_setr_m128i(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)),
              _mm256_setr_m128i(_mm_unpacklo_epi64(c, d), _mm_unpackhi_epi64(c, d)));
}

static inline vi vi_spread_lane(vi x, int lane)
{
    __m256i half = lane < 2 ? x.low : x.high;
    half = lane % 2 ? _mm256_permute2x128_si256(half, half, 0x11)
                    : _mm256_permute2x128_si256(half, half, 0x00);
    return VI(half, half);
}

static inline vi vi_shift_right_each(vi x, int a, int b, int c, int d)
{
    return VI(_mm256_srlv_epi32(x.low, _mm256_setr_epi32(a, a, a, a, b, b, b, b)),
              _mm256_srlv_epi32(x.high, _mm256_setr_epi32(c, c, c, c, d, d, d, d)));
}

static inline vi vi_sign_byte(vi x)
{
    return VI(_mm256_srai_epi32(_mm256_slli_epi32(x.low, 24), 24),
              _mm256_srai_epi32(_mm256_slli_epi32(x.high, 24), 24));
}

static inline vf vf_low_halves(vi x)
{
    vi words = vi_and(x, 0xffff);
    __m256i all = _mm256_permute4x64_epi64(_mm256_packus_epi32(words.low, words.high), 0xd8);
    return VF(_mm256_cvtph_ps(_mm256_castsi256_si128(all)),
              _mm256_cvtph_ps(_mm256_extracti128_si256(all, 1)));
}

#define lanes_prefetch(p) _mm_prefetch((const char *)(p), _MM_HINT_T1)

#endif
