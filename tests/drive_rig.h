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
