/* forced_route.c -- see forced_route.h. */
#include "kernels/graph/forced_route.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct forced_route {
    size_t layers, top_k, prompt, tokens;
    uint16_t *ids; /* [token][layer][top_k]; layers without experts hold nothing */
    bool *given;   /* [token][layer] */
};

static enum status check_shape(const struct trace *t, const char *path, const struct model *m,
                               struct diag *dg)
{
    if (t->layers != m->layer_count || t->experts != model_experts(m))
        return diag_set(dg, ST_MISFIT,
                        "%s: %" PRIu32 " layers of %" PRIu32
                        " experts; the model has %zu of %" PRIu64,
                        path, t->layers, t->experts, m->layer_count, model_experts(m));
    if (t->top_k != model_top_k(m))
        return diag_set(dg, ST_MISFIT, "%s: top_k is %" PRIu32 ", the model's is %" PRIu64, path,
                        t->top_k, model_top_k(m));
    for (size_t i = 0; i < t->batch_count; i++)
        if (m->layers[t->batch[i].layer].ffn.experts == 0)
            return diag_set(dg, ST_MISFIT, "%s: layer %" PRIu32 " is routed; the model's is dense",
                            path, t->batch[i].layer);
    return ST_OK;
}

/* Tokens of the first turn: one beyond its largest step. */
static void count_tokens(struct forced_route *f, const struct trace *t)
{
    for (size_t i = 0; i < t->batch_count; i++) {
        const struct trace_batch *b = &t->batch[i];
        if (t->pass[b->pass].turn != t->pass[0].turn)
            continue;
        for (size_t r = b->first_row; r < b->first_row + b->row_count; r++) {
            size_t end = (size_t)t->step[r] + 1;
            if (end > f->tokens)
                f->tokens = end;
            if (t->pass[b->pass].phase == PHASE_PREFILL && end > f->prompt)
                f->prompt = end;
        }
    }
}

static void copy_rows(struct forced_route *f, const struct trace *t)
{
    for (size_t i = 0; i < t->batch_count; i++) {
        const struct trace_batch *b = &t->batch[i];
        if (t->pass[b->pass].turn != t->pass[0].turn)
            continue;
        for (size_t r = b->first_row; r < b->first_row + b->row_count; r++) {
            size_t at = t->step[r] * f->layers + b->layer;
            f->ids[at * f->top_k + t->slot[r]] = t->expert[r];
            f->given[at] = true;
        }
    }
}

enum status forced_route_load(struct forced_route **out, const char *path, const struct model *m,
                              struct diag *dg)
{
    struct trace *t;
    enum status st = trace_load(&t, path, dg);
    if (st != ST_OK)
        return st;
    struct forced_route *f = calloc(1, sizeof *f);
    st = f ? check_shape(t, path, m, dg) : diag_no_memory(dg);
    if (st == ST_OK) {
        f->layers = t->layers;
        f->top_k = t->top_k;
        count_tokens(f, t);
        f->ids = calloc(f->tokens * f->layers * f->top_k + 1, sizeof *f->ids);
        f->given = calloc(f->tokens * f->layers + 1, sizeof *f->given);
        st = f->ids && f->given ? ST_OK : diag_no_memory(dg);
    }
    if (st == ST_OK)
        copy_rows(f, t);
    trace_free(t);
    if (st != ST_OK) {
        forced_route_free(f);
        return st;
    }
    *out = f;
    return ST_OK;
}

void forced_route_free(struct forced_route *f)
{
    if (!f)
        return;
    free(f->ids);
    free(f->given);
    free(f);
}

size_t forced_route_prompt(const struct forced_route *f)
{
    return f->prompt;
}

size_t forced_route_tokens(const struct forced_route *f)
{
    return f->tokens;
}

void forced_route_run(const struct forced_route *f, size_t *prompt, size_t *generate)
{
    *prompt = f->prompt ? f->prompt : 1;
    /* What follows the last token of the trace is generated too, but does not go through the layers. */
    *generate = f->tokens > *prompt ? f->tokens - *prompt + 1 : 0;
}

static bool route_at(void *self, size_t position, size_t layer, uint16_t *ids)
{
    const struct forced_route *f = self;
    if (f->tokens == 0)
        return false;
    if (position >= f->tokens) {
        size_t decoded = f->tokens - f->prompt;
        position = decoded ? f->prompt + (position - f->tokens) % decoded : position % f->tokens;
    }
    size_t at = position * f->layers + layer;
    if (!f->given[at])
        return false;
    memcpy(ids, f->ids + at * f->top_k, f->top_k * sizeof *ids);
    return true;
}

struct route forced_route_of(struct forced_route *f)
{
    return (struct route){f ? route_at : NULL, f};
}
