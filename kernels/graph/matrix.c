/* matrix.c -- see matrix.h. */
#include "kernels/graph/matrix.h"

#include "kernels/formats/packed.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Rows that one thread takes at a time: what the packed layout allows. */
#define ROW_UNIT PACKED_TILE_ROWS
/* For fewer vectors than this a fork costs more than it saves. */
#define FEW_TOKENS 4

static size_t bytes_a_token(const struct input *in)
{
    return activation_bytes(in->cols);
}

size_t input_bytes(size_t cols, size_t tokens_max)
{
    return tokens_max * (cols * sizeof(float) + activation_bytes(cols));
}

enum status input_new(struct input *in, size_t cols, size_t tokens_max, struct diag *dg)
{
    *in = (struct input){.cols = cols, .tokens_max = tokens_max};
    in->values = calloc(cols * tokens_max, sizeof *in->values);
    in->quantised = aligned_alloc(ACTIVATION_ALIGN, bytes_a_token(in) * tokens_max);
    if (in->values && in->quantised)
        return ST_OK;
    input_free(in);
    return diag_no_memory(dg);
}

void input_free(struct input *in)
{
    free(in->values);
    free(in->quantised);
    *in = (struct input){0};
}

struct quantising {
    struct input *in;
    const struct compute_setup *c;
    size_t first;
};

static void quantise_tokens(void *context, size_t begin, size_t end, size_t thread)
{
    const struct quantising *q = context;
    (void)thread;
    for (size_t t = q->first + begin; t < q->first + end; t++)
        q->c->isa->quantise((char *)q->in->quantised + t * bytes_a_token(q->in),
                            q->in->values + t * q->in->cols, q->in->cols);
}

void input_ready(struct input *in, size_t begin, size_t count, const struct compute_setup *c)
{
    assert(begin + count <= in->tokens_max);
    if (c->activations_f32)
        return;
    struct quantising q = {in, c, begin};
    if (count < FEW_TOKENS)
        quantise_tokens(&q, 0, count, 0);
    else
        workers_each(c->workers, quantise_tokens, &q, count, 1);
}

void input_copy(struct input *in, size_t to, const struct input *other, size_t from)
{
    memcpy(in->values + to * in->cols, other->values + from * in->cols,
           in->cols * sizeof *in->values);
    memcpy((char *)in->quantised + to * bytes_a_token(in),
           (const char *)other->quantised + from * bytes_a_token(in), bytes_a_token(in));
}

struct activations input_view(const struct input *in, size_t begin, size_t count,
                              const struct compute_setup *c)
{
    return (struct activations){
        .tokens = count,
        .values = in->values + begin * in->cols,
        .stride = in->cols,
        .quantised =
            c->activations_f32 ? NULL : (const char *)in->quantised + begin * bytes_a_token(in),
    };
}

/* Adds scale * up (down x) to rows begin..end-1. `down x` is short, so every share computes it anew rather
 * than wait for one that does. */
static void add_low_rank(const struct compute_setup *c, const struct product *p, size_t begin,
                         size_t end)
{
    const struct low_rank *a = p->matrix->adapter;
    size_t cols = p->matrix->weights.cols;
    float reduced[LOW_RANK_MAX];
    for (size_t t = 0; t < p->x.tokens; t++) {
        const float *x = p->x.values + t * p->x.stride;
        for (size_t i = 0; i < a->rank; i++)
            reduced[i] = c->isa->dot(a->down + i * cols, x, cols);
        for (size_t r = begin; r < end; r++)
            p->y[t * p->y_stride + r] +=
                a->scale * c->isa->dot(a->up + r * a->rank, reduced, a->rank);
    }
}

static void product_rows(const struct compute_setup *c, const struct product *p, size_t begin,
                         size_t end)
{
    const struct matrix *m = p->matrix;
    isa_product(c->isa, p->y, p->y_stride, &m->weights, &p->x, begin, end);
    for (size_t t = 0; m->bias && t < p->x.tokens; t++)
        for (size_t r = begin; r < end; r++)
            p->y[t * p->y_stride + r] += m->bias[r];
    if (m->adapter)
        add_low_rank(c, p, begin, end);
}

struct products {
    const struct compute_setup *c;
    const struct product *list;
    size_t count;
};

/* Units are numbered through all products, so that every thread gets as many rows as another. */
static void products_share(void *context, size_t begin, size_t end, size_t thread)
{
    const struct products *p = context;
    size_t first = 0; /* unit with which product i begins */
    (void)thread;
    for (size_t i = 0; i < p->count && first < end; i++) {
        size_t rows = p->list[i].matrix->weights.rows;
        size_t units = (rows + ROW_UNIT - 1) / ROW_UNIT;
        size_t from = begin > first ? begin - first : 0, to = end - first;
        if (to > units)
            to = units;
        if (from < to)
            product_rows(p->c, &p->list[i], from * ROW_UNIT,
                         to * ROW_UNIT < rows ? to * ROW_UNIT : rows);
        first += units;
    }
}

void products_run(const struct compute_setup *c, const struct product *list, size_t count)
{
    struct products p = {c, list, count};
    size_t units = 0;
    for (size_t i = 0; i < count; i++)
        units += (list[i].matrix->weights.rows + ROW_UNIT - 1) / ROW_UNIT;
    if (units)
        workers_each(c->workers, products_share, &p, units, 1);
    for (size_t i = 0; c->watch && i < count; i++)
        c->watch(c->watch_self, &list[i]);
}

void product_run(const struct compute_setup *c, const struct matrix *m, const struct input *in,
                 size_t tokens, float *y)
{
    struct product p = {m, input_view(in, 0, tokens, c), y, m->weights.rows};
    products_run(c, &p, 1);
}
