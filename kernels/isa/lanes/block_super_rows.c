/* block_super_rows.c -- formats with 256 weights a block from GGUF blocks: a step is one block.
 *
 * Scales come as dwords of four rows: byte k of a dword belongs to one group, so that a shift that
 * differs from one 128-bit lane to the next puts four groups of four rows into their lanes. */
#include "kernels/formats/block_code.h"
#include "kernels/isa/lanes/block_rows.h"

/* Products of four groups whose partial sums n are known: fma into the sums of one token. */
INLINE vf add_groups(vf sums, vi n, vf factor, const float *scale, int a, int b, int c, int d)
{
    return vf_fma(vf_from_int(n), vf_mul(factor, lanes_spread(scale, a, b, c, d)), sums);
}

/* Q4_K and Q5_K: factors and minima of groups 0 to 3 and 4 to 7. The head is d and dmin; scale
 * bytes 0 to 3; 4 to 7; 8 to 11. */
INLINE void scales_q4_k(vf factor[2], vf minimum[2], const uint8_t *const row[])
{
    vi head = lanes_by_dword(row, 0);
    vi a = vi_shift_right_each(vi_spread_lane(head, 1), 0, 8, 16, 24);
    vi b = vi_shift_right_each(vi_spread_lane(head, 2), 0, 8, 16, 24);
    vi c = vi_shift_right_each(vi_spread_lane(head, 3), 0, 8, 16, 24);
    vi both = vi_spread_lane(head, 0);
    vf d = vf_low_halves(both), minus_dmin = vf_negate(vf_low_halves(vi_shift_right(both, 16)));
    vi scale = vi_or(vi_and(c, 15), vi_and(vi_shift_right(a, 2), 0x30));
    vi least = vi_or(vi_and(vi_shift_right(c, 4), 15), vi_and(vi_shift_right(b, 2), 0x30));
    factor[0] = vf_mul(d, vf_from_int(vi_and(a, 63)));
    factor[1] = vf_mul(d, vf_from_int(scale));
    minimum[0] = vf_mul(minus_dmin, vf_from_int(vi_and(b, 63)));
    minimum[1] = vf_mul(minus_dmin, vf_from_int(least));
}

/* Codes of groups (0, 2) in even[r], (1, 3) in odd[r], counted from column col on. They are dealt anew once, so
 * that for each token two dot products fall onto the same lanes and nothing is to be added across. */
INLINE void add_half(int tokens, vf sums[], const vb even[], const vb odd[], vf factor, vf minimum,
                     const struct activation *x, size_t col)
{
    vb first[ROWS_AT_ONCE], second[ROWS_AT_ONCE];
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        vb_deal_pairs(&first[r], &second[r], even[r], odd[r]);
    UNROLL for (int t = 0; t < tokens; t++)
    {
        vb x_first, x_second;
        vb_deal(&x_first, &x_second, (const uint8_t *)x[t].bytes + col);
        vi n[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            n[r] = lanes_dot(vi_zero(), first[r], x_first, 0);
            n[r] = lanes_dot(n[r], second[r], x_second, 0);
        }
        sums[t] =
            add_groups(sums[t], lanes_add_partial(n), factor, x[t].scale + col / 32, 0, 1, 2, 3);
        sums[t] =
            vf_fma(minimum, lanes_spread(x[t].weighted_sum32 + col / 32, 0, 1, 2, 3), sums[t]);
    }
}

INLINE void step_q4_k(int tokens, vf sums[], const uint8_t *const row[], const struct activation *x,
                      size_t col)
{
    vf factor[2], minimum[2];
    scales_q4_k(factor, minimum, row);
    UNROLL for (int half = 0; half < 2; half++)
    {
        vb even[ROWS_AT_ONCE], odd[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            vb both = vb_load(row[r] + 16 + 64 * half);
            even[r] = vb_field(both, 0, 4, 0);
            odd[r] = vb_field(both, 4, 4, 0);
        }
        add_half(tokens, sums, even, odd, factor[half], minimum[half], x, col + 128 * (size_t)half);
    }
}

/* As Q4_K, with bit g of 32 bytes above the four of group g. */
INLINE void step_q5_k(int tokens, vf sums[], const uint8_t *const row[], const struct activation *x,
                      size_t col)
{
    vf factor[2], minimum[2];
    scales_q4_k(factor, minimum, row);
    UNROLL for (int half = 0; half < 2; half++)
    {
        vb even[ROWS_AT_ONCE], odd[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            vb both = vb_load(row[r] + 48 + 64 * half), high = vb_two(row[r] + 16, row[r] + 16);
            int g = 4 * half;
            even[r] = vb_or(vb_field(both, 0, 4, 0), vb_field_halves(high, g, g + 2, 1, 4));
            odd[r] = vb_or(vb_field(both, 4, 4, 0), vb_field_halves(high, g + 1, g + 3, 1, 4));
        }
        add_half(tokens, sums, even, odd, factor[half], minimum[half], x, col + 128 * (size_t)half);
    }
}

/* Codes of 64 columns from col on: four groups of sixteen, one a 128-bit lane. */
INLINE void add_quarter(int tokens, vf sums[], const vb codes[], int bias_log2, vf factor,
                        const vf *minimum, const struct activation *x, size_t col)
{
    UNROLL for (int t = 0; t < tokens; t++)
    {
        vb bytes = vb_load((const uint8_t *)x[t].bytes + col);
        vi n[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) n[r] =
            lanes_dot(vi_zero(), codes[r], bytes, bias_log2);
        vi sum = lanes_add_partial(n);
        if (bias_log2)
            sum =
                vi_add(sum, lanes_spread_start(x[t].minus_sum16 + col / 16, 0, 1, 2, 3, bias_log2));
        sums[t] = add_groups(sums[t], sum, factor, x[t].scale + col / 32, 0, 0, 1, 1);
        if (minimum)
            sums[t] =
                vf_fma(*minimum, lanes_spread(x[t].weighted_sum16 + col / 16, 0, 1, 2, 3), sums[t]);
    }
}

INLINE void step_q6_k(int tokens, vf sums[], const uint8_t *const row[], const struct activation *x,
                      size_t col)
{
    vi scales = lanes_by_dword(row, 192);
    vf d = lanes_half(row, 208);
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int part = 0; part < 2; part++)
    {
        vb codes[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            const uint8_t *above = row[r] + 128 + 32 * half;
            vb low = vb_load(row[r] + 64 * half), high = vb_two(above, above);
            codes[r] = vb_or(vb_field(low, 4 * part, 4, 0),
                             vb_field_halves(high, 4 * part, 4 * part + 2, 2, 4));
            codes[r] = vb_biased(codes[r], 5);
        }
        int quarter = 2 * half + part;
        vi scale = vi_shift_right_each(vi_spread_lane(scales, quarter), 0, 8, 16, 24);
        vf factor = vf_mul(d, vf_from_int(vi_sign_byte(scale)));
        add_quarter(tokens, sums, codes, 5, factor, NULL, x, col + 64 * (size_t)quarter);
    }
}

INLINE void step_q2_k(int tokens, vf sums[], const uint8_t *const row[], const struct activation *x,
                      size_t col)
{
    vi scales = lanes_by_dword(row, 0);
    vf d = lanes_half(row, 80), minus_dmin = vf_negate(lanes_half(row, 82));
    UNROLL for (int quarter = 0; quarter < 4; quarter++)
    {
        vb codes[ROWS_AT_ONCE];
        int shift = quarter % 2 * 4;
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            const uint8_t *p = row[r] + 16 + quarter / 2 * 32;
            codes[r] = vb_field_halves(vb_two(p, p), shift, shift + 2, 2, 0);
        }
        vi scale = vi_shift_right_each(vi_spread_lane(scales, quarter), 0, 8, 16, 24);
        vf factor = vf_mul(d, vf_from_int(vi_and(scale, 15)));
        vf minimum = vf_mul(minus_dmin, vf_from_int(vi_and(vi_shift_right(scale, 4), 15)));
        add_quarter(tokens, sums, codes, 0, factor, &minimum, x, col + 64 * (size_t)quarter);
    }
}

/* Groups 4 quarter + (0 .. 3) have their low bits in bytes (0 .. 3) of dword quarter % 2, in the half
 * quarter / 2, and two high bits in dword 2 from bit 2 quarter of each byte on. The sixteen bytes that are
 * loaded start before the scales: the block ends behind d. */
INLINE void step_q3_k(int tokens, vf sums[], const uint8_t *const row[], const struct activation *x,
                      size_t col)
{
    vi scales = lanes_by_dword(row, 92);
    vf d = lanes_half(row, 108);
    UNROLL for (int quarter = 0; quarter < 4; quarter++)
    {
        vb codes[ROWS_AT_ONCE];
        int shift = quarter % 2 * 4, bit = 2 * quarter;
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            const uint8_t *p = row[r] + 32 + quarter / 2 * 32;
            codes[r] = vb_or(vb_field_halves(vb_two(p, p), shift, shift + 2, 2, 0),
                             vb_field_halves(vb_two(row[r], row[r]), bit, bit + 1, 1, 2));
            codes[r] = vb_biased(codes[r], 2);
        }
        vi low = vi_shift_right_each(vi_spread_lane(scales, 1 + quarter % 2), 0, 8, 16, 24);
        vi high = vi_shift_right_each(vi_spread_lane(scales, 3), 0, 8, 16, 24);
        low = vi_and(quarter < 2 ? low : vi_shift_right(low, 4), 15);
        high = vi_shift_left(vi_and(vi_shift_right(high, 2 * quarter), 3), 4);
        vf factor = vf_mul(d, vf_from_int(vi_add_set(vi_or(low, high), -32)));
        add_quarter(tokens, sums, codes, 2, factor, NULL, x, col + 64 * (size_t)quarter);
    }
}

/* Eight blocks of IQ4_NL; the head is d and the high bits of scales; their low bits. */
INLINE void step_iq4_xs(int tokens, vf sums[], const uint8_t *const row[],
                        const struct activation *x, size_t col)
{
    vi head = lanes_by_dword(row, 0);
    vi first = vi_spread_lane(head, 0), second = vi_spread_lane(head, 1);
    vf d = vf_low_halves(first);
    vb table = vb_table(values_iq4, 7);
    UNROLL for (int half = 0; half < 2; half++)
    {
        int g = 4 * half;
        vi low = vi_and(vi_shift_right_each(second, 4 * g, 4 * g + 4, 4 * g + 8, 4 * g + 12), 15);
        vi high = vi_shift_right_each(first, 16 + 2 * g, 18 + 2 * g, 20 + 2 * g, 22 + 2 * g);
        high = vi_shift_left(vi_and(high, 3), 4);
        vf factor = vf_mul(d, vf_from_int(vi_add_set(vi_or(low, high), -32)));
        vb first_codes[ROWS_AT_ONCE], second_codes[ROWS_AT_ONCE];
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
        {
            vb both = vb_load(row[r] + 8 + 64 * half);
            first_codes[r] = vb_lookup(table, vb_field(both, 0, 4, 0));
            second_codes[r] = vb_lookup(table, vb_field(both, 4, 4, 0));
        }
        UNROLL for (int t = 0; t < tokens; t++)
        {
            size_t at = col + 128 * (size_t)half;
            const uint8_t *p = (const uint8_t *)x[t].bytes + at;
            vb x_first, x_second;
            vb_deal(&x_first, &x_second, p);
            vi n[ROWS_AT_ONCE];
            UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
            {
                n[r] = lanes_dot(vi_zero(), first_codes[r], x_first, 7);
                n[r] = lanes_dot(n[r], second_codes[r], x_second, 7);
            }
            vi sum = vi_add(lanes_add_partial(n),
                            lanes_spread_start(x[t].minus_sum32 + at / 32, 0, 1, 2, 3, 7));
            sums[t] = add_groups(sums[t], sum, factor, x[t].scale + at / 32, 0, 1, 2, 3);
        }
    }
}

ROWS_PRODUCT(q2_k, step_q2_k, 256, 84, {0, 1, 2, 3})
ROWS_PRODUCT(q3_k, step_q3_k, 256, 110, {0, 1, 2, 3})
ROWS_PRODUCT(q4_k, step_q4_k, 256, 144, {0, 1, 2, 3})
ROWS_PRODUCT(q5_k, step_q5_k, 256, 176, {0, 1, 2, 3})
ROWS_PRODUCT(q6_k, step_q6_k, 256, 210, {0, 1, 2, 3})
ROWS_PRODUCT(iq4_xs, step_iq4_xs, 256, 136, {0, 1, 2, 3})

isa_product_fn *const LANES_NAME(block_product8)[FORMAT_COUNT] = {
    [FORMAT_Q4_0] = LANES_NAME(block_q4_0),     [FORMAT_Q4_1] = LANES_NAME(block_q4_1),
    [FORMAT_Q5_0] = LANES_NAME(block_q5_0),     [FORMAT_Q5_1] = LANES_NAME(block_q5_1),
    [FORMAT_Q8_0] = LANES_NAME(block_q8_0),     [FORMAT_Q2_K] = LANES_NAME(block_q2_k),
    [FORMAT_Q3_K] = LANES_NAME(block_q3_k),     [FORMAT_Q4_K] = LANES_NAME(block_q4_k),
    [FORMAT_Q5_K] = LANES_NAME(block_q5_k),     [FORMAT_Q6_K] = LANES_NAME(block_q6_k),
    [FORMAT_IQ4_NL] = LANES_NAME(block_iq4_nl), [FORMAT_IQ4_XS] = LANES_NAME(block_iq4_xs),
    [FORMAT_MXFP4] = LANES_NAME(block_mxfp4),
};
