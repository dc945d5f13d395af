/* block_code.h -- how the blocks of each format come apart: the functions behind block_format.c's table.
 *
 * See struct block_format for what split, join, scale and quantise promise. Formats that differ only in
 * the width of their fields share a function. */
#ifndef KERNELS_FORMATS_BLOCK_CODE_H
#define KERNELS_FORMATS_BLOCK_CODE_H

#include <stdint.h>

/* Blocks of 32 weights (block_small.c). */
void split_q4_0(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q4_0(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q4_1(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q4_1(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q5_0(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q5_0(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q5_1(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q5_1(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q8_0(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q8_0(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_mxfp4(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_mxfp4(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void scale_half(float *factor, float *minimum, const uint8_t *scales);
void scale_half_pair(float *factor, float *minimum, const uint8_t *scales);
void scale_e8m0(float *factor, float *minimum, const uint8_t *scales);

/* Blocks of 256 weights (block_super.c). */
void split_q2_k(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q2_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q3_k(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q3_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q4_k(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q4_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q5_k(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q5_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_q6_k(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_q6_k(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void split_iq4_xs(uint8_t *codes, uint8_t *scales, const uint8_t *block);
void join_iq4_xs(uint8_t *block, const uint8_t *codes, const uint8_t *scales);
void scale_q2_k(float *factor, float *minimum, const uint8_t *scales);
void scale_q3_k(float *factor, float *minimum, const uint8_t *scales);
void scale_q4_k(float *factor, float *minimum, const uint8_t *scales);
void scale_q6_k(float *factor, float *minimum, const uint8_t *scales);
void scale_iq4_xs(float *factor, float *minimum, const uint8_t *scales);

/* Writers (block_quantise.c). */
void quantise_f32(uint8_t *block, const float *weights);
void quantise_f16(uint8_t *block, const float *weights);
void quantise_bf16(uint8_t *block, const float *weights);
void quantise_q4_0(uint8_t *block, const float *weights);
void quantise_q8_0(uint8_t *block, const float *weights);
void quantise_mxfp4(uint8_t *block, const float *weights);

extern const int8_t values_iq4[16];   /* the non-linear 4-bit steps of IQ4_NL and IQ4_XS */
extern const int8_t values_mxfp4[16]; /* E2M1, doubled so that they are integers */

#endif
