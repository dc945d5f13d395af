/* block_small_avx512.c -- Q4_0, IQ4_NL, MXFP4 and Q8_0 from GGUF blocks: a step is four blocks. */
#include "kernels/formats/block_code.h"
#include "kernels/isa/block_avx512.h"
#include "kernels/isa/rows_avx512.h"

/* sums += codes . activations for four rows and four groups, codes being 2^bias above the values. Of
 * each row low[r] holds the first and high[r] the second sixteen columns of the groups. */
INLINE void add_step(int tokens, __m512 sums[], const __m512i low[], const __m512i high[],
                     __m512 factor, int bias_log2, const struct activation *x, size_t col)
{
    __m512i first = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0);
    __m512i second = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
    size_t group = col / 32;
    UNROLL for (int t = 0; t < tokens; t++)
    {
        __m512i a = _mm512_loadu_si512(x[t].bytes + col);
        __m512i b = _mm512_loadu_si512(x[t].bytes + col + 64);
        __m512i x_low = _mm512_permutex2var_epi64(a, first, b);
        __m512i x_high = _mm512_permutex2var_epi64(a, second, b);
        __m512i n[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            n[r] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low[r], x_low);
            n[r] = _mm512_dpbusd_epi32(n[r], high[r], x_high);
        }
        __m512i bias = spread_int(x[t].minus_sum32 + group, 0, 1, 2, 3);
        __m512i sum =
            _mm512_add_epi32(add_partial(n), _mm512_slli_epi32(bias, (unsigned)bias_log2));
        __m512 scale = _mm512_mul_ps(factor, spread(x[t].scale + group, 0, 1, 2, 3));
        sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, sums[t]);
    }
}

/* F16 factors that stand at byte 0 of blocks of 18 bytes. */
INLINE __m512 factors_half(const uint8_t *const row[])
{
    __m512i index = _mm512_castsi256_si512(
        _mm256_set_epi16(27, 27, 27, 27, 18, 18, 18, 18, 9, 9, 9, 9, 0, 0, 0, 0));
    __m512i words = _mm512_setzero_si512();
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) words = _mm512_mask_permutexvar_epi16(
        words, (__mmask32)(0x1111u << r), index, _mm512_loadu_si512(row[r]));
    return _mm512_cvtph_ps(_mm512_castsi512_si256(words));
}

INLINE void load_nibbles(__m512i *low, __m512i *high, const uint8_t *row, size_t offset,
                         size_t block)
{
    __m512i mask = _mm512_set1_epi8(15);
    const uint8_t *p = row + offset;
    __m512i both = load_four(p, p + block, p + 2 * block, p + 3 * block);
    *low = _mm512_and_si512(both, mask);
    *high = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
}

INLINE void step_q4_0(int tokens, __m512 sums[], const uint8_t *const row[],
                      const struct activation *x, size_t col)
{
    __m512i low[ROWS_AT_ONCE], high[ROWS_AT_ONCE];
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) load_nibbles(&low[r], &high[r], row[r], 2, 18);
    add_step(tokens, sums, low, high, factors_half(row), 3, x, col);
}

INLINE __m512i table_of(const int8_t values[16], int bias_log2)
{
    __m128i table = _mm_loadu_si128((const __m128i *)values);
    return _mm512_broadcast_i32x4(_mm_add_epi8(table, _mm_set1_epi8((char)(1 << bias_log2))));
}

INLINE void look_up(__m512i low[], __m512i high[], __m512i table)
{
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
    {
        low[r] = _mm512_shuffle_epi8(table, low[r]);
        high[r] = _mm512_shuffle_epi8(table, high[r]);
    }
}

INLINE void step_iq4_nl(int tokens, __m512 sums[], const uint8_t *const row[],
                        const struct activation *x, size_t col)
{
    __m512i low[ROWS_AT_ONCE], high[ROWS_AT_ONCE];
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) load_nibbles(&low[r], &high[r], row[r], 2, 18);
    look_up(low, high, table_of(values_iq4, 7));
    add_step(tokens, sums, low, high, factors_half(row), 7, x, col);
}

/* E8M0 bytes at 0, 17, 34, 51 of a row: byte i of 128-bit lane i. */
INLINE __m512 factors_e8m0(const uint8_t *const row[])
{
    __m512i e = _mm512_setzero_si512();
    __m512i index = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) e = _mm512_mask_shuffle_epi8(
        e, UINT64_C(0x0001000100010001) << 4 * r, _mm512_loadu_si512(row[r]), index);
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    __mmask16 is_small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_small, normal, small));
}

INLINE void step_mxfp4(int tokens, __m512 sums[], const uint8_t *const row[],
                       const struct activation *x, size_t col)
{
    __m512i low[ROWS_AT_ONCE], high[ROWS_AT_ONCE];
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) load_nibbles(&low[r], &high[r], row[r], 1, 17);
    look_up(low, high, table_of(values_mxfp4, 4));
    add_step(tokens, sums, low, high, factors_e8m0(row), 4, x, col);
}

/* F16 factors at bytes 0 and 34 of each half of a step. */
INLINE __m512 factors_q8_0(const uint8_t *const row[])
{
    __m512i index = _mm512_castsi256_si512(
        _mm256_set_epi16(17, 17, 17, 17, 0, 0, 0, 0, 17, 17, 17, 17, 0, 0, 0, 0));
    __m512i words = _mm512_setzero_si512();
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
    {
        words = _mm512_mask_permutexvar_epi16(words, (__mmask32)(0x0011u << r), index,
                                              _mm512_loadu_si512(row[r]));
        words = _mm512_mask_permutexvar_epi16(words, (__mmask32)(0x1100u << r), index,
                                              _mm512_loadu_si512(row[r] + 68));
    }
    return _mm512_cvtph_ps(_mm512_castsi512_si256(words));
}

INLINE void step_q8_0(int tokens, __m512 sums[], const uint8_t *const row[],
                      const struct activation *x, size_t col)
{
    __m512i low[ROWS_AT_ONCE], high[ROWS_AT_ONCE], flip = _mm512_set1_epi8((char)0x80);
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
    {
        const uint8_t *p = row[r] + 2;
        low[r] = _mm512_xor_si512(load_four(p, p + 34, p + 68, p + 102), flip);
        p += 16;
        high[r] = _mm512_xor_si512(load_four(p, p + 34, p + 68, p + 102), flip);
    }
    add_step(tokens, sums, low, high, factors_q8_0(row), 7, x, col);
}

ROWS_PRODUCT(q4_0, step_q4_0, 128, 4 * 18, {0, 1, 2, 3})
ROWS_PRODUCT(iq4_nl, step_iq4_nl, 128, 4 * 18, {0, 1, 2, 3})
ROWS_PRODUCT(mxfp4, step_mxfp4, 128, 4 * 17, {0, 1, 2, 3})
ROWS_PRODUCT(q8_0, step_q8_0, 128, 4 * 34, {0, 1, 2, 3})
