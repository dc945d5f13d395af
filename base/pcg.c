/* pcg.c -- PCG32, its named streams and the integer-only samplers.
 *
 * The generator is the published one (O'Neill, "PCG: A Family of Simple Fast Space-Efficient
 * Statistically Good Algorithms for Random Number Generation", HMC-CS-2014-0905, section 6.3): a
 * 64-bit linear congruential state, an xorshift of its high bits, a rotation by its highest five.
 * The samplers use integers only, because a draw decides what happens next in a simulation and must
 * therefore be the same bits on every machine.
 */
#include "base/pcg.h"

#include "base/fixed.h"
#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>

#define PCG_MULTIPLIER UINT64_C(6364136223846793005)
#define PCG_TOTAL_MAX  (UINT64_C(1) << 63)

/* Zipf weights are powers of two with an exponent in Q32; log2(rank) is below 30 for this many. */
#define PCG_ZIPF_COUNT_BITS_MAX  30
#define PCG_ZIPF_S_PER_MILLE_MAX 100000

void pcg_seed(struct pcg *p, uint64_t initstate, uint64_t initseq)
{
    p->state = 0;
    p->increment = (initseq << 1) | 1;
    (void)pcg_u32(p);
    p->state += initstate;
    (void)pcg_u32(p);
}

void pcg_stream(struct pcg *p, uint64_t seed, const char *name)
{
    uint64_t key = hash_add(hash_add(HASH_SEED, seed), hash_text(name));
    pcg_seed(p, key, hash_mix(key + HASH_SEED));
}

uint32_t pcg_u32(struct pcg *p)
{
    uint64_t old = p->state;
    p->state = old * PCG_MULTIPLIER + p->increment;
    uint32_t xorshifted = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t rotation = (uint32_t)(old >> 59);
    return (xorshifted >> rotation) | (xorshifted << (-rotation & 31));
}

uint64_t pcg_u64(struct pcg *p)
{
    uint64_t high = pcg_u32(p);
    return high << 32 | pcg_u32(p);
}

/* The published pcg32_boundedrand_r: draws below 2^32 mod bound are thrown away, and what is left is
 * a whole number of copies of 0..bound-1. */
uint32_t pcg_below(struct pcg *p, uint32_t bound)
{
    assert(bound > 0);
    uint32_t threshold = -bound % bound;
    for (;;) {
        uint32_t draw = pcg_u32(p);
        if (draw >= threshold)
            return draw % bound;
    }
}

/* Twelve values of 0..65535 have mean 12 * 65535 / 2 and variance 12 * (2^32 - 1) / 12, which is
 * 1 - 2^-32 in units of 2^16 squared. */
int32_t pcg_gauss_q16(struct pcg *p)
{
    int32_t sum = 0;
    for (int i = 0; i < 6; i++) {
        uint32_t draw = pcg_u32(p);
        sum += (int32_t)(draw >> 16) + (int32_t)(draw & 0xffff);
    }
    return sum - 6 * 65535;
}

static enum status allocate_table(struct pcg_table *t, size_t count, struct diag *dg)
{
    *t = (struct pcg_table){0};
    if (count == 0)
        return diag_set(dg, ST_RANGE, "a distribution needs at least one weight");
    t->cumulative = calloc(count, sizeof *t->cumulative);
    if (!t->cumulative)
        return diag_no_memory(dg);
    t->count = count;
    return ST_OK;
}

enum status pcg_table_new(struct pcg_table *t, const uint64_t *weights, size_t count,
                          struct diag *dg)
{
    enum status st = allocate_table(t, count, dg);
    if (st != ST_OK)
        return st;
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (weights[i] > PCG_TOTAL_MAX - total) {
            pcg_table_free(t);
            return diag_set(dg, ST_RANGE, "the weights of a distribution add up to more than 2^63");
        }
        total += weights[i];
        t->cumulative[i] = total;
    }
    if (total == 0) {
        pcg_table_free(t);
        return diag_set(dg, ST_RANGE, "all %zu weights of a distribution are 0", count);
    }
    return ST_OK;
}

/* The weight of rank 0 is 2^62 / 2^bits, so that even equal weights add up to at most 2^62, and
 * the smallest keeps as many digits as it can. */
enum status pcg_table_zipf(struct pcg_table *t, size_t count, uint32_t s_per_mille, struct diag *dg)
{
    if (count > (size_t)1 << PCG_ZIPF_COUNT_BITS_MAX || s_per_mille > PCG_ZIPF_S_PER_MILLE_MAX) {
        *t = (struct pcg_table){0};
        return diag_set(dg, ST_RANGE, "a Zipf distribution has at most 2^%d ranks and s at most %d",
                        PCG_ZIPF_COUNT_BITS_MAX, PCG_ZIPF_S_PER_MILLE_MAX / 1000);
    }
    enum status st = allocate_table(t, count, dg);
    if (st != ST_OK)
        return st;
    int bits = 0;
    while ((size_t)1 << bits < count)
        bits++;
    int64_t first_q32 = (PCG_ZIPF_COUNT_BITS_MAX - bits) * FIXED_ONE;
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t log_q32 = (uint64_t)fixed_log2_q32(i + 1);
        int64_t power_q32 = (int64_t)fixed_mul_div(log_q32, s_per_mille, 1000);
        total += fixed_exp2_q32(first_q32 - power_q32);
        t->cumulative[i] = total;
    }
    return ST_OK;
}

void pcg_table_free(struct pcg_table *t)
{
    free(t->cumulative);
    *t = (struct pcg_table){0};
}

/* Uniform in [0, bound): the high word of draw * bound, rejecting the few low words that would make
 * some results likelier (Lemire, "Fast Random Integer Generation in an Interval", 2019). */
static uint64_t below_u64(struct pcg *p, uint64_t bound)
{
    unsigned __int128 product = (unsigned __int128)pcg_u64(p) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound;
        while ((uint64_t)product < threshold)
            product = (unsigned __int128)pcg_u64(p) * bound;
    }
    return (uint64_t)(product >> 64);
}

/* The first entry whose cumulative weight exceeds the draw: an entry of weight 0 is never picked. */
size_t pcg_pick(struct pcg *p, const struct pcg_table *t)
{
    assert(t->count > 0);
    uint64_t draw = below_u64(p, t->cumulative[t->count - 1]);
    size_t low = 0, high = t->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->cumulative[middle] > draw)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
