/* repair_matrix.c -- the numbers of a repair: the experts of a tensor side by side, a thread
 * each. */
#include "kernels/formats/half.h"
#include "kernels/heads/low_rank_fit.h"
#include "kernels/heads/repair_inside.h"

#include <math.h>
#include <stdlib.h>

/* What came of one expert, or of the one matrix of a dense tensor. */
struct outcome {
    enum status status;
    struct diag dg;
    struct repair_error error, weighted;
};

struct tensor_work {
    const struct repair_item *item;
    const struct repair_sources *sources;
    const struct repair_setup *s;
    struct outcome *outcome; /* by expert */
    float *down, *up;        /* experts x rank x cols, experts x rows x rank */
};

/* A thread's room for one matrix. */
struct scratch {
    float *full, *difference; /* rows x cols */
    float *weight, *row;      /* cols */
};

static bool scratch_new(struct scratch *t, const struct repair_row *row)
{
    t->full = malloc(row->rows * row->cols * sizeof *t->full);
    t->difference = malloc(row->rows * row->cols * sizeof *t->difference);
    t->weight = malloc(row->cols * sizeof *t->weight);
    t->row = malloc(row->cols * sizeof *t->row);
    return t->full && t->difference && t->weight && t->row;
}

static void scratch_free(struct scratch *t)
{
    free(t->full);
    free(t->difference);
    free(t->weight);
    free(t->row);
}

static enum status read_difference(const struct tensor_work *w, size_t expert, struct scratch *t,
                                   struct diag *dg)
{
    size_t n = w->item->row.rows * w->item->row.cols;
    enum status st =
        tensor_floats_read(&w->sources->full, w->item->full, expert * (uint64_t)n, n, t->full, dg);
    if (st == ST_OK)
        st = tensor_floats_read(&w->sources->base, w->item->base, expert * (uint64_t)n, n,
                                t->difference, dg);
    for (size_t i = 0; st == ST_OK && i < n; i++)
        t->difference[i] = t->full[i] - t->difference[i];
    return st;
}

static const float *weights_of(const struct tensor_work *w, size_t expert, float *weight)
{
    const struct repair_item *item = w->item;
    const struct graph_weights *g = w->s->base;
    if (!w->s->moments)
        return NULL;
    if (item->routed)
        return moments_expert(w->s->moments, item->layer, expert, (enum expert_part)item->member,
                              weight)
                   ? weight
                   : NULL;
    const char *at =
        item->layer == SIZE_MAX ? (const char *)g : (const char *)&g->layers[item->layer];
    const struct matrix *m = (const struct matrix *)(const void *)(at + item->member);
    return moments_dense(w->s->moments, m, weight) ? weight : NULL;
}

/* As the adapter's file will hold them. */
static void round_factor(float *x, size_t n, bool f32)
{
    for (size_t i = 0; !f32 && i < n; i++)
        x[i] = half_to_float(half_of_float(x[i]));
}

static double squares(const struct tensor_work *w, const float *matrix, const float *weight,
                      float *row)
{
    const struct repair_row *r = &w->item->row;
    return low_rank_left(matrix, NULL, NULL, r->rows, r->cols, weight, 0, w->s->compute->isa, row);
}

static struct repair_error measure(const struct tensor_work *w, const struct scratch *t,
                                   const float *down, const float *up, const float *weight)
{
    const struct repair_row *r = &w->item->row;
    return (struct repair_error){
        .whole = squares(w, t->full, weight, t->row),
        .before = squares(w, t->difference, weight, t->row),
        .after = low_rank_left(t->difference, down, up, r->rows, r->cols, weight, r->rank,
                               w->s->compute->isa, t->row),
    };
}

static enum status fit_expert(const struct tensor_work *w, size_t expert, struct scratch *t,
                              struct outcome *o)
{
    const struct repair_row *row = &w->item->row;
    float *down = w->down + expert * row->rank * row->cols;
    float *up = w->up + expert * row->rows * row->rank;
    enum status st = read_difference(w, expert, t, &o->dg);
    if (st != ST_OK)
        return st;
    if (!isfinite(squares(w, t->difference, NULL, t->row)))
        return diag_set(&o->dg, ST_RANGE, "tensor '%s' holds numbers that are not finite",
                        row->name);
    const float *weight = weights_of(w, expert, t->weight);
    st = low_rank_fit(down, up, t->difference, row->rows, row->cols, weight, row->rank,
                      w->s->compute->isa, &o->dg);
    if (st != ST_OK)
        return st;
    round_factor(down, row->rank * row->cols, w->s->f32);
    round_factor(up, row->rows * row->rank, w->s->f32);
    o->error = measure(w, t, down, up, NULL);
    if (weight)
        o->weighted = measure(w, t, down, up, weight);
    return ST_OK;
}

static void fit_experts(void *context, size_t begin, size_t end, size_t thread)
{
    const struct tensor_work *w = context;
    struct scratch t = {0};
    bool room = scratch_new(&t, &w->item->row);
    (void)thread;
    for (size_t e = begin; e < end; e++) {
        struct outcome *o = &w->outcome[e];
        o->status = room ? fit_expert(w, e, &t, o) : diag_no_memory(&o->dg);
    }
    scratch_free(&t);
}

static enum status write_halves(struct gguf_write *out, const float *x, size_t n, struct diag *dg)
{
    uint16_t half[1024];
    enum status st = ST_OK;
    for (size_t at = 0; st == ST_OK && at < n; at += 1024) {
        size_t some = n - at < 1024 ? n - at : 1024;
        for (size_t i = 0; i < some; i++)
            half[i] = half_of_float(x[at + i]);
        st = gguf_write_data(out, half, some * sizeof *half, dg);
    }
    return st;
}

static enum status write_factor(struct gguf_write *out, const float *x, size_t n, bool f32,
                                struct diag *dg)
{
    return f32 ? gguf_write_data(out, x, n * sizeof *x, dg) : write_halves(out, x, n, dg);
}

/* A rank below the one that alpha speaks of (of small matrices) has the scale alpha / rank, which
 * is taken off here, so that it is 1. */
static enum status write_factors(const struct tensor_work *w, struct gguf_write *out,
                                 struct diag *dg)
{
    const struct repair_row *row = &w->item->row;
    size_t down = row->experts * row->rank * row->cols, up = row->experts * row->rank * row->rows;
    for (size_t i = 0; row->rank < w->s->rank && i < up; i++)
        w->up[i] *= (float)row->rank / (float)w->s->rank;
    enum status st = write_factor(out, w->down, down, w->s->f32, dg);
    return st == ST_OK ? write_factor(out, w->up, up, w->s->f32, dg) : st;
}

enum status repair_item_write(struct repair_item *item, const struct repair_sources *sources,
                              const struct repair_setup *s, struct gguf_write *out, struct diag *dg)
{
    struct repair_row *row = &item->row;
    struct tensor_work w = {item, sources, s, NULL, NULL, NULL};
    w.outcome = calloc(row->experts, sizeof *w.outcome);
    w.down = malloc(row->experts * row->rank * row->cols * sizeof *w.down);
    w.up = malloc(row->experts * row->rows * row->rank * sizeof *w.up);
    enum status st = w.outcome && w.down && w.up ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        workers_each(s->compute->workers, fit_experts, &w, row->experts, 1);
    for (uint64_t e = 0; st == ST_OK && e < row->experts; e++) {
        st = w.outcome[e].status;
        if (st != ST_OK)
            *dg = w.outcome[e].dg;
        repair_error_add(&row->error, &w.outcome[e].error);
        repair_error_add(&row->weighted, &w.outcome[e].weighted);
    }
    if (st == ST_OK)
        st = write_factors(&w, out, dg);
    free(w.outcome);
    free(w.down);
    free(w.up);
    return st;
}
