/* energy.h -- what a span of work costs in energy, from the powers and energies of a device description.
 *
 * Two forms, of which a device's values choose one (SYSTEMS 1.10):
 *
 *   parts   E = e_f*B_flash + e_d*B_dram + e_l*B_link + e_op*operations + P_idle*t     where energy_per_op is known
 *   load    E = e_f*B_flash + (P_load - P_idle)*t_busy + P_idle*t                      where only powers are known
 *
 * e_f is the drive's read_power/bandwidth. The power under load is that of the whole device while it computes,
 * its memory included, so the second form counts no DRAM of its own. A value that is not given counts as 0: the
 * sum is then a lower bound, and says what it lacks. No description gives e_l, so bytes over a link are always
 * named as missing. All sums are integers in picojoules, 128 bits inside. */
#ifndef SIM_PIPELINE_ENERGY_H
#define SIM_PIPELINE_ENERGY_H

#include "devices/device.h"

/* Unknown: neither form is possible, the sum has flash and idle energy alone. */
enum energy_form { ENERGY_UNKNOWN, ENERGY_PARTS, ENERGY_LOAD };

/* What the sum lacks; bits of energy.missing. Only what was used is missing: no bytes, nothing lacking. */
enum energy_input {
    ENERGY_NO_READ_POWER = 1, /* read_power or bandwidth of a storage that was read */
    ENERGY_NO_DRAM = 2,       /* dram.read_energy_per_byte */
    ENERGY_NO_LINK = 4,       /* no description has it */
    ENERGY_NO_COMPUTE = 8,    /* neither energy_per_op of the unit nor load_power */
    ENERGY_NO_IDLE = 16       /* idle_power */
};
#define ENERGY_INPUTS 5

/* What was done in a span. */
struct energy_use {
    uint64_t span_ns;
    /* Time in which the unit computed, a kernel slowed to 700/1000 for 10 ms counting 7 ms: the power above idle
     * falls with the clock. Never more than the span. Used by the load form only. */
    uint64_t busy_ns;
    uint64_t operations; /* parts form only */
    uint64_t dram_bytes; /* read; of the memory that the unit computes from; parts form only */
    uint64_t link_bytes;
    const uint64_t *flash_bytes; /* by storage of the device; NULL: none was read */
};

struct energy {
    enum energy_form form;
    unsigned missing;                                          /* of enum energy_input */
    uint64_t flash_pJ, dram_pJ, compute_pJ, idle_pJ, total_pJ; /* rounded down; saturate */
};

/* `unit` is the index of the compute unit that ran the kernels. */
void energy_of(struct energy *out, const struct device *d, size_t unit,
               const struct energy_use *use);

const char *energy_form_name(enum energy_form form); /* "unknown", "parts", "load" */
#define ENERGY_MISSING_MAX 160
/* The missing inputs by their keys, separated by ", "; empty if none is. Returns `buffer`. */
const char *energy_missing_text(char buffer[ENERGY_MISSING_MAX], unsigned missing);

/* Mean power over a span, rounded down; 0 over an empty one; saturates. What heat_step() takes. */
uint64_t energy_mean_uW(uint64_t energy_pJ, uint64_t span_ns);
/* How long a full battery lasts at a mean power, in ms (hours = ms/3600000). False if the device states no battery
 * or the power is 0; saturates. */
bool energy_battery_ms(uint64_t *out, const struct device *d, uint64_t mean_uW);

#endif
