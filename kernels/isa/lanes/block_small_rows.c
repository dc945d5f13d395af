/* block_small_rows.c -- formats with 32 weights a block from GGUF blocks: a step is four blocks. */
#include "kernels/formats/block_code.h"
#include "kernels/formats/half.h"
#include "kernels/isa/lanes/block_rows.h"

/* Byte offsets within a block. */
struct layout {
    int bytes;
    int minimum;    /* F16; 0: none */
    int fifth_bits; /* 0: none */
    int codes;
    int bias_log2;
    const int8_t *values;
};

/* sums += codes . activations for four rows and four groups. Of each row low[r] holds the first and
 * high[r] the second sixteen columns of the groups. */
INLINE void add_step(const struct layout s, int tokens, vf sums[], const vb low[], const vb high[],
                     vf factor, vf minimum, const struct activation *x, size_t col)
{
    size_t group = col / 32;
    UNROLL for (int t = 0; t < tokens; t++)
    {
        const uint8_t *p = (const uint8_t *)x[t].bytes + col;
        vb x_low, x_high;
        vb_deal(&x_low, &x_high, p);
        vi n[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            n[r] = lanes_dot(vi_zero(), low[r], x_low, s.bias_log2);
            n[r] = lanes_dot(n[r], high[r], x_high, s.bias_log2);
        }
        vi sum = lanes_add_partial(n);
        if (s.bias_log2)
            sum =
                vi_add(sum, lanes_spread_start(x[t].minus_sum32 + group, 0, 1, 2, 3, s.bias_log2));
        vf scale = vf_mul(factor, lanes_spread(x[t].scale + group, 0, 1, 2, 3));
        sums[t] = vf_fma(vf_from_int(sum), scale, sums[t]);
        if (s.minimum)
            sums[t] =
                vf_fma(minimum, lanes_spread(x[t].weighted_sum32 + group, 0, 1, 2, 3), sums[t]);
    }
}

INLINE vb with_fifth_bits(const struct layout s, vb codes, const uint8_t *row, int half)
{
    const uint8_t *p = row + s.fifth_bits + 2 * half;
    return vb_with_bits(codes, 4, load_u16(p), load_u16(p + s.bytes), load_u16(p + 2 * s.bytes),
                        load_u16(p + 3 * s.bytes));
}

INLINE void step_nibbles(const struct layout s, vf factor, vf minimum, int tokens, vf sums[],
                         const uint8_t *const row[], const struct activation *x, size_t col)
{
    vb low[ROWS_AT_ONCE], high[ROWS_AT_ONCE];
    vb table = vb_table(s.values ? s.values : values_mxfp4, s.bias_log2);
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
    {
        const uint8_t *p = row[r] + s.codes;
        vb both = vb_four(p, p + s.bytes, p + 2 * s.bytes, p + 3 * s.bytes);
        low[r] = vb_field(both, 0, 4, 0);
        high[r] = vb_field(both, 4, 4, 0);
        if (s.fifth_bits) {
            low[r] = with_fifth_bits(s, low[r], row[r], 0);
            high[r] = with_fifth_bits(s, high[r], row[r], 1);
        }
        low[r] = s.values ? vb_lookup(table, low[r]) : vb_biased(low[r], s.bias_log2);
        high[r] = s.values ? vb_lookup(table, high[r]) : vb_biased(high[r], s.bias_log2);
    }
    add_step(s, tokens, sums, low, high, factor, minimum, x, col);
}

#define STEP_NIBBLES(name, ...)                                                                    \
    INLINE void step_##name(int tokens, vf sums[], const uint8_t *const row[],                     \
                            const struct activation *x, size_t col)                                \
    {                                                                                              \
        const struct layout s = {__VA_ARGS__};                                                     \
        vf factor = lanes_halves(row, 0, s.bytes);                                                 \
        vf minimum = s.minimum ? lanes_halves(row, s.minimum, s.bytes) : vf_zero();                \
        step_nibbles(s, factor, minimum, tokens, sums, row, x, col);                               \
    }

STEP_NIBBLES(q4_0, .bytes = 18, .codes = 2, .bias_log2 = 3)
STEP_NIBBLES(q4_1, .bytes = 20, .minimum = 2, .codes = 4)
STEP_NIBBLES(q5_0, .bytes = 22, .fifth_bits = 2, .codes = 6, .bias_log2 = 4)
STEP_NIBBLES(q5_1, .bytes = 24, .minimum = 2, .fifth_bits = 4, .codes = 8)
STEP_NIBBLES(iq4_nl, .bytes = 18, .codes = 2, .bias_log2 = 7, .values = values_iq4)

INLINE void step_mxfp4(int tokens, vf sums[], const uint8_t *const row[],
                       const struct activation *x, size_t col)
{
    const struct layout s = {.bytes = 17, .codes = 1, .bias_log2 = 4, .values = values_mxfp4};
    step_nibbles(s, lanes_e8m0(row, s.bytes), vf_zero(), tokens, sums, row, x, col);
}

INLINE void step_q8_0(int tokens, vf sums[], const uint8_t *const row[], const struct activation *x,
                      size_t col)
{
    const struct layout s = {.bytes = 34, .codes = 2, .bias_log2 = 7};
    vb low[ROWS_AT_ONCE], high[ROWS_AT_ONCE];
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
    {
        const uint8_t *p = row[r] + s.codes;
        low[r] = vb_signed(vb_four(p, p + 34, p + 68, p + 102));
        high[r] = vb_signed(vb_four(p + 16, p + 50, p + 84, p + 118));
    }
    add_step(s, tokens, sums, low, high, lanes_halves(row, 0, s.bytes), vf_zero(), x, col);
}

ROWS_PRODUCT(q4_0, step_q4_0, 128, 4 * 18, {0, 1, 2, 3})
ROWS_PRODUCT(q4_1, step_q4_1, 128, 4 * 20, {0, 1, 2, 3})
ROWS_PRODUCT(q5_0, step_q5_0, 128, 4 * 22, {0, 1, 2, 3})
ROWS_PRODUCT(q5_1, step_q5_1, 128, 4 * 24, {0, 1, 2, 3})
ROWS_PRODUCT(iq4_nl, step_iq4_nl, 128, 4 * 18, {0, 1, 2, 3})
ROWS_PRODUCT(mxfp4, step_mxfp4, 128, 4 * 17, {0, 1, 2, 3})
ROWS_PRODUCT(q8_0, step_q8_0, 128, 4 * 34, {0, 1, 2, 3})
