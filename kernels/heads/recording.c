/* recording.c -- see recording.h. The state comes with the graph's wish for a guess, logits with
 * the router's product, which is watched. */
#include "kernels/heads/recording.h"

#include "kernels/formats/half.h"
#include "kernels/graph/router.h"
#include "kernels/heads/passage.h"

#include <stdlib.h>
#include <string.h>

/* ---- while the model runs ---- */

static void keep_halves(uint16_t *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = half_of_float(from[i]);
}

/* The guess that needs no training: what the target's router says to this state. Also the graph's
 * answer. */
static void record_state(void *self, const struct graph_weights *w, const struct compute_setup *c,
                         size_t layer, size_t target, const float *state, size_t tokens,
                         float *scores)
{
    struct recording *r = self;
    struct recorded_layer *l = &r->layer[layer];
    struct compute_setup unwatched = *c;
    size_t hidden = r->hidden;
    float epsilon = w->numbers.epsilon;
    unwatched.watch = NULL;
    for (size_t t = 0; t < tokens; t++) {
        c->isa->rms_norm(r->row, state + t * hidden, r->ones, hidden, epsilon);
        keep_halves(l->state + (r->tokens + t) * hidden, r->row, hidden);
        c->isa->rms_norm(r->in.values + t * hidden, state + t * hidden, w->layers[target].ffn_norm,
                         hidden, epsilon);
    }
    input_ready(&r->in, 0, tokens, &unwatched);
    product_run(&unwatched, &w->layers[target].router, &r->in, tokens, r->logits);
    for (size_t t = 0; t < tokens; t++) {
        float *score = scores + t * l->experts;
        router_scores(w, c->isa, target, r->logits + t * l->experts, score);
        router_choose(score, l->experts, l->top_k, l->early + (r->tokens + t) * l->top_k);
    }
}

static void record_router(void *self, const struct product *p)
{
    struct recording *r = self;
    const struct graph_weights *w = r->weights;
    for (size_t source = 0; source < r->layers; source++) {
        struct recorded_layer *l = &r->layer[source];
        size_t target = source + r->distance;
        if (!l->is_source || p->matrix != &w->layers[target].router)
            continue;
        for (size_t t = 0; t < p->x.tokens; t++) {
            const float *logit = p->y + t * p->y_stride;
            keep_halves(l->logit + (r->tokens + t) * l->experts, logit, l->experts);
            memcpy(r->row, logit, l->experts * sizeof *logit);
            router_scores(w, r->isa, target, r->row, r->scores);
            router_choose(r->scores, l->experts, l->top_k, l->chosen + (r->tokens + t) * l->top_k);
        }
    }
}

static void count_tokens(void *self, const struct engine_pass *p)
{
    struct recording *r = self;
    r->tokens += p->tokens;
}

void recording_attach(struct recording *r, struct engine_setup *s, size_t distance)
{
    *r = (struct recording){.distance = distance};
    s->predict_distance = distance;
    s->predict = record_state;
    s->predict_self = r;
    s->watch = record_router;
    s->watch_self = r;
    s->on_pass = count_tokens;
    s->on_pass_self = r;
}

/* ---- memory ---- */

static bool is_source(const struct model *m, size_t layer, size_t distance)
{
    return layer + distance < m->layer_count && m->layers[layer].ffn.experts > 0 &&
           m->layers[layer + distance].ffn.experts > 0;
}

uint64_t recording_bytes(const struct model *m, size_t distance, size_t count)
{
    uint64_t each = 0;
    for (size_t l = 0; l < m->layer_count; l++)
        if (is_source(m, l, distance))
            each += m->hidden + m->layers[l + distance].ffn.experts +
                    2 * m->layers[l + distance].ffn.top_k;
    return each * count * sizeof(uint16_t);
}

static enum status layer_new(struct recorded_layer *l, const struct model *m, size_t target,
                             size_t tokens, struct diag *dg)
{
    const struct ffn *f = &m->layers[target].ffn;
    *l = (struct recorded_layer){.is_source = true, .experts = f->experts, .top_k = f->top_k};
    l->state = malloc(tokens * m->hidden * sizeof *l->state);
    l->logit = malloc(tokens * l->experts * sizeof *l->logit);
    l->chosen = malloc(tokens * l->top_k * sizeof *l->chosen);
    l->early = malloc(tokens * l->top_k * sizeof *l->early);
    return l->state && l->logit && l->chosen && l->early ? ST_OK : diag_no_memory(dg);
}

static enum status make_room(struct recording *r, const struct engine *e, size_t tokens,
                             struct diag *dg)
{
    const struct model *m = r->weights->model;
    size_t chunk = graph_chunk(engine_graph(e)), experts = model_experts(m), sources = 0;
    r->room = tokens;
    r->hidden = m->hidden;
    r->layers = m->layer_count;
    r->layer = calloc(r->layers, sizeof *r->layer);
    r->ones = malloc(r->hidden * sizeof *r->ones);
    r->row = malloc((r->hidden > experts ? r->hidden : experts) * sizeof *r->row);
    r->scores = malloc((experts + 1) * sizeof *r->scores);
    r->logits = malloc((chunk * experts + 1) * sizeof *r->logits);
    if (!r->layer || !r->ones || !r->row || !r->scores || !r->logits)
        return diag_no_memory(dg);
    for (size_t i = 0; i < r->hidden; i++)
        r->ones[i] = 1.0f;
    enum status st = input_new(&r->in, r->hidden, chunk, dg);
    for (size_t l = 0; st == ST_OK && l < r->layers; l++)
        if (is_source(m, l, r->distance)) {
            st = layer_new(&r->layer[l], m, l + r->distance, tokens, dg);
            sources++;
        }
    if (st == ST_OK && sources == 0)
        st = diag_set(dg, ST_MISFIT, "%s: no layer with experts has one %zu further on", m->name,
                      r->distance);
    return st;
}

void recording_free(struct recording *r)
{
    for (size_t l = 0; r->layer && l < r->layers; l++) {
        free(r->layer[l].state);
        free(r->layer[l].logit);
        free(r->layer[l].chosen);
        free(r->layer[l].early);
    }
    free(r->layer);
    free(r->ones);
    free(r->row);
    free(r->scores);
    free(r->logits);
    input_free(&r->in);
    *r = (struct recording){0};
}

enum status recording_run(struct recording *r, struct engine *e, const uint32_t *tokens,
                          size_t count, size_t window, graph_progress_fn *progress,
                          void *progress_self, struct diag *dg)
{
    r->weights = engine_weights(e);
    r->isa = engine_compute(e)->isa;
    r->window = window;
    enum status st = make_room(r, e, count, dg);
    return st == ST_OK ? passage_run(e, tokens, count, window, progress, progress_self, dg) : st;
}
