/* lanes.h -- the kernels of kernels/isa/lanes/, which are written once over sixteen lanes and compiled for
 * each instruction set: with LANES = avx2 and LANES_HEADER = its header, X becomes X_avx2. */
#ifndef KERNELS_ISA_LANES_LANES_H
#define KERNELS_ISA_LANES_LANES_H

#include "kernels/isa/isa.h"

#define LANES_PASTE(name, isa)  name##_##isa
#define LANES_EXPAND(name, isa) LANES_PASTE(name, isa)
#define LANES_NAME(name)        LANES_EXPAND(name, LANES)

/* packed_product8: one function for each quantised format, packed layout; NULL for float formats.
 * block_product8: the same for GGUF blocks. float_product: F32 activations, any format. */
#define LANES_DECLARE(isa)                                                                         \
    extern isa_product_fn *const packed_product8_##isa[FORMAT_COUNT];                              \
    extern isa_product_fn *const block_product8_##isa[FORMAT_COUNT];                               \
    isa_product_fn block_q4_0_##isa, block_q4_1_##isa, block_q5_0_##isa, block_q5_1_##isa;         \
    isa_product_fn block_q8_0_##isa, block_iq4_nl_##isa, block_mxfp4_##isa, block_q2_k_##isa;      \
    isa_product_fn block_q3_k_##isa, block_q4_k_##isa, block_q5_k_##isa, block_q6_k_##isa;         \
    isa_product_fn block_iq4_xs_##isa;                                                             \
    isa_product_fn float_product_##isa;                                                            \
    float lane_dot_##isa(const float *a, const float *b, size_t n);                                \
    void lane_rms_norm_##isa(float *y, const float *x, const float *weight, size_t n,              \
                             float epsilon);                                                       \
    void lane_rope_neox_##isa(float *x, const float *cosine, const float *sine, size_t n);         \
    void lane_softmax_##isa(float *x, size_t n);                                                   \
    void lane_attention_##isa(float *out, const struct attention_task *task);                      \
    void lane_swiglu_##isa(float *y, const float *gate, const float *up, size_t n);                \
    void lane_swiglu_clamped_##isa(float *y, const float *gate, const float *up, size_t n,         \
                                   float alpha, float limit);                                      \
    void lane_add_scaled_##isa(float *y, const float *x, float factor, size_t n);                  \
    void lane_quantise_##isa(void *buffer, const float *values, size_t cols);                      \
    uint64_t lane_peak8_##isa(int32_t sink[16], size_t rounds);                                    \
    uint64_t lane_peak_f32_##isa(float sink[16], size_t rounds);

LANES_DECLARE(avx2)
LANES_DECLARE(avx512)
LANES_DECLARE(neon)

#endif
