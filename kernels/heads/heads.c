/* heads.c -- see heads.h: heads as they are used and measured. */
#include "kernels/heads/heads.h"

#include "base/hash.h"
#include "kernels/formats/half.h"
#include "kernels/formats/packed.h"
#include "kernels/graph/router.h"
#include "kernels/heads/heads_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t target_experts(const struct model *m, size_t source, size_t distance)
{
    bool is_source = source + distance < m->layer_count && m->layers[source].ffn.experts > 0;
    return is_source ? m->layers[source + distance].ffn.experts : 0;
}

static enum status head_new(struct head *h, size_t source, size_t experts, size_t hidden,
                            struct diag *dg)
{
    const struct block_format *f = block_format(FORMAT_F16);
    size_t bytes = packed_bytes(f, experts, hidden);
    *h = (struct head){.source = source, .experts = experts};
    h->bias = calloc(experts, sizeof *h->bias);
    h->rows = calloc(experts * hidden, sizeof *h->rows);
    h->packed = aligned_alloc(PACKED_LINE_BYTES, (bytes + PACKED_LINE_BYTES - 1) /
                                                     PACKED_LINE_BYTES * PACKED_LINE_BYTES);
    h->matrix = (struct matrix){.weights = {.format = f,
                                            .layout = LAYOUT_PACKED,
                                            .rows = experts,
                                            .cols = hidden,
                                            .data = h->packed},
                                .bias = h->bias};
    return h->bias && h->rows && h->packed ? ST_OK : diag_no_memory(dg);
}

enum status heads_new(struct heads **out, const struct graph_weights *w, size_t distance,
                      struct diag *dg)
{
    const struct model *m = w->model;
    struct heads *h = calloc(1, sizeof *h);
    if (!h)
        return diag_no_memory(dg);
    h->distance = distance;
    h->hidden = m->hidden;
    h->fingerprint = heads_fingerprint(w);
    h->head = calloc(m->layer_count, sizeof *h->head);
    h->ones = malloc(h->hidden * sizeof *h->ones);
    enum status st =
        h->head && h->ones ? input_new(&h->in, h->hidden, HEADS_BATCH, dg) : diag_no_memory(dg);
    for (size_t i = 0; st == ST_OK && i < h->hidden; i++)
        h->ones[i] = 1.0f;
    for (size_t l = 0; st == ST_OK && l < m->layer_count; l++) {
        size_t experts = target_experts(m, l, distance);
        if (experts)
            st = head_new(&h->head[h->count++], l, experts, h->hidden, dg);
    }
    if (st != ST_OK) {
        heads_free(h);
        return st;
    }
    *out = h;
    return ST_OK;
}

void heads_free(struct heads *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++) {
        free(h->head[i].bias);
        free(h->head[i].rows);
        free(h->head[i].packed);
    }
    free(h->head);
    free(h->ones);
    input_free(&h->in);
    free(h);
}

size_t heads_bytes(const struct heads *h)
{
    size_t bytes = h ? input_bytes(h->hidden, HEADS_BATCH) : 0;
    for (size_t i = 0; h && i < h->count; i++)
        bytes += h->head[i].experts * (sizeof(float) + h->hidden * sizeof(uint16_t)) +
                 packed_bytes(block_format(FORMAT_F16), h->head[i].experts, h->hidden);
    return bytes;
}

void heads_ready(struct heads *h)
{
    for (size_t i = 0; i < h->count; i++)
        packed_from_blocks(block_format(FORMAT_F16), h->head[i].packed, h->head[i].rows,
                           h->head[i].experts, h->hidden);
}

uint64_t heads_fingerprint(const struct graph_weights *w)
{
    const struct model *m = w->model;
    uint64_t hash = hash_add(HASH_SEED, m->hidden);
    for (size_t l = 0; l < m->layer_count; l++) {
        const struct weights *router = &w->layers[l].router.weights;
        hash = hash_add(hash, m->layers[l].ffn.experts);
        if (m->layers[l].ffn.experts == 0)
            continue;
        hash = hash_add(hash, router->format->id);
        hash = hash_add(hash, hash_bytes(router->data,
                                         packed_bytes(router->format, router->rows, router->cols)));
        hash = hash_add(hash, hash_bytes(w->layers[l].ffn_norm, m->hidden * sizeof(float)));
    }
    return hash;
}

static const struct head *find_head(const struct heads *h, size_t source)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->head[i].source == source)
            return &h->head[i];
    return NULL;
}

void heads_predict(void *self, const struct graph_weights *w, const struct compute_setup *c,
                   size_t layer, size_t target, const float *state, size_t tokens, float *scores)
{
    struct heads *h = self;
    const struct head *head = find_head(h, layer);
    assert(head && target == layer + h->distance);
    for (size_t at = 0; at < tokens; at += HEADS_BATCH) {
        size_t n = tokens - at < HEADS_BATCH ? tokens - at : HEADS_BATCH;
        float *logits = scores + at * head->experts;
        for (size_t t = 0; t < n; t++)
            c->isa->rms_norm(h->in.values + t * h->hidden, state + (at + t) * h->hidden, h->ones,
                             h->hidden, w->numbers.epsilon);
        input_ready(&h->in, 0, n, c);
        product_run(c, &head->matrix, &h->in, n, logits);
        for (size_t t = 0; t < n; t++)
            router_scores(w, c->isa, target, logits + t * head->experts,
                          logits + t * head->experts);
    }
}
