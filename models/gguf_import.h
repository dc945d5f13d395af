/* gguf_import.h -- an import under way: what an architecture's name says, metadata keys, tensors of a
 * layer. Shared by the parts of gguf_model.h.
 */
#ifndef MODELS_GGUF_IMPORT_H
#define MODELS_GGUF_IMPORT_H

#include "models/gguf.h"
#include "models/model.h"

/* What llama.cpp knows of an architecture and no metadata key says. */
struct gguf_architecture {
    const char *name;
    unsigned window_period; /* of so many layers, all but one attend to a window only; 0: none */
    bool global_first;      /* the one is the first of each period, not the last */
    bool window_needed;     /* ARCH.attention.sliding_window must be there */
    uint64_t window;        /* the window if no key gives one */
};
/* NULL if unknown. */
const struct gguf_architecture *gguf_architecture_find(struct gguf_text name);
const char *gguf_architecture_nearest(const char *name); /* a hint, or NULL */

struct gguf_import {
    const struct gguf *g;
    const struct gguf_architecture *architecture;
    struct model *m;
    size_t block_count; /* layers of the file, MTP included */
    struct diag *dg;
};

/* No width, rank or number of heads is larger, so their products stay far from overflow. */
#define GGUF_SHAPE_MAX ((uint64_t)1 << 24)

#define GGUF_KEY_MAX 128
/* "ARCH.key" */
const char *gguf_full_key(char text[GGUF_KEY_MAX], const struct gguf_import *c, const char *key);
/* `path: metadata key 'ARCH.key' <what>`, ST_PARSE */
enum status gguf_key_error(const struct gguf_import *c, const char *key, const char *what);

/* A whole number by key without "ARCH.", at most `max`. False if it is absent. A value that does not
 * fit sets *s; nothing is read if *s is a failure already. */
bool gguf_read(const struct gguf_import *c, const char *key, uint64_t max, uint64_t *out,
               enum status *s);
/* The same, and absence is a failure too. */
MUST_CHECK enum status gguf_need(const struct gguf_import *c, const char *key, uint64_t max,
                                 uint64_t *out);
/* A number, at most GGUF_SHAPE_MAX, that may stand there once for all layers or once for each. */
bool gguf_read_layer(const struct gguf_import *c, const char *key, size_t i, uint64_t *out,
                     enum status *s);
MUST_CHECK enum status gguf_need_layer(const struct gguf_import *c, const char *key, size_t i,
                                       uint64_t *out);

/* Tensor blk.I.NAME, or NULL. */
const struct gguf_tensor *gguf_layer_tensor(const struct gguf_import *c, size_t i,
                                            const char *name);
bool gguf_layer_has(const struct gguf_import *c, size_t i, const char *name);
/* If that tensor is there, it must have so many columns and rows (0: any). */
MUST_CHECK enum status gguf_check_extents(const struct gguf_import *c, size_t i, const char *name,
                                          uint64_t cols, uint64_t rows);

#endif
