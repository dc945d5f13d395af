/* tokenizer_split.h -- cuts text into the pieces inside which byte pairs are joined. */
#ifndef KERNELS_GRAPH_TOKENIZER_SPLIT_H
#define KERNELS_GRAPH_TOKENIZER_SPLIT_H

#include "base/status.h"
#include "models/gguf.h"

#include <stdbool.h>
#include <stddef.h>

#define SPLIT_PATTERNS_MAX 6

/* How a family of models cuts. The patterns apply one after the other, each to the pieces that
 * the one before left: what matches is a piece, and so is what lies between two matches. */
struct split_family {
    const char *names; /* values of tokenizer.ggml.pre, each followed by a space */
    const char *patterns[SPLIT_PATTERNS_MAX + 1];
    bool whole_words; /* a piece that is a token is taken whole, without merges */
    bool adds_bos;    /* where the file does not say */
};

/* NULL: no such family. */
const struct split_family *split_family_find(struct gguf_text name);
const struct split_family *split_family_default(void);

struct splitter;
MUST_CHECK enum status splitter_new(struct splitter **out, const struct split_family *family,
                                    struct diag *dg);
void splitter_free(struct splitter *s); /* NULL is fine */

typedef enum status split_piece_fn(void *self, const char *piece, size_t length, struct diag *dg);
/* Calls `piece` for each piece of text[length], valid UTF-8, in order; together they are the
 * text. Ends early with the first status that is not ST_OK. */
MUST_CHECK enum status splitter_run(const struct splitter *s, const char *text, size_t length,
                                    split_piece_fn *piece, void *self, struct diag *dg);

#endif
