/* bench_weights.c -- see bench_weights.h. */
#include "kernels/bench/bench_weights.h"

#include <string.h>

/* 2^-8 .. 2^-7 as F16. */
static uint16_t small_half(uint32_t random)
{
    return (uint16_t)(0x1c00 | (random & 0x3ff));
}

static void random_float(const struct block_format *f, uint8_t *out, uint32_t random)
{
    float x = ((float)(random >> 8) + 0.5f) * 0x1p-23f - 1.0f;
    uint16_t half = (uint16_t)(small_half(random) | (random >> 31) << 15);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t bfloat = (uint16_t)(bits >> 16);
    switch (f->id) {
    case FORMAT_F16:
        memcpy(out, &half, sizeof half);
        return;
    case FORMAT_BF16:
        memcpy(out, &bfloat, sizeof bfloat);
        return;
    default:
        memcpy(out, &x, sizeof x);
    }
}

static void random_block(const struct block_format *f, uint8_t *out, struct pcg *chance)
{
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    for (uint32_t i = 0; i < f->block_weights; i += 4) {
        uint32_t four = pcg_u32(chance);
        for (uint32_t k = 0; k < 4; k++)
            codes[i + k] = (uint8_t)((four >> 8 * k) & ((1u << f->code_bits) - 1));
    }
    for (uint32_t i = 0; i < f->scale_bytes; i++)
        scales[i] = (uint8_t)pcg_u32(chance);
    for (uint32_t i = 0; i < f->scale_halves; i++) {
        uint16_t half = small_half(pcg_u32(chance));
        memcpy(scales + 2 * i, &half, sizeof half);
    }
    if (f->scale_halves == 0) /* a power of two with a bias of 127 */
        scales[0] = (uint8_t)(119 + pcg_below(chance, 4));
    f->join(out, codes, scales);
}

void bench_weights_fill(const struct block_format *f, void *out, size_t blocks, struct pcg *chance)
{
    uint8_t *p = out;
    for (size_t i = 0; i < blocks; i++, p += f->block_bytes)
        if (f->code_bits == 0)
            random_float(f, p, pcg_u32(chance));
        else
            random_block(f, p, chance);
}
