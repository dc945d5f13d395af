/* graph_buffers.c -- what a pass fills: one list of sizes says what is allocated and what it will take. */
#include "kernels/graph/graph_inside.h"

#include <stdlib.h>

/* The widest of all layers. */
struct widths {
    size_t q, k, v, q_low, absorbed, context, attended, mid, experts, top_k, scores, row;
};

static void widen(size_t *width, size_t other)
{
    if (other > *width)
        *width = other;
}

static struct widths measure(const struct graph_setup *s)
{
    struct widths w = {.q = 1, .mid = 1, .experts = 1, .top_k = 1};
    const struct model *m = s->weights->model;
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct attention *a = &m->layers[i].attention;
        const struct ffn *f = &m->layers[i].ffn;
        bool latent = a->family == ATTENTION_MLA;
        size_t width = a->kv_lora_rank + a->rope_head_dim;
        widen(&w.q, a->heads * (latent ? a->nope_head_dim + a->rope_head_dim : a->head_dim));
        widen(&w.k, latent ? width : a->kv_heads * a->head_dim);
        widen(&w.v, latent ? 1 : a->kv_heads * a->v_head_dim);
        widen(&w.q_low, a->q_lora_rank);
        widen(&w.absorbed, latent ? a->heads * width : 1);
        widen(&w.context, latent ? a->heads * a->kv_lora_rank : 1);
        widen(&w.attended, a->heads * a->v_head_dim);
        widen(&w.mid, f->dense_width);
        widen(&w.mid, f->shared_width);
        widen(&w.experts, f->experts);
        widen(&w.top_k, f->top_k);
        widen(&w.scores,
              (latent ? 1 : a->heads / a->kv_heads) * kv_cache_room(a, s->context, s->chunk));
        widen(&w.row, latent ? a->kv_lora_rank + a->nope_head_dim : 1);
    }
    return w;
}

struct floats {
    float **to;
    size_t count;
};
struct rows {
    struct input *to;
    size_t cols;
};
#define FLOATS_COUNT 19
#define ROWS_COUNT   4

static void list_buffers(struct graph *g, const struct widths *w,
                         struct floats floats[FLOATS_COUNT], struct rows rows[ROWS_COUNT])
{
    size_t chunk = g->setup.chunk, hidden = g->setup.weights->model->hidden;
    size_t pairs = g->setup.weights->numbers.rope_dims / 2;
    size_t threads = workers_threads(g->setup.compute.workers);
    const struct floats all[FLOATS_COUNT] = {
        {&g->residual, chunk * hidden},
        {&g->delta, chunk * hidden},
        {&g->routed, chunk * hidden},
        {&g->q, chunk * w->q},
        {&g->k, chunk * w->k},
        {&g->v, chunk * w->v},
        {&g->absorbed, chunk * w->absorbed},
        {&g->context, chunk * w->context},
        {&g->gate, chunk * w->mid},
        {&g->up, chunk * w->mid},
        {&g->logit, chunk * w->experts},
        {&g->score, chunk * w->experts},
        {&g->shared_gate, chunk},
        {&g->weight, chunk * w->top_k},
        {&g->cosine, chunk * pairs},
        {&g->sine, chunk * pairs},
        {&g->frequency, pairs},
        {&g->scores, threads * w->scores},
        {&g->row, threads * w->row},
    };
    const struct rows inputs[ROWS_COUNT] = {{&g->normed, hidden},
                                            {&g->q_low, w->q_low},
                                            {&g->attended, w->attended},
                                            {&g->mid, w->mid}};
    for (size_t i = 0; i < FLOATS_COUNT; i++)
        floats[i] = all[i];
    for (size_t i = 0; i < ROWS_COUNT; i++)
        rows[i] = inputs[i];
}

uint64_t graph_pass_bytes(const struct graph_setup *s)
{
    struct graph g = {.setup = *s};
    struct widths w = measure(s);
    struct floats floats[FLOATS_COUNT];
    struct rows rows[ROWS_COUNT];
    list_buffers(&g, &w, floats, rows);
    uint64_t bytes = (s->chunk * w.top_k + w.experts) * sizeof *g.ids;
    for (size_t i = 0; i < FLOATS_COUNT; i++)
        bytes += floats[i].count * sizeof(float);
    for (size_t i = 0; i < ROWS_COUNT; i++)
        bytes += input_bytes(rows[i].cols, s->chunk);
    return bytes;
}

enum status graph_buffers_new(struct graph *g, struct diag *dg)
{
    struct widths w = measure(&g->setup);
    struct floats floats[FLOATS_COUNT];
    struct rows rows[ROWS_COUNT];
    list_buffers(g, &w, floats, rows);
    g->scores_each = w.scores;
    g->row_each = w.row;
    g->ids = calloc(g->setup.chunk * w.top_k, sizeof *g->ids);
    g->guess = calloc(w.experts, sizeof *g->guess);
    enum status st = g->ids && g->guess ? ST_OK : diag_no_memory(dg);
    for (size_t i = 0; st == ST_OK && i < FLOATS_COUNT; i++) {
        *floats[i].to = calloc(floats[i].count ? floats[i].count : 1, sizeof(float));
        st = *floats[i].to ? ST_OK : diag_no_memory(dg);
    }
    for (size_t i = 0; st == ST_OK && i < ROWS_COUNT; i++)
        st = input_new(rows[i].to, rows[i].cols, g->setup.chunk, dg);
    return st;
}

void graph_buffers_free(struct graph *g)
{
    float *list[] = {g->residual, g->delta,     g->routed,      g->q,      g->k,
                     g->v,        g->absorbed,  g->context,     g->gate,   g->up,
                     g->logit,    g->score,     g->shared_gate, g->weight, g->cosine,
                     g->sine,     g->frequency, g->scores,      g->row};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        free(list[i]);
    free(g->ids);
    free(g->guess);
    input_free(&g->normed);
    input_free(&g->q_low);
    input_free(&g->attended);
    input_free(&g->mid);
}
