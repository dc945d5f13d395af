/* expert_slots.h -- the commands of the decisions, carried out: places in the store and reads into them. */
#ifndef KERNELS_GRAPH_EXPERT_SLOTS_H
#define KERNELS_GRAPH_EXPERT_SLOTS_H

#include "kernels/graph/expert_source.h"
#include "kernels/graph/record.h"
#include "kernels/store/store.h"
#include "sim/policy/decision_log.h"

struct expert_slot {
    uint32_t key; /* what it holds or is being filled with */
    uint32_t ticket;
    bool pending; /* its read was not waited for yet; the place is pinned so long */
    bool prefetched;
};

struct expert_slots {
    struct expert_source *source;
    struct loader_io *io;
    struct store *store;
    struct expert_slot *slot; /* by slot number */
    uint32_t slots;
    uint32_t *slot_of; /* by key: where it was commanded to */
    uint32_t *pending; /* slot numbers with a read not waited for, in order of submission */
    uint32_t pending_count;
    uint32_t experts;          /* keys a layer */
    uint32_t pass;             /* of the timeline */
    uint64_t demand_landed_ns; /* when the last demand read landed; CLOCK_MONOTONIC */
    struct record *record;
    struct decision_log *log; /* is told what has landed; NULL: none */
};

/* `budget_bytes` of payload and `reserve_bytes` beyond it must have room at the same time. The source's
 * files are opened here. `loader` is completed with arena and loads_max. */
MUST_CHECK enum status expert_slots_new(struct expert_slots *s, struct expert_source *source,
                                        struct loader_io_setup *loader, bool direct,
                                        uint64_t budget_bytes, uint64_t reserve_bytes,
                                        struct record *record, struct diag *dg);
void expert_slots_free(struct expert_slots *s);

MUST_CHECK enum status expert_slots_execute(struct expert_slots *s, const struct decision *d,
                                            size_t count, struct diag *dg);
/* Collects a slot's read, waiting if it must. ST_IO, ST_PARSE (checksum). */
MUST_CHECK enum status expert_slots_settle(struct expert_slots *s, uint32_t slot, struct diag *dg);
/* Collects what has landed, without waiting; issues what was queued. */
MUST_CHECK enum status expert_slots_poll(struct expert_slots *s, struct diag *dg);

#endif
