/* array.h -- all drives of a device as one: reads go in, ends come out.
 *
 *   striped   A read is cut into one share for each drive, in multiples of 4 KiB, the first ones
 *             not smaller than the last; it has landed when all shares have. Which drive gets the
 *             first share goes round from read to read, so that small reads, which have fewer
 *             shares than there are drives, spread over all.
 *   mirrored  Each drive has everything. A read goes to the one with the fewest reads in flight and
 *             waiting, of equal ones to that of the lowest index.
 *
 * Striping makes each read shorter, mirroring more of them at once: with enough reads under way
 * both add up the drives' rates. One drive is the same under both, and costs nothing extra.
 *
 * All drives read into the same memory. The net needs room for a flow of each drive. Submitting and
 * stepping do not allocate.
 */
#ifndef SIM_PIPELINE_ARRAY_H
#define SIM_PIPELINE_ARRAY_H

#include "sim/pipeline/drive.h"

struct array;

enum array_layout { ARRAY_STRIPED, ARRAY_MIRRORED };

struct array_setup {
    const struct device
        *device; /* its storage entries are the drives, named storage0, storage1, ... */
    enum array_layout layout;
    uint32_t lanes;       /* reads that the engine keeps in flight, on each drive, >= 1 */
    uint32_t reads_max;   /* reads in flight and waiting at once, 1..2^20 */
    struct flow_net *net; /* the rest as in struct drive_setup */
    uint64_t dram_Bps;    /* which all drives share */
    uint32_t dram, dram_weight;
    uint32_t jitter_e3;
    uint64_t seed;
};

/* ST_MISFIT if the device has no storage, or a storage lacks a value (drive.h). */
MUST_CHECK enum status array_new(struct array **out, struct evq *q, const struct array_setup *s,
                                 struct diag *dg);
void array_free(struct array *a); /* NULL is allowed; not while its events are to fire */
/* ST_RANGE when reads_max are there already. */
MUST_CHECK enum status array_submit(struct array *a, const struct drive_read *r);
/* Of all drives; see drive_set_speed(). */
void array_set_speed(struct array *a, uint32_t speed_e3);

size_t array_drive_count(const struct array *a);
const struct drive *array_drive(const struct array *a, size_t i);

/* Reads here are those that were submitted to the array, not their shares. */
struct array_counts {
    uint64_t reads, bytes; /* finished */
    uint64_t busy_ns;      /* at least one read in flight or waiting on some drive */
    wide area_present;     /* reads in flight or waiting x ns */
};
struct array_counts array_counts(const struct array *a,
                                 uint64_t now_ns); /* now: the queue's instant */

#endif
