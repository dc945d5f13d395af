/* kernels_measured.c -- see kernels_measured.h. */
#include "sim/pipeline/kernels_measured.h"

#include "base/fixed.h"
#include "sim/roofline/estimate.h"

#include <string.h>

/* Everything that a token reads lies in the last-level cache: dense weights and what may be cached. */
static bool in_cache(const struct run *r)
{
    const struct value *cache = &r->setup.device->last_level_cache;
    return cache->given && r->placement.dense + r->placement.cache <= cache->amount;
}

static uint64_t threads_of(const struct run *r, const struct compute *c)
{
    if (r->setup.threads)
        return r->setup.threads;
    return c->threads.given ? c->threads.amount : 1;
}

static const struct value *rate_of(const struct kernel_rate *k, bool cached)
{
    return cached && k->cache_rate.given ? &k->cache_rate : &k->rate;
}

/* The rates measured with the numbers of tokens nearest to `tokens` on either side; NULL where there is none. */
static void neighbours(const struct kernel_rate **below, const struct kernel_rate **above,
                       const struct compute *c, const char *format, int layout, uint64_t threads,
                       uint64_t tokens, bool cached)
{
    const struct kernel_rate *list = c->kernels.items;
    *below = *above = NULL;
    for (size_t i = 0; i < c->kernels.count; i++) {
        const struct kernel_rate *k = &list[i];
        if (strcmp(k->format, format) != 0 || k->layout != layout || k->threads != threads ||
            !rate_of(k, cached)->given)
            continue;
        if (k->tokens <= tokens && (!*below || k->tokens > (*below)->tokens))
            *below = k;
        if (k->tokens >= tokens && (!*above || k->tokens < (*above)->tokens))
            *above = k;
    }
}

/* Time of `bytes` for `tokens` tokens: between two measured numbers of tokens on the straight line, beyond the
 * last in proportion. 0: there is no such rate. */
static uint64_t product_ns(const struct compute *c, const char *format, int layout,
                           uint64_t threads, uint64_t tokens, bool cached, uint64_t bytes)
{
    const struct kernel_rate *below, *above;
    neighbours(&below, &above, c, format, layout, threads, tokens, cached);
    if (!below && !above)
        return 0;
    if (!below || !above) {
        const struct kernel_rate *end = below ? below : above;
        uint64_t ns = time_for(bytes, rate_of(end, cached)->amount);
        return below ? fixed_mul_div(ns, tokens, end->tokens) : ns;
    }
    uint64_t low = time_for(bytes, rate_of(below, cached)->amount),
             high = time_for(bytes, rate_of(above, cached)->amount);
    if (above->tokens == below->tokens || high <= low)
        return low;
    return low + fixed_mul_div(high - low, tokens - below->tokens, above->tokens - below->tokens);
}

void kernels_measure(const struct run *r, struct kernel *k, const uint64_t weight_bytes[GROUP_MAX],
                     uint64_t tokens, uint64_t other_bytes)
{
    const struct compute *c = &r->setup.device->compute[r->machine.unit_idx];
    bool cached = in_cache(r);
    uint64_t sum = 0;
    for (int g = 0; c->kernels.count > 0 && g < GROUP_MAX; g++) {
        const struct quant_format *f = r->model->quant.group[g];
        int layout = g == GROUP_EXPERT && r->pieces > 1 ? KERNEL_BLOCKS : KERNEL_PACKED;
        if (weight_bytes[g] == 0)
            continue;
        uint64_t ns =
            f ? product_ns(c, f->name, layout, threads_of(r, c), tokens, cached, weight_bytes[g])
              : 0;
        if (ns == 0)
            return;
        sum += ns;
    }
    if (sum == 0)
        return;
    /* The forks of the dense part are in the layer's overhead. */
    if (weight_bytes[GROUP_EXPERT]) {
        const struct kernel_rate *expert, *above;
        neighbours(&expert, &above, c, r->model->quant.group[GROUP_EXPERT]->name,
                   r->pieces > 1 ? KERNEL_BLOCKS : KERNEL_PACKED, threads_of(r, c), tokens, cached);
        expert = expert ? expert : above;
        if (expert && expert->call.given)
            k->fixed_ns += expert->call.amount;
    }
    k->measured_ns = sum + time_for(other_bytes, r->machine.memory_Bps);
    k->cached = cached;
}
