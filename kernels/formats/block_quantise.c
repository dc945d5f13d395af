/* block_quantise.c -- writers of the formats that `engine synth` makes: F32, F16, Q4_0, Q8_0, MXFP4.
 *
 * Rounding follows ggml's reference quantisers: Q8_0 divides by amax / 127 and rounds to nearest, half
 * away from zero; Q4_0 maps the weight of largest magnitude to -8 and rounds halves up; MXFP4 takes the
 * power of two that leaves the largest magnitude at most 6 steps (OCP MX 1.0, section 6.3). */
#include "kernels/formats/block_code.h"

#include "kernels/formats/half.h"

#include <float.h>
#include <math.h>

static float magnitude_max(const float *weights, int count)
{
    float max = 0;
    for (int i = 0; i < count; i++) {
        float magnitude = fabsf(weights[i]);
        if (magnitude > max)
            max = magnitude;
    }
    return max;
}

void quantise_f32(uint8_t *block, const float *weights)
{
    memcpy(block, weights, sizeof(float));
}

void quantise_f16(uint8_t *block, const float *weights)
{
    store_u16(block, half_of_float(weights[0]));
}

void quantise_q8_0(uint8_t *block, const float *weights)
{
    float d = magnitude_max(weights, 32) / 127.0f;
    float inverse = fabsf(d) >= FLT_MIN ? 1.0f / d : 0.0f;
    store_u16(block, half_of_float(d));
    for (int i = 0; i < 32; i++)
        block[2 + i] = (uint8_t)(int8_t)roundf(weights[i] * inverse);
}

void quantise_q4_0(uint8_t *block, const float *weights)
{
    float extreme = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(weights[i]) > fabsf(extreme))
            extreme = weights[i];
    float d = extreme / -8.0f;
    float inverse = fabsf(d) >= FLT_MIN ? 1.0f / d : 0.0f;
    uint8_t codes[32], scales[2];
    for (int i = 0; i < 32; i++) {
        float code = weights[i] * inverse + 8.5f;
        codes[i] = code >= 15.0f ? 15 : (uint8_t)code;
    }
    store_u16(scales, half_of_float(d));
    join_q4_0(block, codes, scales);
}

/* The nearest of the 16 values; of two equally near ones the first in the table. */
static uint8_t mxfp4_nearest(float steps)
{
    uint8_t best = 0;
    for (uint8_t code = 1; code < 16; code++)
        if (fabsf(steps - values_mxfp4[code]) < fabsf(steps - values_mxfp4[best]))
            best = code;
    return best;
}

void quantise_mxfp4(uint8_t *block, const float *weights)
{
    float max = magnitude_max(weights, 32);
    /* floor(log2 max) - 2 + 127: the exponent field of F32, less that of the largest value, 6. */
    int e = (int)(bits_of_float(max) >> 23) - 2;
    uint8_t scale = (uint8_t)(e < 0 ? 0 : e), codes[32];
    float half_scale = e8m0_to_half_scale(scale);
    for (int i = 0; i < 32; i++)
        codes[i] = mxfp4_nearest(weights[i] / half_scale);
    join_mxfp4(block, codes, &scale);
}
