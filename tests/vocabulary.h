/* vocabulary.h -- small vocabularies in GGUF files, for tests of the tokenizer. What does not
 * succeed ends the test. */
#ifndef TESTS_VOCABULARY_H
#define TESTS_VOCABULARY_H

#include "kernels/graph/tokenizer.h"
#include "tests/gguf_writer.h"

#define VOCABULARY_MAX       1024
#define VOCABULARY_TEXT_SIZE 80

/* tokenizer.ggml.token_type */
enum { KIND_NORMAL = 1, KIND_UNKNOWN, KIND_CONTROL, KIND_USER_DEFINED, KIND_UNUSED, KIND_BYTE };

struct vocabulary {
    char tokens[VOCABULARY_MAX][VOCABULARY_TEXT_SIZE];
    int kinds[VOCABULARY_MAX];
    float scores[VOCABULARY_MAX];
    size_t count;
    char merges[VOCABULARY_MAX][2 * VOCABULARY_TEXT_SIZE];
    size_t merge_count;
};

/* Appends a token and returns its id; a merge. */
uint32_t vocabulary_token(struct vocabulary *v, const char *text, int kind, float score);
void vocabulary_merge(struct vocabulary *v, const char *left, const char *right);
/* The 256 bytes in GPT-2's alphabet, as ids 0 to 255; as <0x00> to <0xFF>. */
void vocabulary_bytes(struct vocabulary *v);
void vocabulary_byte_names(struct vocabulary *v);

/* The keys of a file. A part that is absent on purpose: NULL, or an empty list. */
void vocabulary_keys(const struct vocabulary *v, struct gguf_writer *w, const char *model,
                     const char *pre);
void vocabulary_texts_key(struct gguf_writer *w, const char *key, const char *texts, size_t stride,
                          size_t count);
void vocabulary_flag_key(struct gguf_writer *w, const char *key, bool value);

/* Writes the file and reads it; the writer is ended. */
enum status vocabulary_try(struct tokenizer **out, struct gguf_writer *w, struct diag *dg);
struct tokenizer *vocabulary_open(const struct vocabulary *v, const char *model, const char *pre);

/* The ids of a text, as "1 2 3"; free() it. Its bytes again, after all ids are decoded. */
char *vocabulary_ids(const struct tokenizer *t, const void *text, size_t length, unsigned flags);
char *vocabulary_round_trip(const struct tokenizer *t, const void *text, size_t length,
                            unsigned flags, size_t *bytes);

#endif
