/* op_table.h -- the operations of one pass, each with its bytes by tier, intensity and own bound.
 *
 * A row is a tensor group, or the attention over the state; a layer's rows are summed over the layers.
 * Rows add up to the tally of estimate.h but for the rounding of shares, less than a byte a layer.
 */
#ifndef SIM_ROOFLINE_OP_TABLE_H
#define SIM_ROOFLINE_OP_TABLE_H

#include "sim/roofline/estimate.h"

#define OP_ROWS (GROUP_MAX + 1)

struct op_row {
    const char *name;
    uint64_t ops;
    uint64_t flash_bytes, dram_bytes, link_bytes; /* dram: of the memory that kernels read */
    uint64_t flash_ns, dram_ns, link_ns, compute_ns;
    uint64_t bound_ns; /* the largest of the four */
    const char *binds; /* "flash", "DRAM", "link", "compute" */
};

/* For a machine without `host`. Rows that move or compute nothing are left out; returns how many there are. */
size_t op_table(struct op_row rows[OP_ROWS], const struct workload *l, const struct machine *m,
                const struct regime *r);

#endif
