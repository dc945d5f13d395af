/* moments.c -- see moments.h. Sums are kept by matrix; gate and up of an expert see the same input
 * and share one. */
#include "kernels/heads/moments.h"

#include <stdlib.h>
#include <string.h>

/* The smallest weight, as a share of a matrix's mean: a column that was never used in this text may
 * be in another. */
#define LEAST_SHARE    1e-3
#define LAYER_MATRICES 16 /* dense ones that products are made with */

struct sums {
    const struct matrix *matrix; /* NULL: an expert's */
    size_t cols;
    uint64_t tokens;
    double *square; /* cols */
};

struct moments {
    const struct graph_weights *w;
    struct sums *dense;
    size_t dense_count;
    struct sums *expert; /* (layer * experts + expert) * 2: into gate and up, into down */
    struct sums *layer;  /* layer * 2: the same of all its experts */
    size_t experts;
};

/* ---- while the model runs ---- */

static void add_tokens(struct sums *s, const struct activations *x)
{
    for (size_t t = 0; t < x->tokens; t++)
        for (size_t c = 0; c < s->cols; c++) {
            double v = (double)x->values[t * x->stride + c];
            s->square[c] += v * v;
        }
    s->tokens += x->tokens;
}

static struct sums *find_dense(const struct moments *m, const struct matrix *matrix)
{
    for (size_t i = 0; i < m->dense_count; i++)
        if (m->dense[i].matrix == matrix)
            return &m->dense[i];
    return NULL;
}

static void watch(void *self, const struct product *p)
{
    struct moments *m = self;
    uint32_t number = p->matrix->expert_matrix;
    if (number == 0) {
        struct sums *s = find_dense(m, p->matrix);
        if (s)
            add_tokens(s, &p->x);
        return;
    }
    size_t part = (number - 1) % PART_MAX, expert = (number - 1) / PART_MAX;
    if (part == PART_UP)
        return;
    size_t input = part == PART_DOWN;
    add_tokens(&m->expert[2 * expert + input], &p->x);
    add_tokens(&m->layer[2 * (expert / m->experts) + input], &p->x);
}

/* ---- memory ---- */

enum status moments_new(struct moments **out, struct engine_setup *s, struct diag *dg)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return diag_no_memory(dg);
    s->watch = watch;
    s->watch_self = *out;
    return ST_OK;
}

static enum status sums_new(struct sums *s, const struct matrix *matrix, size_t cols,
                            struct diag *dg)
{
    *s = (struct sums){.matrix = matrix, .cols = cols};
    s->square = calloc(cols ? cols : 1, sizeof *s->square);
    return s->square ? ST_OK : diag_no_memory(dg);
}

static enum status begin_experts(struct moments *m, size_t layer, struct diag *dg)
{
    const struct ffn *f = &m->w->model->layers[layer].ffn;
    enum status st = ST_OK;
    for (size_t input = 0; st == ST_OK && f->experts && input < 2; input++) {
        size_t cols = input ? f->expert_width : f->expert_io_width;
        st = sums_new(&m->layer[2 * layer + input], NULL, cols, dg);
        for (size_t e = 0; st == ST_OK && e < f->experts; e++)
            st = sums_new(&m->expert[2 * (layer * m->experts + e) + input], NULL, cols, dg);
    }
    return st;
}

static enum status begin_dense(struct moments *m, const struct matrix *matrix, struct diag *dg)
{
    return matrix->weights.rows
               ? sums_new(&m->dense[m->dense_count++], matrix, matrix->weights.cols, dg)
               : ST_OK;
}

enum status moments_begin(struct moments *m, const struct graph_weights *w, struct diag *dg)
{
    size_t layers = w->model->layer_count;
    m->w = w;
    m->experts = model_experts(w->model);
    m->dense = calloc(1 + layers * LAYER_MATRICES, sizeof *m->dense);
    m->expert = calloc(2 * layers * m->experts + 1, sizeof *m->expert);
    m->layer = calloc(2 * layers, sizeof *m->layer);
    enum status st = m->dense && m->expert && m->layer ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        st = begin_dense(m, &w->head, dg);
    for (size_t l = 0; st == ST_OK && l < layers; l++) {
        const struct layer_weights *at = &w->layers[l];
        const struct matrix *list[LAYER_MATRICES] = {
            &at->q,           &at->k,         &at->v,           &at->out,
            &at->q_a,         &at->q_b,       &at->kv_a,        &at->kv_b,
            &at->router,      &at->gate,      &at->up,          &at->down,
            &at->shared_gate, &at->shared_up, &at->shared_down, &at->shared_router};
        for (size_t i = 0; st == ST_OK && i < LAYER_MATRICES; i++)
            st = begin_dense(m, list[i], dg);
        if (st == ST_OK)
            st = begin_experts(m, l, dg);
    }
    return st;
}

static void free_sums(struct sums *s, size_t count)
{
    for (size_t i = 0; s && i < count; i++)
        free(s[i].square);
    free(s);
}

void moments_free(struct moments *m)
{
    if (!m)
        return;
    size_t layers = m->w ? m->w->model->layer_count : 0;
    free_sums(m->dense, m->dense_count);
    free_sums(m->expert, 2 * layers * m->experts);
    free_sums(m->layer, 2 * layers);
    free(m);
}

/* ---- afterwards ---- */

/* Mean squares, of `more` with the weight of a few tokens too, and none too small. */
static bool means(const struct sums *s, const struct sums *more, float *weight)
{
    double prior = more && more->tokens ? MOMENTS_PRIOR_TOKENS : 0, sum = 0;
    double tokens = (double)s->tokens + prior;
    if (tokens <= 0)
        return false;
    for (size_t c = 0; c < s->cols; c++) {
        double square = s->square[c];
        if (prior > 0)
            square += prior * more->square[c] / (double)more->tokens;
        weight[c] = (float)(square / tokens);
        sum += (double)weight[c];
    }
    float least = (float)(LEAST_SHARE * sum / (double)s->cols);
    for (size_t c = 0; c < s->cols; c++)
        if (weight[c] < least)
            weight[c] = least;
    return least > 0;
}

bool moments_dense(const struct moments *m, const struct matrix *matrix, float *weight)
{
    const struct sums *s = find_dense(m, matrix);
    return s && means(s, NULL, weight);
}

bool moments_expert(const struct moments *m, size_t layer, size_t expert, enum expert_part part,
                    float *weight)
{
    size_t input = part == PART_DOWN;
    return means(&m->expert[2 * (layer * m->experts + expert) + input],
                 &m->layer[2 * layer + input], weight);
}
