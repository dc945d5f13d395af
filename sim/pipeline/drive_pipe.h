/* drive_pipe.h -- the one way from a drive into memory: chunks pass it first come, first served.
 *
 * A chunk is a flow over the DRAM resource, capped at the pipe's rate; one is under way at a time.
 * Chunks that follow each other without a gap are a run: the k-th leaves at
 *
 *     run start + ceil((sum of their bytes) x 10^9 / rate)
 *
 * rounded once over all of them, so that a saturated pipe runs at exactly its rate. To arrive at
 * that instant the flow is given the bytes that fit into the time left until then, which are at
 * most a rate x 1 ns more or less than the chunk has, and in sum the same. A chunk that the memory
 * or a change of rate brings off this course ends the run.
 */
#ifndef SIM_PIPELINE_DRIVE_PIPE_H
#define SIM_PIPELINE_DRIVE_PIPE_H

#include "sim/core/evq.h"
#include "sim/core/flow.h"

struct parcel; /* a read that has a chunk to pass; embedded in the owner's read */
typedef void parcel_fn(void *owner, struct parcel *p);

struct parcel {
    struct parcel *next;
    uint64_t bytes;         /* of its chunk */
    uint64_t not_before_ns; /* its stream has the chunk's last byte only then */
};

struct drive_pipe {
    struct evq *q;
    struct flow_net *net;
    uint32_t class_idx;
    uint64_t rate_Bps;
    uint32_t inflation; /* bytes of the memory's rate that a byte takes */
    parcel_fn *passed;  /* a chunk is in memory; may ask again */
    void *owner;
    struct parcel *first, *last, *under_way;
    uint64_t leave_ns; /* of the chunk under way, if nothing brings it off course */
    uint64_t run_start_ns, run_bytes, run_end_ns;
    bool off_course;
};

/* Reserves one event; `p` is the caller's storage. The class and its cap are the memory's side: the pipe runs
 * at cap / inflation, and a chunk is inflation times its bytes there. */
MUST_CHECK enum status drive_pipe_init(struct drive_pipe *p, struct evq *q, struct flow_net *net,
                                       const struct flow_class *c, uint32_t inflation,
                                       struct diag *dg);
void drive_pipe_ask(struct drive_pipe *p, struct parcel *parcel);
/* What a chunk takes by itself: ceil(bytes x 10^9 / rate). */
uint64_t drive_pipe_transfer_ns(const struct drive_pipe *p, uint64_t bytes);
/* For the chunk under way, too. */
void drive_pipe_set_rate(struct drive_pipe *p, uint64_t rate_Bps);

#endif
