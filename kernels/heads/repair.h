/* repair.h -- a low-rank correction of what quantisation did to a model, as an adapter beside it.
 *
 * For each matrix of the base that differs from the full-precision model's, the rank-r matrices
 * nearest to the difference W - Q(W) are written as a GGUF LoRA (adapter.h), alpha = rank. The base
 * is neither changed nor copied. With moments of recorded activations the nearest is meant in what
 * the matrix puts out instead of in its weights (low_rank_fit.h).
 *
 * What no adapter reaches stays as it is: the embedding, norms and biases.
 */
#ifndef KERNELS_HEADS_REPAIR_H
#define KERNELS_HEADS_REPAIR_H

#include "kernels/heads/moments.h"

/* Sums of squares over all weights: of the full matrix, of the difference before and after. */
struct repair_error {
    double whole, before, after;
};
/* sqrt(before / whole), sqrt(after / whole). */
double repair_error_before(const struct repair_error *e);
double repair_error_after(const struct repair_error *e);
void repair_error_add(struct repair_error *sum, const struct repair_error *e);

/* One tensor of the base. */
struct repair_row {
    char name[128];
    uint64_t rows, cols, experts; /* 1 expert: a dense matrix */
    size_t rank;                  /* at most rows and cols */
    uint64_t bytes;               /* of its two tensors in the adapter */
    struct repair_error error;
    struct repair_error weighted; /* by second moments; all 0 without */
};
typedef void repair_row_fn(void *self, const struct repair_row *row);

struct repair_setup {
    const struct graph_weights *base;
    const char *full;              /* path */
    size_t rank;                   /* 1..LOW_RANK_MAX */
    bool f32;                      /* numbers of the adapter; else F16 */
    const struct moments *moments; /* or NULL */
    const struct compute_setup *compute;
    repair_row_fn *row; /* told of each tensor when it is done; or NULL */
    void *row_self;
    graph_progress_fn *progress; /* told weights; or NULL */
    void *progress_self;
};

/* ST_MISFIT: the two are not the same model, or nothing differs. ST_UNSUPPORTED: a format without
 * kernels. */
MUST_CHECK enum status repair_write(const struct repair_setup *s, const char *path,
                                    struct diag *dg);

#endif
