/* model_facts.h -- one row of the shared table of models, to test catalogue and imports against. */
#ifndef TESTS_MODEL_FACTS_H
#define TESTS_MODEL_FACTS_H

#include "models/model.h"

struct model_facts {
    uint64_t layers, params_total, params_active, params_attention, params_router, params_expert;
    uint64_t params_shared, kv_bytes_per_token, window_bytes, linear_bytes;
};

/* The row whose `model` is `name`; fails the test if there is none. */
struct model_facts model_facts_find(const char *name);

/* Asserts that `m` has the parameters (norms and biases apart, which the table leaves out) and the
 * state of the row: exactly, except that the totals may differ by `extra` parameters. */
void model_facts_check(const struct model *m, const char *name, uint64_t extra);

#endif
