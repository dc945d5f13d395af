/* flow.c -- see flow.h.
 *
 * A class's flows are a pairing heap (Fredman et al. 1986) by the counter value at which they end:
 * intrusive, so that it needs no memory of its own, and a start costs one comparison. A class keeps
 * the instant at which its next flow ends; it is computed anew only when the rate or the first flow
 * changes, which is exact because ceil((left - rate x t) / rate) = ceil(left / rate) - t.
 */
#include "sim/core/flow.h"

#include "sim/core/flow_net.h"

#include <assert.h>
#include <string.h>

static bool ends_before(const struct transfer *a, const struct transfer *b)
{
    return a->end != b->end ? a->end < b->end : a->sequence < b->sequence;
}

static uint32_t meld(struct flow_net *net, uint32_t a, uint32_t b)
{
    if (a == NO_FLOW || b == NO_FLOW)
        return a == NO_FLOW ? b : a;
    uint32_t low = ends_before(&net->transfer[b], &net->transfer[a]) ? b : a;
    uint32_t high = low == a ? b : a;
    net->transfer[high].sibling = net->transfer[low].child;
    net->transfer[low].child = high;
    return low;
}

/* Takes the next of a chain of siblings off the chain. */
static uint32_t unlink_sibling(struct flow_net *net, uint32_t *chain)
{
    uint32_t flow = *chain;
    if (flow != NO_FLOW) {
        *chain = net->transfer[flow].sibling;
        net->transfer[flow].sibling = NO_FLOW;
    }
    return flow;
}

/* The heap without its root: children melded in pairs, then the pairs from the last on. */
static uint32_t meld_children(struct flow_net *net, uint32_t root)
{
    uint32_t children = net->transfer[root].child, pairs = NO_FLOW, heap = NO_FLOW;
    while (children != NO_FLOW) {
        uint32_t a = unlink_sibling(net, &children), b = unlink_sibling(net, &children);
        uint32_t pair = meld(net, a, b);
        net->transfer[pair].sibling = pairs;
        pairs = pair;
    }
    while (pairs != NO_FLOW)
        heap = meld(net, heap, unlink_sibling(net, &pairs));
    return heap;
}

static wide given_at(const struct traffic *t, uint64_t now_ns)
{
    return t->given + wide_mul(t->rate_Bps, now_ns - t->given_ns);
}

static void set_rate(struct traffic *t, uint64_t now_ns, uint64_t rate_Bps)
{
    t->given = given_at(t, now_ns);
    t->given_ns = now_ns;
    t->rate_Bps = rate_Bps;
}

static void find_next_end(struct flow_net *net, struct traffic *t, uint64_t now_ns)
{
    t->stale = false;
    t->next_end_ns = NEVER_NS;
    if (t->first == NO_FLOW)
        return;
    wide given = given_at(t, now_ns), end = net->transfer[t->first].end;
    t->next_end_ns = wide_end_ns(now_ns, end > given ? end - given : 0, t->rate_Bps);
}

static void settle(struct evq *q, void *self);
static void ends_due(struct evq *q, void *self);

/* The component's rates no longer hold: solve it when the instant is over. */
static void touch(struct flow_net *net, uint32_t component)
{
    net->component[component].touched = true;
    if (net->settling)
        return;
    net->settling = true;
    enum status status = evq_at_priority(net->q, evq_now_ns(net->q), EVQ_LAST, settle, net, NULL);
    assert(status == ST_OK); /* reserved by flow_net_new */
    (void)status;
}

/* Schedules the component's next end, unless it is scheduled already. */
static void schedule_end(struct flow_net *net, struct component *of)
{
    uint64_t next_ns = NEVER_NS;
    for (uint32_t i = 0; i < of->active_count; i++) {
        const struct traffic *t = &net->traffic[net->active_list[of->first_active + i]];
        if (t->next_end_ns < next_ns)
            next_ns = t->next_end_ns;
    }
    if (of->event && next_ns == of->event_ns)
        return;
    if (of->event)
        evq_cancel(net->q, of->event);
    of->event = 0;
    of->event_ns = next_ns;
    if (next_ns == NEVER_NS)
        return;
    enum status status = evq_at_priority(net->q, next_ns, EVQ_NORMAL, ends_due, of, &of->event);
    assert(status == ST_OK); /* reserved by flow_resource_add */
    (void)status;
}

static void solve(struct flow_net *net, struct component *of)
{
    uint64_t now = evq_now_ns(net->q);
    const uint32_t *resources = net->resource_list + of->first_resource;
    const uint32_t *active = net->active_list + of->first_active;
    maxmin_solve(&net->share, resources, of->resource_count, active, of->active_count);
    for (uint32_t i = 0; i < of->resource_count; i++) {
        const struct maxmin_resource *r = &net->share.resource[resources[i]];
        meter_set(&net->pipe[resources[i]].load, now, r->capacity_Bps - r->left_Bps);
    }
    for (uint32_t i = 0; i < of->active_count; i++) {
        struct traffic *t = &net->traffic[active[i]];
        uint64_t rate_Bps = net->share.classes[active[i]].rate_Bps;
        if (rate_Bps == t->rate_Bps && !t->stale)
            continue;
        set_rate(t, now, rate_Bps);
        find_next_end(net, t, now);
    }
    schedule_end(net, of);
}

/* Fires once at the end of an instant that touched a component. */
static void settle(struct evq *q, void *self)
{
    (void)q;
    struct flow_net *net = self;
    net->settling = false;
    for (uint32_t c = 0; c < net->resource_count; c++)
        if (net->component[c].touched) {
            net->component[c].touched = false;
            solve(net, &net->component[c]);
        }
}

static void activate(struct flow_net *net, uint32_t class_idx)
{
    struct component *of = &net->component[net->traffic[class_idx].component];
    uint32_t *active = net->active_list + of->first_active, i = of->active_count++;
    for (; i > 0 && active[i - 1] > class_idx; i--)
        active[i] = active[i - 1];
    active[i] = class_idx;
}

static void deactivate(struct flow_net *net, uint32_t class_idx)
{
    struct component *of = &net->component[net->traffic[class_idx].component];
    uint32_t *active = net->active_list + of->first_active, i = 0;
    while (active[i] != class_idx)
        i++;
    memmove(active + i, active + i + 1, (--of->active_count - i) * sizeof *active);
    set_rate(&net->traffic[class_idx], evq_now_ns(net->q), 0);
}

enum status flow_start(struct flow_net *net, uint32_t class_idx, const struct flow *f)
{
    assert(class_idx < net->class_count);
    uint32_t slot = net->free_head;
    if (slot == NO_FLOW)
        return ST_RANGE;
    struct transfer *x = &net->transfer[slot];
    struct traffic *t = &net->traffic[class_idx];
    struct maxmin_class *share = &net->share.classes[class_idx];
    uint64_t now = evq_now_ns(net->q);
    wide given = given_at(t, now);
    net->free_head = x->sibling;
    *x = (struct transfer){.order = *f,
                           .start = given,
                           .end = given + wide_mul(f->bytes, NS_PER_S),
                           .sequence = net->started++,
                           .child = NO_FLOW,
                           .sibling = NO_FLOW};
    t->starts += given;
    t->first = meld(net, t->first, slot);
    t->stale |= t->first == slot;
    if (share->flows++ == 0)
        activate(net, class_idx);
    for (uint32_t i = 0; i < share->member_count; i++)
        meter_rise(&net->pipe[net->member[share->first_member + i]].flows, now, 1);
    touch(net, t->component);
    return ST_OK;
}

/* The class's first flow has ended. */
static void end_flow(struct flow_net *net, uint32_t class_idx)
{
    struct traffic *t = &net->traffic[class_idx];
    struct maxmin_class *share = &net->share.classes[class_idx];
    uint32_t slot = t->first;
    struct transfer *x = &net->transfer[slot];
    struct flow order = x->order;
    uint64_t now = evq_now_ns(net->q);
    t->starts -= x->start;
    t->delivered += x->end - x->start;
    t->excess += given_at(t, now) - x->end;
    t->first = meld_children(net, slot);
    x->sibling = net->free_head;
    net->free_head = slot;
    for (uint32_t i = 0; i < share->member_count; i++) {
        struct meter *m = &net->pipe[net->member[share->first_member + i]].flows;
        meter_fall(m, now, 1);
        meter_pass(m, order.bytes);
    }
    if (--share->flows == 0)
        deactivate(net, class_idx);
    find_next_end(net, t, now);
    touch(net, t->component);
    evq_note(net->q, order.tag);
    if (order.done)
        order.done(net->q, order.self);
}

/* Ends all flows of a component that end at this instant. What their owners do may start others;
 * the search begins anew after each. */
static void ends_due(struct evq *q, void *self)
{
    struct component *of = self;
    struct flow_net *net = of->net;
    const uint32_t *active = net->active_list + of->first_active;
    of->event = 0;
    for (uint32_t i = 0; i < of->active_count;) {
        if (net->traffic[active[i]].next_end_ns > evq_now_ns(q)) {
            i++;
            continue;
        }
        end_flow(net, active[i]);
        i = 0;
    }
}

void flow_set_capacity(struct flow_net *net, uint32_t resource_idx, uint64_t capacity_Bps)
{
    assert(resource_idx < net->resource_count);
    net->share.resource[resource_idx].capacity_Bps = capacity_Bps;
    touch(net, net->pipe[resource_idx].component);
}

void flow_set_cap(struct flow_net *net, uint32_t class_idx, uint64_t cap_Bps)
{
    assert(class_idx < net->class_count);
    net->share.classes[class_idx].cap_Bps = cap_Bps;
    touch(net, net->traffic[class_idx].component);
}

void flow_set_weight(struct flow_net *net, uint32_t class_idx, uint32_t weight)
{
    assert(class_idx < net->class_count && weight > 0);
    net->share.classes[class_idx].weight = weight;
    touch(net, net->traffic[class_idx].component);
}

uint64_t flow_rate_Bps(const struct flow_net *net, uint32_t class_idx)
{
    assert(class_idx < net->class_count);
    return net->traffic[class_idx].rate_Bps;
}

uint32_t flow_under_way(const struct flow_net *net, uint32_t class_idx)
{
    assert(class_idx < net->class_count);
    return net->share.classes[class_idx].flows;
}

struct flow_books flow_books(const struct flow_net *net, uint32_t class_idx)
{
    assert(class_idx < net->class_count);
    const struct traffic *t = &net->traffic[class_idx];
    wide given = given_at(t, evq_now_ns(net->q));
    return (struct flow_books){
        .delivered = t->delivered,
        .excess = t->excess,
        .under_way = given * net->share.classes[class_idx].flows - t->starts,
    };
}

const struct meter *flow_meter_load(const struct flow_net *net, uint32_t resource_idx)
{
    assert(resource_idx < net->resource_count);
    return &net->pipe[resource_idx].load;
}

const struct meter *flow_meter_flows(const struct flow_net *net, uint32_t resource_idx)
{
    assert(resource_idx < net->resource_count);
    return &net->pipe[resource_idx].flows;
}
