/* graph_inside.h -- the state of a pass, shared by the steps of the graph: attention, router, feed-forward. */
#ifndef KERNELS_GRAPH_GRAPH_INSIDE_H
#define KERNELS_GRAPH_GRAPH_INSIDE_H

#include "kernels/graph/graph.h"

struct graph {
    struct graph_setup setup;
    struct kv_cache *kv;
    size_t position; /* of the first token of the pass */
    size_t tokens;   /* of the pass */
    uint32_t pass, turn;
    enum trace_phase phase;
    /* tokens x ...; the widest of all layers */
    float *residual, *delta, *routed; /* hidden */
    struct input normed;              /* hidden */
    float *q, *k, *v;
    struct input q_low;        /* MLA: queries between their two matrices */
    float *absorbed, *context; /* MLA: heads x latent */
    struct input attended;     /* heads x value */
    struct input mid;          /* dense or shared feed-forward, at its width */
    float *gate, *up;
    float *logit, *score; /* experts */
    float *shared_gate;   /* 1 */
    uint16_t *ids;        /* top_k */
    float *weight;
    uint16_t *guess;                  /* experts (of one prediction) */
    float *cosine, *sine, *frequency; /* pairs */
    float *scores;                    /* thread x scores_each */
    size_t scores_each;
    float *row; /* thread x widest row: a dequantised one */
    size_t row_each;
    struct diag failure; /* of a pass that broke off: cache and state are no longer whole */
};

/* All of the above that a pass fills; setup, with its chunk, and kv are there. */
MUST_CHECK enum status graph_buffers_new(struct graph *g, struct diag *dg);
void graph_buffers_free(struct graph *g);

/* Each adds its output, or what stands in `normed` after it, to the residual stream of the pass's tokens. */
void attention_step(struct graph *g, size_t layer);
void feed_forward_dense(struct graph *g, size_t layer);
/* Into `delta`, which the routed experts' sum is added to. */
void feed_forward_shared(struct graph *g, size_t layer);

/* normed = norm(residual), ready for products. */
void graph_norm(struct graph *g, const float *weight);
/* residual += delta. */
void graph_add(struct graph *g);

#endif
