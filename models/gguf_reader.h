/* gguf_reader.h -- the cursor that parses a GGUF header, and the little-endian values in it.
 *
 * Failures stick: after the first, everything taken is zero or empty and the first reason stays, so a
 * record is parsed as if nothing could go wrong and `status` is looked at once at its end.
 */
#ifndef MODELS_GGUF_READER_H
#define MODELS_GGUF_READER_H

#include "models/gguf.h"

struct gguf_reader {
    const char *path;
    const unsigned char *header; /* the first `have` bytes of the file */
    uint64_t at, have, file_bytes;
    bool starved;       /* the file goes on, but more of it must be read first */
    enum status status; /* of the first failure */
    struct diag *dg;
};

/* `path: byte N: what was expected`, ST_PARSE; nothing if there is a failure already. */
void gguf_fail(struct gguf_reader *r, const char *format, ...) PRINTF_LIKE(2, 3);
/* For %.*s in a reason. */
#define GGUF_TEXT_ARG(t) (int)(t).length, (t).data

/* What is left of the file, not only of what has been read of it. */
uint64_t gguf_rest(const struct gguf_reader *r);

const unsigned char *gguf_take(struct gguf_reader *r, uint64_t bytes); /* NULL after a failure */
uint32_t gguf_take_u32(struct gguf_reader *r);
uint64_t gguf_take_u64(struct gguf_reader *r);
struct gguf_text gguf_take_text(struct gguf_reader *r);
struct gguf_text gguf_take_name(struct gguf_reader *r, const char *what);
enum gguf_type gguf_take_type(struct gguf_reader *r);
void gguf_pass_value(struct gguf_reader *r, enum gguf_type type); /* texts and nested arrays too */

/* Bytes of one value of a type; 0 for texts and arrays. */
uint32_t gguf_type_bytes(enum gguf_type type);
uint32_t gguf_load_u32(const unsigned char *p); /* any alignment */
uint64_t gguf_load_u64(const unsigned char *p);
/* An integer or flag of `type` at `p`; false if it is negative or of another kind. */
bool gguf_load_whole(enum gguf_type type, const unsigned char *p, uint64_t *out);

/* Byte order, then length. */
int gguf_text_compare(struct gguf_text a, struct gguf_text b);

#endif
