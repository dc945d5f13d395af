/* drive.h -- one storage device on the event queue: reads go in, ends come out.
 *
 * Two models behind one interface, chosen by the device description:
 *   curve  A read takes one of `queue_depth` places, waits its latency t0, then streams at no more than
 *          B1 while its chunks of `grain` bytes pass a shared pipe of B_max, first come first served. A
 *          chunk holds the pipe for grain/B_max and leaves it no earlier than its own stream allows, so
 *          an unloaded read takes exactly t0 + c/min(B1, B_max). A grain as large as the read is FIFO, a
 *          small one is fair sharing. `iops` spaces the starts of reads.
 *   nand   The same behaviour from its causes: channels, dies, planes, page size, tR, bus and link.
 * A chunk's way into memory is a flow over the DRAM resource, capped by the pipe: kernels and reads
 * share the memory, and a starved memory slows the drive.
 *
 * Demand reads (level 0) start before prefetch reads (level 1) that have no place yet; nothing in
 * flight is cancelled. Jitter comes from a named stream and is off by default.
 */
#ifndef SIM_PIPELINE_DRIVE_H
#define SIM_PIPELINE_DRIVE_H

#include "devices/device.h"
#include "sim/core/evq.h"
#include "sim/core/flow.h"

struct drive;

struct drive_setup {
    const struct storage *storage; /* the description; latency, lane_bandwidth and bandwidth (or the nand
                                      values) must be given, else ST_MISFIT names what is missing */
    const char *name;              /* "storage0": names its streams of chance and its timeline lane */
    uint32_t lanes;                /* reads that the engine keeps in flight, >= 1 */
    uint32_t reads_max;            /* reads in flight and waiting at once */
    struct flow_net *net;
    uint32_t dram;                 /* index of the DRAM resource in `net` */
    uint32_t dram_weight;          /* of a chunk against kernels, >= 1 */
    uint32_t jitter_e3;            /* relative standard deviation of t0 in parts per 1000; 0: none */
    uint64_t seed;
};

struct drive_read {
    uint64_t bytes;      /* > 0 */
    uint64_t place;      /* where on the drive: a key that nand maps to dies; curve ignores it */
    uint32_t level;      /* 0 demand, 1 prefetch */
    uint64_t extra_ns;   /* host time added to this read's latency (wake-up, added latency) */
    evq_fn *done;
    void *self;
};

MUST_CHECK enum status drive_new(struct drive **out, struct evq *q, const struct drive_setup *s,
                                 struct diag *dg);
void drive_free(struct drive *d);
/* `ticket` may be NULL. ST_RANGE when reads_max are there already. */
MUST_CHECK enum status drive_submit(struct drive *d, const struct drive_read *r, uint64_t *ticket);
/* A waiting prefetch becomes a demand read; false if it is in flight or over. */
bool drive_promote(struct drive *d, uint64_t ticket);
/* Throttling, a slower mode: scales B_max and B1 from this instant on, in parts per 1000 of the
 * description. */
void drive_set_speed(struct drive *d, uint32_t speed_e3);
uint32_t drive_in_flight(const struct drive *d);
uint32_t drive_waiting(const struct drive *d);

struct drive_counts {
    uint64_t reads, bytes;         /* finished */
    uint64_t busy_ns;              /* at least one read in flight or waiting */
    wide area_in_flight;           /* reads in flight x ns: mean depth = area / busy */
    wide latency_ns;               /* sum over finished reads, from submission to end */
};
struct drive_counts drive_counts(const struct drive *d, uint64_t now_ns);

#endif
