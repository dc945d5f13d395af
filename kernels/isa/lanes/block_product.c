/* block_product.c -- products straight from GGUF blocks, for every quantised format.
 *
 * Sixteen rows by 256 columns are taken apart into lines of codes, as the packed layout has them but one
 * code a byte, and each of up to 32 tokens is multiplied with that piece while it lies in the first-level
 * cache. Taking apart costs more than one product, so with one token this is no match for kernels that
 * know the format; with a batch it costs little. */
#include "kernels/formats/packed.h"
#include "kernels/isa/lanes/lanes.h"
#include LANES_HEADER

#include <string.h>

#define INLINE         static inline __attribute__((always_inline))
#define TOKENS_AT_ONCE 32
#define PIECE_COLS     256
#define LANES_COUNT    PACKED_TILE_ROWS

/* Sixteen rows by up to 256 columns. */
struct piece {
    uint8_t lines[PIECE_COLS / 4][PACKED_LINE_BYTES]; /* line s: columns 4s .. 4s + 3 */
    float factor[BLOCK_GROUPS_MAX][LANES_COUNT];
    float minimum[BLOCK_GROUPS_MAX][LANES_COUNT];
};

static int bias_log2(const struct block_format *f)
{
    if (f->values)
        return f->id == FORMAT_MXFP4 ? 4 : 7;
    int log2 = 0;
    while (1 << log2 < f->code_bias)
        log2++;
    return log2;
}

static void write_codes(struct piece *piece, size_t lane, size_t col, const uint8_t *codes,
                        size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        memcpy(&piece->lines[(col + i) / 4][4 * lane], codes + i, 4);
}

/* Codes become value + 2^bias. */
static void look_up(const struct block_format *f, uint8_t *codes, int bias)
{
    for (uint32_t i = 0; i < f->block_weights; i++)
        codes[i] = (uint8_t)(f->values[codes[i]] + (1 << bias));
}

static void fill_lane(struct piece *piece, const struct block_format *f, size_t lane,
                      const uint8_t *blocks, size_t cols, int bias)
{
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    float factor[BLOCK_GROUPS_MAX], minimum[BLOCK_GROUPS_MAX];
    size_t groups = f->block_weights / f->group_weights;
    for (size_t col = 0; col < cols; col += f->block_weights, blocks += f->block_bytes) {
        f->split(codes, scales, blocks);
        if (f->values)
            look_up(f, codes, bias);
        write_codes(piece, lane, col, codes, f->block_weights);
        f->scale(factor, minimum, scales);
        for (size_t g = 0; g < groups; g++) {
            piece->factor[col / f->group_weights + g][lane] = factor[g];
            if (f->has_minimum)
                piece->minimum[col / f->group_weights + g][lane] = minimum[g];
        }
    }
}

/* One group of one token: `lines` are its group / 4 lines. */
INLINE vf add_group(vf sum, const struct piece *piece, size_t in_piece, int group, int bias,
                    const int8_t *bytes, int32_t minus_sum, float scale)
{
    vi n = lanes_start(minus_sum, bias);
    for (int k = 0; k < group / 4; k++) {
        vb codes = vb_load(piece->lines[in_piece * (size_t)group / 4 + (size_t)k]);
        n = lanes_dot4(n, vb_biased(codes, bias), bytes + 4 * k, bias);
    }
    return vf_fma(vf_from_int(n), vf_mul(vf_load(piece->factor[in_piece]), vf_set(scale)), sum);
}

/* Columns col .. col + cols of one token. A bias that the compiler knows is folded. */
INLINE void add_piece(vf sums[4], const struct piece *piece, const struct activation *x, size_t col,
                      size_t cols, int group, int bias, bool has_minimum)
{
    const int32_t *minus_sum = group == 16 ? x->minus_sum16 : x->minus_sum32;
    const float *weighted = group == 16 ? x->weighted_sum16 : x->weighted_sum32;
    size_t first = col / (size_t)group;
    for (size_t g = 0; g < cols / (size_t)group; g++) {
        size_t at = col + g * (size_t)group;
        vf sum = add_group(sums[g % 4], piece, g, group, bias, x->bytes + at, minus_sum[first + g],
                           x->scale[at / ACTIVATION_GROUP]);
        if (has_minimum)
            sum = vf_fma(vf_load(piece->minimum[g]), vf_set(weighted[first + g]), sum);
        sums[g % 4] = sum;
    }
}

static void add_piece_of_format(const struct block_format *f, vf sums[4], const struct piece *piece,
                                const struct activation *x, size_t col, size_t cols, int bias)
{
#define CASE(group, bias_constant, minimum)                                                        \
    if (f->group_weights == group && bias == bias_constant && f->has_minimum == minimum) {         \
        add_piece(sums, piece, x, col, cols, group, bias_constant, minimum);                       \
        return;                                                                                    \
    }
    CASE(32, 3, false)
    CASE(32, 4, false)
    CASE(32, 7, false)
    CASE(32, 0, true)
    CASE(16, 0, true)
    CASE(16, 2, false)
    CASE(16, 5, false)
#undef CASE
}

static void tile(float *y, size_t y_stride, const struct weights *w, const struct activation *x,
                 size_t tokens, size_t row, size_t rows)
{
    const struct block_format *f = w->format;
    const uint8_t *data = (const uint8_t *)w->data + row * block_row_bytes(f, w->cols);
    int bias = bias_log2(f);
    struct piece piece;
    vf sums[TOKENS_AT_ONCE][4];
    memset(&piece, 0, sizeof piece);
    for (size_t t = 0; t < tokens; t++)
        for (int i = 0; i < 4; i++)
            sums[t][i] = vf_zero();
    for (size_t col = 0; col < w->cols; col += PIECE_COLS) {
        size_t cols = w->cols - col < PIECE_COLS ? w->cols - col : PIECE_COLS;
        for (size_t lane = 0; lane < rows; lane++)
            fill_lane(&piece, f, lane,
                      data + lane * block_row_bytes(f, w->cols) + block_row_bytes(f, col), cols,
                      bias);
        for (size_t t = 0; t < tokens; t++)
            add_piece_of_format(f, sums[t], &piece, &x[t], col, cols, bias);
    }
    for (size_t t = 0; t < tokens; t++) {
        float result[LANES_COUNT];
        vf_store(result, vf_add(vf_add(sums[t][0], sums[t][1]), vf_add(sums[t][2], sums[t][3])));
        memcpy(y + t * y_stride + row, result, rows * sizeof(float));
    }
}

void LANES_NAME(block_product8)(float *y, size_t y_stride, const struct weights *w,
                                const struct activations *x, size_t row_begin, size_t row_end)
{
    for (size_t first = 0; first < x->tokens; first += TOKENS_AT_ONCE) {
        struct activation views[TOKENS_AT_ONCE];
        size_t left = x->tokens - first, tokens = left < TOKENS_AT_ONCE ? left : TOKENS_AT_ONCE;
        for (size_t t = 0; t < tokens; t++)
            views[t] = activation_view(x->quantised, first + t, w->cols);
        for (size_t row = row_begin; row < row_end; row += LANES_COUNT) {
            size_t rows = row_end - row < LANES_COUNT ? row_end - row : LANES_COUNT;
            tile(y + first * y_stride, y_stride, w, views, tokens, row, rows);
        }
    }
}
