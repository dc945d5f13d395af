/* float_product.c -- products with F32 activations: F32, F16 and BF16 weights, which are never rounded
 * further, and quantised weights when 8-bit activations are not wanted.
 *
 * Sixteen columns a step. Four rows share the activations they load, and four tokens the weights; with
 * one token four rows are also four streams from memory, each of which is asked for ahead. */
#include "kernels/formats/packed.h"
#include "kernels/isa/isa_scalar.h"
#include "kernels/isa/lanes/lanes.h"
#include LANES_HEADER

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 4")

#define ROWS_AT_ONCE   PACKED_FLOAT_ROWS
#define TOKENS_AT_ONCE 4
/* Rows of a file are four streams: the next four are asked for in the order of their addresses. */
#define AHEAD_BYTES 8192

/* Where the rows of a matrix lie: column c of row r of four at data + r * row_step + c * size +
 * (c * size / 64) * line_step. */
struct rows {
    const uint8_t *data;
    size_t row_step, line_step;
};

INLINE size_t weight_bytes(enum format_id id)
{
    return id == FORMAT_F32 ? 4 : 2;
}

INLINE const uint8_t *weight_place(enum format_id id, const struct rows *rows, int row, size_t col)
{
    size_t offset = col * weight_bytes(id);
    return rows->data + (size_t)row * rows->row_step + offset +
           offset / PACKED_LINE_BYTES * rows->line_step;
}

INLINE vf load_weights(enum format_id id, const void *p)
{
    return id == FORMAT_F32 ? vf_load(p) : id == FORMAT_F16 ? vf_load_half(p) : vf_load_bfloat(p);
}

INLINE vf load_weights_part(enum format_id id, const void *p, size_t n)
{
    return id == FORMAT_F32   ? vf_load_part(p, n)
           : id == FORMAT_F16 ? vf_load_half_part(p, n)
                              : vf_load_bfloat_part(p, n);
}

/* rows x tokens sums over all columns. */
INLINE void block_of_sums(enum format_id id, int rows, int tokens, float *y, size_t y_stride,
                          const struct rows *place, size_t cols, const float *x, size_t x_stride)
{
    vf sums[ROWS_AT_ONCE][TOKENS_AT_ONCE];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int t = 0; t < tokens; t++) sums[r][t] =
        vf_zero();
    size_t col = 0;
    const uint8_t *ahead = place->data + ROWS_AT_ONCE * place->row_step + AHEAD_BYTES;
    for (; col + 16 <= cols; col += 16) {
        vf values[TOKENS_AT_ONCE];
        if (tokens == 1 && place->line_step == 0)
            for (size_t i = 0; i < (size_t)rows * weight_bytes(id) * 16; i += 64)
                lanes_prefetch(ahead + (size_t)rows * weight_bytes(id) * col + i);
        UNROLL for (int t = 0; t < tokens; t++) values[t] = vf_load(x + (size_t)t * x_stride + col);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vf weights = load_weights(id, weight_place(id, place, r, col));
            UNROLL for (int t = 0; t < tokens; t++) sums[r][t] =
                vf_fma(weights, values[t], sums[r][t]);
        }
    }
    if (col < cols)
        UNROLL for (int r = 0; r < rows; r++)
        {
            vf weights = load_weights_part(id, weight_place(id, place, r, col), cols - col);
            UNROLL for (int t = 0; t < tokens; t++) sums[r][t] = vf_fma(
                weights, vf_load_part(x + (size_t)t * x_stride + col, cols - col), sums[r][t]);
        }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int t = 0; t < tokens; t++)
        y[(size_t)t * y_stride + (size_t)r] = vf_sum(sums[r][t]);
}

static struct rows rows_place(const struct weights *w, size_t row)
{
    const uint8_t *data = w->data;
    size_t row_bytes = block_row_bytes(w->format, w->cols);
    if (w->layout == LAYOUT_BLOCKS)
        return (struct rows){data + row * row_bytes, row_bytes, 0};
    return (struct rows){data + row / PACKED_FLOAT_ROWS * packed_float_bytes(w->format, w->cols) +
                             row % PACKED_FLOAT_ROWS * PACKED_LINE_BYTES,
                         PACKED_LINE_BYTES, (PACKED_FLOAT_ROWS - 1) * PACKED_LINE_BYTES};
}

INLINE void rows_of_format(enum format_id id, float *y, size_t y_stride, const struct weights *w,
                           const struct activations *x, size_t row_begin, size_t row_end)
{
    for (size_t r = row_begin; r < row_end;) {
        struct rows place = rows_place(w, r);
        bool several = row_end - r >= ROWS_AT_ONCE;
        for (size_t t = 0; t < x->tokens;) {
            const float *values = x->values + t * x->stride;
            float *out = y + t * y_stride + r;
            bool batch = x->tokens - t >= TOKENS_AT_ONCE;
#define SUMS(rows, tokens)                                                                         \
    block_of_sums(id, rows, tokens, out, y_stride, &place, w->cols, values, x->stride)
            if (several && batch)
                SUMS(ROWS_AT_ONCE, TOKENS_AT_ONCE);
            else if (several)
                SUMS(ROWS_AT_ONCE, 1);
            else if (batch)
                SUMS(1, TOKENS_AT_ONCE);
            else
                SUMS(1, 1);
#undef SUMS
            t += batch ? TOKENS_AT_ONCE : 1;
        }
        r += several ? ROWS_AT_ONCE : 1;
    }
}

static void product_f32(float *y, size_t y_stride, const struct weights *w,
                        const struct activations *x, size_t row_begin, size_t row_end)
{
    rows_of_format(FORMAT_F32, y, y_stride, w, x, row_begin, row_end);
}

static void product_f16(float *y, size_t y_stride, const struct weights *w,
                        const struct activations *x, size_t row_begin, size_t row_end)
{
    rows_of_format(FORMAT_F16, y, y_stride, w, x, row_begin, row_end);
}

static void product_bf16(float *y, size_t y_stride, const struct weights *w,
                         const struct activations *x, size_t row_begin, size_t row_end)
{
    rows_of_format(FORMAT_BF16, y, y_stride, w, x, row_begin, row_end);
}

/* Quantised weights: a row is dequantised piece by piece, each piece used for several tokens. */
static void product_dequantised(float *y, size_t y_stride, const struct weights *w,
                                const struct activations *x, size_t row_begin, size_t row_end)
{
    enum { batch = 8 };
    float weights[SCALAR_CHUNK_COLS];
    for (size_t r = row_begin; r < row_end; r++)
        for (size_t first = 0; first < x->tokens; first += batch) {
            size_t tokens = x->tokens - first < batch ? x->tokens - first : batch;
            vf sums[batch];
            for (size_t t = 0; t < tokens; t++)
                sums[t] = vf_zero();
            for (size_t col = 0; col < w->cols; col += SCALAR_CHUNK_COLS) {
                size_t left = w->cols - col,
                       n = left < SCALAR_CHUNK_COLS ? left : SCALAR_CHUNK_COLS;
                scalar_row_chunk(weights, w, r, col, n);
                for (size_t t = 0; t < tokens; t++) {
                    const float *values = x->values + (first + t) * x->stride + col;
                    for (size_t i = 0; i < n; i += 16) /* blocks have 32 or 256 columns */
                        sums[t] = vf_fma(vf_load(weights + i), vf_load(values + i), sums[t]);
                }
            }
            for (size_t t = 0; t < tokens; t++)
                y[(first + t) * y_stride + r] = vf_sum(sums[t]);
        }
}

void LANES_NAME(float_product)(float *y, size_t y_stride, const struct weights *w,
                               const struct activations *x, size_t row_begin, size_t row_end)
{
    isa_product_fn *fn = w->format->id == FORMAT_F32    ? product_f32
                         : w->format->id == FORMAT_F16  ? product_f16
                         : w->format->id == FORMAT_BF16 ? product_bf16
                                                        : product_dequantised;
    fn(y, y_stride, w, x, row_begin, row_end);
}
