/* ridge.h -- ridge points, the flash rate at which DRAM takes over, and the rates a wish needs.
 *
 * Two ways of counting stand side by side. `estimate.h` counts every byte a pass moves (SYSTEMS 1.2):
 * weights, state, and what reads and copies write into DRAM. The *weights-only* view charges DRAM with
 * the whole resident trunk and the experts read and nothing else; published what-ifs count like that
 * (SYSTEMS 2(b)), so comparing with them needs it. It is the more favourable one.
 */
#ifndef SIM_ROOFLINE_RIDGE_H
#define SIM_ROOFLINE_RIDGE_H

#include "sim/roofline/estimate.h"

enum tier { TIER_FLASH, TIER_DRAM, TIER_LINK, TIER_COMPUTE, TIER_COUNT };
const char *tier_name(enum tier t);

/* What the tier does in a second: B/s, or operations/s. 0 if the machine has none. */
uint64_t tier_rate(const struct machine *m, enum tier t);
uint64_t tier_amount(const struct tally *y, enum tier t);

/* Operations per byte at which compute and tier bind alike, in parts per 1000. */
uint64_t ridge_e3(const struct machine *m, enum tier t);
/* FLOP per byte moved on the tier, parts per 1000; 0 if it moves none. */
uint64_t intensity_e3(const struct tally *y, enum tier t);

/* Flash rate above which DRAM sets the bound: B_flash * BW_dram / B_dram. 0 if nothing is read. */
uint64_t crossover_Bps(uint64_t flash_bytes, uint64_t dram_bytes, uint64_t dram_Bps);

struct weights_only {
    uint64_t flash_bytes; /* misses and streamed weights */
    uint64_t dram_bytes;  /* resident trunk and the experts of the pass */
    uint64_t flash_ns, dram_ns;
    uint64_t serial_ns;  /* one after the other */
    uint64_t overlap_ns; /* the longer of the two */
    uint64_t crossover_Bps;
};
/* `trunk_bytes`: all weights but the routed experts. `dram_Bps` may differ from the machine's. */
void weights_only(struct weights_only *out, const struct tally *y, uint64_t trunk_bytes,
                  uint64_t flash_Bps, uint64_t dram_Bps);

/* Least rate of a tier that makes a pass last at most `wanted_ns`, all other tiers as they are, if
 * everything overlaps (lower bound) or nothing does (upper bound). Bisection over whole units of the
 * bounds of estimate.h; false if no rate does. */
MUST_CHECK bool tier_need(uint64_t *rate, enum tier t, bool serial, const struct workload *l,
                          const struct machine *m, const struct regime *r, uint64_t wanted_ns);

#endif
