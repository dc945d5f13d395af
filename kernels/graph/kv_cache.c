/* kv_cache.c -- see kv_cache.h. */
#include "kernels/graph/kv_cache.h"

#include "kernels/formats/half.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

size_t kv_cache_room(const struct attention *a, size_t context, size_t chunk)
{
    size_t window = a->window;
    return window && window + 2 * chunk < context ? window + 2 * chunk : context;
}

static void shape_layer(struct kv_layer *l, const struct attention *a, size_t context, size_t chunk)
{
    if (a->family == ATTENTION_MLA) {
        l->key_width = a->kv_lora_rank + a->rope_head_dim;
    } else {
        l->key_width = a->kv_heads * a->head_dim;
        l->value_width = a->kv_heads * a->v_head_dim;
    }
    l->window = a->window;
    l->room = kv_cache_room(a, context, chunk);
}

static size_t layer_bytes(const struct kv_layer *l)
{
    return l->room * (l->key_width + l->value_width) * sizeof *l->keys;
}

size_t kv_cache_bytes(const struct model *m, size_t context, size_t chunk)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        struct kv_layer l = {0};
        shape_layer(&l, &m->layers[i].attention, context, chunk);
        bytes += layer_bytes(&l);
    }
    return bytes;
}

enum status kv_cache_new(struct kv_cache **out, const struct model *m, size_t context, size_t chunk,
                         struct diag *dg)
{
    struct kv_cache *kv = calloc(1, sizeof *kv);
    if (!kv)
        return diag_no_memory(dg);
    kv->context = context;
    kv->layers = m->layer_count;
    kv->layer = calloc(kv->layers, sizeof *kv->layer);
    bool whole = kv->layer != NULL;
    for (size_t i = 0; whole && i < kv->layers; i++) {
        struct kv_layer *l = &kv->layer[i];
        shape_layer(l, &m->layers[i].attention, context, chunk);
        l->keys = calloc(l->room * l->key_width, sizeof *l->keys);
        l->values = l->value_width ? calloc(l->room * l->value_width, sizeof *l->values) : l->keys;
        kv->bytes += layer_bytes(l);
        whole = l->keys && l->values;
    }
    if (!whole) {
        kv_cache_free(kv);
        return diag_set(dg, ST_NO_MEMORY,
                        "no memory for the state of %zu tokens: a shorter "
                        "--context needs less",
                        context);
    }
    *out = kv;
    return ST_OK;
}

void kv_cache_free(struct kv_cache *kv)
{
    if (!kv)
        return;
    for (size_t i = 0; kv->layer && i < kv->layers; i++) {
        if (kv->layer[i].values != kv->layer[i].keys)
            free(kv->layer[i].values);
        free(kv->layer[i].keys);
    }
    free(kv->layer);
    free(kv);
}

void kv_cache_clear(struct kv_cache *kv)
{
    for (size_t i = 0; i < kv->layers; i++)
        kv->layer[i].first = kv->layer[i].count = 0;
}

static void slide(uint16_t *rows, size_t width, size_t from, size_t count)
{
    memmove(rows, rows + from * width, count * width * sizeof *rows);
}

void kv_cache_grow(struct kv_layer *l, size_t n)
{
    if (l->count + n > l->room) {
        size_t keep = l->window;
        assert(keep && keep < l->count && keep + n <= l->room);
        slide(l->keys, l->key_width, l->count - keep, keep);
        if (l->values != l->keys)
            slide(l->values, l->value_width, l->count - keep, keep);
        l->first += l->count - keep;
        l->count = keep;
    }
    l->count += n;
}

void kv_cache_put(uint16_t *row, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        row[i] = half_of_float(values[i]);
}
