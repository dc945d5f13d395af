/* meter.c -- see meter.h. */
#include "sim/core/meter.h"

#include <assert.h>

void meter_init(struct meter *m, uint64_t now_ns)
{
    *m = (struct meter){.start_ns = now_ns, .changed_ns = now_ns};
}

void meter_set(struct meter *m, uint64_t now_ns, uint64_t level)
{
    m->area = meter_area(m, now_ns);
    m->busy_ns = meter_busy_ns(m, now_ns);
    m->changed_ns = now_ns;
    m->level = level;
    if (level > m->level_max)
        m->level_max = level;
}

void meter_rise(struct meter *m, uint64_t now_ns, uint64_t by)
{
    assert(by <= UINT64_MAX - m->level);
    meter_set(m, now_ns, m->level + by);
}

void meter_fall(struct meter *m, uint64_t now_ns, uint64_t by)
{
    assert(by <= m->level);
    meter_set(m, now_ns, m->level - by);
}

void meter_pass(struct meter *m, uint64_t units)
{
    m->passed_count++;
    m->passed_units += units;
}

void meter_restart(struct meter *m, uint64_t now_ns)
{
    assert(now_ns >= m->changed_ns);
    uint64_t level = m->level;
    meter_init(m, now_ns);
    m->level = m->level_max = level;
}

uint64_t meter_span_ns(const struct meter *m, uint64_t now_ns)
{
    assert(now_ns >= m->changed_ns);
    return now_ns - m->start_ns;
}

uint64_t meter_busy_ns(const struct meter *m, uint64_t now_ns)
{
    assert(now_ns >= m->changed_ns);
    return m->busy_ns + (m->level ? now_ns - m->changed_ns : 0);
}

uint64_t meter_idle_ns(const struct meter *m, uint64_t now_ns)
{
    return meter_span_ns(m, now_ns) - meter_busy_ns(m, now_ns);
}

wide meter_area(const struct meter *m, uint64_t now_ns)
{
    assert(now_ns >= m->changed_ns);
    return m->area + wide_mul(m->level, now_ns - m->changed_ns);
}

/* floor(sum * 10^9 / span), saturating, without overflow for any sum. */
static uint64_t per_span_e9(wide sum, uint64_t span)
{
    if (span == 0)
        return 0;
    wide whole = sum / span, rest = sum % span; /* rest < 2^64: rest * 10^9 fits */
    if (whole > UINT64_MAX / NS_PER_S)
        return UINT64_MAX;
    wide result = whole * NS_PER_S + rest * NS_PER_S / span;
    return result < UINT64_MAX ? (uint64_t)result : UINT64_MAX;
}

uint64_t meter_mean_e9(const struct meter *m, uint64_t now_ns)
{
    return per_span_e9(meter_area(m, now_ns), meter_span_ns(m, now_ns));
}

uint64_t meter_passed_per_s(const struct meter *m, uint64_t now_ns)
{
    return per_span_e9(m->passed_units, meter_span_ns(m, now_ns));
}
