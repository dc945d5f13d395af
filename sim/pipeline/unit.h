/* unit.h -- the unit that computes: kernels one after another, each a fork-join over all its threads.
 *
 * A kernel costs its calls (launch, barrier), then streams its bytes from memory as one flow that
 * shares the DRAM with everything else, never faster than its operations allow. CPU time that reads
 * take from the unit's own cores (submission, completion) is paid when the running kernel ends, because a
 * fork-join waits for its slowest thread. When the whole compute time of a token is given (a
 * measurement), kernels take their share of it instead, and no flow. */
#ifndef SIM_PIPELINE_UNIT_H
#define SIM_PIPELINE_UNIT_H

#include "sim/core/evq.h"
#include "sim/core/flow.h"
#include "sim/trace/timeline.h"

struct kernel {
    const char *operation; /* of timeline.h */
    uint64_t ops;
    uint64_t bytes; /* read from the unit's memory */
    uint64_t calls;
    uint64_t rows_e3;  /* tokens that a weight is multiplied with, parts per 1000; 0: one */
    uint64_t fixed_ns; /* further time that nothing shortens */
    /* What its bytes take with the memory to itself, as measured: peaks and shares then do not matter.
     * 0: not known. */
    uint64_t measured_ns;
    bool cached; /* measured_ns is out of the last-level cache: no traffic to memory */
};

struct unit_setup {
    struct flow_net *net;
    uint32_t memory;         /* resource the weights are read from */
    uint32_t weight;         /* of a kernel against reads, >= 1 */
    uint64_t memory_Bps;     /* what this unit draws at most */
    uint64_t ops_per_s;      /* reached with one token a weight */
    uint64_t gemm_ops_per_s; /* with many; 0: the same */
    uint64_t call_ns;
    uint64_t given_ns; /* all kernels of one token take this together; 0: not given */
};

struct unit;

MUST_CHECK enum status unit_new(struct unit **out, struct evq *q, const struct unit_setup *s,
                                struct diag *dg);
void unit_free(struct unit *u);

/* Runs `k`, then calls done(q, self). One kernel at a time. */
void unit_run(struct unit *u, const struct kernel *k, evq_fn *done, void *self);
/* The closed-form time of one token's kernels: given_ns is shared out in proportion to it. */
void unit_share(struct unit *u, uint64_t estimate_ns);
/* Heat: kernels that start from now on run at so many parts per 1000 of the unit's rates. */
void unit_set_speed(struct unit *u, uint32_t speed_e3);
/* Records kernels on `lane` of a timeline from now on, as of pass and layer. */
void unit_trace(struct unit *u, struct timeline *t, uint32_t lane);
void unit_mark_place(struct unit *u, uint32_t pass, uint32_t layer);
bool unit_busy(const struct unit *u);
/* CPU time taken from the unit's cores from now on. */
void unit_charge(struct unit *u, uint64_t cpu_ns);
/* No kernel starts before that instant: its thread does something else, which a timeline shows as `operation`, unless
 * NULL. */
void unit_hold(struct unit *u, uint64_t until_ns, const char *operation);
/* Closed-form time of a kernel that has the memory to itself. */
uint64_t unit_estimate_ns(const struct unit *u, const struct kernel *k);
/* What unit_run() takes for it if nothing interferes: that, or its share of what is given. */
uint64_t unit_expected_ns(const struct unit *u, const struct kernel *k);

struct unit_totals {
    uint64_t busy_ns;
    uint64_t serial_ns; /* what the same kernels take alone, and what reads took from the cores */
    uint64_t ops, bytes;
    uint64_t ops_ns; /* the operations alone, at full speed */
};
struct unit_totals unit_totals(const struct unit *u);

#endif
