/* lane_vector.c -- norms, rotations, softmax, attention, gates and the rounding of activations over
 * sixteen lanes; step by step what vector_scalar.c does. A last part of fewer than sixteen elements is
 * loaded with zeros behind it and stored without them. */
#include "kernels/formats/half.h"
#include "kernels/isa/isa_scalar.h"
#include "kernels/isa/lanes/lanes.h"
#include LANES_HEADER

#include <math.h>

/* for_lanes (i, n): i = 0, 16, ... ; LOAD and STORE take what is left of n. */
#define for_lanes(i, n) for (size_t i = 0; i < (n); i += 16)
#define LOAD(p, i, n)   ((n) - (i) >= 16 ? vf_load((p) + (i)) : vf_load_part((p) + (i), (n) - (i)))
#define LOAD_HALF(p, i, n)                                                                         \
    ((n) - (i) >= 16 ? vf_load_half((p) + (i)) : vf_load_half_part((p) + (i), (n) - (i)))

static inline void store(float *p, vf x, size_t left)
{
    if (left >= 16)
        vf_store(p, x);
    else
        vf_store_part(p, x, left);
}

/* isa_exp. */
static inline vf exponential(vf x)
{
    vf magic = vf_set(0x1.8p23f);
    vf shifted = vf_fma(x, vf_set(0x1.715476p+0f), magic);
    vf n = vf_sub(shifted, magic);
    vf r = vf_fma(n, vf_set(-0x1.62e4p-1f), x);
    r = vf_fma(n, vf_set(-0x1.7f7d1cp-20f), r);
    vf p = vf_fma(vf_set(0x1.0e402p-7f), r, vf_set(0x1.573e2ep-5f));
    p = vf_fma(p, r, vf_set(0x1.555e66p-3f));
    p = vf_fma(p, r, vf_set(0x1.fffdb6p-2f));
    p = vf_fma(p, r, vf_set(0x1.ffffecp-1f));
    p = vf_fma(p, r, vf_set(1.0f));
    vf y = vf_bits(vi_add(vi_bits(p), vi_shift_left(vi_bits(shifted), 23)));
    y = vf_if_greater(x, vf_set(88.3f), vf_set(INFINITY), y);
    return vf_if_greater(vf_set(-87.3f), x, vf_zero(), y);
}

float LANES_NAME(lane_dot)(const float *a, const float *b, size_t n)
{
    vf sums = vf_zero();
    for_lanes(i, n) sums = vf_fma(LOAD(a, i, n), LOAD(b, i, n), sums);
    return vf_sum(sums);
}

void LANES_NAME(lane_rms_norm)(float *y, const float *x, const float *weight, size_t n,
                               float epsilon)
{
    float mean = LANES_NAME(lane_dot)(x, x, n) / (float)n;
    vf inverse = vf_set(1.0f / sqrtf(mean + epsilon));
    for_lanes(i, n) store(y + i, vf_mul(vf_mul(LOAD(x, i, n), inverse), LOAD(weight, i, n)), n - i);
}

void LANES_NAME(lane_rope_neox)(float *x, const float *cosine, const float *sine, size_t n)
{
    size_t half = n / 2;
    for_lanes(i, half)
    {
        vf a = LOAD(x, i, half), b = LOAD(x + half, i, half);
        vf c = LOAD(cosine, i, half), s = LOAD(sine, i, half);
        store(x + i, vf_fma(a, c, vf_negate(vf_mul(b, s))), half - i);
        store(x + half + i, vf_fma(a, s, vf_mul(b, c)), half - i);
    }
}

static vf larger(vf max, vf x)
{
    return vf_if_greater(x, max, x, max);
}

static float largest(const float *x, size_t n, float at_least)
{
    vf max = vf_set(at_least);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        max = larger(max, vf_load(x + i));
    float result = vf_largest(max);
    for (; i < n; i++)
        result = x[i] > result ? x[i] : result;
    return result;
}

static float exponentials(float *x, size_t n, float max)
{
    vf sums = vf_zero(), most = vf_set(max);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        vf e = exponential(vf_sub(vf_load(x + i), most));
        vf_store(x + i, e);
        sums = vf_add(sums, e);
    }
    if (i < n) {
        vf_store_part(x + i, exponential(vf_sub(vf_load_part(x + i, n - i), most)), n - i);
        sums = vf_add(sums, vf_load_part(x + i, n - i));
    }
    return vf_sum(sums);
}

static void scale_by(float *x, size_t n, float factor)
{
    vf factors = vf_set(factor);
    for_lanes(i, n) store(x + i, vf_mul(LOAD(x, i, n), factors), n - i);
}

void LANES_NAME(lane_softmax)(float *x, size_t n)
{
    float sum = exponentials(x, n, largest(x, n, -INFINITY));
    scale_by(x, n, 1.0f / sum);
}

static float dot_half(const float *a, const uint16_t *b, size_t n)
{
    vf sums = vf_zero();
    for_lanes(i, n) sums = vf_fma(LOAD(a, i, n), LOAD_HALF(b, i, n), sums);
    return vf_sum(sums);
}

/* Sixteen elements of the values at a time, in a register over all positions. */
static void weighted_values(float *out, const struct attention_task *task, const float *scores)
{
    for_lanes(i, task->value_dim)
    {
        size_t left = task->value_dim - i;
        vf sum = vf_zero();
        for (size_t p = task->begin; p < task->end; p++) {
            const uint16_t *value = task->values + p * task->value_stride;
            sum =
                vf_fma(vf_set(scores[p - task->begin]), LOAD_HALF(value, i, task->value_dim), sum);
        }
        store(out + i, sum, left);
    }
}

void LANES_NAME(lane_attention)(float *out, const struct attention_task *task)
{
    size_t n = task->end - task->begin;
    for (size_t p = 0; p < n; p++) /* a key is loaded once for all heads */
        for (size_t h = 0; h < task->heads; h++)
            task->scores[h * n + p] =
                task->scale * dot_half(task->queries + h * task->key_dim,
                                       task->keys + (task->begin + p) * task->key_stride,
                                       task->key_dim);
    for (size_t h = 0; h < task->heads; h++) {
        float *scores = task->scores + h * n;
        float max = largest(scores, n, task->sinks ? task->sinks[h] : -INFINITY);
        float sum = exponentials(scores, n, max);
        if (task->sinks)
            sum += isa_exp(task->sinks[h] - max);
        scale_by(scores, n, 1.0f / sum);
        weighted_values(out + h * task->value_dim, task, scores);
    }
}

void LANES_NAME(lane_swiglu)(float *y, const float *gate, const float *up, size_t n)
{
    vf one = vf_set(1.0f);
    for_lanes(i, n)
    {
        vf g = LOAD(gate, i, n);
        vf silu = vf_div(g, vf_add(one, exponential(vf_negate(g))));
        store(y + i, vf_mul(silu, LOAD(up, i, n)), n - i);
    }
}

void LANES_NAME(lane_swiglu_clamped)(float *y, const float *gate, const float *up, size_t n,
                                     float alpha, float limit)
{
    vf one = vf_set(1.0f), most = vf_set(limit), least = vf_set(-limit);
    for_lanes(i, n)
    {
        vf g = LOAD(gate, i, n), u = LOAD(up, i, n);
        g = vf_if_greater(g, most, most, g);
        u = vf_if_greater(u, most, most, vf_if_greater(least, u, least, u));
        vf sigmoid_part = vf_add(one, exponential(vf_negate(vf_mul(vf_set(alpha), g))));
        store(y + i, vf_mul(vf_div(g, sigmoid_part), vf_add(u, one)), n - i);
    }
}

void LANES_NAME(lane_add_scaled)(float *y, const float *x, float factor, size_t n)
{
    vf factors = vf_set(factor);
    for_lanes(i, n) store(y + i, vf_fma(factors, LOAD(x, i, n), LOAD(y, i, n)), n - i);
}

/* activation_quantise: magnitudes are compared as integers, in which infinity and NaN are the largest. */
static float quantise_group(int8_t bytes[ACTIVATION_GROUP], vf low, vf high)
{
    vi magnitudes = vi_max(vi_and(vi_bits(low), 0x7fffffff), vi_and(vi_bits(high), 0x7fffffff));
    int32_t bits = vi_largest(magnitudes);
    float most = float_of_bits((uint32_t)bits);
    if (bits >= 0x7f800000)
        return NAN;
    if (most < 1e-30f)
        return 0;
    vf inverse = vf_set(127.0f / most);
    vi_store_bytes(bytes, vi_round(vf_mul(low, inverse)));
    vi_store_bytes(bytes + 16, vi_round(vf_mul(high, inverse)));
    return most / 127.0f;
}

void LANES_NAME(lane_quantise)(void *buffer, const float *values, size_t cols)
{
    struct activation a = activation_view(buffer, 0, cols);
    memset(buffer, 0, activation_bytes(cols));
    for (size_t i = 0; i < cols; i += ACTIVATION_GROUP) {
        vf low = LOAD(values, i, cols);
        vf high = cols - i > 16 ? LOAD(values, i + 16, cols) : vf_zero();
        ((float *)a.scale)[i / ACTIVATION_GROUP] = quantise_group((int8_t *)a.bytes + i, low, high);
    }
    activation_fill_sums(buffer, cols);
}
