/* trace_path.c -- see trace_path.h. */
#include "sim/trace/trace_path.h"

#include <stdlib.h>
#include <string.h>

/* Counting sort of the batches by layer. */
static void sort_batches(struct trace_index *x)
{
    const struct trace *t = x->t;
    for (size_t i = 0; i < t->batch_count; i++)
        x->first_batch[t->batch[i].layer + 1]++;
    for (uint32_t l = 0; l < t->layers; l++) {
        x->ordinal[l + 1] = x->ordinal[l] + (x->first_batch[l + 1] > 0);
        x->first_batch[l + 1] += x->first_batch[l];
    }
    for (size_t i = 0; i < t->batch_count; i++)
        x->batch[x->first_batch[t->batch[i].layer]++] = i;
    memmove(x->first_batch + 1, x->first_batch, t->layers * sizeof *x->first_batch);
    x->first_batch[0] = 0;
}

enum status trace_index_init(struct trace_index *x, const struct trace *t, struct diag *dg)
{
    *x = (struct trace_index){
        .t = t,
        .ordinal = calloc((size_t)t->layers + 1, sizeof *x->ordinal),
        .batch = calloc(t->batch_count + 1, sizeof *x->batch),
        .first_batch = calloc((size_t)t->layers + 1, sizeof *x->first_batch),
    };
    if (!x->ordinal || !x->batch || !x->first_batch)
        return diag_no_memory(dg);
    for (size_t i = 0; i < t->pass_count; i++)
        x->decode_only |= t->pass[i].phase == PHASE_DECODE;
    sort_batches(x);
    return ST_OK;
}

void trace_index_free(struct trace_index *x)
{
    free(x->ordinal);
    free(x->batch);
    free(x->first_batch);
    *x = (struct trace_index){0};
}

bool trace_index_has(const struct trace_index *x, uint32_t layer)
{
    return x->first_batch[layer] < x->first_batch[layer + 1];
}

static void gather_batch(const struct trace_index *x, const struct trace_batch *b,
                         struct trace_path *path)
{
    const struct trace *t = x->t;
    const struct trace_pass *pass = &t->pass[b->pass];
    for (size_t i = b->first_row, end = b->first_row + b->row_count; i < end;) {
        size_t from = i;
        while (i < end && t->step[i] == t->step[from])
            i++;
        struct spot *spot = &path->spot[path->count++];
        *spot = (struct spot){.ids = t->expert + from,
                              .count = (uint32_t)(i - from),
                              .pass = b->pass,
                              .step = t->step[from],
                              .turn = pass->turn,
                              .measured = !x->decode_only || pass->phase == PHASE_DECODE};
        path->measured += spot->measured;
    }
}

enum status trace_index_gather(const struct trace_index *x, uint32_t layer, struct trace_path *path,
                               struct diag *dg)
{
    size_t rows = 0;
    for (size_t i = x->first_batch[layer]; i < x->first_batch[layer + 1]; i++)
        rows += x->t->batch[x->batch[i]].row_count;
    free(path->spot);
    *path = (struct trace_path){.spot = calloc(rows + 1, sizeof *path->spot)};
    if (!path->spot)
        return diag_no_memory(dg);
    for (size_t i = x->first_batch[layer]; i < x->first_batch[layer + 1]; i++)
        gather_batch(x, &x->t->batch[x->batch[i]], path);
    return ST_OK;
}
