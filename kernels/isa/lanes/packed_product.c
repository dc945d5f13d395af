/* packed_product.c -- products from the packed layout: a row a lane.
 *
 * A line of codes is the operand of one dot-product instruction for sixteen rows; its other operand is
 * four activations, the same for all. Nothing is added across lanes, the scales of sixteen rows are
 * one register, and codes are decoded once for up to four tokens. With one token a core asks for more
 * bytes than memory gives: lines are prefetched, because the hardware stops at each 4 KiB page.
 *
 * One function for all formats, specialised by a constant struct shape: everything that asks `s` is
 * decided by the compiler. Hence the forced inlining. */
#include "kernels/formats/block_code.h"
#include "kernels/formats/packed.h"
#include "kernels/isa/lanes/lane_scales.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

#define TOKENS_AT_ONCE LANES_TOKENS

typedef void lane_scale_fn(vf *factor, vf *minimum, const uint8_t *p);

struct shape {
    int low_bits, high_bits;
    int bias_log2; /* codes are larger than values by 2^bias_log2; 0: equal */
    int group;     /* 16 or 32 */
    int chunk;     /* columns of a chunk */
    int block_weights;
    int scale_bytes;
    bool minimum;
    const int8_t *values;
    lane_scale_fn *scale;
};

/* The codes of step 0..7 of a group. */
INLINE vb step_codes(const struct shape s, vb table, const uint8_t *lines, int step)
{
    int fields = 8 / s.low_bits;
    vb line = vb_load(lines + step / fields * PACKED_LINE_BYTES);
    vb codes = vb_field(line, step % fields * s.low_bits, s.low_bits, 0);
    if (s.values)
        return vb_lookup(table, codes);
    if (s.high_bits) {
        int high_fields = 8 / s.high_bits;
        vb high = vb_load(lines + (s.low_bits + step / high_fields) * PACKED_LINE_BYTES);
        codes =
            vb_or(codes, vb_field(high, step % high_fields * s.high_bits, s.high_bits, s.low_bits));
    }
    return vb_biased(codes, s.bias_log2);
}

/* Columns col .. col + 31; `factor`, `minimum` start at the first of their 1 or 2 groups, which is
 * number `number` modulo 4 in the row. */
INLINE void add_group(const struct shape s, int tokens, vf sums[][4], vb table,
                      const uint8_t *lines, const vf *factor, const vf *minimum,
                      const struct activation *x, size_t col, int number)
{
    int steps = s.group / 4, parts = s.group == 16 ? 2 : 1;
    UNROLL for (int part = 0; part < parts; part++)
    {
        size_t group = col / (size_t)s.group + (size_t)part;
        vi n[TOKENS_AT_ONCE];
        UNROLL for (int t = 0; t < tokens; t++) n[t] = lanes_start(
            s.group == 16 ? x[t].minus_sum16[group] : x[t].minus_sum32[group], s.bias_log2);
        UNROLL for (int k = 0; k < steps; k++)
        {
            int step = part * steps + k;
            vb codes = step_codes(s, table, lines, step);
            UNROLL for (int t = 0; t < tokens; t++) n[t] =
                lanes_dot4(n[t], codes, x[t].bytes + col + 4 * step, s.bias_log2);
        }
        int slot = (number + part) % 4;
        UNROLL for (int t = 0; t < tokens; t++)
        {
            vf scale = vf_mul(factor[part], vf_set(x[t].scale[col / ACTIVATION_GROUP]));
            sums[t][slot] = vf_fma(vf_from_int(n[t]), scale, sums[t][slot]);
            if (s.minimum) {
                const float *weighted = s.group == 16 ? x[t].weighted_sum16 : x[t].weighted_sum32;
                sums[t][slot] = vf_fma(minimum[part], vf_set(weighted[group]), sums[t][slot]);
            }
        }
    }
}

INLINE int scale_lines_bytes(const struct shape s, int blocks)
{
    return (blocks * 16 * s.scale_bytes + PACKED_LINE_BYTES - 1) / PACKED_LINE_BYTES *
           PACKED_LINE_BYTES;
}

INLINE int chunk_bytes(const struct shape s, int blocks)
{
    return scale_lines_bytes(s, blocks) +
           blocks * s.block_weights / 32 * (s.low_bits + s.high_bits) * PACKED_LINE_BYTES;
}

/* The four sums of isa.h take turns with the groups: a stretch is the columns of four groups. */
INLINE int stretch_cols(const struct shape s)
{
    return 4 * s.group;
}

INLINE void add_stretch(const struct shape s, int tokens, vf sums[][4], vb table,
                        const uint8_t *lines, const vf *factor, const vf *minimum,
                        const struct activation *x, size_t col)
{
    UNROLL for (int g = 0; g < stretch_cols(s) / 32; g++)
    {
        int first = g * (32 / s.group);
        add_group(s, tokens, sums, table,
                  lines + g * (s.low_bits + s.high_bits) * PACKED_LINE_BYTES, factor + first,
                  minimum + first, x, col + (size_t)g * 32, first);
    }
}

/* A whole chunk: its scales, then its codes. */
INLINE void add_chunk(const struct shape s, int tokens, vf sums[][4], vb table,
                      const uint8_t *chunk, const struct activation *x, size_t col)
{
    vf factor[BLOCK_GROUPS_MAX], minimum[BLOCK_GROUPS_MAX];
    int blocks = s.chunk / s.block_weights;
    UNROLL for (int i = 0; i < blocks; i++)
        s.scale(factor + i, minimum + i, chunk + i * 16 * s.scale_bytes);
    const uint8_t *lines = chunk + scale_lines_bytes(s, blocks);
    for (int i = 0; i < s.chunk / stretch_cols(s); i++) {
        add_stretch(s, tokens, sums, table, lines, factor + 4 * i, minimum + 4 * i, x,
                    col + (size_t)(i * stretch_cols(s)));
        lines += stretch_cols(s) / 32 * (s.low_bits + s.high_bits) * PACKED_LINE_BYTES;
    }
}

/* The last, shorter chunk of a row with blocks of 32: one to three blocks, a group each. */
INLINE void add_rest(const struct shape s, int tokens, vf sums[][4], vb table, const uint8_t *chunk,
                     const struct activation *x, size_t col, int blocks)
{
    const uint8_t *lines = chunk + scale_lines_bytes(s, blocks);
    for (int i = 0; i < blocks; i++, col += 32) {
        vf factor[1], minimum[1], one[TOKENS_AT_ONCE][4];
        s.scale(factor, minimum, chunk + i * 16 * s.scale_bytes);
        UNROLL for (int t = 0; t < tokens; t++) one[t][0] = sums[t][i];
        add_group(s, tokens, one, table, lines + i * (s.low_bits + s.high_bits) * PACKED_LINE_BYTES,
                  factor, minimum, x, col, 0);
        UNROLL for (int t = 0; t < tokens; t++) sums[t][i] = one[t][0];
    }
}

INLINE void tile(const struct shape s, int tokens, vf result[], const uint8_t *data, size_t cols,
                 const struct activation *x)
{
    vb table = vb_table(s.values ? s.values : values_mxfp4, s.bias_log2);
    vf sums[TOKENS_AT_ONCE][4], rest[TOKENS_AT_ONCE][4];
    UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int i = 0; i < 4; i++) sums[t][i] =
        vf_zero();
    size_t col = 0;
    for (; col + (size_t)s.chunk <= cols; col += (size_t)s.chunk) {
        add_chunk(s, tokens, sums, table, data, x, col);
        data += chunk_bytes(s, s.chunk / s.block_weights);
    }
    /* A copy, because an index that is no constant keeps an array out of registers. */
    UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int i = 0; i < 4; i++) rest[t][i] =
        sums[t][i];
    if (s.block_weights == 32)
        add_rest(s, tokens, rest, table, data, x, col, (int)(cols - col) / 32);
    UNROLL for (int t = 0; t < tokens; t++) result[t] =
        vf_add(vf_add(rest[t][0], rest[t][1]), vf_add(rest[t][2], rest[t][3]));
}

INLINE void tile_of_tokens(const struct shape s, int tokens, float *y, size_t y_stride,
                           const struct weights *w, const void *quantised, size_t token, size_t row,
                           size_t rows)
{
    struct activation views[TOKENS_AT_ONCE];
    vf result[TOKENS_AT_ONCE];
    for (int t = 0; t < tokens; t++)
        views[t] = activation_view(quantised, token + (size_t)t, w->cols);
    const uint8_t *data = w->data;
    data += row / PACKED_TILE_ROWS * packed_tile_bytes(w->format, w->cols);
    tile(s, tokens, result, data, w->cols, views);
    for (int t = 0; t < tokens; t++) {
        float *out = y + (token + (size_t)t) * y_stride + row;
        if (rows == PACKED_TILE_ROWS)
            vf_store(out, result[t]);
        else
            vf_store_part(out, result[t], rows);
    }
}

/* A tile comes from memory once for all tokens. */
INLINE void product(const struct shape s, float *y, size_t y_stride, const struct weights *w,
                    const struct activations *x, size_t row_begin, size_t row_end)
{
    for (size_t r = row_begin; r < row_end; r += PACKED_TILE_ROWS) {
        size_t rows = row_end - r < PACKED_TILE_ROWS ? row_end - r : PACKED_TILE_ROWS, t = 0;
        for (; t + TOKENS_AT_ONCE <= x->tokens; t += TOKENS_AT_ONCE)
            tile_of_tokens(s, TOKENS_AT_ONCE, y, y_stride, w, x->quantised, t, r, rows);
        for (; t < x->tokens; t++)
            tile_of_tokens(s, 1, y, y_stride, w, x->quantised, t, r, rows);
    }
}

#define SMALL(low, high)                                                                           \
    .low_bits = low, .high_bits = high, .group = 32, .chunk = 128, .block_weights = 32
#define SUPER(low, high, weights)                                                                  \
    .low_bits = low, .high_bits = high, .group = weights, .chunk = 256, .block_weights = 256
#define PRODUCT(name, ...)                                                                         \
    static void product_##name(float *y, size_t y_stride, const struct weights *w,                 \
                               const struct activations *x, size_t row_begin, size_t row_end)      \
    {                                                                                              \
        const struct shape s = {__VA_ARGS__};                                                      \
        product(s, y, y_stride, w, x, row_begin, row_end);                                         \
    }

PRODUCT(q4_0, SMALL(4, 0), .bias_log2 = 3, .scale_bytes = 2, .scale = lane_scale_half)
PRODUCT(q4_1, SMALL(4, 0), .minimum = true, .scale_bytes = 4, .scale = lane_scale_half_pair)
PRODUCT(q5_0, SMALL(4, 1), .bias_log2 = 4, .scale_bytes = 2, .scale = lane_scale_half)
PRODUCT(q5_1, SMALL(4, 1), .minimum = true, .scale_bytes = 4, .scale = lane_scale_half_pair)
PRODUCT(q8_0, SMALL(8, 0), .bias_log2 = 7, .scale_bytes = 2, .scale = lane_scale_half)
PRODUCT(iq4_nl, SMALL(4, 0), .bias_log2 = 7, .values = values_iq4, .scale_bytes = 2,
        .scale = lane_scale_half)
PRODUCT(mxfp4, SMALL(4, 0), .bias_log2 = 4, .values = values_mxfp4, .scale_bytes = 1,
        .scale = lane_scale_e8m0)
PRODUCT(q2_k, SUPER(2, 0, 16), .minimum = true, .scale_bytes = 20, .scale = lane_scale_q2_k)
PRODUCT(q3_k, SUPER(2, 1, 16), .bias_log2 = 2, .scale_bytes = 14, .scale = lane_scale_q3_k)
PRODUCT(q4_k, SUPER(4, 0, 32), .minimum = true, .scale_bytes = 16, .scale = lane_scale_q4_k)
PRODUCT(q5_k, SUPER(4, 1, 32), .minimum = true, .scale_bytes = 16, .scale = lane_scale_q4_k)
PRODUCT(q6_k, SUPER(4, 2, 16), .bias_log2 = 5, .scale_bytes = 18, .scale = lane_scale_q6_k)
PRODUCT(iq4_xs, SUPER(4, 0, 32), .bias_log2 = 7, .values = values_iq4, .scale_bytes = 8,
        .scale = lane_scale_iq4_xs)

isa_product_fn *const LANES_NAME(packed_product8)[FORMAT_COUNT] = {
    [FORMAT_Q4_0] = product_q4_0,     [FORMAT_Q4_1] = product_q4_1,
    [FORMAT_Q5_0] = product_q5_0,     [FORMAT_Q5_1] = product_q5_1,
    [FORMAT_Q8_0] = product_q8_0,     [FORMAT_Q2_K] = product_q2_k,
    [FORMAT_Q3_K] = product_q3_k,     [FORMAT_Q4_K] = product_q4_k,
    [FORMAT_Q5_K] = product_q5_k,     [FORMAT_Q6_K] = product_q6_k,
    [FORMAT_IQ4_NL] = product_iq4_nl, [FORMAT_IQ4_XS] = product_iq4_xs,
    [FORMAT_MXFP4] = product_mxfp4,
};
