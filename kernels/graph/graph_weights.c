/* graph_weights.c -- see graph_weights.h. Two walks over the tensors: the first checks and adds up what the
 * arena must hold, the second reads. */
#include "kernels/graph/graph_weights.h"

#include "base/quantity.h"
#include "kernels/formats/packed.h"
#include "kernels/graph/graph_numbers.h"
#include "kernels/graph/tensor_table.h"
#include "models/gguf_model.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE   ((size_t)2 << 20)
#define BAND_BYTES  ((size_t)2 << 20) /* read and repacked at a time */
#define PLACE_ALIGN 64u

struct reading {
    struct graph_weights *w;
    int *fd; /* by file */
    unsigned char *band;
    size_t band_bytes;
    size_t used; /* of the arena */
    uint64_t done, all;
    graph_progress_fn *progress;
    void *self;
    struct diag *dg;
};

static enum status tensor_wrong(const struct reading *r, const struct gguf_tensor *t,
                                enum status status, const char *what)
{
    return diag_set(r->dg, status, "%s: tensor '%.*s' %s", gguf_file_path(r->w->file, t->file),
                    (int)(t->name.length < 200 ? t->name.length : 200), t->name.data, what);
}

/* Where the tensor goes. *skip: it is one of a layer beyond the model's (multi-token prediction). */
static enum status place_of(const struct reading *r, const struct gguf_tensor *t, size_t *layer,
                            struct tensor_place *place, bool *skip)
{
    struct gguf_text name = t->name;
    tensor_name_split(&name, layer);
    *skip = *layer != SIZE_MAX && *layer >= r->w->model->layer_count;
    if (*skip)
        return ST_OK;
    if (!tensor_place_find(place, r->w, *layer, name))
        return tensor_wrong(r, t, ST_UNSUPPORTED, "is none that this architecture's recipe uses");
    if (place->kind == TENSOR_EXPERTS)
        return ST_OK;
    bool flat = place->kind == TENSOR_VECTOR || place->kind == TENSOR_BIAS;
    uint64_t cols = flat ? t->weights : t->extent[0], rows = flat ? 1 : t->weights / t->extent[0];
    if (cols == place->cols && rows == place->rows)
        return ST_OK;
    char what[160];
    snprintf(what, sizeof what,
             "has %" PRIu64 " x %" PRIu64 " weights where %" PRIu64 " x %" PRIu64 " are expected",
             rows, cols, place->rows, place->cols);
    return tensor_wrong(r, t, ST_PARSE, what);
}

static const struct block_format *format_of(const struct gguf_tensor *t)
{
    return block_format_find_gguf((uint32_t)t->format->gguf_type);
}

static size_t resident_bytes(const struct gguf_tensor *t, enum tensor_kind kind)
{
    size_t bytes = t->bytes;
    if (kind == TENSOR_VECTOR || kind == TENSOR_BIAS)
        bytes = t->weights * sizeof(float);
    else if (kind == TENSOR_MATRIX)
        bytes = packed_bytes(format_of(t), t->weights / t->extent[0], t->extent[0]);
    return (bytes + PLACE_ALIGN - 1) & ~(size_t)(PLACE_ALIGN - 1);
}

static enum status plan_arena(struct reading *r)
{
    for (size_t i = 0; i < gguf_tensor_count(r->w->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(r->w->file, i);
        struct tensor_place place = {0};
        size_t layer;
        bool skip;
        enum status st = place_of(r, t, &layer, &place, &skip);
        if (st != ST_OK)
            return st;
        if (skip)
            continue;
        if (!format_of(t))
            return tensor_wrong(r, t, ST_UNSUPPORTED, "has a format that no kernel computes with");
        if (place.kind == TENSOR_EXPERTS)
            continue;
        r->all += t->bytes;
        r->w->dense_bytes += resident_bytes(t, place.kind);
    }
    return ST_OK;
}

static enum status map_arena(struct reading *r)
{
    struct graph_weights *w = r->w;
    w->arena_bytes = (w->dense_bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    void *p =
        mmap(NULL, w->arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        char text[QUANTITY_TEXT_MAX];
        return diag_set(r->dg, ST_NO_MEMORY, "no memory for %s of dense weights",
                        quantity_round(text, w->dense_bytes, DIM_SIZE));
    }
    w->arena = p;
    if (w->arena_bytes > HUGE_PAGE)
        madvise(p, w->arena_bytes, MADV_HUGEPAGE);
    r->band = malloc(r->band_bytes);
    r->fd = malloc(gguf_file_count(w->file) * sizeof *r->fd);
    if (!r->band || !r->fd)
        return diag_no_memory(r->dg);
    for (size_t f = 0; f < gguf_file_count(w->file); f++)
        r->fd[f] = -1;
    for (size_t f = 0; f < gguf_file_count(w->file); f++) {
        r->fd[f] = open(gguf_file_path(w->file, f), O_RDONLY | O_CLOEXEC);
        if (r->fd[f] < 0)
            return diag_errno(r->dg, gguf_file_path(w->file, f), "cannot be opened");
    }
    return ST_OK;
}

/* `error` 0: the file ends there. */
static enum status read_failed(const struct reading *r, const struct gguf_tensor *t,
                               uint64_t offset, int error)
{
    char what[160];
    snprintf(what, sizeof what, "cannot be read at offset %" PRIu64 ": %s", offset,
             error ? strerror(error) : "the file ends here");
    return tensor_wrong(r, t, ST_IO, what);
}

static enum status read_bytes(struct reading *r, const struct gguf_tensor *t, void *to,
                              uint64_t from, size_t bytes)
{
    for (size_t have = 0; have < bytes;) {
        ssize_t n = pread(r->fd[t->file], (char *)to + have, bytes - have,
                          (off_t)(t->offset + from + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return read_failed(r, t, t->offset + from + have, n < 0 ? errno : 0);
        have += (size_t)n;
    }
    posix_fadvise(r->fd[t->file], (off_t)(t->offset + from), (off_t)bytes, POSIX_FADV_DONTNEED);
    r->done += bytes;
    if (r->progress)
        r->progress(r->self, r->done, r->all);
    return ST_OK;
}

static enum status read_vector(struct reading *r, const struct gguf_tensor *t, float *to)
{
    const struct block_format *f = format_of(t);
    size_t step = r->band_bytes / f->block_bytes * f->block_weights;
    for (size_t at = 0; at < t->weights; at += step) {
        size_t n = t->weights - at < step ? t->weights - at : step;
        enum status st = read_bytes(r, t, r->band, at / f->block_weights * f->block_bytes,
                                    n / f->block_weights * f->block_bytes);
        if (st != ST_OK)
            return st;
        block_dequantise(f, to + at, r->band, n);
    }
    return ST_OK;
}

/* Band by band, whole tiles each. */
static enum status read_packed(struct reading *r, const struct gguf_tensor *t, void *to)
{
    const struct block_format *f = format_of(t);
    size_t cols = t->extent[0], rows = t->weights / cols, row = block_row_bytes(f, cols);
    size_t step = r->band_bytes / row / PACKED_TILE_ROWS * PACKED_TILE_ROWS;
    for (size_t at = 0; at < rows; at += step) {
        size_t n = rows - at < step ? rows - at : step;
        enum status st = read_bytes(r, t, r->band, at * row, n * row);
        if (st != ST_OK)
            return st;
        packed_from_blocks(f, (char *)to + packed_bytes(f, at, cols), r->band, n, cols);
    }
    return ST_OK;
}

static void set_pointer(void *base, size_t offset, const void *p)
{
    memcpy((char *)base + offset, &p, sizeof p);
}

static enum status read_tensor(struct reading *r, const struct gguf_tensor *t, size_t layer,
                               const struct tensor_place *place)
{
    char *to = (char *)r->w->arena + r->used;
    void *base = layer == SIZE_MAX ? (void *)r->w : (void *)&r->w->layers[layer];
    r->used += resident_bytes(t, place->kind);
    if (place->kind == TENSOR_VECTOR) {
        set_pointer(base, place->offset, to);
        return read_vector(r, t, (float *)(void *)to);
    }
    struct matrix *m = (struct matrix *)(void *)((char *)base + place->offset);
    if (place->kind == TENSOR_BIAS) {
        m->bias = (const float *)(const void *)to;
        return read_vector(r, t, (float *)(void *)to);
    }
    m->weights = (struct weights){.format = format_of(t),
                                  .layout = LAYOUT_PACKED,
                                  .rows = place->rows,
                                  .cols = place->cols,
                                  .data = to};
    if (place->kind == TENSOR_MATRIX)
        return read_packed(r, t, to);
    m->weights.layout = LAYOUT_BLOCKS;
    return read_bytes(r, t, to, 0, t->bytes);
}

static enum status read_all(struct reading *r)
{
    for (size_t i = 0; i < gguf_tensor_count(r->w->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(r->w->file, i);
        struct tensor_place place = {0};
        size_t layer;
        bool skip;
        enum status st = place_of(r, t, &layer, &place, &skip);
        if (st == ST_OK && !skip && place.kind != TENSOR_EXPERTS)
            st = read_tensor(r, t, layer, &place);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status check_complete(struct reading *r)
{
    struct graph_weights *w = r->w;
    const char *path = gguf_file_path(w->file, 0);
    if (!w->final_norm)
        return diag_set(r->dg, ST_PARSE, "%s: tensor 'output_norm.weight' is missing", path);
    for (size_t l = 0; l < w->model->layer_count; l++) {
        const char *missing = tensor_missing(w, l);
        if (missing)
            return diag_set(r->dg, ST_PARSE, "%s: tensor 'blk.%zu.%s' is missing", path, l,
                            missing);
    }
    if (w->head.weights.rows == 0)
        w->head = w->embedding;
    return ST_OK;
}

/* The longest row is not above a file's header limit by far, but may exceed the usual band. */
static size_t band_needed(const struct graph_weights *w)
{
    size_t most = BAND_BYTES;
    for (size_t i = 0; i < gguf_tensor_count(w->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(w->file, i);
        const struct block_format *f = format_of(t);
        size_t tile = f && t->extent[0] % f->block_weights == 0
                          ? PACKED_TILE_ROWS * block_row_bytes(f, t->extent[0])
                          : 0;
        if (tile > most && t->dims > 1)
            most = tile;
    }
    return most;
}

static enum status read_model(struct reading *r, const char *path)
{
    struct graph_weights *w = r->w;
    enum status st = gguf_open(&w->file, path, r->dg);
    if (st == ST_OK)
        st = recipe_find(&w->recipe, w->file, r->dg);
    if (st == ST_OK)
        st = gguf_model_import(&w->model, w->file, r->dg);
    if (st == ST_OK)
        st = graph_numbers_read(w, r->dg);
    if (st != ST_OK)
        return st;
    w->layers = calloc(w->model->layer_count, sizeof *w->layers);
    if (!w->layers)
        return diag_no_memory(r->dg);
    r->band_bytes = band_needed(w);
    st = plan_arena(r);
    if (st == ST_OK)
        st = map_arena(r);
    if (st == ST_OK)
        st = read_all(r);
    assert(st != ST_OK || r->used == w->dense_bytes);
    if (st == ST_OK)
        st = gguf_check_unchanged(w->file, r->dg);
    return st == ST_OK ? check_complete(r) : st;
}

enum status graph_weights_load(struct graph_weights **out, const char *path,
                               graph_progress_fn *progress, void *self, struct diag *dg)
{
    struct graph_weights *w = calloc(1, sizeof *w);
    if (!w)
        return diag_no_memory(dg);
    struct reading r = {.w = w, .progress = progress, .self = self, .dg = dg};
    enum status st = read_model(&r, path);
    for (size_t f = 0; r.fd && f < gguf_file_count(w->file); f++)
        if (r.fd[f] >= 0)
            close(r.fd[f]);
    free(r.fd);
    free(r.band);
    if (st != ST_OK) {
        graph_weights_free(w);
        return st;
    }
    *out = w;
    return ST_OK;
}

void graph_weights_free(struct graph_weights *w)
{
    if (!w)
        return;
    if (w->arena)
        munmap(w->arena, w->arena_bytes);
    free(w->layers);
    model_free(w->model);
    gguf_close(w->file);
    free(w);
}
