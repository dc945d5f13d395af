/* isa_avx512.c -- the table of AVX-512. */
#include "kernels/isa/isa_avx512.h"

#include "kernels/isa/isa_scalar.h"
#include "kernels/isa/lanes/lanes.h"

static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
}

const struct isa isa_avx512 = {
    .name = "avx512",
    .summary = "AVX-512 F, BW, VL, DQ and VNNI",
    .supported = supported,
    .product8 = {block_product8_avx512, packed_product8_avx512},
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
    .peak8 = lane_peak8_avx512,
    .peak_f32 = lane_peak_f32_avx512,
};
