/* vocabulary.c -- see vocabulary.h. */
#include "tests/vocabulary.h"

#include "tests/support.h"

enum { TYPE_I32 = 5, TYPE_F32 = 6, TYPE_BOOL = 7, TYPE_TEXT = 8, TYPE_ARRAY = 9 };

uint32_t vocabulary_token(struct vocabulary *v, const char *text, int kind, float score)
{
    assert_true(v->count < VOCABULARY_MAX && strlen(text) < VOCABULARY_TEXT_SIZE);
    snprintf(v->tokens[v->count], VOCABULARY_TEXT_SIZE, "%s", text);
    v->kinds[v->count] = kind;
    v->scores[v->count] = score;
    return (uint32_t)v->count++;
}

void vocabulary_merge(struct vocabulary *v, const char *left, const char *right)
{
    assert_true(v->merge_count < VOCABULARY_MAX);
    snprintf(v->merges[v->merge_count++], 2 * VOCABULARY_TEXT_SIZE, "%s %s", left, right);
}

/* As GPT-2's encoder builds it: the bytes that print first, then the others from 256 on, in
 * order. */
static int character_of_byte(int byte)
{
    int next = 256;
    for (int b = 0; b < 256; b++) {
        bool prints = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == byte)
            return prints ? b : next;
        next += !prints;
    }
    return -1;
}

void vocabulary_bytes(struct vocabulary *v)
{
    for (int b = 0; b < 256; b++) {
        int c = character_of_byte(b);
        char text[3] = {(char)c};
        if (c >= 128) {
            text[0] = (char)(0xc0 | c >> 6);
            text[1] = (char)(0x80 | (c & 0x3f));
        }
        vocabulary_token(v, text, KIND_NORMAL, 0);
    }
}

void vocabulary_byte_names(struct vocabulary *v)
{
    for (int b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        vocabulary_token(v, name, KIND_BYTE, 0);
    }
}

static void array_key(struct gguf_writer *w, const char *key, uint32_t type, size_t count)
{
    writer_key(w, key, TYPE_ARRAY);
    writer_u32_raw(w, type);
    writer_u64_raw(w, count);
}

void vocabulary_texts_key(struct gguf_writer *w, const char *key, const char *texts, size_t stride,
                          size_t count)
{
    array_key(w, key, TYPE_TEXT, count);
    for (size_t i = 0; i < count; i++)
        writer_text_raw(w, texts + i * stride);
}

void vocabulary_flag_key(struct gguf_writer *w, const char *key, bool value)
{
    writer_key(w, key, TYPE_BOOL);
    writer_bytes(w, value ? "\1" : "\0", 1);
}

void vocabulary_keys(const struct vocabulary *v, struct gguf_writer *w, const char *model,
                     const char *pre)
{
    if (model)
        writer_text(w, "tokenizer.ggml.model", model);
    if (pre)
        writer_text(w, "tokenizer.ggml.pre", pre);
    vocabulary_texts_key(w, "tokenizer.ggml.tokens", v->tokens[0], VOCABULARY_TEXT_SIZE, v->count);
    array_key(w, "tokenizer.ggml.token_type", TYPE_I32, v->count);
    for (size_t i = 0; i < v->count; i++)
        writer_u32_raw(w, (uint32_t)v->kinds[i]);
    array_key(w, "tokenizer.ggml.scores", TYPE_F32, v->count);
    for (size_t i = 0; i < v->count; i++) {
        uint32_t bits;
        memcpy(&bits, &v->scores[i], 4);
        writer_u32_raw(w, bits);
    }
    vocabulary_texts_key(w, "tokenizer.ggml.merges", v->merges[0], 2 * VOCABULARY_TEXT_SIZE,
                         v->merge_count);
}

enum status vocabulary_try(struct tokenizer **out, struct gguf_writer *w, struct diag *dg)
{
    struct gguf *g;
    const char *path = temp_path("vocabulary.gguf");
    writer_save(w, path);
    writer_end(w);
    if (gguf_open(&g, path, dg))
        fail_msg("%s", dg->text);
    enum status s = tokenizer_new(out, g, dg);
    gguf_close(g);
    return s;
}

struct tokenizer *vocabulary_open(const struct vocabulary *v, const char *model, const char *pre)
{
    struct gguf_writer w;
    struct tokenizer *t;
    struct diag dg;
    writer_start(&w);
    vocabulary_keys(v, &w, model, pre);
    assert_ok(vocabulary_try(&t, &w, &dg));
    return t;
}

char *vocabulary_ids(const struct tokenizer *t, const void *text, size_t length, unsigned flags)
{
    struct token_list list = {0};
    struct diag dg;
    assert_ok(tokenizer_encode(&list, t, text, length, flags, &dg));
    size_t size = 12 * list.count + 1;
    char *out = calloc(1, size);
    assert_non_null(out);
    size_t n = 0;
    for (size_t i = 0; i < list.count; i++)
        n += (size_t)snprintf(out + n, size - n, i ? " %u" : "%u", list.ids[i]);
    token_list_free(&list);
    return out;
}

char *vocabulary_round_trip(const struct tokenizer *t, const void *text, size_t length,
                            unsigned flags, size_t *bytes)
{
    struct token_list list = {0};
    struct diag dg;
    assert_ok(tokenizer_encode(&list, t, text, length, flags, &dg));
    *bytes = 0;
    for (size_t i = 0; i < list.count; i++)
        *bytes += tokenizer_decode(t, list.ids[i]).length;
    char *out = malloc(*bytes + 1), *at = out;
    assert_non_null(out);
    for (size_t i = 0; i < list.count; i++) {
        struct gguf_text piece = tokenizer_decode(t, list.ids[i]);
        memcpy(at, piece.data, piece.length);
        at += piece.length;
    }
    token_list_free(&list);
    return out;
}
