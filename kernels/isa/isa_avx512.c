/* isa_avx512.c -- the table of AVX-512. */
#include "kernels/isa/isa_avx512.h"

#include "kernels/isa/block_avx512.h"
#include "kernels/isa/isa_scalar.h"
#include "kernels/isa/lanes/lanes.h"

static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
}

static isa_product_fn *const block_products[FORMAT_COUNT] = {
    [FORMAT_Q4_0] = block_avx512_q4_0,     [FORMAT_Q4_1] = block_product8_avx512,
    [FORMAT_Q5_0] = block_product8_avx512, [FORMAT_Q5_1] = block_product8_avx512,
    [FORMAT_Q8_0] = block_avx512_q8_0,     [FORMAT_Q2_K] = block_product8_avx512,
    [FORMAT_Q3_K] = block_product8_avx512, [FORMAT_Q4_K] = block_avx512_q4_k,
    [FORMAT_Q5_K] = block_avx512_q5_k,     [FORMAT_Q6_K] = block_avx512_q6_k,
    [FORMAT_IQ4_NL] = block_avx512_iq4_nl, [FORMAT_IQ4_XS] = block_product8_avx512,
    [FORMAT_MXFP4] = block_avx512_mxfp4,
};

const struct isa isa_avx512 = {
    .name = "avx512",
    .summary = "AVX-512 F, BW, VL, DQ and VNNI",
    .supported = supported,
    .product8 = {block_products, packed_product8_avx512},
    .product_f32 = float_product_avx512,
    .quantise = lane_quantise_avx512,
    .dot = lane_dot_avx512,
    .rms_norm = lane_rms_norm_avx512,
    .rope_neox = lane_rope_neox_avx512,
    .rope_adjacent = scalar_rope_adjacent,
    .softmax = lane_softmax_avx512,
    .attention = lane_attention_avx512,
    .swiglu = lane_swiglu_avx512,
    .swiglu_clamped = lane_swiglu_clamped_avx512,
    .add_scaled = lane_add_scaled_avx512,
};
