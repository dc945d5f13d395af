/* block_rows.h -- products straight from GGUF blocks: four rows of a matrix at a time.
 *
 * The packed layout has a row a lane; blocks have a row in one piece. So four rows and four groups of
 * each are taken together: dot-product instructions leave four partial sums a group and row, a few
 * instructions add these for all sixteen at once, and the result has lane 4 * i + row, where i counts the
 * four groups. Each of these goes to its own of the four sums of isa.h, in the order `slot`. Codes are
 * taken apart once for up to four tokens.
 *
 * A format gives a function for one stretch of columns, a step. What remains at the end of a row is
 * copied and filled with blocks of zeros, whose factors are zero. Inline, because the loop over steps
 * must hold the sums in registers. */
#ifndef KERNELS_ISA_LANES_BLOCK_ROWS_H
#define KERNELS_ISA_LANES_BLOCK_ROWS_H

#include "kernels/isa/lanes/lanes.h"
#include LANES_HEADER

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

#define ROWS_AT_ONCE   4
#define TOKENS_AT_ONCE (2 * LANES_TOKENS)

/* Four rows are four streams that the hardware does not follow from row to row, so the next rows are
 * asked for in the order of their addresses, and far enough ahead that they come into the second-level
 * cache. (Into the first level a core has too few requests at a time: that reached 0.40 of the read rate
 * where this reaches 0.80.) */
#define AHEAD_BYTES 8192

#define STEP_BYTES_MAX 210

typedef void rows_step_fn(int tokens, vf sums[], const uint8_t *const row[ROWS_AT_ONCE],
                          const struct activation *x, size_t col);

struct rows_format {
    rows_step_fn *step;
    size_t step_cols, step_bytes; /* of one row */
    int slot[4];                  /* of lanes 4 i .. 4 i + 3 */
};

INLINE void last_step(const struct rows_format f, int tokens, vf sums[],
                      const uint8_t *const row[ROWS_AT_ONCE], size_t bytes,
                      const struct activation *x, size_t col)
{
    uint8_t filled[ROWS_AT_ONCE][STEP_BYTES_MAX + 64] = {{0}}; /* kernels load whole registers */
    const uint8_t *place[ROWS_AT_ONCE];
    for (int r = 0; r < ROWS_AT_ONCE; r++) {
        memcpy(filled[r], row[r], bytes);
        place[r] = filled[r];
    }
    f.step(tokens, sums, place, x, col);
}

INLINE void store_rows(const struct rows_format f, float *y, vf sums, size_t rows)
{
    float lanes[4][ROWS_AT_ONCE];
    vf_store(&lanes[0][0], sums);
    for (size_t r = 0; r < rows; r++) {
        float slots[4];
        for (int i = 0; i < 4; i++)
            slots[f.slot[i]] = lanes[i][r];
        y[r] = (slots[0] + slots[1]) + (slots[2] + slots[3]);
    }
}

INLINE void rows_of_tokens(const struct rows_format f, int tokens, float *y, size_t y_stride,
                           const struct weights *w, const void *quantised, size_t token,
                           size_t first_row, size_t rows)
{
    size_t row_bytes = block_row_bytes(w->format, w->cols), col = 0;
    const uint8_t *row[ROWS_AT_ONCE];
    struct activation x[TOKENS_AT_ONCE];
    vf sums[TOKENS_AT_ONCE];
    for (size_t r = 0; r < ROWS_AT_ONCE; r++)
        row[r] = (const uint8_t *)w->data + (first_row + (r < rows ? r : rows - 1)) * row_bytes;
    UNROLL for (int t = 0; t < tokens; t++)
    {
        x[t] = activation_view(quantised, token + (size_t)t, w->cols);
        sums[t] = vf_zero();
    }
    const uint8_t *ahead = row[0] + ROWS_AT_ONCE * row_bytes + AHEAD_BYTES;
    for (; col + f.step_cols <= w->cols; col += f.step_cols) {
        for (size_t i = 0; i < ROWS_AT_ONCE * f.step_bytes; i += 64)
            lanes_prefetch(ahead + i);
        f.step(tokens, sums, row, x, col);
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) row[r] += f.step_bytes;
        ahead += ROWS_AT_ONCE * f.step_bytes;
    }
    if (col < w->cols)
        last_step(f, tokens, sums, row, block_row_bytes(w->format, w->cols - col), x, col);
    for (int t = 0; t < tokens; t++)
        store_rows(f, y + (token + (size_t)t) * y_stride + first_row, sums[t], rows);
}

/* Four rows come from memory once for all tokens. */
INLINE void rows_product(const struct rows_format f, float *y, size_t y_stride,
                         const struct weights *w, const struct activations *x, size_t row_begin,
                         size_t row_end)
{
    for (size_t r = row_begin; r < row_end; r += ROWS_AT_ONCE) {
        size_t rows = row_end - r < ROWS_AT_ONCE ? row_end - r : ROWS_AT_ONCE, t = 0;
        for (; t + TOKENS_AT_ONCE <= x->tokens; t += TOKENS_AT_ONCE)
            rows_of_tokens(f, TOKENS_AT_ONCE, y, y_stride, w, x->quantised, t, r, rows);
        for (; t < x->tokens; t++)
            rows_of_tokens(f, 1, y, y_stride, w, x->quantised, t, r, rows);
    }
}

#define ROWS_PRODUCT(name, ...)                                                                    \
    void LANES_NAME(block_##name)(float *y, size_t y_stride, const struct weights *w,              \
                                  const struct activations *x, size_t row_begin, size_t row_end)   \
    {                                                                                              \
        const struct rows_format f = {__VA_ARGS__};                                                \
        rows_product(f, y, y_stride, w, x, row_begin, row_end);                                    \
    }

#endif
