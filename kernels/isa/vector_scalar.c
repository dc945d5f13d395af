/* vector_scalar.c -- everything but products, by definition: norms, rotations, softmax, attention, gates. */
#include "kernels/isa/isa_scalar.h"

#include "kernels/formats/half.h"

#include <math.h>

/* Cody and Waite: x = n ln 2 + r, e^x = 2^n p(r), |r| <= ln 2 / 2. The magic number 1.5 * 2^23 rounds to a
 * whole number in the low bits. */
float isa_exp(float x)
{
    if (x > 88.3f)
        return INFINITY;
    if (x < -87.3f)
        return 0;
    float shifted = fmaf(x, 0x1.715476p+0f, 0x1.8p23f);
    float n = shifted - 0x1.8p23f;
    float r = fmaf(n, -0x1.62e4p-1f, x);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = fmaf(0x1.0e402p-7f, r, 0x1.573e2ep-5f);
    p = fmaf(p, r, 0x1.555e66p-3f);
    p = fmaf(p, r, 0x1.fffdb6p-2f);
    p = fmaf(p, r, 0x1.ffffecp-1f);
    p = fmaf(p, r, 1.0f);
    return float_of_bits(bits_of_float(p) + (bits_of_float(shifted) << 23));
}

float scalar_sum16(float sums[16])
{
    for (int width = 8; width; width /= 2)
        for (int j = 0; j < width; j++)
            sums[j] += sums[j + width];
    return sums[0];
}

float scalar_dot(const float *a, const float *b, size_t n)
{
    float sums[16] = {0};
    for (size_t i = 0; i < n; i++)
        sums[i % 16] = fmaf(a[i], b[i], sums[i % 16]);
    return scalar_sum16(sums);
}

void scalar_rms_norm(float *y, const float *x, const float *weight, size_t n, float epsilon)
{
    float inverse = 1.0f / sqrtf(scalar_dot(x, x, n) / (float)n + epsilon);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * inverse * weight[i];
}

static void rotate(float *a, float *b, float cosine, float sine)
{
    float old = *a;
    *a = fmaf(old, cosine, -(*b * sine));
    *b = fmaf(old, sine, *b * cosine);
}

void scalar_rope_neox(float *x, const float *cosine, const float *sine, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        rotate(&x[i], &x[i + n / 2], cosine[i], sine[i]);
}

void scalar_rope_adjacent(float *x, const float *cosine, const float *sine, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        rotate(&x[2 * i], &x[2 * i + 1], cosine[i], sine[i]);
}

static float largest(const float *x, size_t n, float at_least)
{
    float max = at_least;
    for (size_t i = 0; i < n; i++)
        if (x[i] > max)
            max = x[i];
    return max;
}

/* Replaces x by e^(x - max) and returns the sum. */
static float exponentials(float *x, size_t n, float max)
{
    float sums[16] = {0};
    for (size_t i = 0; i < n; i++) {
        x[i] = isa_exp(x[i] - max);
        sums[i % 16] += x[i];
    }
    return scalar_sum16(sums);
}

static void scale_by(float *x, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

void scalar_softmax(float *x, size_t n)
{
    float sum = exponentials(x, n, largest(x, n, -INFINITY));
    scale_by(x, n, 1.0f / sum);
}

static float dot_half(const float *a, const uint16_t *b, size_t n)
{
    float sums[16] = {0};
    for (size_t i = 0; i < n; i++)
        sums[i % 16] = fmaf(a[i], half_to_float(b[i]), sums[i % 16]);
    return scalar_sum16(sums);
}

static void attend(float *out, const struct attention_task *task, size_t head)
{
    const float *query = task->queries + head * task->key_dim;
    size_t n = task->end - task->begin;
    float *scores = task->scores + head * n;
    for (size_t p = 0; p < n; p++)
        scores[p] = task->scale * dot_half(query, task->keys + (task->begin + p) * task->key_stride,
                                           task->key_dim);
    float max = largest(scores, n, task->sinks ? task->sinks[head] : -INFINITY);
    float sum = exponentials(scores, n, max);
    if (task->sinks)
        sum += isa_exp(task->sinks[head] - max);
    scale_by(scores, n, 1.0f / sum);
    for (size_t i = 0; i < task->value_dim; i++)
        out[i] = 0;
    for (size_t p = 0; p < n; p++) {
        const uint16_t *value = task->values + (task->begin + p) * task->value_stride;
        for (size_t i = 0; i < task->value_dim; i++)
            out[i] = fmaf(scores[p], half_to_float(value[i]), out[i]);
    }
}

void scalar_attention(float *out, const struct attention_task *task)
{
    for (size_t h = 0; h < task->heads; h++)
        attend(out + h * task->value_dim, task, h);
}

void scalar_swiglu(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = gate[i] / (1.0f + isa_exp(-gate[i])) * up[i];
}

void scalar_swiglu_clamped(float *y, const float *gate, const float *up, size_t n, float alpha,
                           float limit)
{
    for (size_t i = 0; i < n; i++) {
        float g = gate[i] > limit ? limit : gate[i];
        float u = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
        y[i] = g / (1.0f + isa_exp(-(alpha * g))) * (u + 1.0f);
    }
}

void scalar_add_scaled(float *y, const float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(factor, x[i], y[i]);
}
