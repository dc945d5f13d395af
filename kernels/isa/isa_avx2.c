/* isa_avx2.c -- the table of AVX2. */
#include "kernels/isa/isa_avx2.h"

#include "kernels/isa/isa_scalar.h"
#include "kernels/isa/lanes/lanes.h"

static bool supported(void)
{
    /* Every processor with AVX2 has F16C, which clang 14 cannot ask for. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const struct isa isa_avx2 = {
    .name = "avx2",
    .summary = "AVX2, FMA and F16C",
    .supported = supported,
    .product8 = {block_product8_avx2, packed_product8_avx2},
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
    .peak8 = lane_peak8_avx2,
    .peak_f32 = lane_peak_f32_avx2,
};
