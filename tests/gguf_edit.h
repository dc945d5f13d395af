/* gguf_edit.h -- a GGUF file in memory whose header is changed, for tests that a reader refuses what does not hold.
 *
 * A key's value and a tensor's record are changed where they lie; dropping or adding one moves the header's rest and
 * pads it anew, so that the data stay what the offsets say. Names that are not there fail the test. */
#ifndef TESTS_GGUF_EDIT_H
#define TESTS_GGUF_EDIT_H

#include <stddef.h>
#include <stdint.h>

struct gguf_edit {
    char *bytes;
    size_t size;
};

void gguf_edit_load(struct gguf_edit *e, const char *path);
void gguf_edit_free(struct gguf_edit *e);
void gguf_edit_save(const struct gguf_edit *e, const char *path);

size_t gguf_edit_tensors(const struct gguf_edit *e);
/* The name of the i-th tensor, in the header's order, into `name`. */
void gguf_edit_name(const struct gguf_edit *e, size_t i, char name[128]);
/* Where the header ends, without its padding. */
size_t gguf_edit_header_bytes(const struct gguf_edit *e);

/* The value of a key, which is any of four bytes. */
void gguf_edit_set_u32(struct gguf_edit *e, const char *key, uint32_t value);
void gguf_edit_add_u32(struct gguf_edit *e, const char *key, uint32_t value);

/* A tensor's record, as it is stored. */
struct gguf_edit_tensor {
    uint32_t dims, type;
    uint64_t extent[4], offset; /* from the start of the data */
};
struct gguf_edit_tensor gguf_edit_get(const struct gguf_edit *e, const char *tensor);
void gguf_edit_put(struct gguf_edit *e, const char *tensor, const struct gguf_edit_tensor *t);
void gguf_edit_rename(struct gguf_edit *e, const char *tensor,
                      const char *as); /* of equal length */
void gguf_edit_drop(struct gguf_edit *e, const char *tensor);

#endif
