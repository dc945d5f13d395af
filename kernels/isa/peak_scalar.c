/* peak_scalar.c -- the multiply-adds of the scalar products, with nothing to take apart; see lane_peak.c. */
#include "kernels/isa/isa_scalar.h"

#include <math.h>

#define TURNS 64

uint64_t scalar_peak8(int32_t sink[16], size_t rounds)
{
    uint8_t codes[TURNS][ACTIVATION_GROUP];
    int8_t bytes[ACTIVATION_GROUP];
    for (int i = 0; i < TURNS * ACTIVATION_GROUP; i++)
        codes[i / ACTIVATION_GROUP][i % ACTIVATION_GROUP] = (uint8_t)((i * 37) & 127);
    for (int i = 0; i < ACTIVATION_GROUP; i++)
        bytes[i] = (int8_t)(i * 5 - 60);
    int32_t sum = 0;
    for (size_t r = 0; r < rounds; r++)
        for (int i = 0; i < ACTIVATION_GROUP; i++)
            sum += codes[r % TURNS][i] * bytes[i];
    sink[0] = sum;
    return (uint64_t)rounds * ACTIVATION_GROUP * 2;
}

uint64_t scalar_peak_f32(float sink[16], size_t rounds)
{
    float lines[TURNS][16], sums[16] = {0};
    for (int i = 0; i < TURNS * 16; i++)
        lines[i / 16][i % 16] = (float)(i % 8) * 0x1p-10f;
    for (size_t r = 0; r < rounds; r++)
        for (int i = 0; i < 16; i++)
            sums[i] = fmaf(lines[r % TURNS][i], 0.5f, sums[i]);
    sink[0] = scalar_sum16(sums);
    return (uint64_t)rounds * 32;
}
