/* block_super_avx512.c -- Q4_K, Q5_K and Q6_K from GGUF blocks: a step is one block of 256 columns. */
#include "kernels/formats/half.h"
#include "kernels/isa/block_avx512.h"
#include "kernels/isa/rows_avx512.h"

/* Dwords i of the sixteen bytes of four rows (one row a 128-bit lane) into lane i. */
INLINE __m512i by_dword(__m512i rows)
{
    return _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0), rows);
}

/* F16 in the low words of sixteen lanes. */
INLINE __m512 low_halves(__m512i lanes)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(lanes));
}

/* Factors and minima of groups 0 to 3 and 4 to 7, lane (slot', row). Chunks of Q4_K hold groups (0, 1) and
 * (2, 3), whence the order 0, 2, 1, 3 of slots. The sixteen bytes of a block's head become four dwords:
 * d and dmin; scale bytes 0 to 3; 4 to 7; 8 to 11: what one group needs lies in one byte of each. */
INLINE void scales_q4_k(__m512 factor[2], __m512 minimum[2], const uint8_t *const row[])
{
    __m512i head = by_dword(load_four(row[0], row[1], row[2], row[3]));
    __m512i byte = _mm512_set_epi32(24, 24, 24, 24, 8, 8, 8, 8, 16, 16, 16, 16, 0, 0, 0, 0);
    __m512i a = _mm512_srlv_epi32(_mm512_shuffle_i32x4(head, head, 0x55), byte);
    __m512i b = _mm512_srlv_epi32(_mm512_shuffle_i32x4(head, head, 0xaa), byte);
    __m512i c = _mm512_srlv_epi32(_mm512_shuffle_i32x4(head, head, 0xff), byte);
    __m512i six = _mm512_set1_epi32(63), four = _mm512_set1_epi32(15),
            top = _mm512_set1_epi32(0x30);
    __m512i both = _mm512_shuffle_i32x4(head, head, 0x00);
    __m512 d = low_halves(both), dmin = low_halves(_mm512_srli_epi32(both, 16));
    __m512 minus_dmin = _mm512_xor_ps(dmin, _mm512_set1_ps(-0.0f));
    __m512i scale =
        _mm512_or_si512(_mm512_and_si512(c, four), _mm512_and_si512(_mm512_srli_epi32(a, 2), top));
    __m512i least = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(c, 4), four),
                                    _mm512_and_si512(_mm512_srli_epi32(b, 2), top));
    factor[0] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_and_si512(a, six)));
    factor[1] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale));
    minimum[0] = _mm512_mul_ps(minus_dmin, _mm512_cvtepi32_ps(_mm512_and_si512(b, six)));
    minimum[1] = _mm512_mul_ps(minus_dmin, _mm512_cvtepi32_ps(least));
}

/* Codes of groups 4 half + (0, 2) in even[r], (1, 3) in odd[r]. */
INLINE void add_half(int tokens, __m512 sums[], const __m512i even[], const __m512i odd[],
                     __m512 factor, __m512 minimum, const struct activation *x, size_t col)
{
    size_t group = col / 32;
    UNROLL for (int t = 0; t < tokens; t++)
    {
        const int8_t *p = x[t].bytes + col;
        __m512i x_even = load_two(p, p + 64), x_odd = load_two(p + 32, p + 96), n[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            __m512i a = _mm512_dpbusd_epi32(_mm512_setzero_si512(), even[r], x_even);
            __m512i b = _mm512_dpbusd_epi32(_mm512_setzero_si512(), odd[r], x_odd);
            n[r] = _mm512_add_epi32(_mm512_shuffle_i64x2(a, b, 0x88),
                                    _mm512_shuffle_i64x2(a, b, 0xdd));
        }
        __m512 sum = _mm512_cvtepi32_ps(add_partial(n));
        __m512 scale = _mm512_mul_ps(factor, spread(x[t].scale + group, 0, 2, 1, 3));
        sums[t] = _mm512_fmadd_ps(sum, scale, sums[t]);
        sums[t] =
            _mm512_fmadd_ps(minimum, spread(x[t].weighted_sum32 + group, 0, 2, 1, 3), sums[t]);
    }
}

INLINE void step_q4_k(int tokens, __m512 sums[], const uint8_t *const row[],
                      const struct activation *x, size_t col)
{
    __m512 factor[2], minimum[2];
    __m512i mask = _mm512_set1_epi8(15);
    scales_q4_k(factor, minimum, row);
    UNROLL for (int half = 0; half < 2; half++)
    {
        __m512i even[ROWS_AT_ONCE], odd[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            __m512i both = _mm512_loadu_si512(row[r] + 16 + 64 * half);
            even[r] = _mm512_and_si512(both, mask);
            odd[r] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
        }
        add_half(tokens, sums, even, odd, factor[half], minimum[half], x, col + 128 * (size_t)half);
    }
}

/* As Q4_K, with bit g of 32 bytes above the four of group g. */
INLINE void step_q5_k(int tokens, __m512 sums[], const uint8_t *const row[],
                      const struct activation *x, size_t col)
{
    __m512 factor[2], minimum[2];
    __m512i mask = _mm512_set1_epi8(15), fifth = _mm512_set1_epi8(16);
    __m512i up = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    scales_q4_k(factor, minimum, row);
    UNROLL for (int half = 0; half < 2; half++)
    {
        __m512i even[ROWS_AT_ONCE], odd[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            __m512i both = _mm512_loadu_si512(row[r] + 48 + 64 * half);
            __m512i bits =
                _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(row[r] + 16)));
            bits = _mm512_srli_epi16(bits, (unsigned)(4 * half)); /* groups 0 .. 3 in bits 0 .. 3 */
            __m512i high = _mm512_sllv_epi16(bits, up);           /* bits 0, 2 to bit 4 */
            __m512i next = _mm512_srli_epi16(high, 1);            /* bits 1, 3 */
            even[r] = _mm512_or_si512(_mm512_and_si512(both, mask), _mm512_and_si512(high, fifth));
            odd[r] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(both, 4), mask),
                                     _mm512_and_si512(next, fifth));
        }
        add_half(tokens, sums, even, odd, factor[half], minimum[half], x, col + 128 * (size_t)half);
    }
}

/* Scales of the sixteen groups of Q6_K in four registers of lanes (slot, row). */
INLINE void scales_q6_k(__m512 factor[4], const uint8_t *const row[])
{
    __m512i head = by_dword(load_four(row[0] + 192, row[1] + 192, row[2] + 192, row[3] + 192));
    __m512i up = _mm512_set_epi32(0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24);
    __m128i halves = _mm_cvtsi32_si128(load_u16(row[0] + 208));
    halves = _mm_insert_epi16(halves, load_u16(row[1] + 208), 1);
    halves = _mm_insert_epi16(halves, load_u16(row[2] + 208), 2);
    halves = _mm_insert_epi16(halves, load_u16(row[3] + 208), 3);
    __m512 d = _mm512_broadcast_f32x4(_mm_cvtph_ps(halves));
    __m512i quarter[4] = {
        _mm512_shuffle_i32x4(head, head, 0x00), _mm512_shuffle_i32x4(head, head, 0x55),
        _mm512_shuffle_i32x4(head, head, 0xaa), _mm512_shuffle_i32x4(head, head, 0xff)};
    UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i scale = _mm512_srai_epi32(_mm512_sllv_epi32(quarter[i], up), 24);
        factor[i] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale));
    }
}

/* Codes of 64 columns from col on: four groups of sixteen, one a 128-bit lane. */
INLINE void add_quarter(int tokens, __m512 sums[], const __m512i codes[], __m512 factor,
                        const struct activation *x, size_t col)
{
    UNROLL for (int t = 0; t < tokens; t++)
    {
        __m512i bytes = _mm512_loadu_si512(x[t].bytes + col), n[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) n[r] =
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes[r], bytes);
        __m512i bias = _mm512_slli_epi32(spread_int(x[t].minus_sum16 + col / 16, 0, 1, 2, 3), 5);
        __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(add_partial(n), bias));
        __m512 scale = _mm512_mul_ps(factor, spread(x[t].scale + col / 32, 0, 0, 1, 1));
        sums[t] = _mm512_fmadd_ps(sum, scale, sums[t]);
    }
}

INLINE void step_q6_k(int tokens, __m512 sums[], const uint8_t *const row[],
                      const struct activation *x, size_t col)
{
    __m512 factor[4];
    __m512i mask = _mm512_set1_epi8(15), top = _mm512_set1_epi8(0x30);
    __m512i up = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    __m512i down = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    scales_q6_k(factor, row);
    UNROLL for (int half = 0; half < 2; half++)
    {
        __m512i first[ROWS_AT_ONCE], second[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            __m512i low = _mm512_loadu_si512(row[r] + 64 * half);
            __m512i high = _mm512_broadcast_i64x4(
                _mm256_loadu_si256((const __m256i *)(row[r] + 128 + 32 * half)));
            first[r] = _mm512_or_si512(_mm512_and_si512(low, mask),
                                       _mm512_and_si512(_mm512_sllv_epi16(high, up), top));
            second[r] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(low, 4), mask),
                                        _mm512_and_si512(_mm512_srlv_epi16(high, down), top));
        }
        add_quarter(tokens, sums, first, factor[2 * half], x, col + 128 * (size_t)half);
        add_quarter(tokens, sums, second, factor[2 * half + 1], x, col + 128 * (size_t)half + 64);
    }
}

ROWS_PRODUCT(q4_k, step_q4_k, 256, 144, {0, 2, 1, 3})
ROWS_PRODUCT(q5_k, step_q5_k, 256, 176, {0, 2, 1, 3})
ROWS_PRODUCT(q6_k, step_q6_k, 256, 210, {0, 1, 2, 3})
