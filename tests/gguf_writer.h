/* gguf_writer.h -- writes small GGUF files for tests, honest ones and, by editing the records before
 * writing, lying ones. Tensor data is zeros. Allocation failures end the test. */
#ifndef TESTS_GGUF_WRITER_H
#define TESTS_GGUF_WRITER_H

#include <stddef.h>
#include <stdint.h>

#define WRITER_TENSORS_MAX 64

struct writer_tensor {
    char name[80];
    uint32_t dims, type;
    uint64_t extent[4], offset;
};

struct gguf_writer {
    char magic[4];
    uint32_t version;
    uint64_t key_count, tensor_count; /* as written; counted up by the calls below */
    uint64_t alignment;               /* of the data; say so by a key if it is not 32 */
    unsigned char *keys;
    size_t key_bytes, key_room;
    struct writer_tensor tensors[WRITER_TENSORS_MAX];
    size_t tensors_used;
    uint64_t data_bytes; /* zeros after the header */
};

void writer_start(struct gguf_writer *w); /* version 3, no keys */
void writer_end(struct gguf_writer *w);

/* Raw pieces of a key, for unusual ones: name and type, then the value. */
void writer_bytes(struct gguf_writer *w, const void *bytes, size_t count);
void writer_u32_raw(struct gguf_writer *w, uint32_t value);
void writer_u64_raw(struct gguf_writer *w, uint64_t value);
void writer_text_raw(struct gguf_writer *w, const char *text);
void writer_key(struct gguf_writer *w, const char *name, uint32_t type);

void writer_u32(struct gguf_writer *w, const char *name, uint32_t value);
void writer_text(struct gguf_writer *w, const char *name, const char *value);

/* Appends a tensor behind the ones before it; extents end at the first 0. */
struct writer_tensor *writer_tensor(struct gguf_writer *w, const char *name, uint32_t type,
                                    uint64_t extent0, uint64_t extent1, uint64_t extent2);

/* The file's bytes; free() them. */
unsigned char *writer_build(const struct gguf_writer *w, size_t *bytes);
void writer_save(const struct gguf_writer *w, const char *path);

/* Keys and tensors of a qwen3moe model of `layers` layers that imports: hidden 32, 2 heads of 16 over
 * 1 key head, 4 experts of 32, top 2, 8 tokens, all Q8_0. */
void writer_qwen3moe(struct gguf_writer *w, size_t layers);
/* Its tensors of one layer alone. */
void writer_qwen3moe_layer(struct gguf_writer *w, size_t layer);

#endif
