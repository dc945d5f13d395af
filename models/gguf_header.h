/* gguf_header.h -- one GGUF file's header, parsed into tables: the inside of gguf.h. */
#ifndef MODELS_GGUF_HEADER_H
#define MODELS_GGUF_HEADER_H

#include "base/file_identity.h"
#include "models/gguf.h"

struct gguf_key {
    struct gguf_text name;
    enum gguf_type type;
    const unsigned char *value; /* in the header; an array begins with its element type */
};

struct gguf_file {
    char *path;
    unsigned char *header; /* every view points into it */
    uint64_t bytes;
    struct file_identity identity; /* when the header was read */
    uint64_t alignment, data_offset;
    struct gguf_key *keys; /* sorted by name, no name twice */
    size_t key_count, key_room;
    struct gguf_tensor *tensors; /* in the file's order; offsets count from the start of the file */
    size_t tensor_count, tensor_room;
};

/* Reads the header of `path` into `f`, which the caller has zeroed, and checks all that one file can
 * say about itself. `file_idx` is written into each tensor. After a failure too, free it. */
MUST_CHECK enum status gguf_file_load(struct gguf_file *f, const char *path, uint32_t file_idx,
                                      struct diag *dg);
void gguf_file_free(struct gguf_file *f);

/* NULL if there is none. */
const struct gguf_key *gguf_file_key(const struct gguf_file *f, const char *name);
bool gguf_key_u64(const struct gguf_key *key, uint64_t *out);

#endif
