/* planner.h -- the answer: does it fit, how fast, what binds, what would help, what would be needed.
 *
 * A plan is one description of the situation (model, device, placement, routing) and many evaluations
 * of the same estimator: once at the stated inputs, PLAN_DRAWS times with every input drawn within
 * its stated spread, and for each question "what if". A draw multiplies the same inputs by the same
 * factors in every question (common random numbers), so a factor between two of them is not noise.
 * Integer arithmetic and named PCG streams: the same seed gives the same bytes on every machine.
 */
#ifndef SIM_PLAN_PLANNER_H
#define SIM_PLAN_PLANNER_H

#include "sim/plan/placement.h"
#include "sim/plan/route.h"
#include "sim/roofline/estimate.h"

#define PLAN_DRAWS       200
#define PLAN_SIZES       5
#define PLAN_WHAT_IF_MAX 10
#define PLAN_SITES       6

struct plan_request {
    struct placement_request place;
    enum profile profile;
    uint64_t lanes, pieces, copies;
    const char *presets; /* folder of routing presets */
    const char *preset;  /* name; NULL: the model's own */
    /* "gpu", or "gpu+cpu" for experts computed by the second out of DRAM while the first, which has
     * memory of its own, does the rest; NULL: whichever of them is fastest. */
    const char *unit;
    uint64_t prompt; /* tokens before the first answer */
    uint64_t seed;
};

/* A value in the middle and the 5th and 95th of a hundred draws around it. */
struct range {
    uint64_t mid, low, high;
};

struct what_if {
    const char *name;    /* "2x flash" */
    const char *key;     /* flash_2x: the column's name */
    struct range factor; /* of the decode rate, parts in 10^9 */
};

/* Where the kernels run, and what a token then takes. */
struct site_choice {
    char name[64]; /* "gpu+cpu" */
    uint64_t token_ns;
};

struct cache_point {
    uint64_t cache; /* bytes */
    uint64_t hit_ratio;
    uint64_t token_ns;
};

struct plan {
    const struct model *model;
    const struct device *device;
    struct plan_request request;
    struct machine machine;
    struct placement place;
    /* All that were possible, the one taken first. */
    struct site_choice site[PLAN_SITES];
    size_t site_count;
    /* The first is what the answer in the middle is made of. Several where the model's routing is
     * unknown; each draw of the interval takes one of them. */
    struct route route[ROUTE_MAX];
    size_t route_count;
    struct value residual; /* what the estimator itself is off by, once its inputs are right */
    struct value misses;   /* the miss ratio as an input of the interval: its kind and spread */

    struct workload decode; /* one token at the context asked for */
    struct workload
        fewer_bits; /* the same with experts (or all weights) in the next smaller format */
    const char *fewer_name, *fewer_key; /* "3-bit experts"; NULL if there is none smaller */
    uint64_t fewer_factor;              /* their bytes against now, parts in 10^9 */

    uint64_t cycle, moe_layers; /* T, and layers with experts */
    uint64_t hit_ratio;         /* of expert look-ups while decoding, parts in 10^9 */
    uint64_t cliff;             /* cache below which LRU hits nothing */
    struct tally tally;         /* of one token */
    struct timing timing;
    struct bounds bounds;
    struct range token_ns, first_ns; /* low is the faster end: times, not rates */
    struct cache_point size[PLAN_SIZES];
    size_t size_count;
    struct what_if what_if[PLAN_WHAT_IF_MAX];
    size_t what_if_count;
};

/* Model and device must outlive the plan. ST_MISFIT with the minimum if it cannot be placed. */
MUST_CHECK enum status plan_new(struct plan **out, const struct model *m, const struct device *d,
                                const struct plan_request *request, struct diag *dg);
void plan_free(struct plan *p);
/* Whether a token reads anything from flash. */
bool plan_streams(const struct plan *p);
/* Whether nothing is known of how the model routes, and it matters. */
bool plan_routing_unknown(const struct plan *p);

/* One evaluation: the plan with some things changed. */
struct plan_case {
    struct machine machine;
    const struct workload *decode;
    const struct route *route;
    uint64_t cache; /* bytes of expert cache */
    uint64_t pieces;
    uint64_t expert_factor; /* expert bytes of `decode` against the plan's, parts in 10^9 */
    uint64_t miss_factor;   /* miss ratio against the routing's, parts in 10^9 */
    uint64_t stream_trunk, stream_bytes;
    enum profile profile;
};
void plan_base_case(struct plan_case *c, const struct plan *p);
uint64_t plan_hit_ratio(const struct plan *p, const struct plan_case *c);
void plan_regime(struct regime *out, const struct plan *p, const struct plan_case *c);
/* Time of one decoded token, and where it goes. */
void plan_token(struct timing *out, const struct plan *p, const struct plan_case *c);
/* Time from the prompt to the first token: cache empty, dense weights at hand. */
uint64_t plan_first_ns(const struct plan *p, const struct plan_case *c);

/* Fills the ranges and the factors of the questions: what plan_new() ends with. */
void plan_spread(struct plan *p);

/* ---- the inverse: what is the least that gives `token_ns` or better, everything else as it is --- */

enum wish {
    WISH_FLASH,
    WISH_MEMORY,
    WISH_CACHE,
    WISH_COMPUTE,
    WISH_DRAM_RATE,
    WISH_UNIT_RATE,
    WISH_LINK,
    WISH_COUNT
};

/* 1 B/s of a resource that is not used would do: then the need is 0. */
struct answer {
    const char *name; /* "flash rate" */
    enum dimension dim;
    uint64_t now;                       /* 0: the machine has none, and the rest means nothing */
    uint64_t need, need_low, need_high; /* flash rate: ceiling in B/s (lane rate and iops in
                                           proportion); low and high: if a token takes as long as the
                                           ends of its interval say; UINT64_MAX: not by this alone */
    bool
        reachable; /* by this alone, within a thousand times what there is, or all experts cached */
    uint64_t best_ns; /* a token's time with as much of it as anybody could want */
};
void plan_want(struct answer answers[WISH_COUNT], const struct plan *p, uint64_t token_ns);

/* Flash rate and memory both times the least `factor` (parts in 10^9) that gives `token_ns`. */
struct together {
    uint64_t factor, flash, memory;
    bool reachable;
    uint64_t best_ns; /* with as much of both as anybody could want */
};
void plan_want_together(struct together *out, const struct plan *p, uint64_t token_ns);

#endif
