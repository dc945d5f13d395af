/* block_format.c -- the table of formats, and what follows from a row of it alone. */
#include "kernels/formats/block_format.h"

#include "kernels/formats/block_code.h"
#include "kernels/formats/half.h"
#include "models/quant.h"

#include <assert.h>

#define FLOAT_FORMAT(i, slug, type, bytes, writer)                                                 \
    [FORMAT_##i] = {.id = FORMAT_##i,                                                              \
                    .name = slug,                                                                  \
                    .gguf_type = type,                                                             \
                    .block_weights = 1,                                                            \
                    .block_bytes = bytes,                                                          \
                    .quantise = writer}

/* Widths: block weights and bytes, bits of a code, of these low ones, weights that share a scale. */
#define WIDTHS(weights, bytes, bits, low, group)                                                   \
    .block_weights = weights, .block_bytes = bytes, .code_bits = bits, .low_bits = low,            \
    .group_weights = group
#define NAMED(i, slug, type)      .id = FORMAT_##i, .name = slug, .gguf_type = type
#define SCALES(bytes, halves, fn) .scale_bytes = bytes, .scale_halves = halves, .scale = fn

static const struct block_format formats[FORMAT_COUNT] = {
    FLOAT_FORMAT(F32, "f32", 0, 4, quantise_f32),
    FLOAT_FORMAT(F16, "f16", 1, 2, quantise_f16),
    FLOAT_FORMAT(BF16, "bf16", 30, 2, quantise_bf16),
    [FORMAT_Q4_0] = {NAMED(Q4_0, "q4_0", 2), WIDTHS(32, 18, 4, 4, 32), SCALES(2, 1, scale_half),
                     .code_bias = 8, .split = split_q4_0, .join = join_q4_0,
                     .quantise = quantise_q4_0},
    [FORMAT_Q4_1] = {NAMED(Q4_1, "q4_1", 3), WIDTHS(32, 20, 4, 4, 32),
                     SCALES(4, 2, scale_half_pair), .has_minimum = true, .split = split_q4_1,
                     .join = join_q4_1},
    [FORMAT_Q5_0] = {NAMED(Q5_0, "q5_0", 6), WIDTHS(32, 22, 5, 4, 32), SCALES(2, 1, scale_half),
                     .code_bias = 16, .split = split_q5_0, .join = join_q5_0},
    [FORMAT_Q5_1] = {NAMED(Q5_1, "q5_1", 7), WIDTHS(32, 24, 5, 4, 32),
                     SCALES(4, 2, scale_half_pair), .has_minimum = true, .split = split_q5_1,
                     .join = join_q5_1},
    [FORMAT_Q8_0] = {NAMED(Q8_0, "q8_0", 8), WIDTHS(32, 34, 8, 8, 32), SCALES(2, 1, scale_half),
                     .code_bias = 128, .split = split_q8_0, .join = join_q8_0,
                     .quantise = quantise_q8_0},
    [FORMAT_Q2_K] = {NAMED(Q2_K, "q2_k", 10), WIDTHS(256, 84, 2, 2, 16), SCALES(20, 2, scale_q2_k),
                     .has_minimum = true, .split = split_q2_k, .join = join_q2_k},
    [FORMAT_Q3_K] = {NAMED(Q3_K, "q3_k", 11), WIDTHS(256, 110, 3, 2, 16), SCALES(14, 1, scale_q3_k),
                     .code_bias = 4, .split = split_q3_k, .join = join_q3_k},
    [FORMAT_Q4_K] = {NAMED(Q4_K, "q4_k", 12), WIDTHS(256, 144, 4, 4, 32), SCALES(16, 2, scale_q4_k),
                     .has_minimum = true, .split = split_q4_k, .join = join_q4_k},
    [FORMAT_Q5_K] = {NAMED(Q5_K, "q5_k", 13), WIDTHS(256, 176, 5, 4, 32), SCALES(16, 2, scale_q4_k),
                     .has_minimum = true, .split = split_q5_k, .join = join_q5_k},
    [FORMAT_Q6_K] = {NAMED(Q6_K, "q6_k", 14), WIDTHS(256, 210, 6, 4, 16), SCALES(18, 1, scale_q6_k),
                     .code_bias = 32, .split = split_q6_k, .join = join_q6_k},
    [FORMAT_IQ4_NL] = {NAMED(IQ4_NL, "iq4_nl", 20), WIDTHS(32, 18, 4, 4, 32),
                       SCALES(2, 1, scale_half), .values = values_iq4, .split = split_q4_0,
                       .join = join_q4_0},
    [FORMAT_IQ4_XS] = {NAMED(IQ4_XS, "iq4_xs", 23), WIDTHS(256, 136, 4, 4, 32),
                       SCALES(8, 2, scale_iq4_xs), .values = values_iq4, .split = split_iq4_xs,
                       .join = join_iq4_xs},
    [FORMAT_MXFP4] = {NAMED(MXFP4, "mxfp4", 39), WIDTHS(32, 17, 4, 4, 32), SCALES(1, 0, scale_e8m0),
                      .values = values_mxfp4, .split = split_mxfp4, .join = join_mxfp4,
                      .quantise = quantise_mxfp4},
};

const struct block_format *block_format(enum format_id id)
{
    assert((unsigned)id < FORMAT_COUNT);
    return &formats[id];
}

const struct block_format *block_format_find_gguf(uint32_t gguf_type)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (formats[i].gguf_type == gguf_type)
            return &formats[i];
    return NULL;
}

const struct block_format *block_format_find(const char *name)
{
    const struct quant_format *q = quant_find(name);
    return q && q->gguf_type >= 0 ? block_format_find_gguf((uint32_t)q->gguf_type) : NULL;
}

size_t block_row_bytes(const struct block_format *f, size_t cols)
{
    assert(cols % f->block_weights == 0);
    return cols / f->block_weights * f->block_bytes;
}

void block_weights(const struct block_format *f, float *weights, const uint8_t *codes,
                   const uint8_t *scales)
{
    float factor[BLOCK_GROUPS_MAX], minimum[BLOCK_GROUPS_MAX];
    f->scale(factor, minimum, scales);
    for (uint32_t i = 0; i < f->block_weights; i++) {
        uint32_t group = i / f->group_weights;
        weights[i] = factor[group] * (float)block_value(f, codes[i]);
        if (f->has_minimum)
            weights[i] += minimum[group];
    }
}

static void dequantise_block(const struct block_format *f, float *weights, const uint8_t *block)
{
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    f->split(codes, scales, block);
    block_weights(f, weights, codes, scales);
}

static void dequantise_halves(float *weights, const uint8_t *row, size_t cols)
{
    for (size_t i = 0; i < cols; i++)
        weights[i] = half_to_float(load_u16(row + 2 * i));
}

static void dequantise_bfloats(float *weights, const uint8_t *row, size_t cols)
{
    for (size_t i = 0; i < cols; i++)
        weights[i] = bfloat_to_float(load_u16(row + 2 * i));
}

void block_dequantise(const struct block_format *f, float *weights, const void *row, size_t cols)
{
    assert(cols % f->block_weights == 0);
    const uint8_t *bytes = row;
    if (f->id == FORMAT_F32)
        memcpy(weights, row, cols * sizeof(float));
    else if (f->id == FORMAT_F16)
        dequantise_halves(weights, bytes, cols);
    else if (f->id == FORMAT_BF16)
        dequantise_bfloats(weights, bytes, cols);
    else
        for (size_t i = 0; i < cols; i += f->block_weights, bytes += f->block_bytes)
            dequantise_block(f, weights + i, bytes);
}

/* Infinities and NaNs have an exponent of ones. */
static bool all_finite(const float *weights, size_t count)
{
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t magnitude = bits_of_float(weights[i]) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    return most < 0x7f800000u;
}

bool block_quantise(const struct block_format *f, void *row, const float *weights, size_t cols)
{
    assert(f->quantise && cols % f->block_weights == 0);
    uint8_t *bytes = row;
    if (f->code_bits != 0 && !all_finite(weights, cols))
        return false;
    for (size_t i = 0; i < cols; i += f->block_weights, bytes += f->block_bytes)
        f->quantise(bytes, weights + i);
    return true;
}
