/* lane_peak.c -- what arithmetic alone gives, for `engine bench`: the multiply-adds of the products with
 * nothing to decode, no scales, and codes from the first-level cache. As many sums at a time as hide the
 * latency of an instruction and stay in registers. */
#include "kernels/isa/lanes/lanes.h"
#include LANES_HEADER

#define UNROLL _Pragma("GCC unroll 8")

#define TOKENS 2
#define TURNS  16

uint64_t LANES_NAME(lane_peak8)(int32_t sink[16], size_t rounds)
{
    _Alignas(64) uint8_t lines[TURNS][LANES_PEAK][64];
    for (size_t i = 0; i < sizeof lines; i++)
        ((uint8_t *)lines)[i] = (uint8_t)((i * 37) & 127);
    vi sums[LANES_PEAK][TOKENS];
    vb bytes[TOKENS] = {vb_load(lines[1][0]), vb_load(lines[2][1])};
    UNROLL for (int l = 0; l < LANES_PEAK; l++) UNROLL for (int t = 0; t < TOKENS; t++) sums[l][t] =
        vi_zero();
    for (size_t r = 0; r < rounds; r++)
        UNROLL for (int l = 0; l < LANES_PEAK; l++)
        {
            vb codes = vb_load(lines[r % TURNS][l]);
            UNROLL for (int t = 0; t < TOKENS; t++) sums[l][t] =
                lanes_dot(sums[l][t], codes, bytes[t], 0);
        }
    vi sum = vi_zero();
    UNROLL for (int l = 0; l < LANES_PEAK; l++) UNROLL for (int t = 0; t < TOKENS; t++) sum =
        vi_add(sum, sums[l][t]);
    vi_store_bytes((int8_t *)sink, sum);
    return (uint64_t)rounds * LANES_PEAK * TOKENS * 128;
}

uint64_t LANES_NAME(lane_peak_f32)(float sink[16], size_t rounds)
{
    _Alignas(64) float lines[TURNS][LANES_PEAK][16];
    for (size_t i = 0; i < TURNS * LANES_PEAK * 16; i++)
        ((float *)lines)[i] = (float)(i % 8) * 0x1p-10f;
    vf sums[LANES_PEAK][TOKENS], x[TOKENS] = {vf_set(0.5f), vf_set(-0.25f)};
    UNROLL for (int l = 0; l < LANES_PEAK; l++) UNROLL for (int t = 0; t < TOKENS; t++) sums[l][t] =
        vf_zero();
    for (size_t r = 0; r < rounds; r++)
        UNROLL for (int l = 0; l < LANES_PEAK; l++)
        {
            vf weights = vf_load(lines[r % TURNS][l]);
            UNROLL for (int t = 0; t < TOKENS; t++) sums[l][t] = vf_fma(weights, x[t], sums[l][t]);
        }
    vf sum = vf_zero();
    UNROLL for (int l = 0; l < LANES_PEAK; l++) UNROLL for (int t = 0; t < TOKENS; t++) sum =
        vf_add(sum, sums[l][t]);
    vf_store(sink, sum);
    return (uint64_t)rounds * LANES_PEAK * TOKENS * 32;
}
