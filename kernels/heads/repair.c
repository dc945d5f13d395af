/* repair.c -- see repair.h: which tensors are repaired, and the file. repair_matrix.c has the
 * numbers. */
#include "kernels/heads/repair.h"

#include "kernels/graph/tensor_table.h"
#include "kernels/heads/repair_inside.h"
#include "models/gguf_write.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPARE_WEIGHTS 4096 /* at a time; a multiple of every block */

struct repairing {
    struct repair_sources sources;
    struct gguf *full;
    struct repair_item *item;
    size_t count;
    uint64_t done, all; /* weights */
};

/* ---- errors ---- */

double repair_error_before(const struct repair_error *e)
{
    return sqrt(e->before / e->whole);
}

double repair_error_after(const struct repair_error *e)
{
    return sqrt(e->after / e->whole);
}

void repair_error_add(struct repair_error *sum, const struct repair_error *e)
{
    sum->whole += e->whole;
    sum->before += e->before;
    sum->after += e->after;
}

/* ---- what is repaired ---- */

static enum status misfit(const struct repairing *r, const struct gguf_tensor *t, const char *what,
                          struct diag *dg)
{
    return diag_set(dg, ST_MISFIT, "%s: tensor '%.*s' %s %s",
                    gguf_file_path(r->sources.full.file, 0), (int)t->name.length, t->name.data,
                    what, gguf_file_path(r->sources.base.file, 0));
}

/* Both tensors, of equal extents; a full one that is missing is a misfit. */
static enum status find_pair(const struct repairing *r, const struct gguf_tensor *base,
                             const struct gguf_tensor **full, struct diag *dg)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)base->name.length, base->name.data);
    *full = gguf_tensor_find(r->full, name);
    if (!*full)
        return misfit(r, base, "is missing, which stands in", dg);
    if (memcmp((*full)->extent, base->extent, sizeof base->extent) != 0)
        return misfit(r, base, "has other extents than in", dg);
    return ST_OK;
}

static enum status compare(const struct repairing *r, const struct gguf_tensor *base,
                           const struct gguf_tensor *full, bool *differ, struct diag *dg)
{
    float a[COMPARE_WEIGHTS], b[COMPARE_WEIGHTS];
    enum status st = ST_OK;
    *differ = false;
    for (uint64_t at = 0; st == ST_OK && !*differ && at < base->weights; at += COMPARE_WEIGHTS) {
        uint64_t left = base->weights - at;
        size_t n = left < COMPARE_WEIGHTS ? (size_t)left : COMPARE_WEIGHTS;
        st = tensor_floats_read(&r->sources.base, base, at, n, a, dg);
        if (st == ST_OK)
            st = tensor_floats_read(&r->sources.full, full, at, n, b, dg);
        *differ = st == ST_OK && memcmp(a, b, n * sizeof *a) != 0;
    }
    return st;
}

/* Matrices that products are made with, in layers that the model has. */
static bool is_matrix(const struct graph_weights *w, const struct gguf_tensor *t,
                      struct repair_item *item)
{
    struct tensor_place place;
    struct gguf_text name = t->name;
    tensor_name_split(&name, &item->layer);
    if (t->name.length + sizeof ".lora_a" > sizeof item->row.name ||
        (item->layer != SIZE_MAX && item->layer >= w->model->layer_count) ||
        !tensor_place_find(&place, w, item->layer, name))
        return false;
    item->routed = place.kind == TENSOR_EXPERTS;
    item->member = place.offset;
    if (item->routed)
        item->member = gguf_text_is(name, "ffn_down_exps.weight") ? PART_DOWN : PART_GATE;
    return item->routed || place.kind == TENSOR_MATRIX;
}

static void shape_item(struct repair_item *item, const struct gguf_tensor *t,
                       const struct repair_setup *s)
{
    struct repair_row *row = &item->row;
    snprintf(row->name, sizeof row->name, "%.*s", (int)t->name.length, t->name.data);
    row->experts = item->routed ? t->extent[2] : 1;
    row->cols = t->extent[0];
    row->rows = t->weights / t->extent[0] / row->experts;
    row->rank = s->rank;
    if (row->rank > row->rows)
        row->rank = row->rows;
    if (row->rank > row->cols)
        row->rank = row->cols;
    row->bytes = row->experts * row->rank * (row->rows + row->cols) * (s->f32 ? 4 : 2);
}

static enum status list_items(struct repairing *r, const struct repair_setup *s, struct diag *dg)
{
    const struct gguf *g = s->base->file;
    enum status st = ST_OK;
    r->item = calloc(gguf_tensor_count(g), sizeof *r->item);
    if (!r->item)
        return diag_no_memory(dg);
    for (size_t i = 0; st == ST_OK && i < gguf_tensor_count(g); i++) {
        struct repair_item *item = &r->item[r->count];
        bool differ = false;
        item->base = gguf_tensor_at(g, i);
        if (!is_matrix(s->base, item->base, item))
            continue;
        st = find_pair(r, item->base, &item->full, dg);
        if (st == ST_OK)
            st = compare(r, item->base, item->full, &differ, dg);
        if (st == ST_OK && differ) {
            shape_item(item, item->base, s);
            r->all += item->base->weights;
            r->count++;
        }
    }
    if (st == ST_OK && r->count == 0)
        st = diag_set(dg, ST_MISFIT, "%s: no matrix differs from %s: there is nothing to repair",
                      gguf_file_path(r->full, 0), gguf_file_path(g, 0));
    return st;
}

/* ---- the file ---- */

static void declare_item(struct gguf_write *w, const struct repair_item *item,
                         const struct quant_format *f)
{
    const struct repair_row *row = &item->row;
    char name[sizeof row->name + 8];
    uint32_t dims = item->routed ? 3 : 2;
    snprintf(name, sizeof name, "%s.lora_a", row->name);
    gguf_write_tensor(w, name, f, dims, (uint64_t[]){row->cols, row->rank, row->experts});
    snprintf(name, sizeof name, "%s.lora_b", row->name);
    gguf_write_tensor(w, name, f, dims, (uint64_t[]){row->rank, row->rows, row->experts});
}

static enum status open_output(struct gguf_write **out, const struct repairing *r,
                               const struct repair_setup *s, const char *path, struct diag *dg)
{
    enum status st = gguf_write_new(out, dg);
    if (st != ST_OK)
        return st;
    gguf_write_text(*out, "general.type", "adapter");
    gguf_write_text(*out, "general.architecture", s->base->recipe->architecture);
    gguf_write_text(*out, "general.name", s->moments ? "weighted repair" : "repair");
    gguf_write_text(*out, "adapter.type", "lora");
    gguf_write_f32(*out, "adapter.lora.alpha", (float)s->rank);
    for (size_t i = 0; i < r->count; i++)
        declare_item(*out, &r->item[i], quant_find(s->f32 ? "f32" : "f16"));
    st = gguf_write_open(*out, path, dg);
    if (st != ST_OK)
        gguf_write_abandon(*out);
    return st;
}

static enum status repair_all(struct repairing *r, const struct repair_setup *s,
                              struct gguf_write *out, struct diag *dg)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < r->count; i++) {
        struct repair_item *item = &r->item[i];
        st = repair_item_write(item, &r->sources, s, out, dg);
        r->done += item->base->weights;
        if (st == ST_OK && s->progress)
            s->progress(s->progress_self, r->done, r->all);
        if (st == ST_OK && s->row)
            s->row(s->row_self, &item->row);
    }
    return st;
}

static enum status open_sources(struct repairing *r, const struct repair_setup *s, struct diag *dg)
{
    struct gguf_text base, full;
    enum status st = gguf_open(&r->full, s->full, dg);
    if (st == ST_OK)
        st = tensor_floats_open(&r->sources.base, s->base->file, dg);
    if (st == ST_OK)
        st = tensor_floats_open(&r->sources.full, r->full, dg);
    if (st != ST_OK)
        return st;
    bool known = gguf_get_text(s->base->file, "general.architecture", &base) &&
                 gguf_get_text(r->full, "general.architecture", &full);
    if (known && base.length == full.length && memcmp(base.data, full.data, base.length) == 0)
        return ST_OK;
    return diag_set(dg, ST_MISFIT, "%s: is not of the architecture of %s", s->full,
                    gguf_file_path(s->base->file, 0));
}

enum status repair_write(const struct repair_setup *s, const char *path, struct diag *dg)
{
    struct repairing r = {0};
    struct gguf_write *out = NULL;
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    assert(s->rank >= 1 && s->rank <= LOW_RANK_MAX);
    enum status st = open_sources(&r, s, dg);
    if (st == ST_OK)
        st = list_items(&r, s, dg);
    if (st == ST_OK)
        st = open_output(&out, &r, s, path, dg);
    if (st == ST_OK) {
        st = repair_all(&r, s, out, dg);
        if (st == ST_OK)
            st = gguf_write_commit(out, dg);
        else
            gguf_write_abandon(out);
    }
    tensor_floats_close(&r.sources.base);
    tensor_floats_close(&r.sources.full);
    gguf_close(r.full);
    free(r.item);
    gsl_set_error_handler(before);
    return st;
}
