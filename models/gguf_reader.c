/* gguf_reader.c -- see gguf_reader.h. */
#include "models/gguf_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_DEPTH_MAX 4
#define NAME_MAX_BYTES  1024u

static const uint8_t type_bytes[GGUF_TYPE_MAX] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8};

uint32_t gguf_load_u32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t gguf_load_u64(const unsigned char *p)
{
    return gguf_load_u32(p) | (uint64_t)gguf_load_u32(p + 4) << 32;
}

uint32_t gguf_type_bytes(enum gguf_type type)
{
    return type_bytes[type];
}

bool gguf_load_whole(enum gguf_type type, const unsigned char *p, uint64_t *out)
{
    uint32_t bytes = type_bytes[type];
    if (bytes == 0 || type == GGUF_F32 || type == GGUF_F64)
        return false;
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << 8 * i;
    bool is_signed = type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
    if (is_signed && value >> (8 * bytes - 1))
        return false;
    *out = value;
    return true;
}

int gguf_text_compare(struct gguf_text a, struct gguf_text b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

void gguf_fail(struct gguf_reader *r, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (r->status)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->status = diag_set(r->dg, ST_PARSE, "%s: byte %" PRIu64 ": %s", r->path, r->at, text);
}

uint64_t gguf_rest(const struct gguf_reader *r)
{
    return r->file_bytes - r->at;
}

const unsigned char *gguf_take(struct gguf_reader *r, uint64_t bytes)
{
    if (r->status)
        return NULL;
    if (bytes <= r->have - r->at) {
        r->at += bytes;
        return r->header + (r->at - bytes);
    }
    r->starved = bytes <= gguf_rest(r);
    gguf_fail(r, "the header ends too early: %" PRIu64 " more bytes were expected", bytes);
    return NULL;
}

uint32_t gguf_take_u32(struct gguf_reader *r)
{
    const unsigned char *p = gguf_take(r, 4);
    return p ? gguf_load_u32(p) : 0;
}

uint64_t gguf_take_u64(struct gguf_reader *r)
{
    const unsigned char *p = gguf_take(r, 8);
    return p ? gguf_load_u64(p) : 0;
}

struct gguf_text gguf_take_text(struct gguf_reader *r)
{
    uint64_t length = gguf_take_u64(r);
    if (length > gguf_rest(r))
        gguf_fail(r, "a text of %" PRIu64 " bytes reaches past the end of the file", length);
    const unsigned char *p = gguf_take(r, length);
    return (struct gguf_text){(const char *)p, p ? (size_t)length : 0};
}

struct gguf_text gguf_take_name(struct gguf_reader *r, const char *what)
{
    struct gguf_text name = gguf_take_text(r);
    if (name.length == 0 || name.length > NAME_MAX_BYTES)
        gguf_fail(r, "the name of a %s must have 1 to %u bytes, not %zu", what, NAME_MAX_BYTES,
                  name.length);
    return name;
}

enum gguf_type gguf_take_type(struct gguf_reader *r)
{
    uint32_t type = gguf_take_u32(r);
    if (type >= GGUF_TYPE_MAX) {
        gguf_fail(r, "%" PRIu32 " is not a type of metadata", type);
        return GGUF_U8;
    }
    return (enum gguf_type)type;
}

static void pass_value(struct gguf_reader *r, enum gguf_type type, unsigned depth);

static void pass_array(struct gguf_reader *r, unsigned depth)
{
    enum gguf_type type = gguf_take_type(r);
    uint64_t count = gguf_take_u64(r);
    uint64_t least = type == GGUF_TEXT ? 8 : type == GGUF_ARRAY ? 12 : type_bytes[type];
    if (count > gguf_rest(r) / least) {
        gguf_fail(r, "an array of %" PRIu64 " elements reaches past the end of the file", count);
    } else if (type != GGUF_TEXT && type != GGUF_ARRAY) {
        gguf_take(r, count * least);
    } else if (type == GGUF_ARRAY && depth == ARRAY_DEPTH_MAX) {
        gguf_fail(r, "arrays are nested more than %d deep", ARRAY_DEPTH_MAX);
    } else {
        for (uint64_t i = 0; i < count && !r->status; i++)
            pass_value(r, type, depth + 1);
    }
}

static void pass_value(struct gguf_reader *r, enum gguf_type type, unsigned depth)
{
    if (type == GGUF_TEXT)
        gguf_take_text(r);
    else if (type == GGUF_ARRAY)
        pass_array(r, depth);
    else
        gguf_take(r, type_bytes[type]);
}

void gguf_pass_value(struct gguf_reader *r, enum gguf_type type)
{
    pass_value(r, type, 1);
}
