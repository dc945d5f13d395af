/* attention.c -- attention of a pass: projections, norms and rotation of queries and keys, the cache, the sum.
 *
 * Two families. GQA keeps keys and values of each key head. MLA keeps a latent and one rotated key, and
 * is computed in its absorbed form (DeepSeek-V2, arXiv 2405.04434, section 2.1.2): a query is taken
 * through the key half of kv_b first, so that all heads attend to the latents themselves, and what they
 * sum up is taken through the value half after. That reads the latents once, and never expands them.
 */
#include "kernels/formats/packed.h"
#include "kernels/graph/graph_inside.h"

#include <math.h>
#include <string.h>

static const struct attention *shape_of(const struct graph *g, size_t layer)
{
    return &g->setup.weights->model->layers[layer].attention;
}

static void rotate(const struct graph *g, float *head, size_t token)
{
    size_t pairs = g->setup.weights->numbers.rope_dims / 2;
    const struct isa *isa = g->setup.compute.isa;
    (g->setup.weights->recipe->rope == ROPE_NEOX ? isa->rope_neox : isa->rope_adjacent)(
        head, g->cosine + token * pairs, g->sine + token * pairs, 2 * pairs);
}

/* Positions that token `t` attends to, as rows of the cache: all kept ones up to itself, or a window. */
static void span_of(const struct graph *g, const struct kv_layer *kv, size_t t, size_t *begin,
                    size_t *end)
{
    size_t position = g->position + t, from = 0;
    if (kv->window && position + 1 > kv->window)
        from = position + 1 - kv->window;
    *begin = from > kv->first ? from - kv->first : 0;
    *end = position + 1 - kv->first;
}

/* ---- keys and values of each head ---- */

struct heads_step {
    struct graph *g;
    const struct layer_weights *w;
    const struct attention *a;
    struct kv_layer *kv;
    const float *sinks;
};

static void norm_heads(const struct graph *g, float *x, const float *weight, size_t heads,
                       size_t dim)
{
    const struct isa *isa = g->setup.compute.isa;
    float epsilon = g->setup.weights->numbers.epsilon;
    if (g->setup.weights->recipe->qk_norm == NORM_ALL)
        isa->rms_norm(x, x, weight, heads * dim, epsilon);
    for (size_t h = 0; g->setup.weights->recipe->qk_norm == NORM_HEAD && h < heads; h++)
        isa->rms_norm(x + h * dim, x + h * dim, weight, dim, epsilon);
}

static void store_heads(void *context, size_t begin, size_t end, size_t thread)
{
    const struct heads_step *s = context;
    struct graph *g = s->g;
    const struct attention *a = s->a;
    size_t q_width = a->heads * a->head_dim, k_width = a->kv_heads * a->head_dim;
    size_t first = s->kv->count - g->tokens;
    (void)thread;
    for (size_t t = begin; t < end; t++) {
        float *q = g->q + t * q_width, *k = g->k + t * k_width;
        norm_heads(g, q, s->w->q_norm, a->heads, a->head_dim);
        norm_heads(g, k, s->w->k_norm, a->kv_heads, a->head_dim);
        for (size_t h = 0; h < a->heads; h++)
            rotate(g, q + h * a->head_dim, t);
        for (size_t h = 0; h < a->kv_heads; h++)
            rotate(g, k + h * a->head_dim, t);
        kv_cache_put(s->kv->keys + (first + t) * s->kv->key_width, k, k_width);
        kv_cache_put(s->kv->values + (first + t) * s->kv->value_width,
                     g->v + t * s->kv->value_width, s->kv->value_width);
    }
}

/* Item: a token's query heads of one key head. */
static void attend_heads(void *context, size_t begin, size_t end, size_t thread)
{
    const struct heads_step *s = context;
    struct graph *g = s->g;
    const struct attention *a = s->a;
    size_t group = a->heads / a->kv_heads;
    for (size_t i = begin; i < end; i++) {
        size_t t = i / a->kv_heads, kv_head = i % a->kv_heads, head = kv_head * group;
        struct attention_task task = {
            .heads = group,
            .queries = g->q + (t * a->heads + head) * a->head_dim,
            .keys = s->kv->keys + kv_head * a->head_dim,
            .values = s->kv->values + kv_head * a->v_head_dim,
            .key_stride = s->kv->key_width,
            .value_stride = s->kv->value_width,
            .key_dim = a->head_dim,
            .value_dim = a->v_head_dim,
            .scale = 1.0f / sqrtf((float)a->head_dim),
            .sinks = s->sinks ? s->sinks + head : NULL,
            .scores = g->scores + thread * g->scores_each,
        };
        span_of(g, s->kv, t, &task.begin, &task.end);
        g->setup.compute.isa->attention(
            g->attended.values + t * g->attended.cols + head * a->v_head_dim, &task);
    }
}

static void attend_gqa(struct graph *g, size_t layer)
{
    const struct layer_weights *w = &g->setup.weights->layers[layer];
    const struct compute_setup *c = &g->setup.compute;
    struct heads_step s = {g, w, shape_of(g, layer), &g->kv->layer[layer], w->sinks};
    struct activations x = input_view(&g->normed, 0, g->tokens, c);
    struct product list[] = {{&w->q, x, g->q, w->q.weights.rows},
                             {&w->k, x, g->k, w->k.weights.rows},
                             {&w->v, x, g->v, w->v.weights.rows}};
    products_run(c, list, 3);
    kv_cache_grow(s.kv, g->tokens);
    workers_each(c->workers, store_heads, &s, g->tokens, 1);
    workers_each(c->workers, attend_heads, &s, g->tokens * s.a->kv_heads, 1);
}

/* ---- one latent for all heads ---- */

/* With the adapter merged into it, as no product is made that could add it. */
static void dequantised_row(const struct isa *isa, float *to, const struct matrix *m, size_t row)
{
    const struct weights *w = &m->weights;
    const struct low_rank *a = m->adapter;
    packed_dequantise(w->format, to, w->data, row, 0, w->cols, w->cols);
    for (size_t i = 0; a && i < a->rank; i++)
        isa->add_scaled(to, a->down + i * w->cols, a->scale * a->up[row * a->rank + i], w->cols);
}

static size_t latent_width(const struct attention *a)
{
    return a->kv_lora_rank + a->rope_head_dim;
}

/* Item: a head. Its queries of all tokens through the key half of the expansion. */
static void absorb_queries(void *context, size_t begin, size_t end, size_t thread)
{
    const struct heads_step *s = context;
    struct graph *g = s->g;
    const struct attention *a = s->a;
    const struct isa *isa = g->setup.compute.isa;
    float *row = g->row + thread * g->row_each;
    size_t head_dim = a->nope_head_dim + a->rope_head_dim, latent = latent_width(a);
    for (size_t h = begin; h < end; h++) {
        for (size_t t = 0; t < g->tokens; t++) {
            float *to = g->absorbed + (t * a->heads + h) * latent;
            float *q = g->q + (t * a->heads + h) * head_dim;
            rotate(g, q + a->nope_head_dim, t);
            memset(to, 0, a->kv_lora_rank * sizeof *to);
            memcpy(to + a->kv_lora_rank, q + a->nope_head_dim, a->rope_head_dim * sizeof *to);
        }
        bool split = s->w->k_b.weights.rows > 0;
        size_t rows = split ? a->kv_lora_rank : a->nope_head_dim;
        for (size_t i = 0; i < rows; i++) {
            if (split)
                dequantised_row(isa, row, &s->w->k_b, h * rows + i);
            else
                dequantised_row(isa, row, &s->w->kv_b, h * (a->nope_head_dim + a->v_head_dim) + i);
            for (size_t t = 0; t < g->tokens; t++) {
                float *to = g->absorbed + (t * a->heads + h) * latent;
                const float *q = g->q + (t * a->heads + h) * head_dim;
                if (split)
                    to[i] = isa->dot(row, q, a->nope_head_dim);
                else
                    isa->add_scaled(to, row, q[i], a->kv_lora_rank);
            }
        }
    }
}

static void store_latents(struct graph *g, const struct heads_step *s)
{
    const struct attention *a = s->a;
    size_t width = latent_width(a), first = s->kv->count - g->tokens;
    for (size_t t = 0; t < g->tokens; t++) {
        float *latent = g->k + t * width;
        g->setup.compute.isa->rms_norm(latent, latent, s->w->kv_a_norm, a->kv_lora_rank,
                                       g->setup.weights->numbers.epsilon);
        rotate(g, latent + a->kv_lora_rank, t);
        kv_cache_put(s->kv->keys + (first + t) * width, latent, width);
    }
}

/* Item: a head. Its sum of latents of each token, and that through the value half of the expansion. */
static void attend_latents(void *context, size_t begin, size_t end, size_t thread)
{
    const struct heads_step *s = context;
    struct graph *g = s->g;
    const struct attention *a = s->a;
    const struct isa *isa = g->setup.compute.isa;
    size_t latent = latent_width(a);
    float *row = g->row + thread * g->row_each;
    for (size_t h = begin; h < end; h++) {
        for (size_t t = 0; t < g->tokens; t++) {
            struct attention_task task = {
                .heads = 1,
                .queries = g->absorbed + (t * a->heads + h) * latent,
                .keys = s->kv->keys,
                .values = s->kv->keys,
                .key_stride = latent,
                .value_stride = latent,
                .key_dim = latent,
                .value_dim = a->kv_lora_rank,
                .scale = g->setup.weights->numbers.attention_scale /
                         sqrtf((float)(a->nope_head_dim + a->rope_head_dim)),
                .scores = g->scores + thread * g->scores_each,
            };
            span_of(g, s->kv, t, &task.begin, &task.end);
            isa->attention(g->context + (t * a->heads + h) * a->kv_lora_rank, &task);
        }
        bool split = s->w->v_b.weights.rows > 0;
        for (size_t i = 0; i < a->v_head_dim; i++) {
            if (split)
                dequantised_row(isa, row, &s->w->v_b, h * a->v_head_dim + i);
            else
                dequantised_row(isa, row, &s->w->kv_b,
                                h * (a->nope_head_dim + a->v_head_dim) + a->nope_head_dim + i);
            for (size_t t = 0; t < g->tokens; t++)
                g->attended.values[t * g->attended.cols + h * a->v_head_dim + i] = isa->dot(
                    row, g->context + (t * a->heads + h) * a->kv_lora_rank, a->kv_lora_rank);
        }
    }
}

/* Queries by two matrices with a norm between them, where the model has a query rank. */
static void low_rank_queries(struct graph *g, const struct layer_weights *w)
{
    const struct compute_setup *c = &g->setup.compute;
    size_t rank = w->q_a.weights.rows;
    g->q_low.cols = rank;
    product_run(c, &w->q_a, &g->normed, g->tokens, g->q_low.values);
    for (size_t t = 0; t < g->tokens; t++)
        c->isa->rms_norm(g->q_low.values + t * rank, g->q_low.values + t * rank, w->q_a_norm, rank,
                         g->setup.weights->numbers.epsilon);
    input_ready(&g->q_low, 0, g->tokens, c);
    product_run(c, &w->q_b, &g->q_low, g->tokens, g->q);
}

static void attend_mla(struct graph *g, size_t layer)
{
    const struct layer_weights *w = &g->setup.weights->layers[layer];
    const struct compute_setup *c = &g->setup.compute;
    struct heads_step s = {g, w, shape_of(g, layer), &g->kv->layer[layer], NULL};
    if (w->q_b.weights.rows)
        low_rank_queries(g, w);
    else
        product_run(c, &w->q, &g->normed, g->tokens, g->q);
    product_run(c, &w->kv_a, &g->normed, g->tokens, g->k);
    kv_cache_grow(s.kv, g->tokens);
    store_latents(g, &s);
    workers_each(c->workers, absorb_queries, &s, s.a->heads, 1);
    workers_each(c->workers, attend_latents, &s, s.a->heads, 1);
}

void attention_step(struct graph *g, size_t layer)
{
    const struct layer_weights *w = &g->setup.weights->layers[layer];
    const struct attention *a = shape_of(g, layer);
    graph_norm(g, w->attn_norm);
    g->attended.cols = a->heads * a->v_head_dim;
    if (a->family == ATTENTION_MLA)
        attend_mla(g, layer);
    else
        attend_gqa(g, layer);
    input_ready(&g->attended, 0, g->tokens, &g->setup.compute);
    product_run(&g->setup.compute, &w->out, &g->attended, g->tokens, g->delta);
    graph_add(g);
}
