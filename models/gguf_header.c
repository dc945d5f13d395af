/* gguf_header.c -- see gguf_header.h.
 *
 * A header does not say how long it is. It is read from the start in growing pieces and parsed anew
 * each time until the parser no longer runs off the end of what has been read: parsing is one pass
 * over the bytes, so this costs a constant factor, keeps one flat buffer that views can point into,
 * and bounds memory by the file's size and GGUF_HEADER_MAX whatever the counts claim.
 */
#include "models/gguf_header.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_READ        ((uint64_t)256 << 10)
#define ARRAY_DEPTH_MAX   4
#define ALIGNMENT_DEFAULT 32u
#define ALIGNMENT_MAX     ((uint64_t)1 << 30)
#define NAME_MAX_BYTES    1024u
#define KEY_BYTES_MIN     13u /* the shortest key: empty text, type, one byte of value */
#define TENSOR_BYTES_MIN  32u /* the shortest tensor: empty text, one extent, type, offset */

/* The cursor of the parser. `starved`: more of the file must be read before anything can be said. */
struct reader {
    struct gguf_file *file;
    uint64_t at, have;
    bool starved;
    enum status status; /* of the first failure; nothing is taken after one */
    struct diag *dg;
};

/* For %.*s. */
#define TEXT(t) (int)(t).length, (t).data

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

bool gguf_key_u64(const struct gguf_key *key, uint64_t *out)
{
    return key && key->type != GGUF_BOOL && gguf_load_whole(key->type, key->value, out);
}

int gguf_text_compare(struct gguf_text a, struct gguf_text b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* `path: byte N: what was expected`. The first failure is the one that stays. */
static void fail(struct reader *r, const char *format, ...) PRINTF_LIKE(2, 3);
static void fail(struct reader *r, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (r->status)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->status = diag_set(r->dg, ST_PARSE, "%s: byte %" PRIu64 ": %s", r->file->path, r->at, text);
}

/* What is left of the file, not of what has been read of it. */
static uint64_t rest(const struct reader *r)
{
    return r->file->bytes - r->at;
}

/* The next `bytes` bytes of the header; NULL after a failure. */
static const unsigned char *take(struct reader *r, uint64_t bytes)
{
    if (r->status)
        return NULL;
    if (bytes <= r->have - r->at) {
        r->at += bytes;
        return r->file->header + (r->at - bytes);
    }
    r->starved = bytes <= rest(r);
    fail(r, "the header ends too early: %" PRIu64 " more bytes were expected", bytes);
    return NULL;
}

/* These give 0 after a failure. */
static uint32_t take_u32(struct reader *r)
{
    const unsigned char *p = take(r, 4);
    return p ? gguf_load_u32(p) : 0;
}

static uint64_t take_u64(struct reader *r)
{
    const unsigned char *p = take(r, 8);
    return p ? gguf_load_u64(p) : 0;
}

static struct gguf_text take_text(struct reader *r)
{
    uint64_t length = take_u64(r);
    if (length > rest(r))
        fail(r, "a text of %" PRIu64 " bytes reaches past the end of the file", length);
    const unsigned char *p = take(r, length);
    return (struct gguf_text){(const char *)p, p ? (size_t)length : 0};
}

static struct gguf_text take_name(struct reader *r, const char *what)
{
    struct gguf_text name = take_text(r);
    if (name.length == 0 || name.length > NAME_MAX_BYTES)
        fail(r, "the name of a %s must have 1 to %u bytes, not %zu", what, NAME_MAX_BYTES,
             name.length);
    return name;
}

static enum gguf_type take_type(struct reader *r)
{
    uint32_t type = take_u32(r);
    if (type >= GGUF_TYPE_MAX) {
        fail(r, "%" PRIu32 " is not a type of metadata", type);
        return GGUF_U8;
    }
    return (enum gguf_type)type;
}

static void pass_value(struct reader *r, enum gguf_type type, unsigned depth);

static void pass_array(struct reader *r, unsigned depth)
{
    enum gguf_type type = take_type(r);
    uint64_t count = take_u64(r);
    uint64_t least = type == GGUF_TEXT ? 8 : type == GGUF_ARRAY ? 12 : type_bytes[type];
    if (count > rest(r) / least) {
        fail(r, "an array of %" PRIu64 " elements reaches past the end of the file", count);
    } else if (type != GGUF_TEXT && type != GGUF_ARRAY) {
        take(r, count * least);
    } else if (type == GGUF_ARRAY && depth == ARRAY_DEPTH_MAX) {
        fail(r, "arrays are nested more than %d deep", ARRAY_DEPTH_MAX);
    } else {
        for (uint64_t i = 0; i < count && !r->status; i++)
            pass_value(r, type, depth + 1);
    }
}

static void pass_value(struct reader *r, enum gguf_type type, unsigned depth)
{
    if (type == GGUF_TEXT)
        take_text(r);
    else if (type == GGUF_ARRAY)
        pass_array(r, depth);
    else
        take(r, type_bytes[type]);
}

/* Room for one more item, growing by doubling; false if there is no memory. */
static bool grow(struct reader *r, void **items, size_t count, size_t *room, size_t item_bytes)
{
    if (count < *room)
        return true;
    size_t larger = *room ? 2 * *room : 64;
    void *moved = reallocarray(*items, larger, item_bytes);
    if (!moved) {
        r->status = diag_no_memory(r->dg);
        return false;
    }
    *items = moved;
    *room = larger;
    return true;
}

static void take_key(struct reader *r)
{
    struct gguf_file *f = r->file;
    struct gguf_key key = {.name = take_name(r, "key"), .type = take_type(r)};
    key.value = f->header + r->at;
    pass_value(r, key.type, 1);
    void *items = f->keys;
    if (!r->status && grow(r, &items, f->key_count, &f->key_room, sizeof key)) {
        f->keys = items;
        f->keys[f->key_count++] = key;
    }
}

static void take_extents(struct reader *r, struct gguf_tensor *t)
{
    t->dims = take_u32(r);
    if (t->dims < 1 || t->dims > GGUF_DIMS_MAX)
        fail(r, "tensor '%.*s' has %" PRIu32 " dimensions instead of 1 to %d", TEXT(t->name),
             t->dims, GGUF_DIMS_MAX);
    t->weights = 1;
    for (uint32_t d = 0; d < GGUF_DIMS_MAX && !r->status; d++) {
        t->extent[d] = d < t->dims ? take_u64(r) : 1;
        if (t->extent[d] == 0)
            fail(r, "tensor '%.*s' has an extent of 0", TEXT(t->name));
        if (__builtin_mul_overflow(t->weights, t->extent[d], &t->weights))
            fail(r, "the extents of tensor '%.*s' overflow", TEXT(t->name));
    }
}

static void take_format(struct reader *r, struct gguf_tensor *t)
{
    uint32_t type = take_u32(r);
    if (r->status)
        return;
    t->format = quant_find_gguf(type);
    if (!t->format) {
        r->status =
            diag_set(r->dg, ST_UNSUPPORTED,
                     "%s: tensor '%.*s' has type %" PRIu32 ", which is unknown or withdrawn",
                     r->file->path, TEXT(t->name), type);
        return;
    }
    if (t->extent[0] % t->format->block_cols)
        fail(r, "tensor '%.*s': rows of %" PRIu64 " are no multiple of %s's block of %" PRIu32,
             TEXT(t->name), t->extent[0], t->format->label, t->format->block_cols);
    t->bytes = quant_bytes(t->format, t->weights / t->extent[0], t->extent[0]);
    if (t->bytes > r->file->bytes)
        fail(r, "tensor '%.*s' (%" PRIu64 " bytes) is larger than the file", TEXT(t->name),
             t->bytes);
}

static void take_tensor(struct reader *r, uint32_t file_idx)
{
    struct gguf_file *f = r->file;
    struct gguf_tensor t = {.file = file_idx, .name = take_name(r, "tensor")};
    take_extents(r, &t);
    take_format(r, &t);
    t.offset = take_u64(r);
    void *items = f->tensors;
    if (!r->status && grow(r, &items, f->tensor_count, &f->tensor_room, sizeof t)) {
        f->tensors = items;
        f->tensors[f->tensor_count++] = t;
    }
}

static void take_preamble(struct reader *r, uint64_t *tensor_count, uint64_t *key_count)
{
    const unsigned char *magic = rest(r) < 4 ? NULL : take(r, 4);
    if (!magic || memcmp(magic, "GGUF", 4))
        fail(r, "a GGUF file was expected, which starts with the letters GGUF");
    uint32_t version = take_u32(r);
    if (r->status)
        return;
    if (version && !(version & 0xffff))
        r->status = diag_set(r->dg, ST_UNSUPPORTED, "%s: big-endian GGUF files are not supported",
                             r->file->path);
    else if (version != 2 && version != 3)
        r->status = diag_set(r->dg, ST_UNSUPPORTED,
                             "%s: GGUF version %" PRIu32 " is not supported (2 and 3 are)",
                             r->file->path, version);
    *tensor_count = take_u64(r);
    *key_count = take_u64(r);
}

static void check_count(struct reader *r, const char *what, uint64_t count, uint64_t least)
{
    if (count > rest(r) / least)
        fail(r, "%" PRIu64 " %s do not fit into the file", count, what);
}

static int compare_keys(const void *a, const void *b)
{
    const struct gguf_key *x = a, *y = b;
    int order = gguf_text_compare(x->name, y->name);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

static void sort_keys(struct reader *r)
{
    struct gguf_file *f = r->file;
    if (f->key_count)
        qsort(f->keys, f->key_count, sizeof *f->keys, compare_keys);
    for (size_t i = 1; i < f->key_count; i++)
        if (!gguf_text_compare(f->keys[i - 1].name, f->keys[i].name))
            fail(r, "key '%.*s' stands there twice", TEXT(f->keys[i].name));
}

static void find_alignment(struct reader *r)
{
    uint64_t alignment = ALIGNMENT_DEFAULT;
    const struct gguf_key *key = gguf_file_key(r->file, "general.alignment");
    if (key && !gguf_key_u64(key, &alignment))
        alignment = 0;
    if (alignment == 0 || alignment > ALIGNMENT_MAX || alignment & (alignment - 1))
        fail(r, "general.alignment must be a power of two");
    r->file->alignment = alignment;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(struct gguf_tensor *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return gguf_text_compare(x->name, y->name);
}

static void check_overlap(struct reader *r)
{
    struct gguf_file *f = r->file;
    struct gguf_tensor **order = calloc(f->tensor_count + 1, sizeof(struct gguf_tensor *));
    if (!order) {
        r->status = diag_no_memory(r->dg);
        return;
    }
    for (size_t i = 0; i < f->tensor_count; i++)
        order[i] = &f->tensors[i];
    qsort(order, f->tensor_count, sizeof(struct gguf_tensor *), compare_offsets);
    for (size_t i = 1; i < f->tensor_count; i++)
        if (order[i]->offset - order[i - 1]->offset < order[i - 1]->bytes)
            fail(r, "tensors '%.*s' and '%.*s' overlap", TEXT(order[i - 1]->name),
                 TEXT(order[i]->name));
    free(order);
}

/* Turns the offsets into positions in the file, and checks that each tensor lies inside it. */
static void place_tensors(struct reader *r)
{
    struct gguf_file *f = r->file;
    f->data_offset = (r->at + f->alignment - 1) & ~(f->alignment - 1);
    uint64_t room = f->bytes > f->data_offset ? f->bytes - f->data_offset : 0;
    for (size_t i = 0; i < f->tensor_count && !r->status; i++) {
        struct gguf_tensor *t = &f->tensors[i];
        if (t->offset & (f->alignment - 1))
            fail(r,
                 "tensor '%.*s' is misaligned: its offset %" PRIu64 " is no multiple of %" PRIu64,
                 TEXT(t->name), t->offset, f->alignment);
        if (t->offset > room || t->bytes > room - t->offset)
            fail(r,
                 "tensor '%.*s' (%" PRIu64 " bytes) reaches past the end of the file, %" PRIu64
                 " bytes: is it cut short?",
                 TEXT(t->name), t->bytes, f->bytes);
        t->offset += f->data_offset;
    }
}

static void parse(struct reader *r, uint32_t file_idx)
{
    uint64_t tensor_count = 0, key_count = 0;
    r->file->key_count = r->file->tensor_count = 0;
    take_preamble(r, &tensor_count, &key_count);
    check_count(r, "keys", key_count, KEY_BYTES_MIN);
    for (uint64_t i = 0; i < key_count && !r->status; i++)
        take_key(r);
    check_count(r, "tensors", tensor_count, TENSOR_BYTES_MIN);
    for (uint64_t i = 0; i < tensor_count && !r->status; i++)
        take_tensor(r, file_idx);
    if (!r->status)
        sort_keys(r);
    if (!r->status)
        find_alignment(r);
    if (!r->status)
        place_tensors(r);
    if (!r->status)
        check_overlap(r);
}

/* Extends the header in memory to `want` bytes. */
static enum status read_up_to(struct reader *r, int fd, uint64_t want)
{
    struct gguf_file *f = r->file;
    unsigned char *moved = realloc(f->header, want ? (size_t)want : 1);
    if (!moved)
        return diag_no_memory(r->dg);
    f->header = moved;
    while (r->have < want) {
        ssize_t got = pread(fd, f->header + r->have, (size_t)(want - r->have), (off_t)r->have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return diag_errno(r->dg, f->path, "cannot be read");
        if (got == 0)
            return diag_set(r->dg, ST_IO, "%s: the file became shorter while it was read", f->path);
        r->have += (uint64_t)got;
    }
    return ST_OK;
}

static enum status load_open_file(struct reader *r, int fd, uint32_t file_idx)
{
    struct gguf_file *f = r->file;
    uint64_t limit = f->bytes < GGUF_HEADER_MAX ? f->bytes : GGUF_HEADER_MAX;
    uint64_t want = limit < FIRST_READ ? limit : FIRST_READ;
    for (;;) {
        enum status s = read_up_to(r, fd, want);
        if (s)
            return s;
        r->at = 0;
        r->starved = false;
        r->status = ST_OK;
        parse(r, file_idx);
        if (!r->starved)
            return r->status;
        if (want == limit)
            return diag_set(r->dg, ST_PARSE, "%s: the header is larger than %" PRIu64 " bytes",
                            f->path, limit);
        want = limit / 4 < want ? limit : 4 * want;
    }
}

enum status gguf_file_load(struct gguf_file *f, const char *path, uint32_t file_idx,
                           struct diag *dg)
{
    struct reader r = {.file = f, .dg = dg};
    struct stat st;
    f->path = strdup(path);
    if (!f->path)
        return diag_no_memory(dg);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not waiting for a pipe's writer */
    if (fd < 0)
        return diag_errno(dg, path, "cannot be opened");
    enum status s;
    if (fstat(fd, &st) < 0) {
        s = diag_errno(dg, path, "cannot be examined");
    } else if (!S_ISREG(st.st_mode)) {
        s = diag_set(dg, ST_PARSE, "%s: a regular file was expected", path);
    } else {
        f->bytes = (uint64_t)st.st_size;
        s = load_open_file(&r, fd, file_idx);
    }
    close(fd);
    return s;
}

void gguf_file_free(struct gguf_file *f)
{
    free(f->path);
    free(f->header);
    free(f->keys);
    free(f->tensors);
}

const struct gguf_key *gguf_file_key(const struct gguf_file *f, const char *name)
{
    struct gguf_text wanted = {name, strlen(name)};
    size_t low = 0, high = f->key_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = gguf_text_compare(f->keys[middle].name, wanted);
        if (order == 0)
            return &f->keys[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
