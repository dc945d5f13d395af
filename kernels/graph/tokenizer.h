/* tokenizer.h -- text to token ids and back, by the vocabulary that a GGUF file carries.
 *
 * Two kinds of vocabulary (`tokenizer.ggml.model`) are read:
 *
 * gpt2   Byte-level byte pair encoding. Text is cut into pieces by the regular expressions of the
 *        model's family (`tokenizer.ggml.pre`, table in tokenizer_split.c); inside a piece every
 *        byte starts as a token, and of all adjacent pairs that `tokenizer.ggml.merges` names, the
 *        one of the lowest rank is joined, leftmost first, until none is left. Bytes that are no
 *        UTF-8 are pieces of their own.
 * llama  SentencePiece: no cutting and no merges; the adjacent pair whose joined text is the token
 *        of the highest score is joined, leftmost first. A character without a token becomes the
 *        tokens of its bytes, <0x00> to <0xFF>. The files write a space as U+2581; here it is a
 *        space, and a real U+2581 in a text is a character like others. A space goes before the
 *        text (and after each control token), unless `tokenizer.ggml.add_space_prefix` is false:
 *        decoding gives it back.
 *
 * Both cost n log n for a piece of n bytes. No Unicode normalisation takes place. decode(encode(x))
 * is x, byte by byte, for any x (but for that space), as long as the vocabulary has a token for
 * each byte.
 *
 * A file may lie: types or scores of another number than tokens, ids outside, merges of unknown
 * tokens, empty tokens and so on are ST_PARSE with one line of reason. A merge whose halves are
 * tokens but whose result is none can never apply and is left out. Of equal tokens the first
 * counts.
 */
#ifndef KERNELS_GRAPH_TOKENIZER_H
#define KERNELS_GRAPH_TOKENIZER_H

#include "base/status.h"
#include "models/gguf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

/* Copies what it needs: `g` may be closed afterwards. ST_UNSUPPORTED: the file has no
 * vocabulary, or one of another kind; such a model runs with token ids, without text. */
MUST_CHECK enum status tokenizer_new(struct tokenizer **out, const struct gguf *g, struct diag *dg);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

/* What the user should know of how text is read, one sentence, or "": the family of the splitting
 * pattern is unknown or missing, so the default one is used. */
const char *tokenizer_note(const struct tokenizer *t);

size_t tokenizer_count(const struct tokenizer *t); /* ids are below it */
/* The ids that begin and end a text; false where the vocabulary names none. */
bool tokenizer_bos(const struct tokenizer *t, uint32_t *id);
bool tokenizer_eos(const struct tokenizer *t, uint32_t *id);
/* Whether the model was trained with bos in front (`add_bos_token`, or else what its family
 * does). */
bool tokenizer_adds_bos(const struct tokenizer *t);
/* A token after which generation ends: eos, or the end of a turn or message (eot, eom). */
bool tokenizer_ends(const struct tokenizer *t, uint32_t id);
/* A token that stands for no text, such as <|im_start|>: programs mostly do not show it. */
bool tokenizer_is_control(const struct tokenizer *t, uint32_t id);

/* A list that grows; start with {0}. */
struct token_list {
    uint32_t *ids;
    size_t count, room;
};
void token_list_free(struct token_list *list); /* and makes it empty */

enum tokenizer_flags {
    TOKENIZER_PLAIN = 0,
    TOKENIZER_CONTROL = 1, /* control tokens written out in the text become their ids */
    TOKENIZER_BOS = 2      /* bos goes first, if tokenizer_adds_bos */
};

/* Appends the ids of text[length], which may hold any bytes; `flags` of tokenizer_flags. Tokens
 * that the file calls user-defined are matched before anything else, always; control tokens if
 * asked: the leftmost first, of several the longest. On failure the list is as long as before.
 * ST_MISSING: a byte for which the vocabulary has no token; ST_RANGE: a text of 1 GiB or more.
 * One tokenizer may be used by several threads. */
MUST_CHECK enum status tokenizer_encode(struct token_list *out, const struct tokenizer *t,
                                        const char *text, size_t length, unsigned flags,
                                        struct diag *dg);

/* The bytes of a token: a piece of a text, not always whole characters, so a stream of tokens is
 * printed by writing one after the other. A control token gives its name. id below tokenizer_count;
 * the view lives as long as the tokenizer. */
struct gguf_text tokenizer_decode(const struct tokenizer *t, uint32_t id);

#endif
