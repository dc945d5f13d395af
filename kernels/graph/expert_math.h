/* expert_math.h -- the arithmetic of routed experts, whoever chose them and however they came: a group of experts in
 * two forks, one for all gates and ups, one for all downs.
 *
 * Shared by the executor of experts and by what measures its kernels, so that both time the same thing. */
#ifndef KERNELS_GRAPH_EXPERT_MATH_H
#define KERNELS_GRAPH_EXPERT_MATH_H

#include "kernels/graph/matrix.h"
#include "kernels/graph/recipe.h"
#include "models/model.h"

struct expert_math {
    const struct compute_setup *compute;
    enum expert_activation activation;
    size_t hidden, jobs_max;
    struct product *product;
    struct input mid; /* rows: gate * up */
    float *gate, *up; /* rows x width */
    float *row;       /* rows x hidden: each expert's output for each of its tokens */
};

/* One expert for some tokens: their outputs go to rows first, first + 1, ... of `row`. */
struct expert_job {
    const struct matrix *part; /* PART_MAX, by enum expert_part */
    struct activations in;
    size_t first;
};

/* For at most `jobs_max` experts at once, `rows_max` rows, experts up to `width_max` wide. After a failure too, free it. */
MUST_CHECK enum status expert_math_new(struct expert_math *m, const struct compute_setup *c,
                                       enum expert_activation activation, size_t hidden,
                                       size_t width_max, size_t rows_max, size_t jobs_max,
                                       struct diag *dg);
/* What its rows take. */
size_t expert_math_bytes(size_t hidden, size_t width_max, size_t rows_max);
void expert_math_free(struct expert_math *m);

/* All experts of one width; rows must not overlap. */
void expert_math_run(struct expert_math *m, const struct expert_job *job, size_t n);

#endif
