/* heads_fit.c -- see heads_fit.h: one ridge regression a layer, each by one thread. */
#include "kernels/heads/heads_fit.h"

#include "kernels/formats/half.h"
#include "kernels/formats/packed.h"
#include "kernels/graph/router.h"
#include "kernels/heads/gram.h"
#include "kernels/heads/heads_inside.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <stdlib.h>

struct fitting {
    struct heads *heads;
    const struct recording *r;
    const struct compute_setup *c;
    size_t examples;     /* tokens that are not held out */
    size_t first;        /* head of those that are fitted side by side */
    enum status *status; /* by head */
};

/* One regression. d = hidden + 1: the last row of states is all ones. */
struct regression {
    size_t d, n, experts;
    float *states;    /* d x n */
    float *missing;   /* experts x n: the logits less what the early router says */
    float *early;     /* hidden: a row of the early router */
    double *normal;   /* d x d */
    double *solution; /* experts x d */
};

static void regression_free(struct regression *g)
{
    free(g->states);
    free(g->missing);
    free(g->early);
    free(g->normal);
    free(g->solution);
}

static bool regression_new(struct regression *g)
{
    g->states = malloc(g->d * g->n * sizeof *g->states);
    g->missing = malloc(g->experts * g->n * sizeof *g->missing);
    g->early = malloc(g->d * sizeof *g->early);
    g->normal = malloc(g->d * g->d * sizeof *g->normal);
    g->solution = malloc(g->experts * g->d * sizeof *g->solution);
    return g->states && g->missing && g->early && g->normal && g->solution;
}

static void gather_examples(struct regression *g, const struct recording *r,
                            const struct recorded_layer *l)
{
    size_t hidden = g->d - 1, k = 0;
    for (size_t t = 0; t < r->tokens; t++) {
        if (recording_is_held_out(r, t))
            continue;
        for (size_t i = 0; i < hidden; i++)
            g->states[i * g->n + k] = half_to_float(l->state[t * hidden + i]);
        g->states[hidden * g->n + k] = 1.0f;
        for (size_t e = 0; e < g->experts; e++)
            g->missing[e * g->n + k] = half_to_float(l->logit[t * g->experts + e]);
        k++;
    }
}

/* Row `e` of the target's router with its norm: what is multiplied by a state. */
static void early_row(float *row, const struct graph_weights *w, size_t target, size_t e)
{
    const struct layer_weights *l = &w->layers[target];
    const struct weights *router = &l->router.weights;
    packed_dequantise(router->format, row, router->data, e, 0, router->cols, router->cols);
    for (size_t i = 0; i < router->cols; i++)
        row[i] *= l->ffn_norm[i];
}

static float early_bias(const struct graph_weights *w, size_t target, size_t e)
{
    const float *bias = w->layers[target].router.bias;
    return bias ? bias[e] : 0.0f;
}

static void take_off_early(struct regression *g, const struct fitting *f, size_t target)
{
    const struct isa *isa = f->c->isa;
    for (size_t e = 0; e < g->experts; e++) {
        float *missing = g->missing + e * g->n;
        early_row(g->early, f->r->weights, target, e);
        g->early[g->d - 1] = early_bias(f->r->weights, target, e);
        for (size_t i = 0; i < g->d; i++)
            isa->add_scaled(missing, g->states + i * g->n, -g->early[i], g->n);
    }
}

static bool solve(struct regression *g, const struct isa *isa, double ridge)
{
    gram(g->normal, isa, g->states, g->d, g->n);
    for (size_t i = 0; i < g->d; i++)
        g->normal[i * g->d + i] += (double)g->n * ridge;
    gsl_matrix_view normal = gsl_matrix_view_array(g->normal, g->d, g->d);
    if (gsl_linalg_cholesky_decomp1(&normal.matrix) != GSL_SUCCESS)
        return false;
    for (size_t e = 0; e < g->experts; e++) {
        double *x = g->solution + e * g->d;
        for (size_t i = 0; i < g->d; i++)
            x[i] = (double)isa->dot(g->states + i * g->n, g->missing + e * g->n, g->n);
        gsl_vector_view view = gsl_vector_view_array(x, g->d);
        if (gsl_linalg_cholesky_svx(&normal.matrix, &view.vector) != GSL_SUCCESS)
            return false;
    }
    return true;
}

/* The early router with its correction; false if a number is beyond F16. */
static bool keep_head(const struct regression *g, const struct fitting *f, struct head *head)
{
    size_t hidden = g->d - 1, target = head->source + f->heads->distance;
    for (size_t e = 0; e < g->experts; e++) {
        const double *x = g->solution + e * g->d;
        early_row(g->early, f->r->weights, target, e);
        for (size_t i = 0; i < hidden; i++) {
            double weight = (double)g->early[i] + x[i];
            if (!(weight > -65504 && weight < 65504))
                return false;
            head->rows[e * hidden + i] = half_of_float((float)weight);
        }
        head->bias[e] = (float)((double)early_bias(f->r->weights, target, e) + x[hidden]);
    }
    return true;
}

static enum status fit_head(const struct fitting *f, struct head *head)
{
    struct regression g = {.d = f->heads->hidden + 1, .n = f->examples, .experts = head->experts};
    enum status st = ST_NO_MEMORY;
    if (regression_new(&g)) {
        gather_examples(&g, f->r, &f->r->layer[head->source]);
        take_off_early(&g, f, head->source + f->heads->distance);
        bool solved = solve(&g, f->c->isa, f->heads->ridge) && keep_head(&g, f, head);
        st = solved ? ST_OK : ST_RANGE;
    }
    regression_free(&g);
    return st;
}

static void fit_heads(void *context, size_t begin, size_t end, size_t thread)
{
    const struct fitting *f = context;
    (void)thread;
    for (size_t i = f->first + begin; i < f->first + end; i++)
        f->status[i] = fit_head(f, &f->heads->head[i]);
}

static enum status fit_all(struct fitting *f, graph_progress_fn *progress, void *progress_self,
                           struct diag *dg)
{
    size_t threads = workers_threads(f->c->workers);
    for (; f->first < f->heads->count; f->first += threads) {
        size_t left = f->heads->count - f->first, n = left < threads ? left : threads;
        workers_each(f->c->workers, fit_heads, f, n, 1);
        if (progress)
            progress(progress_self, f->first + n, f->heads->count);
    }
    for (size_t i = 0; i < f->heads->count; i++)
        if (f->status[i] == ST_NO_MEMORY)
            return diag_no_memory(dg);
        else if (f->status[i] != ST_OK)
            return diag_set(dg, f->status[i],
                            "layer %zu: the regression has no finite solution: a larger ridge is "
                            "needed",
                            f->heads->head[i].source);
    return ST_OK;
}

static uint64_t common(const uint16_t *a, const uint16_t *b, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            count += a[i] == b[j];
    return count;
}

static void measure_token(struct heads *h, const struct recording *r, const struct compute_setup *c,
                          size_t source, size_t token, float *buffer, struct heads_recall *out)
{
    const struct recorded_layer *l = &r->layer[source];
    const uint16_t *chosen = l->chosen + token * l->top_k;
    float *state = buffer, *score = buffer + r->hidden;
    uint16_t named[256];
    for (size_t i = 0; i < r->hidden; i++)
        state[i] = half_to_float(l->state[token * r->hidden + i]);
    heads_predict(h, r->weights, c, source, source + h->distance, state, 1, score);
    router_choose(score, l->experts, l->top_k, named);
    out->wanted += l->top_k;
    out->early += common(chosen, l->early + token * l->top_k, l->top_k);
    out->found += common(chosen, named, l->top_k);
}

enum status heads_measure(struct heads *h, const struct recording *r, const struct compute_setup *c,
                          size_t source, struct heads_recall *out, struct diag *dg)
{
    float *buffer = malloc((r->hidden + r->layer[source].experts) * sizeof *buffer);
    if (!buffer)
        return diag_no_memory(dg);
    *out = (struct heads_recall){0};
    for (size_t t = 0; t < r->tokens; t++)
        if (recording_is_held_out(r, t))
            measure_token(h, r, c, source, t, buffer, out);
    free(buffer);
    return ST_OK;
}

static enum status measure_all(struct heads *h, const struct recording *r,
                               const struct compute_setup *c, struct diag *dg)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < h->count; i++) {
        struct heads_recall recall = {0};
        st = heads_measure(h, r, c, h->head[i].source, &recall, dg);
        if (st != ST_OK)
            return st;
        h->head[i].recall_early = (float)((double)recall.early / (double)recall.wanted);
        h->head[i].recall = (float)((double)recall.found / (double)recall.wanted);
    }
    return st;
}

static size_t count_examples(const struct recording *r)
{
    size_t n = 0;
    for (size_t t = 0; t < r->tokens; t++)
        n += !recording_is_held_out(r, t);
    return n;
}

enum status heads_fit(struct heads **out, const struct recording *r, const struct compute_setup *c,
                      double ridge, graph_progress_fn *progress, void *progress_self,
                      struct diag *dg)
{
    struct fitting f = {.r = r, .c = c, .examples = count_examples(r)};
    if (f.examples == 0 || f.examples == r->tokens)
        return diag_set(dg, ST_MISFIT,
                        "the text has %zu tokens: at least %zu are needed, so that something is "
                        "held out (every %dth window of %zu)",
                        r->tokens, (RECORDING_HELD_OUT - 1) * r->window + 1, RECORDING_HELD_OUT,
                        r->window);
    enum status st = heads_new(&f.heads, r->weights, r->distance, dg);
    if (st != ST_OK)
        return st;
    f.heads->ridge = ridge;
    f.heads->tokens = f.examples;
    f.status = calloc(f.heads->count, sizeof *f.status);
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    st = f.status ? fit_all(&f, progress, progress_self, dg) : diag_no_memory(dg);
    gsl_set_error_handler(before);
    heads_ready(f.heads);
    if (st == ST_OK)
        st = measure_all(f.heads, r, c, dg);
    free(f.status);
    if (st != ST_OK) {
        heads_free(f.heads);
        return st;
    }
    *out = f.heads;
    return ST_OK;
}
