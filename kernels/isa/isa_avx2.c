/* isa_avx2.c -- the table of AVX2. */
#include "kernels/isa/isa_avx2.h"

#include "kernels/isa/isa_scalar.h"
#include "kernels/isa/lanes/lanes.h"

static bool supported(void)
{
    /* Every processor with AVX2 has F16C, which clang 14 cannot ask for. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static isa_product_fn *const block_products[FORMAT_COUNT] = {
    [FORMAT_Q4_0] = block_product8_avx2,   [FORMAT_Q4_1] = block_product8_avx2,
    [FORMAT_Q5_0] = block_product8_avx2,   [FORMAT_Q5_1] = block_product8_avx2,
    [FORMAT_Q8_0] = block_product8_avx2,   [FORMAT_Q2_K] = block_product8_avx2,
    [FORMAT_Q3_K] = block_product8_avx2,   [FORMAT_Q4_K] = block_product8_avx2,
    [FORMAT_Q5_K] = block_product8_avx2,   [FORMAT_Q6_K] = block_product8_avx2,
    [FORMAT_IQ4_NL] = block_product8_avx2, [FORMAT_IQ4_XS] = block_product8_avx2,
    [FORMAT_MXFP4] = block_product8_avx2,
};

const struct isa isa_avx2 = {
    .name = "avx2",
    .summary = "AVX2, FMA and F16C",
    .supported = supported,
    .product8 = {block_products, packed_product8_avx2},
    .product_f32 = float_product_avx2,
    .quantise = lane_quantise_avx2,
    .dot = lane_dot_avx2,
    .rms_norm = lane_rms_norm_avx2,
    .rope_neox = lane_rope_neox_avx2,
    .rope_adjacent = scalar_rope_adjacent,
    .softmax = lane_softmax_avx2,
    .attention = lane_attention_avx2,
    .swiglu = lane_swiglu_avx2,
    .swiglu_clamped = lane_swiglu_clamped_avx2,
    .add_scaled = lane_add_scaled_avx2,
};
