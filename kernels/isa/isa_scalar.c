/* isa_scalar.c -- products by definition, and the scalar table. Written to be read: a row is taken apart
 * block by block, whatever its format and layout. */
#include "kernels/isa/isa_scalar.h"

#include "kernels/formats/packed.h"

#include <assert.h>
#include <math.h>

static void split_block(const struct weights *w, size_t row, size_t block, uint8_t *codes,
                        uint8_t *scales)
{
    const struct block_format *f = w->format;
    if (w->layout == LAYOUT_BLOCKS) {
        const uint8_t *bytes = (const uint8_t *)w->data + row * block_row_bytes(f, w->cols);
        f->split(codes, scales, bytes + block * f->block_bytes);
    } else {
        const uint8_t *tile =
            (const uint8_t *)w->data + row / PACKED_TILE_ROWS * packed_tile_bytes(f, w->cols);
        packed_split(f, codes, scales, tile, row % PACKED_TILE_ROWS, block, w->cols);
    }
}

static int32_t group_dot(const struct block_format *f, const uint8_t *codes, const int8_t *bytes)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < f->group_weights; i++)
        sum += block_value(f, codes[i]) * bytes[i];
    return sum;
}

void scalar_row_groups(float sums[4], const struct weights *w, size_t row,
                       const struct activation *x, size_t group_begin, size_t group_end)
{
    const struct block_format *f = w->format;
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    float factor[BLOCK_GROUPS_MAX], minimum[BLOCK_GROUPS_MAX];
    size_t groups = f->block_weights / f->group_weights;
    const float *weighted = f->group_weights == 16 ? x->weighted_sum16 : x->weighted_sum32;
    assert(group_begin % groups == 0 && group_end % groups == 0);
    for (size_t g = group_begin; g < group_end; g++) {
        size_t in_block = g % groups, col = g * f->group_weights;
        if (in_block == 0) {
            split_block(w, row, g / groups, codes, scales);
            f->scale(factor, minimum, scales);
        }
        int32_t n = group_dot(f, codes + in_block * f->group_weights, x->bytes + col);
        float scale = factor[in_block] * x->scale[col / ACTIVATION_GROUP];
        sums[g % 4] = fmaf((float)n, scale, sums[g % 4]);
        if (f->has_minimum)
            sums[g % 4] = fmaf(minimum[in_block], weighted[g], sums[g % 4]);
    }
}

void scalar_product8(float *y, size_t y_stride, const struct weights *w,
                     const struct activations *x, size_t row_begin, size_t row_end)
{
    for (size_t t = 0; t < x->tokens; t++) {
        struct activation token = activation_view(x->quantised, t, w->cols);
        for (size_t r = row_begin; r < row_end; r++) {
            float sums[4] = {0};
            scalar_row_groups(sums, w, r, &token, 0, w->cols / w->format->group_weights);
            y[t * y_stride + r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        }
    }
}

void scalar_row_chunk(float *weights, const struct weights *w, size_t row, size_t col, size_t cols)
{
    const struct block_format *f = w->format;
    const uint8_t *data = w->data;
    if (w->layout == LAYOUT_PACKED)
        packed_dequantise(f, weights, data, row, col, cols, w->cols);
    else
        block_dequantise(f, weights,
                         data + row * block_row_bytes(f, w->cols) + block_row_bytes(f, col), cols);
}

void scalar_product_f32(float *y, size_t y_stride, const struct weights *w,
                        const struct activations *x, size_t row_begin, size_t row_end)
{
    for (size_t r = row_begin; r < row_end; r++)
        for (size_t t = 0; t < x->tokens; t++) {
            float weights[SCALAR_CHUNK_COLS], sums[16] = {0};
            const float *values = x->values + t * x->stride;
            for (size_t col = 0; col < w->cols; col += SCALAR_CHUNK_COLS) {
                size_t n = w->cols - col < SCALAR_CHUNK_COLS ? w->cols - col : SCALAR_CHUNK_COLS;
                scalar_row_chunk(weights, w, r, col, n);
                for (size_t i = 0; i < n; i++)
                    sums[i % 16] = fmaf(weights[i], values[col + i], sums[i % 16]);
            }
            y[t * y_stride + r] = scalar_sum16(sums);
        }
}

static bool always(void)
{
    return true;
}

static isa_product_fn *const products8[FORMAT_COUNT] = {
    [FORMAT_Q4_0] = scalar_product8,   [FORMAT_Q4_1] = scalar_product8,
    [FORMAT_Q5_0] = scalar_product8,   [FORMAT_Q5_1] = scalar_product8,
    [FORMAT_Q8_0] = scalar_product8,   [FORMAT_Q2_K] = scalar_product8,
    [FORMAT_Q3_K] = scalar_product8,   [FORMAT_Q4_K] = scalar_product8,
    [FORMAT_Q5_K] = scalar_product8,   [FORMAT_Q6_K] = scalar_product8,
    [FORMAT_IQ4_NL] = scalar_product8, [FORMAT_IQ4_XS] = scalar_product8,
    [FORMAT_MXFP4] = scalar_product8,
};

const struct isa isa_scalar = {
    .name = "scalar",
    .summary = "plain C, the definition",
    .supported = always,
    .product8 = {products8, products8},
    .product_f32 = scalar_product_f32,
    .quantise = activation_quantise,
    .dot = scalar_dot,
    .rms_norm = scalar_rms_norm,
    .rope_neox = scalar_rope_neox,
    .rope_adjacent = scalar_rope_adjacent,
    .softmax = scalar_softmax,
    .attention = scalar_attention,
    .swiglu = scalar_swiglu,
    .swiglu_clamped = scalar_swiglu_clamped,
    .add_scaled = scalar_add_scaled,
    .peak8 = scalar_peak8,
    .peak_f32 = scalar_peak_f32,
};
