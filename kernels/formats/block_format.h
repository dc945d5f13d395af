/* block_format.h -- the weight formats of GGUF files, one table.
 *
 * A quantised row is a sequence of blocks. Whatever its bytes look like, a block is three things:
 *
 *   codes     one small unsigned number a weight, `code_bits` wide
 *   scales    the rest of the block: `scale_bytes` bytes, first `scale_halves` 16-bit words, then bytes
 *   values    what a code means: code - code_bias, or values[code] where the format has a table
 *
 * and the scales give each group of `group_weights` weights (16 or 32) a factor and perhaps a minimum:
 *
 *   weight = factor[group] * value(code)                      formats without minimum
 *   weight = factor[group] * value(code) + minimum[group]     Q2_K, Q4_1, Q4_K, Q5_1, Q5_K
 *
 * with both operations rounded to F32. That is bit for bit what ggml's own readers compute, and it is
 * all that kernels/isa needs to know: a kernel is written once over (codes, factors, minima), and only
 * `split` and `scale` differ. Float formats have no codes (code_bits 0).
 *
 * Layouts of blocks: ggml-common.h of ggml d99724f.
 */
#ifndef KERNELS_FORMATS_BLOCK_FORMAT_H
#define KERNELS_FORMATS_BLOCK_FORMAT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_WEIGHTS_MAX     256
#define BLOCK_BYTES_MAX       210
#define BLOCK_SCALE_BYTES_MAX 20
#define BLOCK_GROUPS_MAX      16

enum format_id {
    FORMAT_F32,
    FORMAT_F16,
    FORMAT_BF16,
    FORMAT_Q4_0,
    FORMAT_Q4_1,
    FORMAT_Q5_0,
    FORMAT_Q5_1,
    FORMAT_Q8_0,
    FORMAT_Q2_K,
    FORMAT_Q3_K,
    FORMAT_Q4_K,
    FORMAT_Q5_K,
    FORMAT_Q6_K,
    FORMAT_IQ4_NL,
    FORMAT_IQ4_XS,
    FORMAT_MXFP4,
    FORMAT_COUNT
};

struct block_format {
    enum format_id id;
    const char *name;   /* the slug of models/quant.h */
    uint32_t gguf_type; /* tensor type number in the file */
    uint32_t block_weights;
    uint32_t block_bytes;
    uint32_t code_bits; /* 0: a float format */
    uint32_t
        low_bits; /* codes lie in two planes: the low 2, 4 or 8 bits, and 0 to 2 bits above them */
    uint32_t group_weights;
    uint32_t scale_bytes;
    uint32_t scale_halves;
    int32_t code_bias;
    const int8_t *values; /* 16 entries, or NULL */
    bool has_minimum;

    /* One block into codes (one a byte, in the order of the weights) and scale bytes, and back. Of
     * codes, join reads only the low code_bits. NULL for float formats. */
    void (*split)(uint8_t *codes, uint8_t *scales, const uint8_t *block);
    void (*join)(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
    /* Scale bytes of one block into a factor and, with has_minimum, a minimum for each group. */
    void (*scale)(float *factor, float *minimum, const uint8_t *scales);
    /* One block from block_weights floats; NULL where this program never writes the format. Formats
     * with codes need finite weights: see block_quantise. */
    void (*quantise)(uint8_t *block, const float *weights);
};

const struct block_format *block_format(enum format_id id);
/* By GGUF type number; NULL for a type without kernels. */
const struct block_format *block_format_find_gguf(uint32_t gguf_type);
/* By any name that models/quant.h knows. */
const struct block_format *block_format_find(const char *name);

/* Bytes of a row. `cols` must be a multiple of block_weights. */
size_t block_row_bytes(const struct block_format *f, size_t cols);
/* A row of `cols` weights into floats, exactly. `row` may lie at any address. */
void block_dequantise(const struct block_format *f, float *weights, const void *row, size_t cols);
/* The other way; f->quantise must not be NULL. Rounds to nearest as ggml's reference quantisers do, with
 * the same result on every machine. A finite weight beyond what the format can hold becomes the largest
 * that it can (an infinity in F16 and BF16, as IEEE 754 rounds); blocks of magnitudes that no scale can
 * express become zeros. Infinities and NaNs are kept by float formats. A format with codes has none: the
 * answer is false, and nothing is written. */
MUST_CHECK bool block_quantise(const struct block_format *f, void *row, const float *weights,
                               size_t cols);

/* One block that was split, into block_weights floats. */
void block_weights(const struct block_format *f, float *weights, const uint8_t *codes,
                   const uint8_t *scales);

/* The meaning of a code: an integer in -128..127. */
static inline int32_t block_value(const struct block_format *f, uint8_t code)
{
    return f->values ? f->values[code & 15] : (int32_t)code - f->code_bias;
}

#endif
