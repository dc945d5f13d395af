/* activation.h -- the other factor of a product: activations in 8 bits.
 *
 * A token's vector is cut into groups of 32; a group becomes 32 signed bytes and one F32 scale,
 * value = scale * byte, scale = largest magnitude / 127. One format serves all weight formats, those
 * with 256 weights a block too: a scale for each 32 values rounds more finely than one for 256 (what
 * ggml's Q8_K has), and in a kernel that keeps one row a lane it costs nothing.
 *
 * Beside the bytes stand sums that kernels need for every row again: bytes over 32 and over 16 (negated,
 * because a kernel starts from -bias * sum), and scale * sum, what a minimum is multiplied by.
 * `cols` is any number; the arrays are filled with zeros to a multiple of 256 columns.
 */
#ifndef KERNELS_FORMATS_ACTIVATION_H
#define KERNELS_FORMATS_ACTIVATION_H

#include <stddef.h>
#include <stdint.h>

#define ACTIVATION_GROUP 32
#define ACTIVATION_ALIGN 64

/* Views into one token's buffer; `padded` = cols rounded up to 256. */
struct activation {
    const int8_t *bytes;         /* padded */
    const float *scale;          /* padded / 32 */
    const int32_t *minus_sum32;  /* padded / 32 */
    const int32_t *minus_sum16;  /* padded / 16 */
    const float *weighted_sum32; /* padded / 32 */
    const float *weighted_sum16; /* padded / 16 */
};

/* Size of one token's buffer, a multiple of ACTIVATION_ALIGN, which is also its alignment. */
size_t activation_bytes(size_t cols);
/* Token `token` of consecutive buffers. */
struct activation activation_view(const void *buffers, size_t token, size_t cols);

/* The definition: byte = value * (127 / largest), to nearest, ties to even. A group whose largest magnitude
 * is below 1e-30 is zero; one that holds an infinity or a NaN gets the scale NaN, so that whatever is
 * computed with it is NaN and not a number that looks right. */
void activation_quantise(void *buffer, const float *values, size_t cols);

/* What follows from the bytes and scales of columns 0..padded: the sums. For SIMD variants. */
void activation_fill_sums(void *buffer, size_t cols);

#endif
