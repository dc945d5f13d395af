/* flow_net.h -- the inside of flow.h, for flow_net.c (set-up) and flow.c (running) and nobody else.
 *
 * Counters are in nano-bytes. `wide` sums may wrap on the way to a difference that fits.
 */
#ifndef SIM_CORE_FLOW_NET_H
#define SIM_CORE_FLOW_NET_H

#include "sim/core/flow.h"

#define NO_FLOW UINT32_MAX

struct transfer {
    struct flow order;
    wide start, end;   /* counter values */
    uint64_t sequence; /* orders equal ends */
    uint32_t child, sibling;
};

struct traffic { /* of a class; its share of the problem is in net->share.classes */
    uint32_t component;
    wide given; /* the counter, up to given_ns */
    uint64_t given_ns, rate_Bps;
    uint32_t first; /* root of the heap */
    bool stale;     /* next_end_ns belongs to another first flow */
    uint64_t next_end_ns;
    wide starts; /* sum over the flows under way */
    wide delivered, excess;
};

struct pipe { /* a resource; its share of the problem is in net->share.resource */
    struct meter load, flows;
    uint32_t component;
};

/* Resources that classes connect, named after the lowest. */
struct component {
    struct flow_net *net;
    uint32_t first_resource, resource_count; /* in net->resource_list */
    uint32_t first_active, active_count; /* in net->active_list: classes with flows, ascending */
    bool touched;
    uint64_t event, event_ns; /* the next end in the event queue; event 0: none */
};

struct flow_net {
    struct evq *q;
    struct maxmin share;
    struct pipe *pipe;
    struct component *component;
    uint32_t *resource_list;
    uint32_t resource_count;
    struct traffic *traffic;
    uint32_t *active_list;
    uint32_t class_count;
    uint32_t *member;
    uint32_t member_count;
    struct transfer *transfer;
    uint32_t free_head;
    uint64_t started;
    bool settling; /* a solution of this instant is scheduled */
};

#endif
