/* packed.c -- conversion between GGUF blocks and the packed layout, one block at a time through its
 * codes and scale bytes, so that it knows nothing of single formats. */
#include "kernels/formats/packed.h"

#include <assert.h>
#include <string.h>

static size_t whole_lines(size_t bytes)
{
    return (bytes + PACKED_LINE_BYTES - 1) / PACKED_LINE_BYTES * PACKED_LINE_BYTES;
}

size_t packed_float_bytes(const struct block_format *f, size_t cols)
{
    assert(f->code_bits == 0);
    return PACKED_FLOAT_ROWS * whole_lines(block_row_bytes(f, cols));
}

size_t packed_chunk_cols(const struct block_format *f)
{
    return f->block_weights == 32 ? 128 : 256;
}

size_t packed_scale_bytes(const struct block_format *f, size_t cols)
{
    assert(f->code_bits != 0 && cols <= packed_chunk_cols(f));
    return whole_lines(cols / f->block_weights * f->scale_bytes * PACKED_TILE_ROWS);
}

static size_t chunk_bytes(const struct block_format *f, size_t cols)
{
    size_t lines = cols / PACKED_GROUP_COLS * f->code_bits;
    return packed_scale_bytes(f, cols) + lines * PACKED_LINE_BYTES;
}

size_t packed_tile_bytes(const struct block_format *f, size_t cols)
{
    assert(cols % f->block_weights == 0);
    size_t whole = packed_chunk_cols(f);
    return cols / whole * chunk_bytes(f, whole) + chunk_bytes(f, cols % whole);
}

size_t packed_bytes(const struct block_format *f, size_t rows, size_t cols)
{
    if (f->code_bits == 0)
        return (rows + PACKED_FLOAT_ROWS - 1) / PACKED_FLOAT_ROWS * packed_float_bytes(f, cols);
    return (rows + PACKED_TILE_ROWS - 1) / PACKED_TILE_ROWS * packed_tile_bytes(f, cols);
}

/* One bit or more of every byte of a word. */
static uint32_t in_each_byte(uint32_t bits)
{
    return bits * 0x01010101u;
}

/* One plane of a group of 32 codes: `bits` of each code from bit `from` on, in `lines`, of which a row owns 4
 * bytes at `lane` * 4 each. Four codes move as one word; nothing crosses from byte to byte, because what is
 * shifted beyond a field is masked. */
static void plane_write(uint8_t *lines, size_t lane, const uint8_t *codes, unsigned from,
                        unsigned bits)
{
    uint32_t mask = in_each_byte((1u << bits) - 1), word, line;
    for (size_t step = 0, fields = 8 / bits; step < PACKED_GROUP_COLS / 4; step += fields) {
        uint8_t *to = lines + step / fields * PACKED_LINE_BYTES + 4 * lane;
        line = 0;
        for (size_t k = 0; k < fields; k++) {
            memcpy(&word, codes + 4 * (step + k), sizeof word);
            line |= (word >> from & mask) << k * bits;
        }
        memcpy(to, &line, sizeof line);
    }
}

/* Adds the plane to codes whose bits are still zero there. */
static void plane_read(uint8_t *codes, const uint8_t *lines, size_t lane, unsigned from,
                       unsigned bits)
{
    uint32_t mask = in_each_byte((1u << bits) - 1), word, line;
    for (size_t step = 0, fields = 8 / bits; step < PACKED_GROUP_COLS / 4; step += fields) {
        memcpy(&line, lines + step / fields * PACKED_LINE_BYTES + 4 * lane, sizeof line);
        for (size_t k = 0; k < fields; k++) {
            memcpy(&word, codes + 4 * (step + k), sizeof word);
            word |= (line >> k * bits & mask) << from;
            memcpy(codes + 4 * (step + k), &word, sizeof word);
        }
    }
}

static void group_write(const struct block_format *f, uint8_t *lines, size_t lane,
                        const uint8_t *codes)
{
    plane_write(lines, lane, codes, 0, f->low_bits);
    if (f->code_bits > f->low_bits)
        plane_write(lines + f->low_bits * PACKED_LINE_BYTES, lane, codes, f->low_bits,
                    f->code_bits - f->low_bits);
}

static void group_read(const struct block_format *f, uint8_t *codes, const uint8_t *lines,
                       size_t lane)
{
    memset(codes, 0, PACKED_GROUP_COLS);
    plane_read(codes, lines, lane, 0, f->low_bits);
    if (f->code_bits > f->low_bits)
        plane_read(codes, lines + f->low_bits * PACKED_LINE_BYTES, lane, f->low_bits,
                   f->code_bits - f->low_bits);
}

/* Where a block of a row lies in its tile: the first byte of its scales, the first line of its codes. */
struct block_place {
    size_t scales, codes;
};

static struct block_place block_place(const struct block_format *f, size_t block, size_t cols)
{
    size_t whole = packed_chunk_cols(f), blocks = whole / f->block_weights;
    size_t chunk = block / blocks, in_chunk = block % blocks;
    size_t chunk_cols = cols - chunk * whole < whole ? cols - chunk * whole : whole;
    size_t start = chunk * chunk_bytes(f, whole);
    size_t block_lines = f->block_weights / PACKED_GROUP_COLS * f->code_bits;
    return (struct block_place){.scales = start + in_chunk * f->scale_bytes * PACKED_TILE_ROWS,
                                .codes = start + packed_scale_bytes(f, chunk_cols) +
                                         in_chunk * block_lines * PACKED_LINE_BYTES};
}

/* Offset of the lines of column `col` of a block. */
static size_t group_offset(const struct block_format *f, size_t col)
{
    return col / PACKED_GROUP_COLS * f->code_bits * PACKED_LINE_BYTES;
}

/* Where scale byte `i` of row `lane` lies among a block's. */
static size_t scale_place(const struct block_format *f, size_t lane, size_t i)
{
    if (i < 2 * f->scale_halves)
        return i / 2 * 2 * PACKED_TILE_ROWS + 2 * lane + i % 2;
    return i * PACKED_TILE_ROWS + lane;
}

void packed_split(const struct block_format *f, uint8_t *codes, uint8_t *scales,
                  const uint8_t *tile, size_t lane, size_t block, size_t cols)
{
    struct block_place place = block_place(f, block, cols);
    for (size_t i = 0; i < f->block_weights; i += PACKED_GROUP_COLS)
        group_read(f, codes + i, tile + place.codes + group_offset(f, i), lane);
    for (size_t i = 0; i < f->scale_bytes; i++)
        scales[i] = tile[place.scales + scale_place(f, lane, i)];
}

static void packed_join(const struct block_format *f, uint8_t *tile, const uint8_t *codes,
                        const uint8_t *scales, size_t lane, size_t block, size_t cols)
{
    struct block_place place = block_place(f, block, cols);
    for (size_t i = 0; i < f->block_weights; i += PACKED_GROUP_COLS)
        group_write(f, tile + place.codes + group_offset(f, i), lane, codes + i);
    for (size_t i = 0; i < f->scale_bytes; i++)
        tile[place.scales + scale_place(f, lane, i)] = scales[i];
}

/* Byte `i` of row `row` of a float format. */
static size_t float_place(size_t row_bytes, size_t row, size_t i)
{
    size_t line = i / PACKED_LINE_BYTES, lines = whole_lines(row_bytes) / PACKED_LINE_BYTES;
    size_t first = row / PACKED_FLOAT_ROWS * PACKED_FLOAT_ROWS * lines;
    return (first + line * PACKED_FLOAT_ROWS + row % PACKED_FLOAT_ROWS) * PACKED_LINE_BYTES +
           i % PACKED_LINE_BYTES;
}

static void float_pack_row(uint8_t *packed, const uint8_t *bytes, size_t row, size_t row_bytes)
{
    for (size_t i = 0; i < row_bytes; i += PACKED_LINE_BYTES) {
        size_t n = row_bytes - i < PACKED_LINE_BYTES ? row_bytes - i : PACKED_LINE_BYTES;
        memcpy(packed + float_place(row_bytes, row, i), bytes + i, n);
    }
}

static void float_unpack_row(uint8_t *bytes, const uint8_t *packed, size_t row, size_t row_bytes)
{
    for (size_t i = 0; i < row_bytes; i += PACKED_LINE_BYTES) {
        size_t n = row_bytes - i < PACKED_LINE_BYTES ? row_bytes - i : PACKED_LINE_BYTES;
        memcpy(bytes + i, packed + float_place(row_bytes, row, i), n);
    }
}

void packed_from_blocks(const struct block_format *f, void *packed, const void *blocks, size_t rows,
                        size_t cols)
{
    size_t row_bytes = block_row_bytes(f, cols);
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    const uint8_t *block = blocks;
    memset(packed, 0, packed_bytes(f, rows, cols));
    if (f->code_bits == 0) {
        for (size_t r = 0; r < rows; r++)
            float_pack_row(packed, block + r * row_bytes, r, row_bytes);
        return;
    }
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
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    uint8_t *block = blocks;
    if (f->code_bits == 0) {
        for (size_t r = 0; r < rows; r++)
            float_unpack_row(block + r * row_bytes, packed, r, row_bytes);
        return;
    }
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
                       size_t col, size_t count, size_t cols)
{
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    if (f->code_bits == 0) {
        size_t row_bytes = block_row_bytes(f, cols);
        for (size_t i = 0; i < count; i++) {
            const uint8_t *p = packed;
            p += float_place(row_bytes, row, (col + i) * f->block_bytes);
            block_dequantise(f, weights + i, p, 1);
        }
        return;
    }
    const uint8_t *tile =
        (const uint8_t *)packed + row / PACKED_TILE_ROWS * packed_tile_bytes(f, cols);
    for (size_t i = 0; i < count; i += f->block_weights) {
        packed_split(f, codes, scales, tile, row % PACKED_TILE_ROWS, (col + i) / f->block_weights,
                     cols);
        block_weights(f, weights + i, codes, scales);
    }
}
