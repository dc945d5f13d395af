/* adapter.c -- see adapter.h. Two walks over the files' pairs: the first checks them and adds up
 * the ranks of each matrix, the second reads them into place. */
#include "kernels/graph/adapter.h"

#include "kernels/graph/tensor_floats.h"
#include "kernels/graph/tensor_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX_BYTES 7 /* ".lora_a" */

/* What is adapted: a dense matrix by its member's offset, or one part of a layer's experts. */
struct adapted {
    size_t layer; /* SIZE_MAX: a matrix outside the layers */
    bool routed;
    size_t member; /* offset, or enum expert_part */
    uint64_t rows, cols, experts;
    size_t rank, filled; /* of all files together; read so far */
    struct low_rank *low_rank;
    float *down, *up; /* experts x rank x cols, experts x rows x rank */
};

struct adapter_file {
    struct gguf *gguf;
    struct tensor_floats data;
    double alpha;
};

struct adapters {
    struct adapted *adapted;
    size_t count, room;
    struct adapter_file *file;
    size_t files;
    size_t bytes;
};

/* A pair of tensors, and the one or two matrices that its rows belong to. */
struct pair {
    const struct gguf_tensor *a, *b;
    uint64_t rank, rows, cols, experts;
    size_t targets;
    size_t target[2];
    uint64_t first_row[2];
};

struct loading {
    struct adapters *adapters;
    const struct graph_weights *w;
    struct adapter_file *file; /* the present one */
    bool reading;              /* the second walk */
    struct diag *dg;
};

static enum status tensor_wrong(const struct loading *l, const struct gguf_tensor *t,
                                enum status status, const char *what)
{
    return diag_set(l->dg, status, "%s: tensor '%.*s' %s", gguf_file_path(l->file->gguf, t->file),
                    (int)(t->name.length < 200 ? t->name.length : 200), t->name.data, what);
}

/* ---- what a pair adapts ---- */

static struct adapted *find_adapted(struct loading *l, size_t layer, bool routed, size_t member)
{
    struct adapters *a = l->adapters;
    for (size_t i = 0; i < a->count; i++)
        if (a->adapted[i].layer == layer && a->adapted[i].routed == routed &&
            a->adapted[i].member == member)
            return &a->adapted[i];
    if (a->count == a->room) {
        size_t room = 2 * a->room + 64;
        struct adapted *moved = reallocarray(a->adapted, room, sizeof *moved);
        if (!moved)
            return NULL;
        a->adapted = moved;
        a->room = room;
    }
    a->adapted[a->count] = (struct adapted){.layer = layer, .routed = routed, .member = member};
    return &a->adapted[a->count++];
}

static enum status add_target(struct loading *l, struct pair *p, size_t layer, bool routed,
                              size_t member, uint64_t rows)
{
    struct adapted *m = find_adapted(l, layer, routed, member);
    if (!m)
        return diag_no_memory(l->dg);
    m->rows = rows;
    m->cols = p->cols;
    m->experts = p->experts;
    p->first_row[p->targets] = p->targets ? p->rows - rows : 0;
    p->target[p->targets++] = (size_t)(m - l->adapters->adapted);
    return ST_OK;
}

static struct matrix *dense_matrix(const struct graph_weights *w, size_t layer, size_t member)
{
    char *base = layer == SIZE_MAX ? (char *)w : (char *)&w->layers[layer];
    return (struct matrix *)(void *)(base + member);
}

static enum status dense_target(struct loading *l, struct pair *p, size_t layer,
                                const struct tensor_place *place)
{
    if (place->kind != TENSOR_MATRIX)
        return tensor_wrong(l, p->a, ST_UNSUPPORTED, "adapts what is no matrix of a product");
    if (dense_matrix(l->w, layer, place->offset)->weights.rows == 0)
        return tensor_wrong(l, p->a, ST_MISFIT, "adapts a matrix that the model lacks");
    p->rows = place->rows;
    p->cols = place->cols;
    p->experts = 1;
    return add_target(l, p, layer, false, place->offset, p->rows);
}

static enum status expert_target(struct loading *l, struct pair *p, size_t layer,
                                 struct gguf_text name)
{
    const struct ffn *f = &l->w->model->layers[layer].ffn;
    bool both = gguf_text_is(name, "ffn_gate_up_exps.weight");
    bool down = gguf_text_is(name, "ffn_down_exps.weight");
    bool gate = both || gguf_text_is(name, "ffn_gate_exps.weight");
    if (f->experts == 0)
        return tensor_wrong(l, p->a, ST_MISFIT, "adapts experts in a layer without them");
    p->rows = down ? f->expert_io_width : both ? 2 * f->expert_width : f->expert_width;
    p->cols = down ? f->expert_width : f->expert_io_width;
    p->experts = f->experts;
    uint64_t rows = both ? f->expert_width : p->rows;
    size_t part = down ? PART_DOWN : gate ? PART_GATE : PART_UP;
    enum status st = add_target(l, p, layer, true, part, rows);
    return st == ST_OK && both ? add_target(l, p, layer, true, PART_UP, rows) : st;
}

static enum status find_target(struct loading *l, struct pair *p)
{
    struct tensor_place place;
    struct gguf_text name = {p->a->name.data, p->a->name.length - SUFFIX_BYTES};
    size_t layer;
    tensor_name_split(&name, &layer);
    if ((layer != SIZE_MAX && layer >= l->w->model->layer_count) ||
        !tensor_place_find(&place, l->w, layer, name))
        return tensor_wrong(l, p->a, ST_MISFIT, "adapts a matrix that the model lacks");
    if (place.kind == TENSOR_EXPERTS)
        return expert_target(l, p, layer, name);
    return dense_target(l, p, layer, &place);
}

static enum status check_shape(const struct loading *l, const struct pair *p,
                               const struct gguf_tensor *t, uint64_t cols, uint64_t rows)
{
    char what[200];
    if (t->extent[0] == cols && t->extent[1] == rows && t->extent[2] == p->experts &&
        t->extent[3] == 1)
        return ST_OK;
    snprintf(what, sizeof what,
             "has the extents %" PRIu64 ", %" PRIu64 ", %" PRIu64 " where %" PRIu64 ", %" PRIu64
             ", %" PRIu64 " are expected",
             t->extent[0], t->extent[1], t->extent[2], cols, rows, p->experts);
    return tensor_wrong(l, t, ST_MISFIT, what);
}

static bool ends_with(struct gguf_text name, const char *suffix)
{
    return name.length > SUFFIX_BYTES &&
           memcmp(name.data + name.length - SUFFIX_BYTES, suffix, SUFFIX_BYTES) == 0;
}

/* The other half: the name with its last letter changed. */
static const struct gguf_tensor *partner(const struct gguf *g, const struct gguf_tensor *t)
{
    char name[256];
    if (t->name.length >= sizeof name)
        return NULL;
    memcpy(name, t->name.data, t->name.length);
    name[t->name.length] = 0;
    name[t->name.length - 1] = name[t->name.length - 1] == 'a' ? 'b' : 'a';
    return gguf_tensor_find(g, name);
}

static enum status pair_of(struct loading *l, const struct gguf_tensor *a, struct pair *p)
{
    *p = (struct pair){.a = a, .b = partner(l->file->gguf, a), .rank = a->extent[1]};
    enum status st = find_target(l, p);
    if (st == ST_OK)
        st = check_shape(l, p, p->a, p->cols, p->rank);
    return st == ST_OK ? check_shape(l, p, p->b, p->rank, p->rows) : st;
}

/* ---- ranks, then numbers ---- */

static enum status count_ranks(const struct loading *l, const struct pair *p)
{
    for (size_t i = 0; i < p->targets; i++) {
        struct adapted *m = &l->adapters->adapted[p->target[i]];
        if (p->rank > LOW_RANK_MAX - m->rank) {
            char what[80];
            snprintf(what, sizeof what, "makes a rank above %d", LOW_RANK_MAX);
            return tensor_wrong(l, p->a, ST_RANGE, what);
        }
        m->rank += p->rank;
    }
    return ST_OK;
}

static enum status read_expert(const struct loading *l, const struct pair *p, struct adapted *m,
                               uint64_t first_row, uint64_t expert, float *rows)
{
    const struct tensor_floats *data = &l->file->data;
    enum status st = tensor_floats_read(data, p->a, expert * p->rank * p->cols, p->rank * p->cols,
                                        m->down + (expert * m->rank + m->filled) * m->cols, l->dg);
    if (st == ST_OK)
        st = tensor_floats_read(data, p->b, (expert * p->rows + first_row) * p->rank,
                                m->rows * p->rank, rows, l->dg);
    if (st != ST_OK)
        return st;
    float scale = l->file->alpha != 0 ? (float)(l->file->alpha / (double)p->rank) : 1.0f;
    for (uint64_t r = 0; r < m->rows; r++)
        for (uint64_t i = 0; i < p->rank; i++)
            m->up[(expert * m->rows + r) * m->rank + m->filled + i] = scale * rows[r * p->rank + i];
    return ST_OK;
}

static enum status read_pair(const struct loading *l, const struct pair *p)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < p->targets; i++) {
        struct adapted *m = &l->adapters->adapted[p->target[i]];
        float *rows = calloc(m->rows * p->rank, sizeof *rows);
        if (!rows)
            return diag_no_memory(l->dg);
        for (uint64_t e = 0; st == ST_OK && e < m->experts; e++)
            st = read_expert(l, p, m, p->first_row[i], e, rows);
        m->filled += p->rank;
        free(rows);
    }
    return st;
}

static enum status walk(struct loading *l)
{
    const struct gguf *g = l->file->gguf;
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        struct pair p;
        if (!ends_with(t->name, ".lora_a") && !ends_with(t->name, ".lora_b"))
            return tensor_wrong(l, t, ST_PARSE, "is neither NAME.lora_a nor NAME.lora_b");
        if (!partner(g, t))
            return tensor_wrong(l, t, ST_PARSE, "stands without its other half");
        if (ends_with(t->name, ".lora_b"))
            continue;
        st = pair_of(l, t, &p);
        if (st == ST_OK)
            st = l->reading ? read_pair(l, &p) : count_ranks(l, &p);
    }
    return st;
}

static enum status walk_files(struct loading *l)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < l->adapters->files; i++) {
        l->file = &l->adapters->file[i];
        st = walk(l);
    }
    return st;
}

/* ---- files ---- */

static enum status open_file(struct adapter_file *f, const struct graph_weights *w,
                             const char *path, struct diag *dg)
{
    struct gguf_text text;
    enum status st = gguf_open(&f->gguf, path, dg);
    if (st != ST_OK)
        return st;
    if (!gguf_get_text(f->gguf, "general.type", &text) || !gguf_text_is(text, "adapter") ||
        !gguf_get_text(f->gguf, "adapter.type", &text) || !gguf_text_is(text, "lora"))
        return diag_set(dg, ST_PARSE,
                        "%s: is no adapter: general.type 'adapter' with adapter.type 'lora' is "
                        "expected",
                        path);
    if (!gguf_get_text(f->gguf, "general.architecture", &text) ||
        !gguf_text_is(text, w->recipe->architecture))
        return diag_set(dg, ST_MISFIT, "%s: is not for a model of architecture %s", path,
                        w->recipe->architecture);
    if (!gguf_double(f->gguf, "adapter.lora.alpha", &f->alpha))
        f->alpha = 0;
    return tensor_floats_open(&f->data, f->gguf, dg);
}

static void close_files(struct adapters *a)
{
    for (size_t i = 0; i < a->files; i++) {
        tensor_floats_close(&a->file[i].data);
        gguf_close(a->file[i].gguf);
    }
    free(a->file);
    a->file = NULL;
    a->files = 0;
}

static enum status make_room(struct adapters *a, struct diag *dg)
{
    for (size_t i = 0; i < a->count; i++) {
        struct adapted *m = &a->adapted[i];
        m->low_rank = calloc(m->experts, sizeof *m->low_rank);
        m->down = calloc(m->experts * m->rank * m->cols, sizeof *m->down);
        m->up = calloc(m->experts * m->rank * m->rows, sizeof *m->up);
        if (!m->low_rank || !m->down || !m->up)
            return diag_no_memory(dg);
        a->bytes +=
            m->experts * (m->rank * (m->cols + m->rows) * sizeof(float) + sizeof *m->low_rank);
        for (uint64_t e = 0; e < m->experts; e++)
            m->low_rank[e] = (struct low_rank){.rank = m->rank,
                                               .scale = 1.0f,
                                               .down = m->down + e * m->rank * m->cols,
                                               .up = m->up + e * m->rows * m->rank};
    }
    return ST_OK;
}

enum status adapters_load(struct adapters **out, const struct graph_weights *w,
                          const char *const *paths, size_t n, struct diag *dg)
{
    struct adapters *a = calloc(1, sizeof *a);
    if (!a)
        return diag_no_memory(dg);
    struct loading l = {.adapters = a, .w = w, .dg = dg};
    a->file = calloc(n, sizeof *a->file);
    enum status st = a->file ? ST_OK : diag_no_memory(dg);
    for (; st == ST_OK && a->files < n; a->files++)
        st = open_file(&a->file[a->files], w, paths[a->files], dg);
    if (st == ST_OK)
        st = walk_files(&l);
    if (st == ST_OK)
        st = make_room(a, dg);
    l.reading = true;
    if (st == ST_OK)
        st = walk_files(&l);
    close_files(a);
    if (st != ST_OK) {
        adapters_free(a);
        return st;
    }
    *out = a;
    return ST_OK;
}

void adapters_free(struct adapters *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->count; i++) {
        free(a->adapted[i].low_rank);
        free(a->adapted[i].down);
        free(a->adapted[i].up);
    }
    free(a->adapted);
    free(a);
}

size_t adapters_bytes(const struct adapters *a)
{
    return a ? a->bytes : 0;
}

size_t adapters_matrices(const struct adapters *a)
{
    return a->count;
}

/* ---- on and off ---- */

static void set_adapters(const struct adapters *a, struct graph_weights *w, bool on)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct adapted *m = &a->adapted[i];
        if (m->routed)
            w->layers[m->layer].expert_adapter[m->member] = on ? m->low_rank : NULL;
        else
            dense_matrix(w, m->layer, m->member)->adapter = on ? m->low_rank : NULL;
    }
}

void adapters_apply(const struct adapters *a, struct graph_weights *w)
{
    set_adapters(a, w, true);
}

void adapters_remove(const struct adapters *a, struct graph_weights *w)
{
    set_adapters(a, w, false);
}
