/* plan_bench.h -- for tests of the planner: a model on a device of the catalogue, and its plan. */
#ifndef TESTS_PLAN_BENCH_H
#define TESTS_PLAN_BENCH_H

#include "sim/plan/planner.h"

struct bench {
    struct model *m;
    struct device *d;
    struct plan_request
        r; /* uniform routing, four lanes, three pieces, 4096 tokens of context, 512 of prompt */
};

/* Whatever goes wrong fails the running test. `quant` NULL is as published. */
struct bench bench_of(const char *model, const char *device, const char *quant);
void bench_free(struct bench *b);
struct plan *plan_of(const struct bench *b);

#endif
