/* gguf_write.h -- a GGUF file (version 3, gguf.h) of any size, from its first byte to its last.
 *
 * First the keys and the tensors are declared, in the order in which they shall stand; gguf_write_open then
 * writes the header; then come the data, tensor by tensor in the order of their declaration; and
 * gguf_write_commit gives the file its name. The data pass through one buffer, so the size of a
 * model does not matter.
 *
 *     gguf_write_new(&w, dg);
 *     gguf_write_text(w, "general.architecture", "llama");
 *     gguf_write_tensor(w, "output_norm.weight", quant_find("f32"), 1, (uint64_t[]){hidden});
 *     gguf_write_open(w, path, dg);
 *     gguf_write_data(w, ones, hidden * 4, dg);
 *     gguf_write_commit(w, dg);
 *
 * What is declared is copied. A declaration that finds no memory is reported by gguf_write_open. Names must not
 * repeat, rows must be whole blocks, and data must not reach beyond their tensor: the caller sees to that.
 */
#ifndef MODELS_GGUF_WRITE_H
#define MODELS_GGUF_WRITE_H

#include "models/gguf.h"

struct gguf_write;

MUST_CHECK enum status gguf_write_new(struct gguf_write **out, struct diag *dg);

void gguf_write_u32(struct gguf_write *w, const char *key, uint32_t value);
void gguf_write_f32(struct gguf_write *w, const char *key, float value);
void gguf_write_flag(struct gguf_write *w, const char *key, bool value);
void gguf_write_text(struct gguf_write *w, const char *key, const char *value);
/* An array whose elements follow, `count` of them, by gguf_write_text_item or _i32_item. */
void gguf_write_array(struct gguf_write *w, const char *key, enum gguf_type type, uint64_t count);
void gguf_write_text_item(struct gguf_write *w, const char *value);
void gguf_write_i32_item(struct gguf_write *w, int32_t value);

/* extent[0] is the contiguous one; the format must have a GGUF type. */
void gguf_write_tensor(struct gguf_write *w, const char *name, const struct quant_format *format,
                       uint32_t dims, const uint64_t *extent);

/* Size of the file to be written, after the last declaration. */
uint64_t gguf_write_bytes(const struct gguf_write *w);

/* ST_IO, or ST_MISFIT if the file system has no room for so much (base/bulkfile.h). */
MUST_CHECK enum status gguf_write_open(struct gguf_write *w, const char *path, struct diag *dg);
/* The next bytes of the present tensor; behind its last the next tensor is the present one. */
MUST_CHECK enum status gguf_write_data(struct gguf_write *w, const void *data, size_t bytes,
                                       struct diag *dg);
/* All data must be there. Frees w either way. */
MUST_CHECK enum status gguf_write_commit(struct gguf_write *w, struct diag *dg);
void gguf_write_abandon(struct gguf_write *w); /* at any time; NULL is fine */

#endif
