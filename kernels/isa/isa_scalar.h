/* isa_scalar.h -- the definition of every kernel, in plain C. Each instruction set's table is this one
 * with entries replaced, and may call these functions where it has nothing better. */
#ifndef KERNELS_ISA_ISA_SCALAR_H
#define KERNELS_ISA_ISA_SCALAR_H

#include "kernels/isa/isa.h"

extern const struct isa isa_scalar;

isa_product_fn scalar_product8;
isa_product_fn scalar_product_f32;

/* Groups group_begin .. group_end (in units of group_weights) of one row's product, added to sums. */
void scalar_row_groups(float sums[4], const struct weights *w, size_t row,
                       const struct activation *x, size_t group_begin, size_t group_end);

/* Columns of a row that are dequantised at a time: a multiple of every block and of sixteen. */
#define SCALAR_CHUNK_COLS 256
/* `cols` columns of a row from column `col` on, both multiples of the format's block. */
void scalar_row_chunk(float *weights, const struct weights *w, size_t row, size_t col, size_t cols);

float scalar_dot(const float *a, const float *b, size_t n);
/* Sixteen partial sums into one, in halves. */
float scalar_sum16(float sums[16]);
void scalar_rms_norm(float *y, const float *x, const float *weight, size_t n, float epsilon);
void scalar_rope_neox(float *x, const float *cosine, const float *sine, size_t n);
void scalar_rope_adjacent(float *x, const float *cosine, const float *sine, size_t n);
void scalar_softmax(float *x, size_t n);
void scalar_attention(float *out, const struct attention_task *task);
void scalar_swiglu(float *y, const float *gate, const float *up, size_t n);
void scalar_swiglu_clamped(float *y, const float *gate, const float *up, size_t n, float alpha,
                           float limit);
void scalar_add_scaled(float *y, const float *x, float factor, size_t n);

uint64_t scalar_peak8(int32_t sink[16], size_t rounds);
uint64_t scalar_peak_f32(float sink[16], size_t rounds);

#endif
