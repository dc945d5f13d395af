/* forced_route.c -- see forced_route.h. */
#include "kernels/graph/forced_route.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct forced_route {
    size_t layers, top_k, prompt, tokens;
    size_t *layer_top_k; /* what a token takes in each */
    uint16_t *ids;       /* [token][layer][top_k]; layers without experts hold nothing */
    bool *given;         /* [token][layer] */
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
    return ST_OK;
}

/* Layers of a model may differ in experts and top_k; the trace's figures are those of the largest. A batch goes by step,
 * then slot, so a token's choices are a run of rows. */
static enum status check_batch(const struct trace *t, const struct trace_batch *b, const char *path,
                               const struct model *m, struct diag *dg)
{
    const struct ffn *f = &m->layers[b->layer].ffn;
    size_t end = b->first_row + b->row_count;
    if (f->experts == 0)
        return diag_set(dg, ST_MISFIT, "%s: layer %" PRIu32 " is routed; the model's is dense",
                        path, b->layer);
    for (size_t r = b->first_row, n; r < end; r += n) {
        for (n = 0; r + n < end && t->step[r + n] == t->step[r]; n++)
            if (t->expert[r + n] >= f->experts)
                return diag_set(dg, ST_MISFIT,
                                "%s: layer %" PRIu32 ": token %" PRIu32
                                " takes expert %u; the model's layer has %" PRIu64,
                                path, b->layer, t->step[r], t->expert[r + n], f->experts);
        if (n != f->top_k || t->slot[r + n - 1] != n - 1)
            return diag_set(dg, ST_MISFIT,
                            "%s: layer %" PRIu32 ": token %" PRIu32
                            " takes %zu experts; the model's layer takes %" PRIu64,
                            path, b->layer, t->step[r], n, f->top_k);
    }
    return ST_OK;
}

static enum status check_batches(const struct trace *t, const char *path, const struct model *m,
                                 struct diag *dg)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < t->batch_count; i++)
        st = check_batch(t, &t->batch[i], path, m, dg);
    return st;
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
    if (st == ST_OK)
        st = check_batches(t, path, m, dg);
    if (st == ST_OK) {
        f->layers = t->layers;
        f->top_k = t->top_k;
        count_tokens(f, t);
    }
    if (st == ST_OK &&
        f->tokens > t->row_count) /* one far step would ask for memory for all before it */
        st = diag_set(dg, ST_MISFIT, "%s: has a token %zu, but choices of %zu at most", path,
                      f->tokens - 1, t->row_count);
    if (st == ST_OK) {
        f->ids = calloc(f->tokens * f->layers * f->top_k + 1, sizeof *f->ids);
        f->given = calloc(f->tokens * f->layers + 1, sizeof *f->given);
        f->layer_top_k = calloc(f->layers, sizeof *f->layer_top_k);
        st = f->ids && f->given && f->layer_top_k ? ST_OK : diag_no_memory(dg);
    }
    for (size_t l = 0; st == ST_OK && l < f->layers; l++)
        f->layer_top_k[l] = m->layers[l].ffn.top_k;
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
    free(f->layer_top_k);
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
    memcpy(ids, f->ids + at * f->top_k, f->layer_top_k[layer] * sizeof *ids);
    return true;
}

struct route forced_route_of(struct forced_route *f)
{
    return (struct route){f ? route_at : NULL, f};
}
