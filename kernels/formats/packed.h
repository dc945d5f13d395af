/* packed.h -- the packed layout: the weights of a GGUF matrix, lying as the kernels want them.
 *
 * A block of 18 or 144 bytes straddles cache lines, mixes codes with scales, and makes a kernel gather
 * both. Packed, a matrix is a sequence of tiles of 16 rows; a tile is whole 64-byte lines of codes
 * followed by whole lines of scales, and every line holds one thing for all 16 rows:
 *
 *   tile = | codes of columns 0..31 | codes of 32..63 | ... | scales of block 0 | of block 1 | ... | 0 |
 *          |<--- code_bits lines -->|                       |<- 16 * scale_bytes ->|  up to 64 bytes --^
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
 * size is that of the GGUF matrix but for the fill of the last line of a tile. Rows beyond the last in
 * the last tile are zero bits. Float formats are rows as in the file, each filled to whole lines.
 */
#ifndef KERNELS_FORMATS_PACKED_H
#define KERNELS_FORMATS_PACKED_H

#include "kernels/formats/block_format.h"

#define PACKED_LINE_BYTES 64
#define PACKED_TILE_ROWS  16
#define PACKED_GROUP_COLS 32

/* All take `cols` as a multiple of block_weights. Offsets within a packed matrix: */
size_t packed_bytes(const struct block_format *f, size_t rows, size_t cols);
size_t packed_tile_bytes(const struct block_format *f, size_t cols);   /* quantised formats */
size_t packed_scale_offset(const struct block_format *f, size_t cols); /* of a tile's first scale */
size_t packed_row_bytes(const struct block_format *f, size_t cols); /* float formats: the stride */

/* From GGUF rows (contiguous, any alignment) to the packed layout and back. `packed` is
 * packed_bytes() long and does not overlap `blocks`. */
void packed_from_blocks(const struct block_format *f, void *packed, const void *blocks, size_t rows,
                        size_t cols);
void packed_to_blocks(const struct block_format *f, void *blocks, const void *packed, size_t rows,
                      size_t cols);

/* Row `row` into floats, as block_dequantise of that row gives them. */
void packed_dequantise(const struct block_format *f, float *weights, const void *packed, size_t row,
                       size_t cols);

/* One block of row `lane` (0..15) of a tile; `block` counts along the row. */
void packed_split(const struct block_format *f, uint8_t *codes, uint8_t *scales,
                  const uint8_t *tile, size_t lane, size_t block, size_t cols);

#endif
