/* kv_cache.h -- what attention remembers: F16 keys and values of each layer, position by position.
 *
 * A layer that attends to all positions has room for the whole context. One that attends to a window
 * has room for the window and twice a chunk; when that is used up, the last window slides to the front.
 * MLA keeps one latent and the rotated key a position; the values are the latent's part of it.
 */
#ifndef KERNELS_GRAPH_KV_CACHE_H
#define KERNELS_GRAPH_KV_CACHE_H

#include "base/status.h"
#include "models/model.h"

#include <stddef.h>
#include <stdint.h>

struct kv_layer {
    uint16_t *keys, *values; /* positions first, first + 1 .. ; rows of key_width and value_width */
    size_t key_width, value_width; /* elements a position, all heads together */
    size_t window;                 /* 0: all positions are kept */
    size_t first, count, room;     /* positions kept */
};

struct kv_cache {
    struct kv_layer *layer;
    size_t layers, context;
    size_t bytes;
};

/* For `context` positions, at most `chunk` of which are added at once. */
MUST_CHECK enum status kv_cache_new(struct kv_cache **out, const struct model *m, size_t context,
                                    size_t chunk, struct diag *dg);
/* What that takes, and how many positions of it a layer keeps. */
size_t kv_cache_bytes(const struct model *m, size_t context, size_t chunk);
size_t kv_cache_room(const struct attention *a, size_t context, size_t chunk);
void kv_cache_free(struct kv_cache *kv); /* NULL is fine */
void kv_cache_clear(struct kv_cache *kv);

/* Makes room for `n` more positions of a layer and counts them; they are the last n rows. */
void kv_cache_grow(struct kv_layer *l, size_t n);
/* `n` floats into row `position` of an array of rows. */
void kv_cache_put(uint16_t *row, const float *values, size_t n);

#endif
