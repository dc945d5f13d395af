#include "sim/roofline/estimate.h"

#include "base/fixed.h"

#include <assert.h>

#define MIXTURE_MAX       64                  /* look-ups of a layer up to which misses are drawn */
#define STREAM_READ_BYTES (UINT64_C(4) << 20) /* streamed trunks are read in pieces of this size */

typedef unsigned __int128 u128;

uint64_t time_for(uint64_t amount, uint64_t per_second)
{
    if (amount == 0)
        return 0;
    if (per_second == 0)
        return UINT64_MAX;
    u128 t = ((u128)amount * 1000000000 + per_second - 1) / per_second;
    return t > UINT64_MAX ? UINT64_MAX : (uint64_t)t;
}

static uint64_t part(uint64_t amount, uint64_t ratio)
{
    return fixed_mul_div(amount, ratio, RATIO_ONE);
}

/* One look-up after the other: q[j] becomes q[j]*h + q[j-1]*(1-h). Rounded down, the rest goes to
 * the likeliest place so that the sum stays 2^32. */
void miss_distribution(uint64_t *q32, uint64_t n, uint64_t hit_ratio)
{
    const uint64_t one = UINT64_C(1) << 32;
    uint64_t miss = RATIO_ONE - hit_ratio;
    q32[0] = one;
    for (uint64_t i = 1; i <= n; i++) {
        q32[i] = 0;
        for (uint64_t j = i; j > 0; j--)
            q32[j] = part(q32[j], hit_ratio) + part(q32[j - 1], miss);
        q32[0] = part(q32[0], hit_ratio);
    }
    uint64_t sum = 0, mode = 0;
    for (uint64_t j = 0; j <= n; j++) {
        sum += q32[j];
        mode = q32[j] > q32[mode] ? j : mode;
    }
    q32[mode] += one - sum;
}

/* A burst begins on an idle device, so the pipe that all reads share waits for the first latency;
 * SYSTEMS 1.4 alone would hide it behind the other reads, of which there are few. */
static uint64_t burst_ns(const struct machine *m, const struct regime *r, uint64_t experts,
                         uint64_t size)
{
    if (experts == 0 || size == 0)
        return 0;
    uint64_t reads = experts * r->pieces, piece = (size + r->pieces - 1) / r->pieces;
    uint64_t pipe = fixed_add(m->flash.latency.given ? m->flash.latency.amount : 0,
                              time_for(fixed_mul(reads, piece), m->flash.bandwidth.amount));
    return fixed_max(storage_closed_burst_ns(&m->flash, reads, piece, r->lanes), pipe);
}

/* Many look-ups: the number of misses hardly varies, so the burst of their mean is taken. */
static uint64_t burst_of_mean_ns(const struct layer_class *c, const struct machine *m,
                                 const struct regime *r)
{
    uint64_t misses_e3 = part(c->unique_e3, RATIO_ONE - r->hit_ratio);
    uint64_t below = burst_ns(m, r, misses_e3 / 1000, c->expert_size);
    uint64_t above = burst_ns(m, r, (misses_e3 + 999) / 1000, c->expert_size);
    return below + fixed_mul_div(above - below, misses_e3 % 1000, 1000);
}

/* Expected time of a layer's expert reads, from idle (SYSTEMS 1.3: mixture over the misses). */
static uint64_t expert_read_ns(const struct layer_class *c, const struct machine *m,
                               const struct regime *r)
{
    uint64_t n = (c->unique_e3 + 999) / 1000, q32[MIXTURE_MAX + 1];
    if (n == 0 || r->hit_ratio >= RATIO_ONE)
        return 0;
    if (n > MIXTURE_MAX || c->unique_e3 % 1000)
        return burst_of_mean_ns(c, m, r);
    miss_distribution(q32, n, r->hit_ratio);
    u128 sum = 0;
    for (uint64_t j = 1; j <= n; j++)
        sum += (u128)q32[j] * (q32[j] ? burst_ns(m, r, j, c->expert_size) : 0);
    return (uint64_t)(sum >> 32);
}

static uint64_t stream_ns(uint64_t bytes, const struct machine *m, const struct regime *r)
{
    return bytes ? time_for(bytes, storage_closed_rate_Bps(&m->flash, STREAM_READ_BYTES, r->lanes))
                 : 0;
}

/* ---- bytes --------------------------------------------------------------------------------- */

struct layer_bytes {
    uint64_t miss, streamed, dma, link;
};

static struct layer_bytes bytes_of(const struct layer_class *c, const struct machine *m,
                                   const struct regime *r)
{
    struct layer_bytes b = {.miss = part(c->expert_read_bytes, RATIO_ONE - r->hit_ratio),
                            .streamed = part(c->trunk_bytes, r->stream_trunk)};
    b.dma = fixed_mul(b.miss + b.streamed, 1 + 2 * r->copies);
    if (m->host)
        b.link = b.streamed;
    else if (m->own_memory)
        b.link = b.streamed + (r->experts_on_unit ? b.miss : c->expert_read_bytes);
    return b;
}

void estimate_tally(struct tally *out, const struct workload *l, const struct machine *m,
                    const struct regime *r)
{
    *out = (struct tally){.ops = workload_ops(l)};
    uint64_t dma = fixed_mul(r->stream_bytes, 1 + 2 * r->copies);
    for (size_t i = 0; i < l->class_count; i++) {
        const struct layer_class *c = &l->classes[i];
        struct layer_bytes b = bytes_of(c, m, r);
        out->expert_bytes += c->expert_read_bytes * c->layers;
        out->miss_bytes += b.miss * c->layers;
        out->streamed_bytes += b.streamed * c->layers;
        out->link_bytes += b.link * c->layers;
        out->memory_bytes += (c->fixed_bytes + (m->host ? 0 : c->expert_read_bytes)) * c->layers;
        dma += b.dma * c->layers;
        out->reads += fixed_mul_div(fixed_mul(c->unique_e3 * c->layers, r->pieces),
                                    RATIO_ONE - r->hit_ratio, RATIO_ONE * 1000);
    }
    out->memory_bytes += l->ends_bytes;
    out->streamed_bytes += r->stream_bytes;
    out->flash_bytes = out->miss_bytes + out->streamed_bytes;
    if (m->own_memory) {
        out->link_bytes += r->stream_bytes;
        out->dram_bytes = dma + out->link_bytes + (m->host ? out->expert_bytes : 0);
        out->memory_bytes += out->link_bytes;
    } else {
        out->memory_bytes += dma;
        out->dram_bytes = out->memory_bytes;
    }
}

/* ---- time ---------------------------------------------------------------------------------- */

/* What a kernel computes with and reads from; its waiting for memory is counted in `*waiting_ns`. */
struct site {
    uint64_t ops, memory_Bps;
    uint64_t *waiting_ns;
};

static struct site unit_site(struct timing *t, const struct machine *m, uint64_t rows_e3)
{
    return (struct site){machine_ops(m, rows_e3), m->memory_Bps, &t->memory_ns};
}

static struct site expert_site(struct timing *t, const struct machine *m, uint64_t rows_e3)
{
    if (!m->host)
        return unit_site(t, m, rows_e3);
    return (struct site){machine_host_ops(m, rows_e3), m->dram_Bps, &t->host_memory_ns};
}

/* A kernel waits for the slower of its operations and its bytes. */
static uint64_t kernel_ns(struct timing *t, struct site site, uint64_t ops, uint64_t bytes,
                          uint64_t layers)
{
    uint64_t compute = time_for(ops, site.ops), memory = time_for(bytes, site.memory_Bps);
    if (compute >= memory)
        t->compute_ns = fixed_add(t->compute_ns, fixed_mul(compute, layers));
    else
        *site.waiting_ns = fixed_add(*site.waiting_ns, fixed_mul(memory, layers));
    return fixed_max(compute, memory);
}

/* What of a layer's reads is not hidden behind its experts (SYSTEMS 1.5). The last expert to arrive
 * can only start then, if there was a miss at all; by that time it has the memory to itself. */
static uint64_t exposed_ns(uint64_t read, uint64_t experts, const struct layer_class *c,
                           struct site site, const struct regime *r)
{
    if (r->profile == PROFILE_SERIAL || read == 0)
        return read;
    uint64_t n = (c->unique_e3 + 999) / 1000;
    uint64_t alone = fixed_max(time_for(c->expert_ops, site.ops),
                               time_for(c->expert_read_bytes, site.memory_Bps));
    uint64_t last = n ? alone / n : 0, none = RATIO_ONE;
    for (uint64_t i = 0; i < n && none; i++)
        none = part(none, r->hit_ratio);
    uint64_t end = fixed_add(read, part(last, RATIO_ONE - none));
    return end > experts ? end - experts : 0;
}

/* Where reads and copies of a layer, or of the ends, take time: they cross flash, the DRAM and perhaps
 * the link, one after the other if nothing overlaps, at the pace of the slowest if all does. */
struct transfer {
    uint64_t flash_ns, link_ns;
    uint64_t arriving; /* bytes written into the memory that kernels read */
};

static struct transfer transfer_of(uint64_t flash_ns, uint64_t dma, uint64_t link,
                                   const struct machine *m)
{
    struct transfer t = {.flash_ns = fixed_max(flash_ns, time_for(dma, m->dram_Bps)),
                         .arriving = dma};
    if (!m->own_memory)
        return t;
    t.arriving = link;
    if (link == 0)
        return t;
    t.link_ns = fixed_max(time_for(link, m->link_Bps), time_for(link, m->memory_Bps));
    t.link_ns = fixed_max(t.link_ns, time_for(dma + link, m->dram_Bps));
    return t;
}

static void add_exposed(struct timing *t, const struct transfer *x, uint64_t exposed,
                        uint64_t layers, enum profile profile)
{
    uint64_t by_link = x->link_ns > x->flash_ns ? exposed : 0;
    if (profile == PROFILE_SERIAL)
        by_link = x->link_ns;
    t->link_ns = fixed_add(t->link_ns, fixed_mul(by_link, layers));
    t->flash_ns = fixed_add(t->flash_ns, fixed_mul(exposed - by_link, layers));
}

static uint64_t read_ns(const struct transfer *x, enum profile profile)
{
    return profile == PROFILE_SERIAL ? fixed_add(x->flash_ns, x->link_ns)
                                     : fixed_max(x->flash_ns, x->link_ns);
}

/* Kernels of one layer. The hidden state goes over to the host and comes back: two calls for the one
 * of the experts. */
static uint64_t layer_calls(const struct layer_class *c, const struct machine *m)
{
    return c->calls + (m->host && c->expert_ops > 0);
}

static void add_layer(struct timing *t, const struct layer_class *c, uint64_t tokens,
                      const struct machine *m, const struct regime *r, uint64_t *reads)
{
    struct layer_bytes b = bytes_of(c, m, r);
    uint64_t flash = fixed_add(expert_read_ns(c, m, r), stream_ns(b.streamed, m, r));
    /* The mixture is rounded in its 32nd bit; bytes over the pipe's rate stay a lower bound. */
    if (b.miss + b.streamed)
        flash = fixed_max(flash, time_for(b.miss + b.streamed, m->flash.bandwidth.amount));
    struct transfer x = transfer_of(flash, b.dma, b.link, m);
    uint64_t beside = r->profile == PROFILE_SERIAL ? 0 : m->host ? b.dma : x.arriving;
    struct site site = expert_site(t, m, c->rows_e3);
    kernel_ns(t, unit_site(t, m, tokens * 1000), c->fixed_ops, c->fixed_bytes, c->layers);
    uint64_t experts = kernel_ns(t, site, c->expert_ops, c->expert_read_bytes + beside, c->layers);
    t->overhead_ns =
        fixed_add(t->overhead_ns, fixed_mul(fixed_mul(layer_calls(c, m), m->call_ns), c->layers));
    uint64_t read = read_ns(&x, r->profile);
    if (r->profile == PROFILE_PERFECT)
        *reads = fixed_add(*reads, fixed_mul(read, c->layers));
    else
        add_exposed(t, &x, exposed_ns(read, experts, c, site, r), c->layers, r->profile);
}

/* The head can be read again while nothing else of the token is left to run. */
static void add_ends(struct timing *t, const struct workload *l, const struct machine *m,
                     const struct regime *r, uint64_t *reads)
{
    uint64_t bytes = r->stream_bytes;
    struct transfer x = transfer_of(stream_ns(bytes, m, r), fixed_mul(bytes, 1 + 2 * r->copies),
                                    m->own_memory ? bytes : 0, m);
    uint64_t beside = r->profile == PROFILE_PERFECT ? x.arriving : 0;
    kernel_ns(t, unit_site(t, m, l->tokens * 1000), l->ends_ops, l->ends_bytes + beside, 1);
    t->overhead_ns = fixed_add(t->overhead_ns, m->call_ns);
    uint64_t read = read_ns(&x, r->profile);
    if (r->profile == PROFILE_PERFECT)
        *reads = fixed_add(*reads, read);
    else
        add_exposed(t, &x, read, 1, r->profile);
}

void estimate_timing(struct timing *out, const struct workload *l, const struct machine *m,
                     const struct regime *r)
{
    uint64_t reads = 0;
    *out = (struct timing){0};
    for (size_t i = 0; i < l->class_count; i++)
        add_layer(out, &l->classes[i], l->tokens, m, r, &reads);
    add_ends(out, l, m, r, &reads);
    uint64_t busy = fixed_add(fixed_add(out->compute_ns, out->memory_ns), out->overhead_ns);
    busy = fixed_add(busy, out->host_memory_ns);
    if (r->profile == PROFILE_PERFECT)
        out->flash_ns = reads > busy ? reads - busy : 0;
    out->total_ns = fixed_add(fixed_add(out->flash_ns, out->link_ns), busy);
}

/* ---- bounds -------------------------------------------------------------------------------- */

static uint64_t serial_read_ns(const struct workload *l, const struct machine *m,
                               const struct regime *r, uint64_t *calls)
{
    uint64_t sum = stream_ns(r->stream_bytes, m, r);
    *calls = 1;
    for (size_t i = 0; i < l->class_count; i++) {
        const struct layer_class *c = &l->classes[i];
        uint64_t one = expert_read_ns(c, m, r);
        one = fixed_add(one, stream_ns(bytes_of(c, m, r).streamed, m, r));
        sum = fixed_add(sum, fixed_mul(one, c->layers));
        *calls += layer_calls(c, m) * c->layers;
    }
    return sum;
}

static void take(struct bounds *b, uint64_t ns, const char *resource)
{
    if (ns > b->lower_ns) {
        b->lower_ns = ns;
        b->binds = resource;
    }
}

/* Each of some hundred terms of a run is rounded up to a nanosecond by itself; the sum of the whole
 * is not. One nanosecond a term keeps the upper bound above. */
static uint64_t rounding_ns(const struct workload *l)
{
    uint64_t layers = 1;
    for (size_t i = 0; i < l->class_count; i++)
        layers += l->classes[i].layers;
    return 8 * layers;
}

/* Operations over the rates of `rows_e3` tokens a weight, unit and host one after the other. */
static uint64_t compute_ns(const struct workload *l, const struct machine *m, uint64_t rows_e3)
{
    uint64_t experts = m->host ? workload_expert_ops(l) : 0;
    uint64_t unit = time_for(workload_ops(l) - experts, machine_ops(m, rows_e3));
    return experts ? fixed_add(unit, time_for(experts, machine_host_ops(m, rows_e3))) : unit;
}

void estimate_bounds(struct bounds *out, const struct workload *l, const struct machine *m,
                     const struct regime *r)
{
    struct tally y;
    uint64_t calls;
    estimate_tally(&y, l, m, r);
    *out = (struct bounds){.binds = "compute"};
    out->flash_ns = y.flash_bytes ? time_for(y.flash_bytes, m->flash.bandwidth.amount) : 0;
    out->dram_ns = y.dram_bytes ? time_for(y.dram_bytes, m->dram_Bps) : 0;
    out->memory_ns = time_for(y.memory_bytes, m->memory_Bps);
    out->link_ns = y.link_bytes ? time_for(y.link_bytes, m->link_Bps) : 0;
    out->compute_ns = compute_ns(l, m, l->tokens * 1000);
    take(out, out->compute_ns, "compute");
    take(out, out->memory_ns, m->own_memory ? "memory" : "DRAM");
    take(out, out->dram_ns, "DRAM");
    take(out, out->link_ns, "link");
    take(out, out->flash_ns, "flash");
    uint64_t reads = serial_read_ns(l, m, r, &calls);
    uint64_t slowest = compute_ns(l, m, 1000);
    out->upper_ns = fixed_add(fixed_max(reads, out->flash_ns), fixed_add(slowest, out->memory_ns));
    out->upper_ns = fixed_add(out->upper_ns, fixed_add(out->link_ns, fixed_mul(calls, m->call_ns)));
    if (m->own_memory)
        out->upper_ns = fixed_add(out->upper_ns, out->dram_ns);
    out->upper_ns = fixed_add(out->upper_ns, rounding_ns(l));
}
