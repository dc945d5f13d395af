/* gguf_edit.c -- see gguf_edit.h. Records are walked as gguf.h describes them. */
#include "tests/gguf_edit.h"

#include "tests/support.h"

#include "models/gguf.h"
#include "models/gguf_reader.h"

#define PREAMBLE  24 /* magic, version, tensors, keys */
#define ALIGNMENT 32

void gguf_edit_load(struct gguf_edit *e, const char *path)
{
    e->bytes = read_whole(path, &e->size);
    assert_non_null(e->bytes);
}

void gguf_edit_free(struct gguf_edit *e)
{
    free(e->bytes);
}

void gguf_edit_save(const struct gguf_edit *e, const char *path)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(e->bytes, 1, e->size, f), e->size);
    assert_int_equal(fclose(f), 0);
}

static uint64_t u64_at(const struct gguf_edit *e, size_t at)
{
    return gguf_load_u64((const unsigned char *)e->bytes + at);
}

static uint32_t u32_at(const struct gguf_edit *e, size_t at)
{
    return gguf_load_u32((const unsigned char *)e->bytes + at);
}

static void put_u64(struct gguf_edit *e, size_t at, uint64_t value)
{
    memcpy(e->bytes + at, &value, sizeof value);
}

static void put_u32(struct gguf_edit *e, size_t at, uint32_t value)
{
    memcpy(e->bytes + at, &value, sizeof value);
}

size_t gguf_edit_tensors(const struct gguf_edit *e)
{
    return u64_at(e, 8);
}

static size_t after_text(const struct gguf_edit *e, size_t at)
{
    return at + 8 + u64_at(e, at);
}

static size_t after_key(const struct gguf_edit *e, size_t at)
{
    at = after_text(e, at);
    enum gguf_type type = (enum gguf_type)u32_at(e, at);
    at += 4;
    if (type == GGUF_TEXT)
        return after_text(e, at);
    if (type != GGUF_ARRAY)
        return at + gguf_type_bytes(type);
    uint64_t count = u64_at(e, at + 4);
    type = (enum gguf_type)u32_at(e, at);
    at += 12;
    for (; type == GGUF_TEXT && count > 0; count--)
        at = after_text(e, at);
    return at + count * gguf_type_bytes(type);
}

/* From behind a tensor's name: dimensions, extents, type, offset. */
static size_t after_record(const struct gguf_edit *e, size_t at)
{
    return at + 4 + 8 * u32_at(e, at) + 12;
}

/* Where tensor i begins; the header's end for the one behind the last. */
static size_t tensor_at(const struct gguf_edit *e, size_t i)
{
    size_t at = PREAMBLE;
    for (uint64_t k = u64_at(e, 16); k > 0; k--)
        at = after_key(e, at);
    for (; i > 0; i--)
        at = after_record(e, after_text(e, at));
    return at;
}

size_t gguf_edit_header_bytes(const struct gguf_edit *e)
{
    return tensor_at(e, gguf_edit_tensors(e));
}

void gguf_edit_name(const struct gguf_edit *e, size_t i, char name[128])
{
    size_t at = tensor_at(e, i);
    snprintf(name, 128, "%.*s", (int)u64_at(e, at), e->bytes + at + 8);
}

/* The record of a key or tensor, which begins with its name. */
static size_t find(const struct gguf_edit *e, const char *name)
{
    char record[256];
    uint64_t length = strlen(name);
    memcpy(record, &length, sizeof length);
    memcpy(record + 8, name, length);
    char *at = memmem(e->bytes, gguf_edit_header_bytes(e), record, 8 + length);
    if (!at)
        fail_msg("'%s' is not in the header", name);
    return (size_t)(at - e->bytes);
}

void gguf_edit_set_u32(struct gguf_edit *e, const char *key, uint32_t value)
{
    put_u32(e, after_text(e, find(e, key)) + 4, value);
}

/* Exchanges header bytes at..at+drop-1 for others. */
static void splice(struct gguf_edit *e, size_t at, size_t drop, const char *add, size_t added)
{
    size_t end = gguf_edit_header_bytes(e), new_end = end - drop + added;
    size_t data = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t new_data = (new_end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *b = calloc(1, new_data + e->size - data);
    assert_non_null(b);
    memcpy(b, e->bytes, at);
    memcpy(b + at, add, added);
    memcpy(b + at + added, e->bytes + at + drop, end - at - drop);
    memcpy(b + new_data, e->bytes + data, e->size - data);
    free(e->bytes);
    e->bytes = b;
    e->size = new_data + e->size - data;
}

void gguf_edit_add_u32(struct gguf_edit *e, const char *key, uint32_t value)
{
    char record[256];
    uint64_t length = strlen(key);
    const uint32_t type_and_value[] = {GGUF_U32, value};
    memcpy(record, &length, 8);
    memcpy(record + 8, key, length);
    memcpy(record + 8 + length, type_and_value, 8);
    splice(e, PREAMBLE, 0, record, 16 + length);
    put_u64(e, 16, u64_at(e, 16) + 1);
}

struct gguf_edit_tensor gguf_edit_get(const struct gguf_edit *e, const char *tensor)
{
    size_t at = after_text(e, find(e, tensor));
    struct gguf_edit_tensor t = {.dims = u32_at(e, at), .extent = {1, 1, 1, 1}};
    for (uint32_t d = 0; d < t.dims; d++)
        t.extent[d] = u64_at(e, at + 4 + 8 * d);
    t.type = u32_at(e, at + 4 + 8 * t.dims);
    t.offset = u64_at(e, at + 8 + 8 * t.dims);
    return t;
}

void gguf_edit_put(struct gguf_edit *e, const char *tensor, const struct gguf_edit_tensor *t)
{
    size_t at = after_text(e, find(e, tensor));
    assert_int_equal(t->dims, u32_at(e, at));
    for (uint32_t d = 0; d < t->dims; d++)
        put_u64(e, at + 4 + 8 * d, t->extent[d]);
    put_u32(e, at + 4 + 8 * t->dims, t->type);
    put_u64(e, at + 8 + 8 * t->dims, t->offset);
}

void gguf_edit_rename(struct gguf_edit *e, const char *tensor, const char *as)
{
    assert_int_equal(strlen(tensor), strlen(as));
    memcpy(e->bytes + find(e, tensor) + 8, as, strlen(as));
}

void gguf_edit_drop(struct gguf_edit *e, const char *tensor)
{
    size_t at = find(e, tensor);
    size_t count = gguf_edit_tensors(e);
    splice(e, at, after_record(e, after_text(e, at)) - at, "", 0);
    put_u64(e, 8, count - 1);
}
