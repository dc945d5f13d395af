#include "sim/roofline/ridge.h"

#include "base/fixed.h"

#define RATE_MOST (UINT64_C(1) << 50) /* closed form and descriptions go no further */

const char *tier_name(enum tier t)
{
    static const char *const names[TIER_COUNT] = {"flash", "DRAM", "link", "compute"};
    return names[t];
}

uint64_t tier_rate(const struct machine *m, enum tier t)
{
    switch (t) {
    case TIER_FLASH:
        return m->flash_given ? m->flash.bandwidth.amount : 0;
    case TIER_DRAM:
        return m->memory_Bps;
    case TIER_LINK:
        return m->link_Bps;
    default:
        return m->reached_ops;
    }
}

uint64_t tier_amount(const struct tally *y, enum tier t)
{
    switch (t) {
    case TIER_FLASH:
        return y->flash_bytes;
    case TIER_DRAM:
        return y->memory_bytes;
    case TIER_LINK:
        return y->link_bytes;
    default:
        return y->ops;
    }
}

uint64_t ridge_e3(const struct machine *m, enum tier t)
{
    uint64_t rate = tier_rate(m, t);
    return rate ? fixed_mul_div(m->reached_ops, 1000, rate) : 0;
}

uint64_t intensity_e3(const struct tally *y, enum tier t)
{
    uint64_t bytes = tier_amount(y, t);
    return bytes ? fixed_mul_div(y->ops, 1000, bytes) : 0;
}

uint64_t crossover_Bps(uint64_t flash_bytes, uint64_t dram_bytes, uint64_t dram_Bps)
{
    return dram_bytes ? fixed_mul_div(flash_bytes, dram_Bps, dram_bytes) : 0;
}

void weights_only(struct weights_only *out, const struct tally *y, uint64_t trunk_bytes,
                  uint64_t flash_Bps, uint64_t dram_Bps)
{
    *out = (struct weights_only){.flash_bytes = y->flash_bytes,
                                 .dram_bytes = trunk_bytes + y->expert_bytes};
    out->flash_ns = time_for(out->flash_bytes, flash_Bps);
    out->dram_ns = time_for(out->dram_bytes, dram_Bps);
    out->serial_ns = out->flash_ns + out->dram_ns;
    out->overlap_ns = out->flash_ns > out->dram_ns ? out->flash_ns : out->dram_ns;
    out->crossover_Bps = crossover_Bps(out->flash_bytes, out->dram_bytes, dram_Bps);
}

static void set_rate(struct machine *m, enum tier t, uint64_t rate)
{
    uint64_t now = tier_rate(m, t);
    if (t == TIER_FLASH) {
        struct value *lane = &m->flash.lane_bandwidth, *iops = &m->flash.iops;
        lane->amount = fixed_mul_div(lane->amount, rate, now);
        iops->amount = fixed_mul_div(iops->amount, rate, now);
        lane->amount += lane->given && lane->amount == 0;
        iops->amount += iops->given && iops->amount == 0;
        m->flash.bandwidth.amount = rate;
        m->flash.link_bandwidth.given = false;
    } else if (t == TIER_DRAM) {
        m->memory_Bps = rate;
        m->dram_Bps = m->own_memory ? m->dram_Bps : rate;
    } else if (t == TIER_LINK) {
        m->link_Bps = rate;
    } else {
        m->reached_ops = rate;
        m->gemm_ops = rate;
    }
}

static bool enough(enum tier t, uint64_t rate, bool serial, const struct workload *l,
                   const struct machine *m, const struct regime *r, uint64_t wanted_ns)
{
    struct machine changed = *m;
    struct bounds b;
    set_rate(&changed, t, rate);
    estimate_bounds(&b, l, &changed, r);
    return (serial ? b.upper_ns : b.lower_ns) <= wanted_ns;
}

bool tier_need(uint64_t *rate, enum tier t, bool serial, const struct workload *l,
               const struct machine *m, const struct regime *r, uint64_t wanted_ns)
{
    uint64_t low = 0, high = t == TIER_COMPUTE ? UINT64_MAX / 4 : RATE_MOST;
    if (tier_rate(m, t) == 0 || !enough(t, high, serial, l, m, r, wanted_ns))
        return false;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (enough(t, middle, serial, l, m, r, wanted_ns))
            high = middle;
        else
            low = middle;
    }
    *rate = high;
    return true;
}
