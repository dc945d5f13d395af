/* rows_avx512.h -- what the two files of block_avx512.h share: four rows of a matrix at a time.
 *
 * A format gives a function that adds one stretch of columns (a step) of four rows for `tokens` tokens to
 * one register of sums a token, with lane 4 * slot' + row where slot' is a fixed order of the four slots.
 * Inline, because the loop over steps must hold the sums in registers. */
#ifndef KERNELS_ISA_ROWS_AVX512_H
#define KERNELS_ISA_ROWS_AVX512_H

#include "kernels/isa/isa_scalar.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

#define ROWS_AT_ONCE   4
#define TOKENS_AT_ONCE 4

/* Four rows are four streams that the hardware does not follow from row to row, so the next rows are asked for, in
 * the order of their addresses and far enough ahead that they come into the second-level cache. (Into the first
 * level a core has too few requests at a time: that reached 0.40 of the read rate where this reaches 0.80.)
 * A macro, because gcc drops calls of a function that does nothing but prefetch. */
#define AHEAD_BYTES 8192
#define PREFETCH(p) _mm_prefetch((const char *)(p), _MM_HINT_T1)

typedef void rows_step_fn(int tokens, __m512 sums[], const uint8_t *const row[ROWS_AT_ONCE],
                          const struct activation *x, size_t col);

struct rows_format {
    rows_step_fn *step;
    size_t step_cols, step_bytes; /* of one row */
    int slot[4];                  /* slot'[i]: which slot of isa.h lanes 4 i .. 4 i + 3 belong to */
};

/* Sixteen bytes of each of four places, one a 128-bit lane. */
INLINE __m512i load_four(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)b), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)c), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)d), 3);
}

INLINE __m512i load_two(const void *a, const void *b)
{
    __m512i x = _mm512_castsi256_si512(_mm256_loadu_si256(a));
    return _mm512_inserti64x4(x, _mm256_loadu_si256(b), 1);
}

/* n[r] holds four partial sums in each 128-bit lane; the result has the sum of row r in element r. */
INLINE __m512i add_partial(const __m512i n[ROWS_AT_ONCE])
{
    __m512i ab =
        _mm512_add_epi32(_mm512_unpacklo_epi32(n[0], n[1]), _mm512_unpackhi_epi32(n[0], n[1]));
    __m512i cd =
        _mm512_add_epi32(_mm512_unpacklo_epi32(n[2], n[3]), _mm512_unpackhi_epi32(n[2], n[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* Number `order[i]` of the four (or two) at p, in all elements of 128-bit lane i. */
INLINE __m512 spread(const float *p, int a, int b, int c, int d)
{
    __m512i index = _mm512_set_epi32(d, d, d, d, c, c, c, c, b, b, b, b, a, a, a, a);
    return _mm512_permutexvar_ps(index, _mm512_castps128_ps512(_mm_loadu_ps(p)));
}

INLINE __m512i spread_int(const int32_t *p, int a, int b, int c, int d)
{
    return _mm512_castps_si512(spread((const float *)(const void *)p, a, b, c, d));
}

/* Sums of four rows over all whole steps, then the rest by definition; `rows` results are stored. */
INLINE void rows_of_tokens(const struct rows_format f, int tokens, float *y, size_t y_stride,
                           const struct weights *w, const struct activation *x, size_t first_row,
                           size_t rows)
{
    size_t row_bytes = block_row_bytes(w->format, w->cols), col = 0;
    const uint8_t *row[ROWS_AT_ONCE];
    __m512 sums[TOKENS_AT_ONCE];
    for (size_t r = 0; r < ROWS_AT_ONCE; r++)
        row[r] = (const uint8_t *)w->data + (first_row + (r < rows ? r : rows - 1)) * row_bytes;
    UNROLL for (int t = 0; t < tokens; t++) sums[t] = _mm512_setzero_ps();
    const uint8_t *ahead = row[0] + ROWS_AT_ONCE * row_bytes + AHEAD_BYTES;
    for (; col + f.step_cols <= w->cols; col += f.step_cols) {
        if (tokens == 1)
            for (size_t i = 0; i < ROWS_AT_ONCE * f.step_bytes; i += 64)
                PREFETCH(ahead + i);
        f.step(tokens, sums, row, x, col);
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) row[r] += f.step_bytes;
        ahead += ROWS_AT_ONCE * f.step_bytes;
    }
    size_t group = w->format->group_weights;
    for (int t = 0; t < tokens; t++) {
        float lanes[4][ROWS_AT_ONCE];
        _mm512_storeu_ps(&lanes[0][0], sums[t]);
        for (size_t r = 0; r < rows; r++) {
            float slots[4];
            for (int i = 0; i < 4; i++)
                slots[f.slot[i]] = lanes[i][r];
            if (col < w->cols)
                scalar_row_groups(slots, w, first_row + r, &x[t], col / group, w->cols / group);
            y[(size_t)t * y_stride + first_row + r] = (slots[0] + slots[1]) + (slots[2] + slots[3]);
        }
    }
}

INLINE void rows_product(const struct rows_format f, float *y, size_t y_stride,
                         const struct weights *w, const struct activations *x, size_t row_begin,
                         size_t row_end)
{
    for (size_t t = 0; t < x->tokens;) {
        struct activation views[TOKENS_AT_ONCE];
        size_t n = x->tokens - t >= TOKENS_AT_ONCE ? TOKENS_AT_ONCE : 1;
        for (size_t i = 0; i < n; i++)
            views[i] = activation_view(x->quantised, t + i, w->cols);
        for (size_t r = row_begin; r < row_end; r += ROWS_AT_ONCE) {
            size_t rows = row_end - r < ROWS_AT_ONCE ? row_end - r : ROWS_AT_ONCE;
            if (n == TOKENS_AT_ONCE)
                rows_of_tokens(f, TOKENS_AT_ONCE, y + t * y_stride, y_stride, w, views, r, rows);
            else
                rows_of_tokens(f, 1, y + t * y_stride, y_stride, w, views, r, rows);
        }
        t += n;
    }
}

#define ROWS_PRODUCT(name, ...)                                                                    \
    void block_avx512_##name(float *y, size_t y_stride, const struct weights *w,                   \
                             const struct activations *x, size_t row_begin, size_t row_end)        \
    {                                                                                              \
        const struct rows_format f = {__VA_ARGS__};                                                \
        rows_product(f, y, y_stride, w, x, row_begin, row_end);                                    \
    }

#endif
