/* route.h -- one way a model may route, and what a prompt costs under it.
 *
 * A model whose router is known has one route. Where nothing is known of it the plan keeps several,
 * the customary one first and then what public routers span, from independent uniform choices to the
 * most skewed: which of them holds is drawn as one more input of the interval
 * (docs/results/unknown-routing.md).
 */
#ifndef SIM_PLAN_ROUTE_H
#define SIM_PLAN_ROUTE_H

#include "sim/plan/hit_curve.h"
#include "sim/roofline/workload.h"

#define ROUTE_PARTS 8
#define ROUTE_MAX   7

/* Chunks of the prompt in a row, taken as so many times the one in their middle: what a chunk costs
 * grows linearly with its position, so the sum is that of all of them. The last chunk is by itself. */
struct prompt_part {
    struct workload chunk;
    uint64_t chunks; /* in a row */
    uint64_t before; /* tokens of the prompt before the middle one */
};

struct route {
    const char *preset;
    struct hit_curve curve;
    struct prompt_part part[ROUTE_PARTS];
    size_t part_count;
    uint64_t chunk; /* tokens of one; shrunk until its experts fit the cache; 0 without a prompt */
};

struct route_request {
    const char *presets; /* folder of routing presets */
    uint64_t prompt;     /* tokens */
    uint64_t cache;      /* bytes of expert cache */
    uint32_t state_bits;
};

/* What a model of unknown routing may route like; the first is PRESET_CUSTOMARY. Ends with NULL. */
extern const char *const route_presets[];

/* `preset` is a name or "uniform". Free it on any outcome. */
MUST_CHECK enum status route_init(struct route *out, const struct model *m, const char *preset,
                                  const struct route_request *r, struct diag *dg);
void route_free(struct route *r);

/* A pass of one sequence under this route, as workload_init() asks for it. */
struct workload_request route_pass(const struct route *r, uint64_t tokens, uint64_t context,
                                   uint32_t state_bits);

#endif
