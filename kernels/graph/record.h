/* record.h -- what a run of the engine tells about itself while it runs.
 *
 * The graph and the executor of experts add to one struct record; whoever started the run reads the sums after
 * each pass and saves the rest at the end. Nothing here changes what is computed. */
#ifndef KERNELS_GRAPH_RECORD_H
#define KERNELS_GRAPH_RECORD_H

#include "sim/trace/timeline.h"
#include "sim/trace/trace.h"

/* What a pass is made of; names as the spans of timeline.h. */
enum operation {
    OPERATION_FIXED, /* attention, state, norms, router, dense feed-forward */
    OPERATION_SHARED,
    OPERATION_EXPERT,
    OPERATION_HEAD,
    OPERATION_STALL, /* waiting for reads */
    OPERATION_COUNT
};
const char *operation_name(enum operation o);

/* Sums since the run began. */
struct record_sums {
    uint64_t operation_ns[OPERATION_COUNT];
    uint64_t late_hits;                   /* hits whose read was still under way */
    uint64_t payload_bytes, device_bytes; /* of reads that have landed */
    uint64_t reads;
    uint64_t stalls; /* times that nothing ran because a read was awaited */
    uint64_t
        read_span_ns; /* of each layer, from its choice until its last demand read landed; added up */
    uint64_t overlap_ns; /* of each layer, the longer of that span and of its experts; added up */
};

struct record {
    struct record_sums sums;
    struct trace_builder *trace; /* NULL: no routing trace is kept */
    struct timeline *timeline;   /* NULL: none */
    uint32_t compute_lane, storage_lane;
    uint64_t start_ns; /* instant 0 of the timeline */
};

/* CLOCK_MONOTONIC. */
uint64_t record_now_ns(void);

/* Something ran from start_ns until now, which is returned: the start of what follows. */
uint64_t record_operation(struct record *r, enum operation o, uint32_t pass, uint32_t layer,
                          uint64_t start_ns);

#endif
