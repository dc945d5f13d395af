/* meter.h -- what a resource did with its time: occupancy, busy and idle time, throughput.
 *
 * A meter watches a level (jobs waiting, servers busy, bytes per second in use) that is constant
 * between changes, and sums level x ns exactly in 128 bits. From the sums follow, without rounding:
 *
 *     busy + idle = span                        (busy: the level is above 0)
 *     area = sum over all who passed of the time each was there      (Little's law, L = lambda W)
 *
 * Means and rates are floored, and only when asked for. The struct is open so that owners can embed
 * it; read it through the functions, which count the time since the last change, too.
 */
#ifndef SIM_CORE_METER_H
#define SIM_CORE_METER_H

#include "sim/core/wide.h"

struct meter {
    uint64_t start_ns, changed_ns;
    uint64_t level, level_max;
    uint64_t busy_ns; /* up to changed_ns, as is area */
    wide area;        /* level x ns */
    uint64_t passed_count;
    wide passed_units;
};

/* Level 0 from now_ns on. */
void meter_init(struct meter *m, uint64_t now_ns);
/* The level is `level` from now_ns on. now_ns never goes back. */
void meter_set(struct meter *m, uint64_t now_ns, uint64_t level);
/* Relative to the present level, which stays within 0..UINT64_MAX. */
void meter_rise(struct meter *m, uint64_t now_ns, uint64_t by);
void meter_fall(struct meter *m, uint64_t now_ns, uint64_t by);
/* One more passed, of so many units (bytes, tokens; 1 to count only). */
void meter_pass(struct meter *m, uint64_t units);
/* Forgets all but the level: what is measured begins at now_ns (decode after prefill). */
void meter_restart(struct meter *m, uint64_t now_ns);

/* now_ns must not lie before the last change. */
uint64_t meter_span_ns(const struct meter *m, uint64_t now_ns);
uint64_t meter_busy_ns(const struct meter *m, uint64_t now_ns);
uint64_t meter_idle_ns(const struct meter *m, uint64_t now_ns);
wide meter_area(const struct meter *m, uint64_t now_ns); /* level x ns since the start */
/* Mean level in parts per 10^9; 0 over an empty span; saturates. */
uint64_t meter_mean_e9(const struct meter *m, uint64_t now_ns);
/* Units passed per second; 0 over an empty span; saturates. */
uint64_t meter_passed_per_s(const struct meter *m, uint64_t now_ns);

#endif
