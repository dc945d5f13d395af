/* tokenizer_inside.h -- the parts of a tokenizer, for its own files: a vocabulary, what joins
 * pairs, what cuts text. */
#ifndef KERNELS_GRAPH_TOKENIZER_INSIDE_H
#define KERNELS_GRAPH_TOKENIZER_INSIDE_H

#include "kernels/graph/tokenizer.h"
#include "kernels/graph/tokenizer_split.h"

#define TOKEN_NONE       UINT32_MAX
#define TOKEN_BYTES      256
#define TOKEN_ENDS_MAX   3
#define TOKENIZER_KEY(k) "tokenizer.ggml." k

/* `tokenizer.ggml.token_type` */
enum token_kind {
    TOKEN_UNDEFINED,
    TOKEN_NORMAL,
    TOKEN_UNKNOWN, /* stands for what has no token */
    TOKEN_CONTROL,
    TOKEN_USER_DEFINED,
    TOKEN_UNUSED,
    TOKEN_BYTE,
    TOKEN_KINDS
};

/* From text to id: open addressing, at most half full. Of equal texts the first that was put in
 * stays. */
struct token_map {
    const struct gguf_text *texts;
    uint32_t *slots; /* id + 1, 0: empty */
    size_t mask;
};

/* A pair that may be joined; open addressing by (left, right), at most half full. */
struct merge {
    uint32_t left, right;
    uint32_t result;
    uint32_t order; /* its line in the file, from 1: lower ones go first; 0: an empty place */
};

struct tokenizer {
    bool sentence_piece; /* a `llama` vocabulary */
    bool add_bos, add_space;
    bool whole_words; /* a piece that is a token is not taken apart */
    uint32_t bos, eos, unknown;
    uint32_t ends[TOKEN_ENDS_MAX];
    char note[512];

    size_t count;
    char *bytes;             /* of all tokens, one after the other */
    struct gguf_text *texts; /* decoded: views into `bytes` */
    uint8_t *kinds;
    struct token_map by_text; /* of the decoded texts that plain text may become */
    uint32_t byte_ids[TOKEN_BYTES];
    uint32_t longest_bytes; /* of a token */

    uint32_t *order; /* sentence_piece: the place of a token's score, 0 the highest */
    struct merge *merges;
    size_t merge_mask;
    struct splitter *splitter; /* NULL for sentence_piece */

    uint32_t *special; /* user-defined and control tokens in byte order, then by id */
    size_t special_count;
    bool special_starts[TOKEN_BYTES]; /* some special token begins with this byte */
};

MUST_CHECK enum status token_map_new(struct token_map *m, const struct gguf_text *texts,
                                     size_t count, struct diag *dg);
void token_map_free(struct token_map *m);
void token_map_put(struct token_map *m, uint32_t id);
uint32_t token_map_find(const struct token_map *m, const char *text, size_t length);

/* The entry of a pair, or the empty one where it would stand. */
struct merge *merge_find(const struct tokenizer *t, uint32_t left, uint32_t right);

/* Fills in what tokens are: everything but what joins and cuts. `raw` has a view of each token's
 * text as the file spells it. */
MUST_CHECK enum status vocabulary_load(struct tokenizer *t, const struct gguf *g,
                                       const struct gguf_text *raw, struct diag *dg);
/* The merges of a gpt2 vocabulary. */
MUST_CHECK enum status merges_load(struct tokenizer *t, const struct gguf *g,
                                   const struct gguf_text *raw, struct diag *dg);

/* Gathers the special tokens of a loaded vocabulary. */
MUST_CHECK enum status special_load(struct tokenizer *t, struct diag *dg);
/* The longest special token at the start of text[length]; control tokens only if asked. */
uint32_t special_match(const struct tokenizer *t, const char *text, size_t length, bool control);

MUST_CHECK enum status token_list_add(struct token_list *list, uint32_t id, struct diag *dg);

/* Room for joining, kept from piece to piece; start with {0}. */
struct join_symbol;
struct join_entry;
struct join_room {
    struct join_symbol *symbols;
    struct join_entry *heap;
    size_t symbols_max, heap_count;
};
void join_room_free(struct join_room *room);
/* Appends the tokens of one piece. */
MUST_CHECK enum status join_piece(const struct tokenizer *t, struct join_room *room,
                                  struct token_list *out, const char *piece, size_t length,
                                  struct diag *dg);

/* The bytes of the UTF-8 character at the start of text[length], or 0. */
size_t utf8_head(const char *text, size_t length);

#endif
