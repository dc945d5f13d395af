/* feed_forward.c -- feed-forward layers that every token takes: dense ones, and the shared expert. */
#include "kernels/graph/graph_inside.h"

static void gated(struct graph *g, const struct matrix *gate, const struct matrix *up,
                  const struct matrix *down)
{
    const struct compute_setup *c = &g->setup.compute;
    size_t width = gate->weights.rows;
    struct activations x = input_view(&g->normed, 0, g->tokens, c);
    struct product list[] = {{gate, x, g->gate, width}, {up, x, g->up, width}};
    products_run(c, list, 2);
    g->mid.cols = width;
    c->isa->swiglu(g->mid.values, g->gate, g->up, g->tokens * width);
    input_ready(&g->mid, 0, g->tokens, c);
    product_run(c, down, &g->mid, g->tokens, g->delta);
}

void feed_forward_dense(struct graph *g, size_t layer)
{
    const struct layer_weights *w = &g->setup.weights->layers[layer];
    graph_norm(g, w->ffn_norm);
    gated(g, &w->gate, &w->up, &w->down);
    graph_add(g);
}

void feed_forward_shared(struct graph *g, size_t layer)
{
    const struct layer_weights *w = &g->setup.weights->layers[layer];
    const struct compute_setup *c = &g->setup.compute;
    size_t hidden = g->normed.cols;
    gated(g, &w->shared_gate, &w->shared_up, &w->shared_down);
    if (!w->shared_router.weights.rows)
        return;
    product_run(c, &w->shared_router, &g->normed, g->tokens, g->shared_gate);
    for (size_t t = 0; t < g->tokens; t++) {
        float share = 1.0f / (1.0f + isa_exp(-g->shared_gate[t]));
        for (size_t i = 0; i < hidden; i++)
            g->delta[t * hidden + i] *= share;
    }
}
