/* gguf_write.c -- see gguf_write.h. */
#include "models/gguf_write.h"

#include "base/bulkfile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define VERSION   3u
#define ALIGNMENT 32u /* of data, if no key says otherwise */

/* Bytes that grow; after a failed allocation they stay as they are. */
struct bytes {
    unsigned char *data;
    size_t used, room;
    bool failed;
};

struct gguf_write {
    struct bytes keys, tensors; /* as they stand in the header */
    uint64_t key_count;
    uint64_t *tensor_bytes;
    size_t tensor_count, tensor_room;
    uint64_t data_bytes; /* of all tensors, padding between them included */
    bool failed;         /* tensor_bytes could not grow */
    struct bulkfile *file;
    size_t present; /* the tensor whose data come next */
    uint64_t present_done;
};

static void add_bytes(struct bytes *b, const void *data, size_t count)
{
    if (b->used + count > b->room) {
        size_t room = 2 * (b->used + count) + 1024;
        unsigned char *moved = realloc(b->data, room);
        if (!moved) {
            b->failed = true;
            return;
        }
        b->data = moved;
        b->room = room;
    }
    memcpy(b->data + b->used, data, count);
    b->used += count;
}

static void add_u32(struct bytes *b, uint32_t value)
{
    unsigned char le[4];
    for (int i = 0; i < 4; i++)
        le[i] = (unsigned char)(value >> 8 * i);
    add_bytes(b, le, sizeof le);
}

static void add_u64(struct bytes *b, uint64_t value)
{
    add_u32(b, (uint32_t)value);
    add_u32(b, (uint32_t)(value >> 32));
}

static void add_text(struct bytes *b, const char *text)
{
    add_u64(b, strlen(text));
    add_bytes(b, text, strlen(text));
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

enum status gguf_write_new(struct gguf_write **out, struct diag *dg)
{
    *out = calloc(1, sizeof **out);
    return *out ? ST_OK : diag_no_memory(dg);
}

static void add_key(struct gguf_write *w, const char *key, enum gguf_type type)
{
    add_text(&w->keys, key);
    add_u32(&w->keys, type);
    w->key_count++;
}

void gguf_write_u32(struct gguf_write *w, const char *key, uint32_t value)
{
    add_key(w, key, GGUF_U32);
    add_u32(&w->keys, value);
}

void gguf_write_f32(struct gguf_write *w, const char *key, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(w, key, GGUF_F32);
    add_u32(&w->keys, bits);
}

void gguf_write_flag(struct gguf_write *w, const char *key, bool value)
{
    add_key(w, key, GGUF_BOOL);
    add_bytes(&w->keys, value ? "\1" : "\0", 1);
}

void gguf_write_text(struct gguf_write *w, const char *key, const char *value)
{
    add_key(w, key, GGUF_TEXT);
    add_text(&w->keys, value);
}

void gguf_write_array(struct gguf_write *w, const char *key, enum gguf_type type, uint64_t count)
{
    add_key(w, key, GGUF_ARRAY);
    add_u32(&w->keys, type);
    add_u64(&w->keys, count);
}

void gguf_write_text_item(struct gguf_write *w, const char *value)
{
    add_text(&w->keys, value);
}

void gguf_write_i32_item(struct gguf_write *w, int32_t value)
{
    add_u32(&w->keys, (uint32_t)value);
}

void gguf_write_tensor(struct gguf_write *w, const char *name, const struct quant_format *format,
                       uint32_t dims, const uint64_t *extent)
{
    assert(dims >= 1 && dims <= GGUF_DIMS_MAX && format->gguf_type >= 0);
    assert(extent[0] % format->block_cols == 0);
    if (w->tensor_count == w->tensor_room) {
        size_t room = 2 * w->tensor_room + 64;
        uint64_t *moved = reallocarray(w->tensor_bytes, room, sizeof *moved);
        if (!moved) {
            w->failed = true;
            return;
        }
        w->tensor_bytes = moved;
        w->tensor_room = room;
    }
    uint64_t rows = 1;
    add_text(&w->tensors, name);
    add_u32(&w->tensors, dims);
    for (uint32_t d = 0; d < dims; d++) {
        add_u64(&w->tensors, extent[d]);
        rows *= d ? extent[d] : 1;
    }
    add_u32(&w->tensors, (uint32_t)format->gguf_type);
    add_u64(&w->tensors, w->data_bytes);
    uint64_t bytes = quant_bytes(format, rows, extent[0]);
    w->tensor_bytes[w->tensor_count++] = bytes;
    w->data_bytes += aligned(bytes);
}

/* Magic, version, both counts, keys, tensors. */
static uint64_t header_bytes(const struct gguf_write *w)
{
    return 4 + 4 + 8 + 8 + w->keys.used + w->tensors.used;
}

uint64_t gguf_write_bytes(const struct gguf_write *w)
{
    return aligned(header_bytes(w)) + w->data_bytes;
}

static enum status write_header(struct gguf_write *w, struct diag *dg)
{
    struct bytes start = {0};
    add_bytes(&start, "GGUF", 4);
    add_u32(&start, VERSION);
    add_u64(&start, w->tensor_count);
    add_u64(&start, w->key_count);
    enum status st = start.failed ? diag_no_memory(dg) : ST_OK;
    if (st == ST_OK)
        st = bulkfile_write(w->file, start.data, start.used, dg);
    if (st == ST_OK)
        st = bulkfile_write(w->file, w->keys.data, w->keys.used, dg);
    if (st == ST_OK)
        st = bulkfile_write(w->file, w->tensors.data, w->tensors.used, dg);
    if (st == ST_OK)
        st = bulkfile_zeros(w->file, aligned(header_bytes(w)) - header_bytes(w), dg);
    free(start.data);
    return st;
}

enum status gguf_write_open(struct gguf_write *w, const char *path, struct diag *dg)
{
    assert(!w->file);
    if (w->failed || w->keys.failed || w->tensors.failed)
        return diag_no_memory(dg);
    enum status st = bulkfile_open(&w->file, path, gguf_write_bytes(w), dg);
    return st == ST_OK ? write_header(w, dg) : st;
}

enum status gguf_write_data(struct gguf_write *w, const void *data, size_t bytes, struct diag *dg)
{
    assert(w->file && w->present < w->tensor_count);
    uint64_t whole = w->tensor_bytes[w->present];
    assert(bytes <= whole - w->present_done);
    enum status st = bulkfile_write(w->file, data, bytes, dg);
    w->present_done += bytes;
    if (st != ST_OK || w->present_done < whole)
        return st;
    w->present++;
    w->present_done = 0;
    return bulkfile_zeros(w->file, aligned(whole) - whole, dg);
}

enum status gguf_write_commit(struct gguf_write *w, struct diag *dg)
{
    assert(w->file && w->present == w->tensor_count);
    struct bulkfile *file = w->file;
    w->file = NULL;
    enum status st = bulkfile_commit(file, dg);
    gguf_write_abandon(w);
    return st;
}

void gguf_write_abandon(struct gguf_write *w)
{
    if (!w)
        return;
    bulkfile_abandon(w->file);
    free(w->keys.data);
    free(w->tensors.data);
    free(w->tensor_bytes);
    free(w);
}
