/* block_quantise.c -- writers of the formats that `engine synth` makes: F32, F16, BF16, Q4_0, Q8_0, MXFP4.
 *
 * Rounding follows ggml's reference quantisers: Q8_0 divides by amax / 127 and rounds to nearest, half
 * away from zero; Q4_0 maps the weight of largest magnitude to -8 and rounds halves up; MXFP4 takes the
 * power of two that leaves the largest magnitude at most 6 steps (OCP MX 1.0, section 6.3). Where ggml's
 * scale would become infinite, the largest F16 is taken and the codes end at their range: the block
 * saturates. */
#include "kernels/formats/block_code.h"

#include "kernels/formats/half.h"

#include <float.h>
#include <math.h>

#define HALF_MAX 65504.0f

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

void quantise_bf16(uint8_t *block, const float *weights)
{
    store_u16(block, bfloat_of_float(weights[0]));
}

/* A step that F16 can hold, and its inverse: 0 where that would overflow, so that all codes are 0. */
static float step_inverse(float *step)
{
    if (fabsf(*step) > HALF_MAX)
        *step = copysignf(HALF_MAX, *step);
    return fabsf(*step) >= FLT_MIN ? 1.0f / *step : 0.0f;
}

void quantise_q8_0(uint8_t *block, const float *weights)
{
    float d = magnitude_max(weights, 32) / 127.0f, inverse = step_inverse(&d);
    store_u16(block, half_of_float(d));
    for (int i = 0; i < 32; i++) {
        float code = roundf(weights[i] * inverse);
        block[2 + i] = (uint8_t)(int8_t)fminf(fmaxf(code, -127.0f), 127.0f);
    }
}

void quantise_q4_0(uint8_t *block, const float *weights)
{
    float extreme = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(weights[i]) > fabsf(extreme))
            extreme = weights[i];
    float d = extreme / -8.0f, inverse = step_inverse(&d);
    uint8_t codes[32], scales[2];
    for (int i = 0; i < 32; i++)
        codes[i] = (uint8_t)fminf(fmaxf(weights[i] * inverse + 8.5f, 0.0f), 15.0f);
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
