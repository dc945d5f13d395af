/* gguf.c -- see gguf.h: the files of a model together, and look-ups by name. */
#include "models/gguf.h"

#include "models/gguf_header.h"
#include "models/gguf_reader.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gguf {
    struct gguf_file *files;
    size_t file_count, file_room;
    struct gguf_tensor **by_name; /* all tensors of all files */
    size_t tensor_count;
};

#define SPLITS_MAX   UINT64_C(99999) /* the file name has five digits */
#define SPLIT_SUFFIX "-00001-of-00003.gguf"

/* The split that a file says it is; a file without split keys is number 0 of 1. */
static enum status split_of(const struct gguf_file *f, uint64_t *number, uint64_t *count,
                            struct diag *dg)
{
    const struct gguf_key *no = gguf_file_key(f, "split.no");
    const struct gguf_key *of = gguf_file_key(f, "split.count");
    *number = 0;
    *count = 1;
    if (!of)
        return ST_OK;
    if (!gguf_key_u64(of, count) || *count > SPLITS_MAX)
        return diag_set(dg, ST_PARSE, "%s: split.count must be a number of files", f->path);
    if (*count < 2) {
        *count = 1;
        return ST_OK;
    }
    if (!gguf_key_u64(no, number) || *number >= *count)
        return diag_set(dg, ST_PARSE, "%s: split.no must be below split.count, %" PRIu64, f->path,
                        *count);
    return ST_OK;
}

/* Length of the path without "-00001-of-00003.gguf", which must name this split. */
static enum status split_stem(const char *path, uint64_t number, uint64_t count, size_t *stem,
                              struct diag *dg)
{
    char expected[sizeof SPLIT_SUFFIX + 32];
    snprintf(expected, sizeof expected, "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", number + 1, count);
    size_t length = strlen(path), tail = strlen(expected);
    if (length <= tail || strcmp(path + length - tail, expected))
        return diag_set(dg, ST_PARSE,
                        "%s: part %" PRIu64 " of %" PRIu64
                        " must be called NAME%s, as its siblings",
                        path, number + 1, count, expected);
    *stem = length - tail;
    return ST_OK;
}

static enum status load_sibling(struct gguf *g, const char *path, size_t stem, uint64_t number,
                                uint64_t count, struct diag *dg)
{
    char *sibling;
    if (asprintf(&sibling, "%.*s-%05" PRIu64 "-of-%05" PRIu64 ".gguf", (int)stem, path, number + 1,
                 count) < 0)
        return diag_no_memory(dg);
    if (g->file_count == g->file_room) {
        size_t room = g->file_room ? 2 * g->file_room : 8;
        struct gguf_file *moved = reallocarray(g->files, room, sizeof *moved);
        if (!moved) {
            free(sibling);
            return diag_no_memory(dg);
        }
        g->files = moved;
        g->file_room = room;
    }
    struct gguf_file *f = &g->files[g->file_count++];
    memset(f, 0, sizeof *f);
    enum status s = gguf_file_load(f, sibling, (uint32_t)number, dg);
    free(sibling);
    uint64_t its_number = 0, its_count = 0;
    if (!s)
        s = split_of(f, &its_number, &its_count, dg);
    if (!s && (its_number != number || its_count != count))
        return diag_set(dg, ST_PARSE,
                        "%s: says it is part %" PRIu64 " of %" PRIu64 ", expected part %" PRIu64
                        " of %" PRIu64,
                        f->path, its_number + 1, its_count, number + 1, count);
    return s;
}

static void files_free(struct gguf *g)
{
    for (size_t i = 0; i < g->file_count; i++)
        gguf_file_free(&g->files[i]);
    free(g->files);
    g->files = NULL;
    g->file_count = g->file_room = 0;
}

/* All parts, in order, given any one of them. */
static enum status load_files(struct gguf *g, const char *path, struct diag *dg)
{
    uint64_t number, count;
    size_t stem = 0;
    g->files = calloc(1, sizeof *g->files);
    if (!g->files)
        return diag_no_memory(dg);
    g->file_count = g->file_room = 1;
    enum status s = gguf_file_load(&g->files[0], path, 0, dg);
    if (!s)
        s = split_of(&g->files[0], &number, &count, dg);
    if (s || count == 1)
        return s;
    s = split_stem(path, number, count, &stem, dg);
    files_free(g);
    for (uint64_t i = 0; i < count && !s; i++)
        s = load_sibling(g, path, stem, i, count, dg);
    return s;
}

static int compare_names(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(struct gguf_tensor *const *)b;
    int order = gguf_text_compare(x->name, y->name);
    if (order)
        return order;
    return x->file != y->file ? (x->file < y->file ? -1 : 1)
                              : (x->offset > y->offset) - (x->offset < y->offset);
}

static enum status index_tensors(struct gguf *g, struct diag *dg)
{
    for (size_t i = 0; i < g->file_count; i++)
        g->tensor_count += g->files[i].tensor_count;
    g->by_name = calloc(g->tensor_count ? g->tensor_count : 1, sizeof(struct gguf_tensor *));
    if (!g->by_name)
        return diag_no_memory(dg);
    size_t n = 0;
    for (size_t i = 0; i < g->file_count; i++)
        for (size_t j = 0; j < g->files[i].tensor_count; j++)
            g->by_name[n++] = &g->files[i].tensors[j];
    qsort(g->by_name, n, sizeof(struct gguf_tensor *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (!gguf_text_compare(g->by_name[i - 1]->name, g->by_name[i]->name))
            return diag_set(dg, ST_PARSE, "%s: tensor '%.*s' stands there twice",
                            g->files[g->by_name[i]->file].path, (int)g->by_name[i]->name.length,
                            g->by_name[i]->name.data);
    uint64_t expected;
    if (g->file_count > 1 && gguf_u64(g, "split.tensors.count", &expected) && expected != n)
        return diag_set(dg, ST_PARSE, "%s: split.tensors.count is %" PRIu64 ", the parts have %zu",
                        g->files[0].path, expected, n);
    return ST_OK;
}

enum status gguf_open(struct gguf **out, const char *path, struct diag *dg)
{
    struct gguf *g = calloc(1, sizeof *g);
    if (!g)
        return diag_no_memory(dg);
    enum status s = load_files(g, path, dg);
    if (!s)
        s = index_tensors(g, dg);
    if (s) {
        gguf_close(g);
        return s;
    }
    *out = g;
    return ST_OK;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    files_free(g);
    free(g->by_name);
    free(g);
}

size_t gguf_file_count(const struct gguf *g)
{
    return g->file_count;
}

const char *gguf_file_path(const struct gguf *g, size_t file)
{
    assert(file < g->file_count);
    return g->files[file].path;
}

uint64_t gguf_file_bytes(const struct gguf *g, size_t file)
{
    assert(file < g->file_count);
    return g->files[file].bytes;
}

uint64_t gguf_data_offset(const struct gguf *g, size_t file)
{
    assert(file < g->file_count);
    return g->files[file].data_offset;
}

enum status gguf_check_unchanged(const struct gguf *g, struct diag *dg)
{
    for (size_t i = 0; i < g->file_count; i++) {
        const struct gguf_file *f = &g->files[i];
        const char *change = file_identity_change_at(&f->identity, f->path);
        if (change)
            return diag_set(dg, ST_IO, "%s: %s", f->path, change);
    }
    return ST_OK;
}

size_t gguf_tensor_count(const struct gguf *g)
{
    return g->tensor_count;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i)
{
    assert(i < g->tensor_count);
    size_t file = 0;
    while (i >= g->files[file].tensor_count)
        i -= g->files[file++].tensor_count;
    return &g->files[file].tensors[i];
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name)
{
    struct gguf_text wanted = {name, strlen(name)};
    size_t low = 0, high = g->tensor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = gguf_text_compare(g->by_name[middle]->name, wanted);
        if (order == 0)
            return g->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

size_t gguf_key_count(const struct gguf *g)
{
    return g->files[0].key_count;
}

struct gguf_text gguf_key_at(const struct gguf *g, size_t i)
{
    assert(i < g->files[0].key_count);
    return g->files[0].keys[i].name;
}

static const struct gguf_key *key_find(const struct gguf *g, const char *key)
{
    return gguf_file_key(&g->files[0], key);
}

bool gguf_has(const struct gguf *g, const char *key)
{
    return key_find(g, key) != NULL;
}

bool gguf_u64(const struct gguf *g, const char *key, uint64_t *out)
{
    return gguf_key_u64(key_find(g, key), out);
}

/* A number of any kind. Negative integers too, unlike gguf_load_whole. */
static bool load_double(enum gguf_type type, const unsigned char *p, double *out)
{
    uint64_t whole;
    switch (type) {
    case GGUF_F32: {
        uint32_t bits = gguf_load_u32(p);
        float value;
        memcpy(&value, &bits, sizeof value);
        *out = (double)value;
        return true;
    }
    case GGUF_F64: {
        uint64_t bits = gguf_load_u64(p);
        memcpy(out, &bits, sizeof *out);
        return true;
    }
    case GGUF_I8:
        *out = (int8_t)*p;
        return true;
    case GGUF_I16:
        *out = (int16_t)(p[0] | p[1] << 8);
        return true;
    case GGUF_I32:
        *out = (int32_t)gguf_load_u32(p);
        return true;
    case GGUF_I64:
        *out = (double)(int64_t)gguf_load_u64(p);
        return true;
    default:
        if (type == GGUF_BOOL || !gguf_load_whole(type, p, &whole))
            return false;
        *out = (double)whole;
        return true;
    }
}

bool gguf_double(const struct gguf *g, const char *key, double *out)
{
    const struct gguf_key *k = key_find(g, key);
    return k && load_double(k->type, k->value, out);
}

bool gguf_flag(const struct gguf *g, const char *key, bool *out)
{
    const struct gguf_key *k = key_find(g, key);
    if (!k || k->type != GGUF_BOOL)
        return false;
    *out = *k->value != 0;
    return true;
}

static struct gguf_text load_text(const unsigned char *p)
{
    return (struct gguf_text){(const char *)p + 8, (size_t)gguf_load_u64(p)};
}

bool gguf_get_text(const struct gguf *g, const char *key, struct gguf_text *out)
{
    const struct gguf_key *k = key_find(g, key);
    if (!k || k->type != GGUF_TEXT)
        return false;
    *out = load_text(k->value);
    return true;
}

bool gguf_get_array(const struct gguf *g, const char *key, struct gguf_array *out)
{
    const struct gguf_key *k = key_find(g, key);
    if (!k || k->type != GGUF_ARRAY)
        return false;
    *out = (struct gguf_array){.type = (enum gguf_type)gguf_load_u32(k->value),
                               .count = gguf_load_u64(k->value + 4),
                               .data = k->value + 12};
    return true;
}

bool gguf_array_u64(const struct gguf_array *a, uint64_t i, uint64_t *out)
{
    return i < a->count && gguf_load_whole(a->type, a->data + i * gguf_type_bytes(a->type), out);
}

bool gguf_array_double(const struct gguf_array *a, uint64_t i, double *out)
{
    return i < a->count && load_double(a->type, a->data + i * gguf_type_bytes(a->type), out);
}

bool gguf_array_take(struct gguf_array *a, struct gguf_text *out)
{
    if (a->type != GGUF_TEXT || a->count == 0)
        return false;
    *out = load_text(a->data);
    a->data += 8 + out->length;
    a->count--;
    return true;
}

bool gguf_text_is(struct gguf_text t, const char *other)
{
    return t.length == strlen(other) && !memcmp(t.data, other, t.length);
}
