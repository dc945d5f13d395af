/* activation.c -- see activation.h. */
#include "kernels/formats/activation.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PAD_COLS 256

static size_t padded(size_t cols)
{
    return (cols + PAD_COLS - 1) / PAD_COLS * PAD_COLS;
}

size_t activation_bytes(size_t cols)
{
    size_t n = padded(cols);
    size_t bytes = n + (n / 32) * 3 * sizeof(float) + (n / 16) * 2 * sizeof(float);
    return (bytes + ACTIVATION_ALIGN - 1) / ACTIVATION_ALIGN * ACTIVATION_ALIGN;
}

struct activation activation_view(const void *buffers, size_t token, size_t cols)
{
    size_t n = padded(cols);
    const char *buffer = (const char *)buffers + token * activation_bytes(cols);
    const char *scale = buffer + n, *sum32 = scale + n / 32 * 4, *sum16 = sum32 + n / 32 * 4;
    const char *weighted32 = sum16 + n / 16 * 4, *weighted16 = weighted32 + n / 32 * 4;
    return (struct activation){.bytes = (const int8_t *)buffer,
                               .scale = (const float *)scale,
                               .minus_sum32 = (const int32_t *)sum32,
                               .minus_sum16 = (const int32_t *)sum16,
                               .weighted_sum32 = (const float *)weighted32,
                               .weighted_sum16 = (const float *)weighted16};
}

void activation_fill_sums(void *buffer, size_t cols)
{
    struct activation a = activation_view(buffer, 0, cols);
    for (size_t h = 0; h < padded(cols) / 16; h++) {
        int32_t sum = 0;
        for (size_t i = 0; i < 16; i++)
            sum += a.bytes[16 * h + i];
        ((int32_t *)a.minus_sum16)[h] = -sum;
        ((float *)a.weighted_sum16)[h] = a.scale[h / 2] * (float)sum;
    }
    for (size_t g = 0; g < padded(cols) / 32; g++) {
        int32_t sum = -(a.minus_sum16[2 * g] + a.minus_sum16[2 * g + 1]);
        ((int32_t *)a.minus_sum32)[g] = -sum;
        ((float *)a.weighted_sum32)[g] = a.scale[g] * (float)sum;
    }
}

static float quantise_group(int8_t bytes[ACTIVATION_GROUP], const float values[ACTIVATION_GROUP])
{
    float largest = 0;
    for (int i = 0; i < ACTIVATION_GROUP; i++) {
        if (!(fabsf(values[i]) <= 0x1.fffffep127f))
            return NAN;
        if (fabsf(values[i]) > largest)
            largest = fabsf(values[i]);
    }
    if (largest < 1e-30f)
        return 0;
    float inverse = 127.0f / largest;
    for (int i = 0; i < ACTIVATION_GROUP; i++)
        bytes[i] = (int8_t)nearbyintf(values[i] * inverse);
    return largest / 127.0f;
}

void activation_quantise(void *buffer, const float *values, size_t cols)
{
    struct activation a = activation_view(buffer, 0, cols);
    memset(buffer, 0, activation_bytes(cols));
    for (size_t i = 0; i < cols; i += ACTIVATION_GROUP) {
        float group[ACTIVATION_GROUP] = {0};
        size_t n = cols - i < ACTIVATION_GROUP ? cols - i : ACTIVATION_GROUP;
        memcpy(group, values + i, n * sizeof(float));
        ((float *)a.scale)[i / ACTIVATION_GROUP] = quantise_group((int8_t *)a.bytes + i, group);
    }
    activation_fill_sums(buffer, cols);
}
