/* gguf_header.c -- see gguf_header.h.
 *
 * A header does not say how long it is. It is read from the start in growing pieces and parsed anew
 * each time until the parser no longer runs off the end of what has been read: parsing is one pass
 * over the bytes, so this costs a constant factor, keeps one flat buffer that views can point into,
 * and bounds memory by the file's size and GGUF_HEADER_MAX whatever the counts claim.
 */
#include "models/gguf_header.h"

#include "base/infile.h"
#include "models/gguf_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_READ        ((uint64_t)256 << 10)
#define ALIGNMENT_DEFAULT 32u
#define ALIGNMENT_MAX     ((uint64_t)1 << 30)
#define KEY_BYTES_MIN     13u /* the shortest key: empty text, type, one byte of value */
#define TENSOR_BYTES_MIN  32u /* the shortest tensor: empty text, one extent, type, offset */

/* Room for one more item, growing by doubling; false if there is no memory. */
static bool grow(struct gguf_reader *r, void **items, size_t count, size_t *room, size_t item_bytes)
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

static void take_key(struct gguf_file *f, struct gguf_reader *r)
{
    struct gguf_key key = {.name = gguf_take_name(r, "key")};
    key.type = gguf_take_type(r);
    key.value = f->header + r->at;
    gguf_pass_value(r, key.type);
    void *items = f->keys;
    if (!r->status && grow(r, &items, f->key_count, &f->key_room, sizeof key)) {
        f->keys = items;
        f->keys[f->key_count++] = key;
    }
}

static void take_extents(struct gguf_reader *r, struct gguf_tensor *t)
{
    t->dims = gguf_take_u32(r);
    if (t->dims < 1 || t->dims > GGUF_DIMS_MAX)
        gguf_fail(r, "tensor '%.*s' has %" PRIu32 " dimensions instead of 1 to %d",
                  GGUF_TEXT_ARG(t->name), t->dims, GGUF_DIMS_MAX);
    t->weights = 1;
    for (uint32_t d = 0; d < GGUF_DIMS_MAX && !r->status; d++) {
        t->extent[d] = d < t->dims ? gguf_take_u64(r) : 1;
        if (t->extent[d] == 0)
            gguf_fail(r, "tensor '%.*s' has an extent of 0", GGUF_TEXT_ARG(t->name));
        if (__builtin_mul_overflow(t->weights, t->extent[d], &t->weights))
            gguf_fail(r, "the extents of tensor '%.*s' overflow", GGUF_TEXT_ARG(t->name));
    }
}

static void take_format(struct gguf_reader *r, struct gguf_tensor *t)
{
    uint32_t type = gguf_take_u32(r);
    if (r->status)
        return;
    t->format = quant_find_gguf(type);
    if (!t->format) {
        r->status =
            diag_set(r->dg, ST_UNSUPPORTED,
                     "%s: tensor '%.*s' has type %" PRIu32 ", which is unknown or withdrawn",
                     r->path, GGUF_TEXT_ARG(t->name), type);
        return;
    }
    if (t->extent[0] % t->format->block_cols)
        gguf_fail(r, "tensor '%.*s': rows of %" PRIu64 " are no multiple of %s's block of %" PRIu32,
                  GGUF_TEXT_ARG(t->name), t->extent[0], t->format->label, t->format->block_cols);
    t->bytes = quant_bytes(t->format, t->weights / t->extent[0], t->extent[0]);
    if (t->bytes > r->file_bytes)
        gguf_fail(r, "tensor '%.*s' (%" PRIu64 " bytes) is larger than the file",
                  GGUF_TEXT_ARG(t->name), t->bytes);
}

static void take_tensor(struct gguf_file *f, struct gguf_reader *r, uint32_t file_idx)
{
    struct gguf_tensor t = {.file = file_idx, .name = gguf_take_name(r, "tensor")};
    take_extents(r, &t);
    take_format(r, &t);
    t.offset = gguf_take_u64(r);
    void *items = f->tensors;
    if (!r->status && grow(r, &items, f->tensor_count, &f->tensor_room, sizeof t)) {
        f->tensors = items;
        f->tensors[f->tensor_count++] = t;
    }
}

static void take_preamble(struct gguf_reader *r, uint64_t *tensor_count, uint64_t *key_count)
{
    const unsigned char *magic = gguf_rest(r) < 4 ? NULL : gguf_take(r, 4);
    if (!magic || memcmp(magic, "GGUF", 4))
        gguf_fail(r, "a GGUF file was expected, which starts with the letters GGUF");
    uint32_t version = gguf_take_u32(r);
    if (r->status)
        return;
    if (version && !(version & 0xffff))
        r->status =
            diag_set(r->dg, ST_UNSUPPORTED, "%s: big-endian GGUF files are not supported", r->path);
    else if (version != 2 && version != 3)
        r->status = diag_set(r->dg, ST_UNSUPPORTED,
                             "%s: GGUF version %" PRIu32 " is not supported (2 and 3 are)", r->path,
                             version);
    *tensor_count = gguf_take_u64(r);
    *key_count = gguf_take_u64(r);
}

static void check_count(struct gguf_reader *r, const char *what, uint64_t count, uint64_t least)
{
    if (count > gguf_rest(r) / least)
        gguf_fail(r, "%" PRIu64 " %s do not fit into the file", count, what);
}

static int compare_keys(const void *a, const void *b)
{
    const struct gguf_key *x = a, *y = b;
    int order = gguf_text_compare(x->name, y->name);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

static void sort_keys(struct gguf_file *f, struct gguf_reader *r)
{
    if (f->key_count)
        qsort(f->keys, f->key_count, sizeof *f->keys, compare_keys);
    for (size_t i = 1; i < f->key_count; i++)
        if (!gguf_text_compare(f->keys[i - 1].name, f->keys[i].name))
            gguf_fail(r, "key '%.*s' stands there twice", GGUF_TEXT_ARG(f->keys[i].name));
}

static void find_alignment(struct gguf_file *f, struct gguf_reader *r)
{
    uint64_t alignment = ALIGNMENT_DEFAULT;
    const struct gguf_key *key = gguf_file_key(f, "general.alignment");
    if (key && !gguf_key_u64(key, &alignment))
        alignment = 0;
    if (alignment == 0 || alignment > ALIGNMENT_MAX || alignment & (alignment - 1))
        gguf_fail(r, "general.alignment must be a power of two");
    f->alignment = alignment;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(struct gguf_tensor *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return gguf_text_compare(x->name, y->name);
}

static void check_overlap(struct gguf_file *f, struct gguf_reader *r)
{
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
            gguf_fail(r, "tensors '%.*s' and '%.*s' overlap", GGUF_TEXT_ARG(order[i - 1]->name),
                      GGUF_TEXT_ARG(order[i]->name));
    free(order);
}

/* Turns the offsets into positions in the file, and checks that each tensor lies inside it. */
static void place_tensors(struct gguf_file *f, struct gguf_reader *r)
{
    f->data_offset = (r->at + f->alignment - 1) & ~(f->alignment - 1);
    uint64_t room = f->bytes > f->data_offset ? f->bytes - f->data_offset : 0;
    for (size_t i = 0; i < f->tensor_count && !r->status; i++) {
        struct gguf_tensor *t = &f->tensors[i];
        if (t->offset & (f->alignment - 1))
            gguf_fail(
                r, "tensor '%.*s' is misaligned: its offset %" PRIu64 " is no multiple of %" PRIu64,
                GGUF_TEXT_ARG(t->name), t->offset, f->alignment);
        if (t->offset > room || t->bytes > room - t->offset)
            gguf_fail(r,
                      "tensor '%.*s' (%" PRIu64 " bytes) reaches past the end of the file, %" PRIu64
                      " bytes: is it cut short?",
                      GGUF_TEXT_ARG(t->name), t->bytes, f->bytes);
        t->offset += f->data_offset;
    }
}

static void parse(struct gguf_file *f, struct gguf_reader *r, uint32_t file_idx)
{
    uint64_t tensor_count = 0, key_count = 0;
    f->key_count = f->tensor_count = 0;
    take_preamble(r, &tensor_count, &key_count);
    check_count(r, "keys", key_count, KEY_BYTES_MIN);
    for (uint64_t i = 0; i < key_count && !r->status; i++)
        take_key(f, r);
    check_count(r, "tensors", tensor_count, TENSOR_BYTES_MIN);
    for (uint64_t i = 0; i < tensor_count && !r->status; i++)
        take_tensor(f, r, file_idx);
    if (!r->status)
        sort_keys(f, r);
    if (!r->status)
        find_alignment(f, r);
    if (!r->status)
        place_tensors(f, r);
    if (!r->status)
        check_overlap(f, r);
}

/* Extends the header in memory to `want` bytes. */
static enum status read_up_to(struct gguf_file *f, struct gguf_reader *r, int fd, uint64_t want)
{
    unsigned char *moved = realloc(f->header, want ? (size_t)want : 1);
    if (!moved)
        return diag_no_memory(r->dg);
    r->header = f->header = moved;
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

static enum status load_open_file(struct gguf_file *f, struct gguf_reader *r, int fd,
                                  uint32_t file_idx)
{
    uint64_t limit = f->bytes < GGUF_HEADER_MAX ? f->bytes : GGUF_HEADER_MAX;
    uint64_t want = limit < FIRST_READ ? limit : FIRST_READ;
    for (;;) {
        enum status s = read_up_to(f, r, fd, want);
        if (s)
            return s;
        r->at = 0;
        r->starved = false;
        r->status = ST_OK;
        parse(f, r, file_idx);
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
    struct gguf_reader r = {.path = path, .dg = dg};
    struct stat st;
    f->path = strdup(path);
    if (!f->path)
        return diag_no_memory(dg);
    int fd;
    enum status s = infile_open(&fd, path, INFILE_REGULAR, dg);
    if (s)
        return s;
    if (fstat(fd, &st) < 0) {
        s = diag_errno(dg, path, "cannot be examined");
    } else {
        f->identity = file_identity_of(&st);
        f->bytes = r.file_bytes = (uint64_t)st.st_size;
        s = load_open_file(f, &r, fd, file_idx);
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

bool gguf_key_u64(const struct gguf_key *key, uint64_t *out)
{
    return key && key->type != GGUF_BOOL && gguf_load_whole(key->type, key->value, out);
}
