/* synth_pool.c -- see synth_pool.h. */
#include "kernels/synth/synth_pool.h"

#include "base/hash.h"
#include "base/pcg.h"
#include "kernels/formats/half.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES   256
#define SAMPLE_BLOCKS 512

struct pool {
    const struct block_format *format;
    uint64_t fan_in;
    uint64_t blocks_wanted; /* of all its rows */
    uint8_t *blocks;        /* NULL until the first row */
    size_t count;
    size_t cursor; /* next block, if each is taken once */
};

struct synth_pools {
    uint64_t seed;
    struct pool *pool;
    size_t count, room;
};

enum status synth_pools_new(struct synth_pools **out, uint64_t seed, struct diag *dg)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return diag_no_memory(dg);
    (*out)->seed = seed;
    return ST_OK;
}

void synth_pools_free(struct synth_pools *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++)
        free(p->pool[i].blocks);
    free(p->pool);
    free(p);
}

static struct pool *find(struct synth_pools *p, const struct block_format *f, uint64_t fan_in)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->pool[i].format == f && p->pool[i].fan_in == fan_in)
            return &p->pool[i];
    return NULL;
}

enum status synth_pools_announce(struct synth_pools *p, const struct block_format *f,
                                 uint64_t fan_in, uint64_t weights, struct diag *dg)
{
    struct pool *pool = find(p, f, fan_in);
    if (!pool && p->count == p->room) {
        size_t room = 2 * p->room + 8;
        struct pool *moved = reallocarray(p->pool, room, sizeof *moved);
        if (!moved)
            return diag_no_memory(dg);
        p->pool = moved;
        p->room = room;
    }
    if (!pool) {
        pool = &p->pool[p->count++];
        *pool = (struct pool){.format = f, .fan_in = fan_in};
    }
    pool->blocks_wanted += weights / f->block_weights;
    return ST_OK;
}

static float uniform(struct pcg *p, float deviation)
{
    float half_range = deviation * 1.7320508f; /* sqrt(3) */
    return (float)((int32_t)(pcg_u32(p) >> 8) - (1 << 23)) * 0x1p-23f * half_range;
}

static void random_bytes(struct pcg *p, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        uint32_t word = pcg_u32(p);
        for (size_t k = i; k < i + 4 && k < count; k++, word >>= 8)
            bytes[k] = (uint8_t)word;
    }
}

/* Codes and scale bytes of a block, under these scales: two F16, one, or (MXFP4) a power of two in one byte. */
static void random_block(struct pcg *p, const struct block_format *f, uint8_t *codes,
                         uint8_t *scales, float scale, float minimum)
{
    random_bytes(p, codes, f->block_weights);
    for (size_t i = 0; i < f->block_weights; i++)
        codes[i] &= (uint8_t)((1u << f->code_bits) - 1);
    random_bytes(p, scales, f->scale_bytes);
    if (f->scale_halves == 0)
        scales[0] =
            (uint8_t)((bits_of_float(scale) >> 23) + 1); /* e8m0_to_half_scale gives it back */
    else
        store_u16(scales, half_of_float(scale));
    if (f->has_minimum)
        store_u16(scales + 2, half_of_float(minimum));
}

/* The power of two nearest by ratio. */
static double power_of_two(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent); /* 0.5 to 1 */
    return ldexp(1, mantissa * mantissa < 0.5 ? exponent - 1 : exponent);
}

/* Weights of random blocks are scale * x + minimum * y, x and y for scales (1, 0) and (0, 1). */
struct scales {
    float scale, minimum;
};

static struct scales find_scales(const struct block_format *f, double deviation)
{
    struct pcg p;
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    float x[BLOCK_WEIGHTS_MAX], y[BLOCK_WEIGHTS_MAX] = {0};
    double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, sum_yy = 0;
    pcg_stream(&p, 0, "synth/scales");
    for (size_t b = 0; b < SAMPLE_BLOCKS; b++) {
        random_block(&p, f, codes, scales, 1, 0);
        block_weights(f, x, codes, scales);
        if (f->has_minimum) {
            store_u16(scales, half_of_float(0));
            store_u16(scales + 2, half_of_float(1));
            block_weights(f, y, codes, scales);
        }
        for (size_t i = 0; i < f->block_weights; i++) {
            sum_x += (double)x[i];
            sum_y += (double)y[i];
            sum_xx += (double)x[i] * (double)x[i];
            sum_xy += (double)x[i] * (double)y[i];
            sum_yy += (double)y[i] * (double)y[i];
        }
    }
    double n = (double)SAMPLE_BLOCKS * f->block_weights;
    double ratio = f->has_minimum ? -sum_x / sum_y : 0;
    double square = (sum_xx + 2 * ratio * sum_xy + ratio * ratio * sum_yy) / n;
    double scale = deviation / sqrt(square);
    if (f->scale_halves == 0)
        scale = power_of_two(scale);
    return (struct scales){(float)scale, (float)(scale * ratio)};
}

static void draw_floats(struct pool *pool, struct pcg *p, float deviation)
{
    const struct block_format *f = pool->format;
    for (size_t i = 0; i < pool->count; i++) {
        float weight = uniform(p, deviation);
        f->quantise(pool->blocks + i * f->block_bytes, &weight);
    }
}

static void draw_codes(struct pool *pool, struct pcg *p, float deviation)
{
    const struct block_format *f = pool->format;
    struct scales s = find_scales(f, (double)deviation);
    uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
    for (size_t b = 0; b < pool->count; b++) {
        random_block(p, f, codes, scales, s.scale, s.minimum);
        f->join(pool->blocks + b * f->block_bytes, codes, scales);
    }
}

static bool each_once(const struct pool *pool)
{
    return pool->blocks_wanted == pool->count;
}

static enum status draw(struct synth_pools *pools, struct pool *pool, size_t row_blocks,
                        struct diag *dg)
{
    char name[80];
    struct pcg p;
    const struct block_format *f = pool->format;
    size_t most = SYNTH_POOL_BYTES / f->block_bytes;
    most = most > row_blocks ? most : row_blocks;
    pool->count = pool->blocks_wanted < most ? (size_t)pool->blocks_wanted : most;
    pool->blocks = malloc(pool->count * f->block_bytes);
    if (!pool->blocks)
        return diag_no_memory(dg);
    snprintf(name, sizeof name, "synth/%s/%" PRIu64, f->name, pool->fan_in);
    pcg_stream(&p, pools->seed, name);
    float deviation = (float)(1 / sqrt((double)pool->fan_in));
    if (f->code_bits)
        draw_codes(pool, &p, deviation);
    else
        draw_floats(pool, &p, deviation);
    return ST_OK;
}

static void take_next(struct pool *pool, uint8_t *to, size_t blocks)
{
    size_t bytes = pool->format->block_bytes;
    assert(pool->cursor + blocks <= pool->count);
    memcpy(to, pool->blocks + pool->cursor * bytes, blocks * bytes);
    pool->cursor += blocks;
}

static void take_pieces(const struct pool *pool, uint8_t *to, size_t blocks, uint64_t tensor,
                        uint64_t row)
{
    size_t bytes = pool->format->block_bytes, piece = (PIECE_BYTES + bytes - 1) / bytes;
    uint64_t row_hash = hash_add(tensor, row);
    for (size_t at = 0; at < blocks; at += piece) {
        size_t n = blocks - at < piece ? blocks - at : piece;
        uint64_t places = pool->count - n + 1;
        uint64_t h = hash_mix(row_hash + at * HASH_SEED);
        uint64_t place = (uint64_t)((unsigned __int128)h * places >> 64);
        memcpy(to + at * bytes, pool->blocks + place * bytes, n * bytes);
    }
}

enum status synth_pools_row(struct synth_pools *p, void *to, const struct block_format *f,
                            uint64_t fan_in, size_t cols, uint64_t tensor, uint64_t row,
                            struct diag *dg)
{
    struct pool *pool = find(p, f, fan_in);
    size_t blocks = cols / f->block_weights;
    assert(pool);
    enum status st = pool->blocks ? ST_OK : draw(p, pool, blocks, dg);
    if (st != ST_OK)
        return st;
    if (each_once(pool))
        take_next(pool, to, blocks);
    else
        take_pieces(pool, to, blocks, tensor, row);
    return ST_OK;
}
