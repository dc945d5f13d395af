/* packed.h -- the packed layout: the weights of a GGUF matrix, lying as the kernels want them.
 *
 * A block of 18 or 144 bytes straddles cache lines, mixes codes with scales, and makes a kernel gather
 * both. Packed, a matrix is a sequence of tiles of 16 rows; a tile is a sequence of chunks, 128 columns
 * each (256 if a block has 256 weights; what is left in the last one); and a chunk is whole 64-byte lines
 * of scales followed by whole lines of codes, where every line holds one thing for all 16 rows:
 *
 *   tile  = | chunk of columns 0..127 | 128..255 | ...
 *   chunk = | scales of block 0 | of block 1 | ... | 0 | codes of columns 0..31 | of 32..63 | ... |
 *           |<- 16 * scale_bytes ->|   up to a line -^ |<--- code_bits lines -->|
 *
 * Scales stand beside the codes that they scale so that a matrix is one stream in ascending addresses;
 * with all scales at the end of a tile a second stream began at every tile, and cost a quarter of the rate.
 *
 * Codes of 32 columns. Step s (0..7) is a line of 64 codes, byte 4 * r + i for row r, column 4 * s + i:
 * what one dot-product instruction (VPDPBUSD, SDOT) takes, one 32-bit lane a row. Eight bits of codes
 * are eight such lines. Fewer are stored as fields of a line's bytes, lowest first: the low plane, then
 * (if code_bits > low_bits) the high plane:
 *
 *   low_bits 8   8 lines   line l           = step l
 *   low_bits 4   4 lines   line l, field k  = step 2l + k     (k = 0: bits 0..3, k = 1: bits 4..7)
 *   low_bits 2   2 lines   line l, field k  = step 4l + k     (k = 0..3)
 *   high 2       2 lines   line l, field k  = step 4l + k
 *   high 1       1 line            field k  = step k          (k = 0..7)
 *
 *   e.g. Q4_0:  line 0 |r0: c0|c4  c1|c5  c2|c6  c3|c7 | r1: ... | ... | r15: ... |   low|high half
 *               line 1 |r0: c8|c12 ...
 *
 * Codes are the unsigned ones of block_format.h (Q8_0: byte + 128). Scales of one block: the
 * scale_halves 16-bit words one after another, each as 16 consecutive words for rows 0..15; then the
 * single bytes, each as 16 consecutive bytes:
 *
 *   e.g. Q4_K:  | d of rows 0..15 (32 bytes) | dmin (32) | scales[0] (16) | scales[1] (16) | ... [11] |
 *
 * Nothing is rounded, merged or dropped, so a packed matrix converts back to the same bytes, and its
 * size is that of the GGUF matrix but for the fill of lines of scales (Q3_K and Q6_K: half a line a
 * block; the others: none, but perhaps in a last chunk). Rows beyond the last in
 * the last tile are zero bits.
 *
 * Float formats: four rows take turns line by line, so that four rows are one stream too: the first line
 * of rows 0, 1, 2, 3, the second line of rows 0, 1, 2, 3, and so on. The last line of a row is filled with
 * zeros; rows beyond the last are zero.
 */
#ifndef KERNELS_FORMATS_PACKED_H
#define KERNELS_FORMATS_PACKED_H

#include "kernels/formats/block_format.h"

#define PACKED_LINE_BYTES 64
#define PACKED_TILE_ROWS  16
#define PACKED_GROUP_COLS 32
#define PACKED_FLOAT_ROWS 4 /* float formats */

/* All take `cols` as a multiple of block_weights. */
size_t packed_bytes(const struct block_format *f, size_t rows, size_t cols);
/* Quantised formats: a tile, and the part of a chunk of `cols` columns that is scales. */
size_t packed_tile_bytes(const struct block_format *f, size_t cols);
size_t packed_scale_bytes(const struct block_format *f, size_t cols);
/* Columns of a whole chunk. */
size_t packed_chunk_cols(const struct block_format *f);
/* Float formats: the bytes of four rows. */
size_t packed_float_bytes(const struct block_format *f, size_t cols);

/* From GGUF rows (contiguous, any alignment) to the packed layout and back. `packed` is
 * packed_bytes() long and does not overlap `blocks`. */
void packed_from_blocks(const struct block_format *f, void *packed, const void *blocks, size_t rows,
                        size_t cols);
void packed_to_blocks(const struct block_format *f, void *blocks, const void *packed, size_t rows,
                      size_t cols);

/* `count` weights of row `row` from column `col` on into floats, as block_dequantise gives them; both
 * are multiples of block_weights. */
void packed_dequantise(const struct block_format *f, float *weights, const void *packed, size_t row,
                       size_t col, size_t count, size_t cols);

/* One block of row `lane` (0..15) of a tile; `block` counts along the row. */
void packed_split(const struct block_format *f, uint8_t *codes, uint8_t *scales,
                  const uint8_t *tile, size_t lane, size_t block, size_t cols);

#endif
