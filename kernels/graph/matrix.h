/* matrix.h -- a dense weight matrix of the graph, with what is added to its product; and products of many
 * at once.
 *
 * A decode step multiplies small vectors by many matrices; each product alone would pay a fork and a
 * join. products_run() takes a list (q, k and v; gate and up of all experts that are there) and shares
 * the rows of all of them among the threads in one go. Results do not depend on how rows are shared
 * (isa.h).
 */
#ifndef KERNELS_GRAPH_MATRIX_H
#define KERNELS_GRAPH_MATRIX_H

#include "kernels/graph/workers.h"
#include "kernels/isa/isa.h"

/* An unmerged low-rank adapter: adds scale * up (down x). */
#define LOW_RANK_MAX 1024
struct low_rank {
    size_t rank; /* 1..LOW_RANK_MAX */
    float scale;
    const float *down; /* rank x cols */
    const float *up;   /* rows x rank */
};

struct matrix {
    struct weights weights;         /* rows 0: the layer has no such matrix */
    const float *bias;              /* rows, or NULL */
    const struct low_rank *adapter; /* or NULL */
    uint32_t
        expert_matrix; /* of a routed expert: 1 + (layer * experts + expert) * 3 + part; else 0 */
};

/* Is told of each product when it is done, by the thread that asked for it: for statistics of what goes
 * into a matrix and comes out. It must not change what it is shown. */
struct product;
typedef void product_watch_fn(void *self, const struct product *p);

/* Who computes, and in what precision. */
struct compute_setup {
    const struct isa *isa;
    struct workers *workers;
    bool activations_f32;    /* else 8 bits, for weights that are quantised */
    product_watch_fn *watch; /* NULL: nobody watches */
    void *watch_self;
};

/* The input of products: `tokens` vectors and, unless everything is F32, their 8-bit form. Capacity is set at
 * input_new. */
struct input {
    size_t cols, tokens_max;
    float *values;   /* token t at values + t * cols */
    void *quantised; /* consecutive activation buffers; meaningful after input_ready */
};
/* What it takes. */
size_t input_bytes(size_t cols, size_t tokens_max);
MUST_CHECK enum status input_new(struct input *in, size_t cols, size_t tokens_max, struct diag *dg);
void input_free(struct input *in);
/* Values of tokens begin..begin+count-1 are there: makes their 8-bit form. */
void input_ready(struct input *in, size_t begin, size_t count, const struct compute_setup *c);
/* Token `to` of one becomes token `from` of the other, which is ready; both have the same cols. */
void input_copy(struct input *in, size_t to, const struct input *other, size_t from);
/* Tokens begin..begin+count-1 of it. */
struct activations input_view(const struct input *in, size_t begin, size_t count,
                              const struct compute_setup *c);

struct product {
    const struct matrix *matrix;
    struct activations x;
    float *y; /* token t at y + t * y_stride */
    size_t y_stride;
};

/* y = W x, plus bias and adapter where the matrix has them. The ys must not overlap. */
void products_run(const struct compute_setup *c, const struct product *list, size_t count);
/* The same for one matrix and the first tokens of a ready input: y is tokens x rows. */
void product_run(const struct compute_setup *c, const struct matrix *m, const struct input *in,
                 size_t tokens, float *y);

#endif
