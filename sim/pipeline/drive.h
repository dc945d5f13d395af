/* drive.h -- one storage device on the event queue: reads go in, ends come out.
 *
 * Two models behind one interface, chosen by the device description:
 *   curve  A read takes one of min(queue_depth, lanes) places, waits its latency t0, then streams
 *          at no more than B1 while its chunks of `grain` bytes pass a shared pipe of B_max, first
 *          come first served; it asks for its next chunk when the one before has left the pipe. A
 *          chunk holds the pipe for grain/B_max and leaves it no earlier than its own stream
 *          allows, so an unloaded read takes exactly t0 + c/min(B1, B_max), and a saturated pipe
 *          runs at exactly B_max. A grain as large as the read is FIFO, a small one is fair
 *          sharing; not given means FIFO. `iops` spaces the starts of reads.
 *   nand   The same behaviour from its causes: channels, dies, planes, page size, tR, bus and link
 *          (drive_nand.c).
 * A chunk's way into memory is a flow over the DRAM resource, capped by the pipe: kernels and reads
 * share the memory, and a starved memory slows the drive. Where small transfers upset the memory's
 * order of service, a byte read costs kernels more than a byte: `dram_inflation` of the storage
 * multiplies the chunk's bytes, cap and weight in the DRAM, so that a read alone takes the same
 * time, and a read beside kernels takes that much more from them.
 *
 * Demand reads (level 0) start before prefetch reads (level 1) that have no place yet; nothing in
 * flight is cancelled. Within a level the order of submission holds. Jitter comes from the stream
 * NAME/latency and is off by default.
 *
 * Rounding. A read's end is rounded up to whole ns once: t0 + extra + ceil(c x 10^9 / min(B1,
 * B_max)). Reads that follow each other through the pipe without a gap are rounded together, so
 * that nothing adds up. A read in several chunks slower than the pipe (B1 < B_max) may end one ns
 * later, where a chunk takes stream and pipe the same whole ns; and so may every chunk that the
 * memory delays.
 *
 * Set-up reserves events in the queue and adds one class to the net, in which a drive has one flow
 * at a time; submitting and stepping do not allocate.
 */
#ifndef SIM_PIPELINE_DRIVE_H
#define SIM_PIPELINE_DRIVE_H

#include "devices/device.h"
#include "sim/core/evq.h"
#include "sim/core/flow.h"

#define DRIVE_DEMAND   0u
#define DRIVE_PREFETCH 1u

struct drive;

struct drive_setup {
    /* Must say: curve latency and bandwidth; nand channels, dies_per_channel, planes, page_bytes,
     * read_time and bus_bandwidth. Else ST_MISFIT names what is missing. The other values do not
     * limit where they are not given. */
    const struct storage *storage;
    const char *name;   /* "storage0": names its stream of chance */
    uint32_t lanes;     /* reads that the engine keeps in flight, >= 1 */
    uint32_t reads_max; /* reads in flight and waiting at once, 1..2^20 */
    struct flow_net *net;
    uint32_t dram;        /* index of the DRAM resource in `net` */
    uint64_t dram_Bps;    /* the memory's rate, which limits the inflation: the drive alone keeps
                             its own rate; 0: no limit */
    uint32_t dram_weight; /* of a chunk against kernels, >= 1 */
    uint32_t jitter_e3;   /* relative standard deviation of t0 in parts per 1000; 0: none */
    uint64_t seed;
};

struct drive_read {
    uint64_t bytes;    /* 1..2^46 */
    uint64_t place;    /* where on the drive: a key that nand maps to dies; curve ignores it */
    uint32_t level;    /* DRIVE_DEMAND or DRIVE_PREFETCH */
    uint64_t extra_ns; /* host time added to this read's latency (wake-up, added latency) */
    evq_fn *done;      /* called when the last byte is in memory; or NULL */
    void *self;
};

/* `q` and `net` must outlive the drive. */
MUST_CHECK enum status drive_new(struct drive **out, struct evq *q, const struct drive_setup *s,
                                 struct diag *dg);
void drive_free(struct drive *d); /* NULL is allowed; not while its events are to fire */
/* `ticket` may be NULL; a ticket is never 0 and never given out twice. ST_RANGE when reads_max are
 * there already. What a read's `done` submits competes by level with those who wait. */
MUST_CHECK enum status drive_submit(struct drive *d, const struct drive_read *r, uint64_t *ticket);
/* A waiting prefetch becomes a demand read, behind those that wait; false if it is in flight or
 * over. */
bool drive_promote(struct drive *d, uint64_t ticket);
/* Throttling, a slower mode: scales B_max and B1 (nand: link, buses and tR) from this instant on,
 * for reads in flight too, in parts per 1000 of the description, >= 1. Latency stays. */
void drive_set_speed(struct drive *d, uint32_t speed_e3);
uint32_t drive_in_flight(const struct drive *d);
uint32_t drive_waiting(const struct drive *d);

/* Little's law as an identity between integers, at any instant:
 *     area_in_flight + area_waiting = latency_ns + latency_present_ns */
struct drive_counts {
    uint64_t reads, bytes;   /* finished */
    uint64_t busy_ns;        /* at least one read in flight or waiting */
    wide area_in_flight;     /* reads in flight x ns: mean depth = area / busy */
    wide area_waiting;       /* reads waiting for a place x ns */
    wide latency_ns;         /* sum over finished reads, from submission to end */
    wide latency_present_ns; /* the same over reads that are there, up to now */
};
struct drive_counts drive_counts(const struct drive *d,
                                 uint64_t now_ns); /* now: the queue's instant */

/* Read disturb: every read of a page stresses the other pages of its block, and a block must be
 * rewritten after some hundred thousand. Only nand counts; false for curve. */
struct drive_disturb {
    uint32_t dies, blocks_per_die;
    uint64_t block_bytes;     /* of all planes */
    uint64_t page_reads;      /* multi-plane page reads, over all blocks */
    uint64_t block_reads_max; /* of the block that was read most */
    uint64_t die_reads_max;   /* of the die that was read most */
};
bool drive_disturb(const struct drive *d, struct drive_disturb *out);
/* Page reads of one block of a nand drive; die < dies, block < blocks_per_die. */
uint64_t drive_block_reads(const struct drive *d, uint32_t die, uint32_t block);

#endif
