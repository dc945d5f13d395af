/* drive_rig.h -- for tests of drives: one drive on an event queue beside a memory, and when each numbered read
 * ended. */
#ifndef TESTS_DRIVE_RIG_H
#define TESTS_DRIVE_RIG_H

#include "sim/pipeline/drive_bench.h"

#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GBS UINT64_C(1000000000)

enum { RIG_MARKS = 1024 };
struct drive_rig {
    struct evq *q;
    struct flow_net *net;
    uint32_t dram;
    struct drive *drive;
    uint64_t end_ns[RIG_MARKS]; /* by number; UINT64_MAX: not yet */
    uint64_t ticket[RIG_MARKS];
    uintptr_t order[RIG_MARKS]; /* numbers as they landed */
    size_t landed;
};
extern struct drive_rig rig;

struct value rig_value(uint64_t amount);
/* Flash of dies behind buses; without a link if link_Bps is 0. */
struct storage rig_nand(uint64_t channels, uint64_t dies, uint64_t planes, uint64_t page,
                        uint64_t read_ns, uint64_t bus_Bps, uint64_t link_Bps);
/* Queue and memory alone. */
void rig_open_net(uint64_t dram_Bps);
/* With a drive of 256 reads at most, on a memory that does not limit it. */
void rig_open(const struct storage *s, uint32_t lanes);
void rig_close(void);
/* Event: read number `self` has landed. */
void rig_mark(struct evq *queue, void *self);
void rig_submit(uintptr_t number, uint64_t bytes, uint32_t level);
void rig_drain(void);

#endif
