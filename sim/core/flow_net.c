/* flow_net.c -- building a net of resources and classes; see flow.h. */
#include "sim/core/flow_net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum status flow_net_new(struct flow_net **out, struct evq *q, uint32_t flows_max, struct diag *dg)
{
    if (flows_max < 1 || flows_max > FLOW_COUNT_MAX)
        return diag_set(dg, ST_RANGE, "flows: flows_max %u is not within 1..%u", flows_max,
                        FLOW_COUNT_MAX);
    struct flow_net *net = calloc(1, sizeof *net);
    if (!net)
        return diag_no_memory(dg);
    net->transfer = calloc(flows_max, sizeof *net->transfer);
    if (!net->transfer || evq_reserve(q, 1) != ST_OK) {
        flow_net_free(net);
        return diag_no_memory(dg);
    }
    net->q = q;
    for (uint32_t i = 0; i < flows_max; i++)
        net->transfer[i].sibling = i + 1 < flows_max ? i + 1 : NO_FLOW;
    *out = net;
    return ST_OK;
}

void flow_net_free(struct flow_net *net)
{
    if (!net)
        return;
    free(net->share.resource);
    free(net->share.classes);
    free(net->pipe);
    free(net->component);
    free(net->resource_list);
    free(net->traffic);
    free(net->active_list);
    free(net->member);
    free(net->transfer);
    free(net);
}

/* Makes room for `count` objects in the array that *array points to; false leaves it as it was.
 * (The pointer is copied because arrays of all types come here.) */
static bool grow(void *array, size_t count, size_t object_bytes)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, count * object_bytes);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    return true;
}

/* Rebuilds the components from the labels of the resources. No flow is under way. */
static void arrange(struct flow_net *net)
{
    uint32_t resources = 0, active = 0;
    for (uint32_t c = 0; c < net->resource_count; c++) {
        struct component *of = &net->component[c];
        *of = (struct component){.net = net, .first_resource = resources, .first_active = active};
        for (uint32_t r = 0; r < net->resource_count; r++)
            if (net->pipe[r].component == c)
                net->resource_list[resources++] = r;
        of->resource_count = resources - of->first_resource;
        for (uint32_t k = 0; k < net->class_count; k++) {
            uint32_t first = net->member[net->share.classes[k].first_member];
            if (net->pipe[first].component != c)
                continue;
            net->traffic[k].component = c;
            active++;
        }
    }
}

enum status flow_resource_add(struct flow_net *net, uint64_t capacity_Bps, uint32_t *index,
                              struct diag *dg)
{
    assert(net->started == 0);
    uint32_t r = net->resource_count;
    size_t count = (size_t)r + 1;
    if (!grow(&net->share.resource, count, sizeof *net->share.resource) ||
        !grow(&net->pipe, count, sizeof *net->pipe) ||
        !grow(&net->component, count, sizeof *net->component) ||
        !grow(&net->resource_list, count, sizeof *net->resource_list) ||
        evq_reserve(net->q, 1) != ST_OK)
        return diag_no_memory(dg);
    net->share.resource[r] = (struct maxmin_resource){.capacity_Bps = capacity_Bps};
    net->pipe[r].component = r;
    meter_init(&net->pipe[r].load, evq_now_ns(net->q));
    meter_init(&net->pipe[r].flows, evq_now_ns(net->q));
    net->resource_count++;
    arrange(net);
    *index = r;
    return ST_OK;
}

static enum status check_class(const struct flow_net *net, const struct flow_class *c,
                               struct diag *dg)
{
    if (c->resource_count == 0)
        return diag_set(dg, ST_RANGE, "flows: a class needs a resource");
    if (c->weight == 0)
        return diag_set(dg, ST_RANGE, "flows: the weight of a class is at least 1");
    for (uint32_t i = 0; i < c->resource_count; i++) {
        if (c->resources[i] >= net->resource_count)
            return diag_set(dg, ST_RANGE, "flows: resource %u is not one of %u", c->resources[i],
                            net->resource_count);
        for (uint32_t j = 0; j < i; j++)
            if (c->resources[j] == c->resources[i])
                return diag_set(dg, ST_RANGE, "flows: resource %u comes twice", c->resources[i]);
    }
    return ST_OK;
}

/* Two components become one, named after the lower. */
static void join(struct flow_net *net, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    for (uint32_t r = 0; r < net->resource_count; r++)
        if (net->pipe[r].component == high)
            net->pipe[r].component = low;
}

enum status flow_class_add(struct flow_net *net, const struct flow_class *c, uint32_t *index,
                           struct diag *dg)
{
    assert(net->started == 0);
    enum status status = check_class(net, c, dg);
    if (status != ST_OK)
        return status;
    uint32_t k = net->class_count, first = net->member_count;
    size_t count = (size_t)k + 1, members = (size_t)first + c->resource_count;
    if (!grow(&net->share.classes, count, sizeof *net->share.classes) ||
        !grow(&net->traffic, count, sizeof *net->traffic) ||
        !grow(&net->active_list, count, sizeof *net->active_list) ||
        !grow(&net->member, members, sizeof *net->member))
        return diag_no_memory(dg);
    net->share.member = net->member;
    net->share.classes[k] = (struct maxmin_class){.cap_Bps = c->cap_Bps,
                                                  .weight = c->weight,
                                                  .first_member = first,
                                                  .member_count = c->resource_count};
    net->traffic[k] = (struct traffic){.first = NO_FLOW, .next_end_ns = NEVER_NS};
    memcpy(net->member + first, c->resources, c->resource_count * sizeof *c->resources);
    for (uint32_t i = 1; i < c->resource_count; i++)
        join(net, net->pipe[c->resources[0]].component, net->pipe[c->resources[i]].component);
    net->class_count++;
    net->member_count += c->resource_count;
    arrange(net);
    *index = k;
    return ST_OK;
}
