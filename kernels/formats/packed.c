/* packed.c -- conversion between GGUF blocks and the packed layout, one block at a time through its
 * codes and scale bytes, so that it knows nothing of single formats. */
#include "kernels/formats/packed.h"

#include <assert.h>
#include <string.h>

static size_t whole_lines(size_t bytes)
{
    return (bytes + PACKED_LINE_BYTES - 1) / PACKED_LINE_BYTES * PACKED_LINE_BYTES;
}

size_t packed_row_bytes(const struct block_format *f, size_t cols)
{
    assert(f->code_bits == 0);
    return whole_lines(block_row_bytes(f, cols));
}

size_t packed_scale_offset(const struct block_format *f, size_t cols)
{
    assert(f->code_bits != 0 && cols % f->block_weights == 0);
    return cols / PACKED_GROUP_COLS * f->code_bits * PACKED_LINE_BYTES;
}

size_t packed_tile_bytes(const struct block_format *f, size_t cols)
{
    size_t blocks = cols / f->block_weights;
    return packed_scale_offset(f, cols) + whole_lines(blocks * f->scale_bytes * PACKED_TILE_ROWS);
}

size_t packed_bytes(const struct block_format *f, size_t rows, size_t cols)
{
    if (f->code_bits == 0)
        return rows * packed_row_bytes(f, cols);
    return (rows + PACKED_TILE_ROWS - 1) / PACKED_TILE_ROWS * packed_tile_bytes(f, cols);
}

/* Where one plane of a step lies among its group's lines. */
struct field {
    size_t line;
    unsigned shift, mask;
};

static struct field plane_field(size_t step, unsigned bits)
{
    size_t fields = 8 / bits;
    return (struct field){step / fields, (unsigned)(step % fields) * bits, (1u << bits) - 1};
}

static const uint8_t *group_lines(const struct block_format *f, const uint8_t *tile, size_t block,
                                  size_t i)
{
    size_t group = (block * f->block_weights + i) / PACKED_GROUP_COLS;
    return tile + group * f->code_bits * PACKED_LINE_BYTES;
}

static uint8_t code_read(const struct block_format *f, const uint8_t *lines, size_t lane,
                         size_t col)
{
    size_t step = col / 4, byte = 4 * lane + col % 4;
    struct field low = plane_field(step, f->low_bits);
    unsigned code = lines[low.line * PACKED_LINE_BYTES + byte] >> low.shift & low.mask;
    if (f->code_bits > f->low_bits) {
        struct field high = plane_field(step, f->code_bits - f->low_bits);
        size_t line = f->low_bits + high.line;
        code |= (lines[line * PACKED_LINE_BYTES + byte] >> high.shift & high.mask) << f->low_bits;
    }
    return (uint8_t)code;
}

/* Into bytes that are zero before. */
static void code_write(const struct block_format *f, uint8_t *lines, size_t lane, size_t col,
                       uint8_t code)
{
    size_t step = col / 4, byte = 4 * lane + col % 4;
    struct field low = plane_field(step, f->low_bits);
    lines[low.line * PACKED_LINE_BYTES + byte] |= (uint8_t)((code & low.mask) << low.shift);
    if (f->code_bits > f->low_bits) {
        struct field high = plane_field(step, f->code_bits - f->low_bits);
        size_t line = f->low_bits + high.line;
        lines[line * PACKED_LINE_BYTES + byte] |=
            (uint8_t)((code >> f->low_bits & high.mask) << high.shift);
    }
}

/* Where scale byte `i` of row `lane` lies among a block's. */
static size_t scale_place(const struct block_format *f, size_t lane, size_t i)
{
    if (i < 2 * f->scale_halves)
        return i / 2 * 2 * PACKED_TILE_ROWS + 2 * lane + i % 2;
    return i * PACKED_TILE_ROWS + lane;
}

static size_t scale_start(const struct block_format *f, size_t block, size_t cols)
{
    return packed_scale_offset(f, cols) + block * f->scale_bytes * PACKED_TILE_ROWS;
}

void packed_split(const struct block_format *f, uint8_t *codes, uint8_t *scales,
                  const uint8_t *tile, size_t lane, size_t block, size_t cols)
{
    for (size_t i = 0; i < f->block_weights; i++)
        codes[i] = code_read(f, group_lines(f, tile, block, i), lane, i % PACKED_GROUP_COLS);
    const uint8_t *stored = tile + scale_start(f, block, cols);
    for (size_t i = 0; i < f->scale_bytes; i++)
        scales[i] = stored[scale_place(f, lane, i)];
}

static void packed_join(const struct block_format *f, uint8_t *tile, const uint8_t *codes,
                        const uint8_t *scales, size_t lane, size_t block, size_t cols)
{
    for (size_t i = 0; i < f->block_weights; i++)
        code_write(f, (uint8_t *)group_lines(f, tile, block, i), lane, i % PACKED_GROUP_COLS,
                   codes[i]);
    uint8_t *stored = tile + scale_start(f, block, cols);
    for (size_t i = 0; i < f->scale_bytes; i++)
        stored[scale_place(f, lane, i)] = scales[i];
}

static void copy_rows(uint8_t *to, size_t to_stride, const uint8_t *from, size_t from_stride,
                      size_t rows, size_t bytes)
{
    for (size_t r = 0; r < rows; r++) {
        memcpy(to + r * to_stride, from + r * from_stride, bytes);
        if (to_stride > bytes)
            memset(to + r * to_stride + bytes, 0, to_stride - bytes);
    }
}

void packed_from_blocks(const struct block_format *f, void *packed, const void *blocks, size_t rows,
                        size_t cols)
{
    size_t row_bytes = block_row_bytes(f, cols);
    if (f->code_bits == 0) {
        copy_rows(packed, packed_row_bytes(f, cols), blocks, row_bytes, rows, row_bytes);
        return;
    }
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    memset(packed, 0, packed_bytes(f, rows, cols));
    const uint8_t *block = blocks;
    for (size_t r = 0; r < rows; r++) {
        uint8_t *tile = (uint8_t *)packed + r / PACKED_TILE_ROWS * packed_tile_bytes(f, cols);
        for (size_t b = 0; b < cols / f->block_weights; b++, block += f->block_bytes) {
            f->split(codes, scales, block);
            packed_join(f, tile, codes, scales, r % PACKED_TILE_ROWS, b, cols);
        }
    }
}

void packed_to_blocks(const struct block_format *f, void *blocks, const void *packed, size_t rows,
                      size_t cols)
{
    size_t row_bytes = block_row_bytes(f, cols);
    if (f->code_bits == 0) {
        copy_rows(blocks, row_bytes, packed, packed_row_bytes(f, cols), rows, row_bytes);
        return;
    }
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    uint8_t *block = blocks;
    for (size_t r = 0; r < rows; r++) {
        const uint8_t *tile =
            (const uint8_t *)packed + r / PACKED_TILE_ROWS * packed_tile_bytes(f, cols);
        for (size_t b = 0; b < cols / f->block_weights; b++, block += f->block_bytes) {
            packed_split(f, codes, scales, tile, r % PACKED_TILE_ROWS, b, cols);
            f->join(block, codes, scales);
        }
    }
}

void packed_dequantise(const struct block_format *f, float *weights, const void *packed, size_t row,
                       size_t cols)
{
    if (f->code_bits == 0) {
        const uint8_t *bytes = (const uint8_t *)packed + row * packed_row_bytes(f, cols);
        block_dequantise(f, weights, bytes, cols);
        return;
    }
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    const uint8_t *tile =
        (const uint8_t *)packed + row / PACKED_TILE_ROWS * packed_tile_bytes(f, cols);
    for (size_t b = 0; b < cols / f->block_weights; b++) {
        packed_split(f, codes, scales, tile, row % PACKED_TILE_ROWS, b, cols);
        block_weights(f, weights + b * f->block_weights, codes, scales);
    }
}
