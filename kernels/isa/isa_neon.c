/* isa_neon.c -- the table of NEON. */
#include "kernels/isa/isa_neon.h"

#include "kernels/isa/isa_scalar.h"
#include "kernels/isa/lanes/lanes.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

static bool supported(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

const struct isa isa_neon = {
    .name = "neon",
    .summary = "ARMv8.2 dot product",
    .supported = supported,
    .product8 = {block_product8_neon, packed_product8_neon},
    .product_f32 = float_product_neon,
    .quantise = lane_quantise_neon,
    .dot = lane_dot_neon,
    .rms_norm = lane_rms_norm_neon,
    .rope_neox = lane_rope_neox_neon,
    .rope_adjacent = scalar_rope_adjacent,
    .softmax = lane_softmax_neon,
    .attention = lane_attention_neon,
    .swiglu = lane_swiglu_neon,
    .swiglu_clamped = lane_swiglu_clamped_neon,
    .add_scaled = lane_add_scaled_neon,
    .peak8 = lane_peak8_neon,
    .peak_f32 = lane_peak_f32_neon,
};
