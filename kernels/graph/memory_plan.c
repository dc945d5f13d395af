/* memory_plan.c -- see memory_plan.h. */
#include "kernels/graph/memory_plan.h"

#include "base/quantity.h"
#include "kernels/graph/host_meter.h"
#include "kernels/graph/memory_limit.h"

#include <inttypes.h>

/* Slots have some alignment beside the experts' bytes, one part in sixty-four at most here. */
#define SLACK_SHARE 64

enum status memory_plan_fixed(uint64_t *out, struct experts_need *need,
                              const struct memory_plan_setup *s, size_t chunk, struct diag *dg)
{
    struct experts_setup experts = *s->experts;
    experts.chunk = chunk;
    enum status st = experts_measure(need, &experts, dg);
    if (st != ST_OK)
        return st;
    struct graph_setup graph = {.weights = experts.weights,
                                .compute = experts.compute,
                                .context = s->context,
                                .chunk = chunk};
    uint64_t pass = graph_pass_bytes(&graph) + need->pass_bytes;
    *out = s->held_bytes + kv_cache_bytes(experts.weights->model, s->context, chunk) +
           need->reserve_bytes + MEMORY_OVERHEAD_BYTES +
           (pass > MEMORY_PASS_BYTES ? pass - MEMORY_PASS_BYTES : 0);
    return ST_OK;
}

/* Of what is free, and of what the control group allows, a tenth is left to others. */
static uint64_t system_bytes(void)
{
    struct host_meter h;
    host_meter_read(&h);
    uint64_t memory = h.rss_bytes + h.available_bytes / 10 * 9, limit = memory_limit() / 10 * 9;
    return memory < limit ? memory : limit;
}

static enum status refuse(uint64_t memory, uint64_t least, struct diag *dg)
{
    char have[QUANTITY_TEXT_MAX], want[QUANTITY_TEXT_MAX];
    return diag_set(dg, ST_MISFIT,
                    "memory of %s is too small: dense weights, state, buffers and the smallest "
                    "cache take %s (at least %" PRIu64 " bytes)",
                    quantity_print(have, memory, DIM_SIZE), quantity_round(want, least, DIM_SIZE),
                    least);
}

static uint64_t with_slack(uint64_t cache)
{
    return cache + (cache + SLACK_SHARE - 2) / (SLACK_SHARE - 1) + 1;
}

enum status memory_plan_make(struct memory_plan *out, const struct memory_plan_setup *s,
                             struct diag *dg)
{
    const struct graph_weights *w = s->experts->weights;
    uint64_t all = model_experts_bytes(w->model), fixed, least;
    uint64_t memory = s->memory_bytes ? s->memory_bytes : system_bytes();
    struct experts_need need;
    out->chunk = s->chunk;
    for (;; out->chunk /= 2) {
        enum status st = memory_plan_fixed(&fixed, &need, s, out->chunk, dg);
        if (st != ST_OK)
            return st;
        fixed += w->dense_bytes;
        least = fixed + with_slack(out->chunk > 1 ? need.batch_bytes : need.least_bytes);
        if (memory >= least)
            break;
        if (out->chunk == 1)
            return refuse(memory, least, dg);
    }
    uint64_t left = memory - fixed;
    left -= left / SLACK_SHARE;
    out->cache_bytes = left < all ? left : all;
    return ST_OK;
}
