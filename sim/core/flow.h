/* flow.h -- transfers and kernels as flows through shared resources (DRAM, links), exact in
 * integers.
 *
 * A flow carries bytes over one or more resources at once. Flows of one class are equal: same
 * resources, same cap, same weight. At every instant all flows have their weighted max-min fair
 * rates (maxmin.h), whole bytes per second. A class keeps one counter of the nano-bytes (bytes/s x
 * ns, an integer) that each of its flows has been given since the beginning; a flow ends at the
 * first nanosecond at which the counter has grown by bytes x 10^9 since its start. Only that end is
 * rounded.
 *
 * When a flow starts or ends, or a capacity, cap or weight changes, the component it touches (the
 * resources that classes connect) is marked, and solved once after all other events of the instant
 * have fired (EVQ_LAST). So what happens at one instant has no order: starting the same flows in
 * another order, or moving them to a class of equal description, changes no rate and no end. Flows
 * that end at one instant tell their owners by class, then by end, then in the order of their
 * start.
 *
 * Set-up (resources and classes are added before the first flow starts) allocates, the rest does
 * not.
 *
 *     flow_resource_add(net, 60000000000, &dram, dg);
 *     flow_class_add(net, &(struct flow_class){&dram, 1, FLOW_NO_CAP, 1}, &copies, dg);
 *     flow_start(net, copies, &(struct flow){.bytes = 4096, .done = copied, .self = page});
 */
#ifndef SIM_CORE_FLOW_H
#define SIM_CORE_FLOW_H

#include "sim/core/evq.h"
#include "sim/core/maxmin.h"
#include "sim/core/meter.h"

#define FLOW_NO_CAP    MAXMIN_NO_CAP
#define FLOW_COUNT_MAX ((uint32_t)1 << 24)

struct flow_net;

struct flow_class {
    const uint32_t *resources; /* indices, each once; copied */
    uint32_t resource_count;   /* >= 1 */
    uint64_t cap_Bps;          /* of each flow, or FLOW_NO_CAP */
    uint32_t weight;           /* of each flow, >= 1 */
};

struct flow {
    uint64_t bytes; /* 0 is allowed: it ends in the instant of its start */
    uint64_t tag;   /* goes into the queue's fingerprint when the flow ends */
    evq_fn *done;   /* called when it ends; or NULL */
    void *self;
};

/* Up to flows_max flows at once, 1..FLOW_COUNT_MAX. `q` must outlive the net. */
MUST_CHECK enum status flow_net_new(struct flow_net **out, struct evq *q, uint32_t flows_max,
                                    struct diag *dg);
void flow_net_free(struct flow_net *net); /* NULL is allowed */
/* Indices count from 0. Capacity 0 is allowed: a standstill. */
MUST_CHECK enum status flow_resource_add(struct flow_net *net, uint64_t capacity_Bps,
                                         uint32_t *index, struct diag *dg);
/* ST_RANGE for a resource that does not exist or comes twice, no resource, or weight 0. */
MUST_CHECK enum status flow_class_add(struct flow_net *net, const struct flow_class *c,
                                      uint32_t *index, struct diag *dg);

/* ST_RANGE if flows_max flows are under way. */
MUST_CHECK enum status flow_start(struct flow_net *net, uint32_t class_idx, const struct flow *f);
/* From this instant on, for flows under way too. */
void flow_set_capacity(struct flow_net *net, uint32_t resource_idx, uint64_t capacity_Bps);
void flow_set_cap(struct flow_net *net, uint32_t class_idx, uint64_t cap_Bps);
void flow_set_weight(struct flow_net *net, uint32_t class_idx, uint32_t weight);

/* The rate of each of the class's flows, as last solved; 0 without flows. */
uint64_t flow_rate_Bps(const struct flow_net *net, uint32_t class_idx);
uint32_t flow_under_way(const struct flow_net *net, uint32_t class_idx);

/* What a class was given, in nano-bytes, up to now. Over all classes that cross a resource,
 *     given = area of flow_meter_load() = delivered + excess + under_way
 * to the last nano-byte, once the instant is solved. */
struct flow_books {
    wide delivered; /* bytes x 10^9 of the flows that have ended */
    wide excess; /* what those were given beyond it by rounding their ends up: less than rate x 1 ns
                  * each */
    wide under_way; /* what the present flows were given so far */
};
struct flow_books flow_books(const struct flow_net *net, uint32_t class_idx);

/* Of a resource. Load: the bytes per second in use. Flows: how many are under way (busy and idle
 * time), with those that ended and their bytes counted as passed. */
const struct meter *flow_meter_load(const struct flow_net *net, uint32_t resource_idx);
const struct meter *flow_meter_flows(const struct flow_net *net, uint32_t resource_idx);

#endif
