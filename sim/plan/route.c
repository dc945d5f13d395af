/* route.c -- see route.h. */
#include "sim/plan/route.h"

#include "base/fixed.h"
#include "sim/trace/preset.h"

#include <string.h>

const char *const route_presets[] = {PRESET_CUSTOMARY, "uniform",  "deepseek-v2-lite", "gemma4",
                                     "qwen3",          "balanced", "skewed",           NULL};

_Static_assert(sizeof route_presets / sizeof *route_presets == ROUTE_MAX + 1,
               "a plan has room for every route");

struct workload_request route_pass(const struct route *r, uint64_t tokens, uint64_t context,
                                   uint32_t state_bits)
{
    return (struct workload_request){.sequences = 1,
                                     .tokens = tokens,
                                     .context = context,
                                     .logits = 1,
                                     .state_bits = state_bits,
                                     .distinct_e3 = hit_curve_union_e3,
                                     .distinct_self = &r->curve};
}

/* The largest chunk, prompt or a half or a quarter of it and so on, whose experts of one layer fit
 * the cache; without a cache they pass through the buffers one by one. */
static uint64_t chunk_of(const struct route *route, const struct model *m,
                         const struct route_request *r)
{
    uint64_t chunk = r->prompt, expert = model_expert_bytes_max(m);
    if (!expert || !r->cache)
        return chunk;
    while (chunk > 1 && hit_curve_distinct_e3(&route->curve, chunk) > r->cache / expert * 1000)
        chunk = (chunk + 1) / 2;
    return chunk;
}

/* Chunks first..last, all but perhaps the last one of full length. */
static enum status add_part(struct route *route, const struct model *m,
                            const struct route_request *r, uint64_t first, uint64_t last,
                            struct diag *dg)
{
    struct prompt_part *part = &route->part[route->part_count++];
    uint64_t count = (r->prompt + route->chunk - 1) / route->chunk;
    uint64_t at = (first + last) * route->chunk / 2, left = r->prompt - at;
    struct workload_request w =
        route_pass(route, left < route->chunk ? left : route->chunk, at, r->state_bits);
    w.logits = last + 1 == count;
    part->chunks = last - first + 1;
    part->before = at;
    return workload_init(&part->chunk, m, &w, dg);
}

static enum status set_prompt(struct route *route, const struct model *m,
                              const struct route_request *r, struct diag *dg)
{
    if (r->prompt == 0)
        return ST_OK;
    route->chunk = chunk_of(route, m, r);
    uint64_t last = (r->prompt + route->chunk - 1) / route->chunk - 1, most = ROUTE_PARTS - 1;
    uint64_t parts = last < most ? last : most;
    enum status st = ST_OK;
    for (uint64_t i = 0; i < parts && st == ST_OK; i++)
        st = add_part(route, m, r, i * last / parts, (i + 1) * last / parts - 1, dg);
    return st == ST_OK ? add_part(route, m, r, last, last, dg) : st;
}

enum status route_init(struct route *out, const struct model *m, const char *preset,
                       const struct route_request *r, struct diag *dg)
{
    uint64_t experts = model_experts(m), k = model_top_k(m);
    *out = (struct route){.preset = preset};
    hit_curve_uniform(&out->curve, experts, k);
    enum status st = ST_OK;
    if (experts && strcmp(preset, "uniform") != 0)
        st = hit_curve_preset(&out->curve, r->presets, preset, experts, k, dg);
    return st == ST_OK ? set_prompt(out, m, r, dg) : st;
}

void route_free(struct route *r)
{
    for (size_t i = 0; i < r->part_count; i++)
        workload_free(&r->part[i].chunk);
}
