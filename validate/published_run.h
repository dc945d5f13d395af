/* published_run.h -- predictions for published rows, one for each (row, class).
 *
 * Rows do not depend on each other, so any number of threads gives the same outcomes in the same order.
 * A row that cannot be run has no prediction and says in `note` which input lacks or what did not fit. */
#ifndef VALIDATE_PUBLISHED_RUN_H
#define VALIDATE_PUBLISHED_RUN_H

#include "validate/published_setup.h"

struct published_outcome {
    const struct published_row *row;
    enum published_class class_of;
    bool predicted_given;
    double predicted, low, high; /* in the row's unit; low and high only with draws */
    double signed_error; /* predicted/published - 1; to the nearer end of a range, 0 within it */
    const char *bound;   /* what most of the time went to; "" */
    int pass; /* 1 within the tolerance (trend: faster or slower as published), 0 not, -1 none */
    bool counted; /* in the quantiles: rule des, a decode rate, predicted */
    char note[256];
};

struct published_request {
    struct published_folders folders;
    int only_class;       /* enum published_class, or -1: every class that a row allows */
    uint64_t seed, draws; /* draws of the inputs behind low and high; 0: none */
    uint32_t threads;
    void (*step)(void *self); /* after each row, one at a time; or NULL */
    void *step_self;
};

/* ST_PARSE, with file:line, for a top_k above the experts of the row's model. A model that cannot be loaded is
 * no error here: the row's outcome says so. */
MUST_CHECK enum status published_check_models(const struct published *p, const char *models,
                                              struct diag *dg);

/* `*out` has `*count` outcomes in the order of the file, classes of a row from blind to given; free() it.
 * They refer to the rows of `p`. ST_NO_MEMORY only: whatever is wrong with a row stands in its note. */
MUST_CHECK enum status published_run_all(struct published_outcome **out, size_t *count,
                                         const struct published *p,
                                         const struct published_request *q, struct diag *dg);
/* How many outcomes that will be. */
size_t published_run_count(const struct published *p, int only_class);

/* Relative distance to a published range low..high; what signed_error is. */
double published_error(double predicted, double low, double high);

#endif
