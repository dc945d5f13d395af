/* gguf_writer.c -- see gguf_writer.h. */
#include "tests/gguf_writer.h"

#include "models/quant.h"
#include "tests/support.h"

enum { U32 = 4, TEXT = 8 };

void writer_start(struct gguf_writer *w)
{
    memset(w, 0, sizeof *w);
    memcpy(w->magic, "GGUF", 4);
    w->version = 3;
    w->alignment = 32;
}

void writer_end(struct gguf_writer *w)
{
    free(w->keys);
    w->keys = NULL;
}

void writer_bytes(struct gguf_writer *w, const void *bytes, size_t count)
{
    if (w->key_bytes + count > w->key_room) {
        w->key_room = 2 * (w->key_bytes + count) + 256;
        w->keys = realloc(w->keys, w->key_room);
        assert_non_null(w->keys);
    }
    memcpy(w->keys + w->key_bytes, bytes, count);
    w->key_bytes += count;
}

void writer_u32_raw(struct gguf_writer *w, uint32_t value)
{
    unsigned char b[4] = {value & 255, value >> 8 & 255, value >> 16 & 255, value >> 24};
    writer_bytes(w, b, sizeof b);
}

void writer_u64_raw(struct gguf_writer *w, uint64_t value)
{
    writer_u32_raw(w, (uint32_t)value);
    writer_u32_raw(w, (uint32_t)(value >> 32));
}

void writer_text_raw(struct gguf_writer *w, const char *text)
{
    writer_u64_raw(w, strlen(text));
    writer_bytes(w, text, strlen(text));
}

void writer_key(struct gguf_writer *w, const char *name, uint32_t type)
{
    writer_text_raw(w, name);
    writer_u32_raw(w, type);
    w->key_count++;
}

void writer_u32(struct gguf_writer *w, const char *name, uint32_t value)
{
    writer_key(w, name, U32);
    writer_u32_raw(w, value);
}

void writer_text(struct gguf_writer *w, const char *name, const char *value)
{
    writer_key(w, name, TEXT);
    writer_text_raw(w, value);
}

struct writer_tensor *writer_tensor(struct gguf_writer *w, const char *name, uint32_t type,
                                    uint64_t extent0, uint64_t extent1, uint64_t extent2)
{
    assert_true(w->tensors_used < WRITER_TENSORS_MAX);
    struct writer_tensor *t = &w->tensors[w->tensors_used++];
    *t = (struct writer_tensor){.type = type, .extent = {extent0, extent1, extent2, 0}};
    snprintf(t->name, sizeof t->name, "%s", name);
    uint64_t rows = 1;
    for (; t->dims < 3 && t->extent[t->dims]; t->dims++)
        rows *= t->dims ? t->extent[t->dims] : 1;
    t->offset = w->data_bytes;
    w->data_bytes += quant_bytes(quant_find_gguf(type), rows, extent0);
    w->data_bytes = (w->data_bytes + w->alignment - 1) / w->alignment * w->alignment;
    w->tensor_count++;
    return t;
}

unsigned char *writer_build(const struct gguf_writer *w, size_t *bytes)
{
    struct gguf_writer out; /* its key buffer takes the whole file */
    writer_start(&out);
    writer_bytes(&out, w->magic, 4);
    writer_u32_raw(&out, w->version);
    writer_u64_raw(&out, w->tensor_count);
    writer_u64_raw(&out, w->key_count);
    writer_bytes(&out, w->keys ? (const void *)w->keys : "", w->key_bytes);
    for (size_t i = 0; i < w->tensors_used; i++) {
        const struct writer_tensor *t = &w->tensors[i];
        writer_text_raw(&out, t->name);
        writer_u32_raw(&out, t->dims);
        for (uint32_t d = 0; d < t->dims && d < 4; d++)
            writer_u64_raw(&out, t->extent[d]);
        writer_u32_raw(&out, t->type);
        writer_u64_raw(&out, t->offset);
    }
    uint64_t padding = (w->alignment - out.key_bytes % w->alignment) % w->alignment;
    *bytes = out.key_bytes + (size_t)(padding + w->data_bytes);
    unsigned char *file = realloc(out.keys, *bytes + 1);
    assert_non_null(file);
    memset(file + out.key_bytes, 0, *bytes - out.key_bytes);
    return file;
}

void writer_save(const struct gguf_writer *w, const char *path)
{
    size_t bytes;
    unsigned char *file = writer_build(w, &bytes);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    free(file);
}

static void layer_tensor(struct gguf_writer *w, size_t layer, const char *name, uint32_t type,
                         uint64_t cols, uint64_t rows, uint64_t count)
{
    char full[80];
    snprintf(full, sizeof full, "blk.%zu.%s", layer, name);
    writer_tensor(w, full, type, cols, rows, count);
}

void writer_qwen3moe_layer(struct gguf_writer *w, size_t layer)
{
    enum { F32 = 0, Q8_0 = 8 };
    layer_tensor(w, layer, "attn_norm.weight", F32, 32, 0, 0);
    layer_tensor(w, layer, "attn_q.weight", Q8_0, 32, 32, 0);
    layer_tensor(w, layer, "attn_k.weight", Q8_0, 32, 16, 0);
    layer_tensor(w, layer, "attn_v.weight", Q8_0, 32, 16, 0);
    layer_tensor(w, layer, "attn_output.weight", Q8_0, 32, 32, 0);
    layer_tensor(w, layer, "ffn_norm.weight", F32, 32, 0, 0);
    layer_tensor(w, layer, "ffn_gate_inp.weight", F32, 32, 4, 0);
    layer_tensor(w, layer, "ffn_gate_exps.weight", Q8_0, 32, 32, 4);
    layer_tensor(w, layer, "ffn_up_exps.weight", Q8_0, 32, 32, 4);
    layer_tensor(w, layer, "ffn_down_exps.weight", Q8_0, 32, 32, 4);
}

void writer_qwen3moe(struct gguf_writer *w, size_t layers)
{
    writer_text(w, "general.architecture", "qwen3moe");
    writer_u32(w, "qwen3moe.block_count", (uint32_t)layers);
    writer_u32(w, "qwen3moe.context_length", 64);
    writer_u32(w, "qwen3moe.embedding_length", 32);
    writer_u32(w, "qwen3moe.attention.head_count", 2);
    writer_u32(w, "qwen3moe.attention.head_count_kv", 1);
    writer_u32(w, "qwen3moe.attention.key_length", 16);
    writer_u32(w, "qwen3moe.attention.value_length", 16);
    writer_u32(w, "qwen3moe.expert_count", 4);
    writer_u32(w, "qwen3moe.expert_used_count", 2);
    writer_tensor(w, "token_embd.weight", 8, 32, 8, 0);
    writer_tensor(w, "output_norm.weight", 0, 32, 0, 0);
    for (size_t i = 0; i < layers; i++)
        writer_qwen3moe_layer(w, i);
}
