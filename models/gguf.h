/* gguf.h -- the GGUF container: header, metadata, table of tensors. No weights are read.
 *
 * Layout (little-endian, versions 2 and 3): magic "GGUF", u32 version, u64 tensor count, u64 key
 * count; the keys (text name, u32 type, value); the tensors (text name, u32 dimensions, u64 extents
 * with the contiguous one first, u32 type, u64 offset); padding to `general.alignment` (32 if absent);
 * then the data, to which the offsets are relative. A text is a u64 length and its bytes, an array a
 * u32 element type, a u64 count and its elements. A model in several files (NAME-00001-of-00003.gguf)
 * has keys split.no, split.count and split.tensors.count in each; the other keys are the first file's.
 *
 * A file may lie. Its header is read into memory piece by piece, at most GGUF_HEADER_MAX bytes a file,
 * and nothing is allocated because a count says so: tables grow with the records that are really
 * there. What does not hold (tensors that overlap or leave the file, extents that overflow, repeated
 * names, misaligned offsets ...) is ST_PARSE with one line of reason; big-endian files, version 1 and
 * withdrawn tensor types are ST_UNSUPPORTED.
 */
#ifndef MODELS_GGUF_H
#define MODELS_GGUF_H

#include "base/status.h"
#include "models/quant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GGUF_HEADER_MAX ((uint64_t)256 << 20)
#define GGUF_DIMS_MAX   4

/* A view into the header, valid until gguf_close; not NUL-terminated. */
struct gguf_text {
    const char *data;
    size_t length;
};

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_TEXT,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_MAX
};

/* A view of an array's elements as they lie in the header. */
struct gguf_array {
    enum gguf_type type; /* of its elements */
    uint64_t count;
    const unsigned char *data;
};

struct gguf_tensor {
    struct gguf_text name;
    const struct quant_format *format;
    uint32_t dims;
    uint64_t extent[GGUF_DIMS_MAX]; /* extent[0] is contiguous; 1 beyond `dims` */
    uint64_t weights;               /* product of the extents */
    uint64_t offset;                /* from the start of its file */
    uint64_t bytes;
    uint32_t file; /* index of its file */
};

struct gguf;

/* Opens `path`, and its siblings if it is one part of a split model (any part will do). */
MUST_CHECK enum status gguf_open(struct gguf **out, const char *path, struct diag *dg);
void gguf_close(struct gguf *g);

size_t gguf_file_count(const struct gguf *g);
const char *gguf_file_path(const struct gguf *g, size_t file);
uint64_t gguf_file_bytes(const struct gguf *g, size_t file);
uint64_t gguf_data_offset(const struct gguf *g, size_t file); /* where its header ends */

/* Whoever opened the files anew, by their paths, to read weights asks this afterwards. ST_IO: one is no longer
 * the file whose header was read, or was written to since. */
MUST_CHECK enum status gguf_check_unchanged(const struct gguf *g, struct diag *dg);

size_t gguf_tensor_count(const struct gguf *g);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i); /* in the files' order */
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name); /* or NULL */

size_t gguf_key_count(const struct gguf *g);
struct gguf_text gguf_key_at(const struct gguf *g, size_t i); /* in byte order of the names */
bool gguf_has(const struct gguf *g, const char *key);

/* Values by key. False, and *out untouched, if the key is absent or of a kind that does not fit. */
bool gguf_u64(const struct gguf *g, const char *key,
              uint64_t *out); /* integers >= 0 of any width */
bool gguf_double(const struct gguf *g, const char *key, double *out); /* F32, F64 and integers */
bool gguf_flag(const struct gguf *g, const char *key, bool *out);
bool gguf_get_text(const struct gguf *g, const char *key, struct gguf_text *out);
bool gguf_get_array(const struct gguf *g, const char *key, struct gguf_array *out);

/* Element i of an array of numbers or flags; false if out of range or of another kind. */
bool gguf_array_u64(const struct gguf_array *a, uint64_t i, uint64_t *out);
bool gguf_array_double(const struct gguf_array *a, uint64_t i, double *out);
/* Takes the first element off an array of texts (tokens, merges): `while (gguf_array_take(&a, &t))`. */
bool gguf_array_take(struct gguf_array *a, struct gguf_text *out);

bool gguf_text_is(struct gguf_text t, const char *other);

#endif
