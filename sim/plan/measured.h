/* measured.h -- public measurements, to stand beside a prediction.
 *
 * sim/plan/measured.csv holds decode rates that others published, with the source of each. They are
 * facts to compare with, never an input of the prediction.
 */
#ifndef SIM_PLAN_MEASURED_H
#define SIM_PLAN_MEASURED_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum likeness {
    LIKE_BOTH,  /* same model, same device */
    LIKE_MODEL, /* same model elsewhere */
    LIKE_DEVICE /* another model here */
};

struct measured_run {
    char id[16], model[64], device[64], quant[48], engine[48], overlap[16], source[128];
    char tok_per_s[24]; /* as published */
    uint64_t top_k;     /* 0: not stated */
    uint64_t cache;     /* bytes */
    bool cache_given;
    enum likeness likeness;
};

/* What is asked for: the runs nearest to it come first. */
struct measured_query {
    const char *model, *device;
    uint64_t cache, top_k;
    bool serial; /* reads and compute one after the other */
};

/* Up to `room` runs of the best likeness there is, nearest first: same number of experts a token, same
 * overlap, then the cache nearest in size. */
MUST_CHECK enum status measured_nearest(struct measured_run *out, size_t room, size_t *count,
                                        const char *path, const struct measured_query *q,
                                        struct diag *dg);

#endif
