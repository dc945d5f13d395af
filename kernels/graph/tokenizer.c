/* tokenizer.c -- see tokenizer.h: a vocabulary put together from its parts, and the way of a text
 * through them: special tokens, then pieces, then joined pairs. */
#include "kernels/graph/tokenizer.h"

#include "kernels/graph/tokenizer_inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX ((size_t)1 << 30)
/* What a message quotes of a name that the file gives. */
#define QUOTE_BYTES_MAX 40

static int quote_bytes(struct gguf_text t)
{
    return t.length < QUOTE_BYTES_MAX ? (int)t.length : QUOTE_BYTES_MAX;
}

static enum status check_model(struct tokenizer *t, const struct gguf *g, struct diag *dg)
{
    struct gguf_text model;
    const char *path = gguf_file_path(g, 0);
    if (!gguf_get_text(g, TOKENIZER_KEY("model"), &model) || gguf_text_is(model, "no_vocab") ||
        gguf_text_is(model, "none"))
        return diag_set(dg, ST_UNSUPPORTED,
                        "%s: has no vocabulary, so it cannot read or write text; --tokens runs it "
                        "with token ids",
                        path);
    t->sentence_piece = gguf_text_is(model, "llama");
    if (!t->sentence_piece && !gguf_text_is(model, "gpt2"))
        return diag_set(
            dg, ST_UNSUPPORTED,
            "%s: has a vocabulary of kind '%.*s', expected gpt2 or llama; --tokens runs "
            "it with token ids",
            path, quote_bytes(model), model.data);
    return ST_OK;
}

/* How this family of models cuts text, said in the note if it is a guess. */
static const struct split_family *choose_family(struct tokenizer *t, const struct gguf *g)
{
    struct gguf_text pre;
    const struct split_family *family = NULL;
    bool named = gguf_get_text(g, TOKENIZER_KEY("pre"), &pre);
    if (named)
        family = split_family_find(pre);
    if (family)
        return family;
    if (named)
        snprintf(t->note, sizeof t->note,
                 "tokenizer.ggml.pre is '%.*s', which is unknown here: text is cut by the default "
                 "pattern, and may become other tokens than the model was trained on",
                 quote_bytes(pre), pre.data);
    else
        snprintf(
            t->note, sizeof t->note,
            "tokenizer.ggml.pre is missing: text is cut by the default pattern, and may become "
            "other tokens than the model was trained on");
    return split_family_default();
}

/* Leaves *out as it is if the key is absent. */
static enum status load_flag(bool *out, const struct gguf *g, const char *key, struct diag *dg)
{
    if (gguf_has(g, key) && !gguf_flag(g, key, out))
        return diag_set(dg, ST_PARSE, "%s: %s must be true or false", gguf_file_path(g, 0), key);
    return ST_OK;
}

static enum status load_joining(struct tokenizer *t, const struct gguf *g,
                                const struct gguf_text *raw, struct diag *dg)
{
    enum status s;
    t->add_bos = t->sentence_piece;
    t->add_space = t->sentence_piece;
    if (t->sentence_piece) {
        s = load_flag(&t->add_space, g, TOKENIZER_KEY("add_space_prefix"), dg);
    } else {
        const struct split_family *family = choose_family(t, g);
        t->add_bos = family->adds_bos;
        t->whole_words = family->whole_words;
        s = merges_load(t, g, raw, dg);
        if (!s)
            s = splitter_new(&t->splitter, family, dg);
    }
    if (!s)
        s = load_flag(&t->add_bos, g, TOKENIZER_KEY("add_bos_token"), dg);
    if (t->bos == TOKEN_NONE)
        t->add_bos = false;
    return s;
}

/* Views of the tokens as the file spells them; free() them. */
static enum status raw_texts(struct gguf_text **out, struct tokenizer *t, const struct gguf *g,
                             struct diag *dg)
{
    struct gguf_array tokens;
    if (!gguf_get_array(g, TOKENIZER_KEY("tokens"), &tokens) || tokens.type != GGUF_TEXT ||
        tokens.count == 0 || tokens.count >= TOKEN_NONE)
        return diag_set(dg, ST_PARSE, "%s: expected tokenizer.ggml.tokens, a list of texts",
                        gguf_file_path(g, 0));
    t->count = (size_t)tokens.count;
    *out = malloc(t->count * sizeof **out);
    if (!*out)
        return diag_no_memory(dg);
    for (size_t i = 0; i < t->count; i++)
        gguf_array_take(&tokens, &(*out)[i]);
    return ST_OK;
}

enum status tokenizer_new(struct tokenizer **out, const struct gguf *g, struct diag *dg)
{
    struct gguf_text *raw = NULL;
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return diag_no_memory(dg);
    enum status s = check_model(t, g, dg);
    if (!s)
        s = raw_texts(&raw, t, g, dg);
    if (!s)
        s = vocabulary_load(t, g, raw, dg);
    if (!s)
        s = special_load(t, dg);
    if (!s)
        s = load_joining(t, g, raw, dg);
    free(raw);
    if (s) {
        tokenizer_free(t);
        return s;
    }
    *out = t;
    return ST_OK;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    token_map_free(&t->by_text);
    splitter_free(t->splitter);
    free(t->bytes);
    free(t->texts);
    free(t->kinds);
    free(t->order);
    free(t->merges);
    free(t->special);
    free(t);
}

const char *tokenizer_note(const struct tokenizer *t)
{
    return t->note;
}

size_t tokenizer_count(const struct tokenizer *t)
{
    return t->count;
}

bool tokenizer_bos(const struct tokenizer *t, uint32_t *id)
{
    *id = t->bos;
    return t->bos != TOKEN_NONE;
}

bool tokenizer_eos(const struct tokenizer *t, uint32_t *id)
{
    *id = t->eos;
    return t->eos != TOKEN_NONE;
}

bool tokenizer_adds_bos(const struct tokenizer *t)
{
    return t->add_bos;
}

bool tokenizer_ends(const struct tokenizer *t, uint32_t id)
{
    assert(id < t->count);
    for (size_t i = 0; i < TOKEN_ENDS_MAX; i++)
        if (t->ends[i] == id)
            return true;
    return false;
}

bool tokenizer_is_control(const struct tokenizer *t, uint32_t id)
{
    assert(id < t->count);
    return t->kinds[id] == TOKEN_CONTROL;
}

struct gguf_text tokenizer_decode(const struct tokenizer *t, uint32_t id)
{
    assert(id < t->count);
    return t->texts[id];
}

void token_list_free(struct token_list *list)
{
    free(list->ids);
    memset(list, 0, sizeof *list);
}

/* One call of tokenizer_encode. */
struct encoding {
    const struct tokenizer *t;
    struct token_list *out;
    struct join_room room;
};

static enum status add_piece(void *self, const char *piece, size_t length, struct diag *dg)
{
    struct encoding *e = self;
    return join_piece(e->t, &e->room, e->out, piece, length, dg);
}

/* The length of what text[length] begins with: valid UTF-8 or bytes that are none. */
static size_t stretch(const char *text, size_t length, bool *valid)
{
    size_t n = 0, step = utf8_head(text, length);
    *valid = step > 0;
    do
        n += step ? step : 1;
    while (n < length && ((step = utf8_head(text + n, length - n)) > 0) == *valid);
    return n;
}

/* Text of a gpt2 vocabulary between special tokens. */
static enum status add_cut(struct encoding *e, const char *text, size_t length, struct diag *dg)
{
    enum status s = ST_OK;
    for (size_t at = 0, n; at < length && !s; at += n) {
        bool valid;
        n = stretch(text + at, length - at, &valid);
        s = valid ? splitter_run(e->t->splitter, text + at, n, add_piece, e, dg)
                  : add_piece(e, text + at, n, dg);
    }
    return s;
}

/* Text of a llama vocabulary between special tokens, with a space before it if `space`. */
static enum status add_whole(struct encoding *e, const char *text, size_t length, bool space,
                             struct diag *dg)
{
    if (!space)
        return add_piece(e, text, length, dg);
    char *copy = malloc(length + 1);
    if (!copy)
        return diag_no_memory(dg);
    copy[0] = ' ';
    memcpy(copy + 1, text, length);
    enum status s = add_piece(e, copy, length + 1, dg);
    free(copy);
    return s;
}

/* Walks over the text from one special token to the next. */
static enum status add_text(struct encoding *e, const char *text, size_t length, bool control,
                            struct diag *dg)
{
    const struct tokenizer *t = e->t;
    bool space = t->add_space;
    for (size_t at = 0; at < length;) {
        size_t end = at;
        uint32_t id = TOKEN_NONE;
        while (end < length &&
               (id = special_match(t, text + end, length - end, control)) == TOKEN_NONE)
            end++;
        enum status s = ST_OK;
        if (end > at)
            s = t->sentence_piece ? add_whole(e, text + at, end - at, space, dg)
                                  : add_cut(e, text + at, end - at, dg);
        if (!s && id != TOKEN_NONE) {
            s = token_list_add(e->out, id, dg);
            end += t->texts[id].length;
            space = t->add_space && t->kinds[id] == TOKEN_CONTROL;
        }
        if (s)
            return s;
        at = end;
    }
    return ST_OK;
}

enum status tokenizer_encode(struct token_list *out, const struct tokenizer *t, const char *text,
                             size_t length, unsigned flags, struct diag *dg)
{
    struct encoding e = {.t = t, .out = out};
    size_t before = out->count;
    enum status s = ST_OK;
    if (length >= TEXT_BYTES_MAX)
        return diag_set(dg, ST_RANGE, "text: has %zu bytes, expected less than %zu", length,
                        TEXT_BYTES_MAX);
    if ((flags & TOKENIZER_BOS) && t->add_bos)
        s = token_list_add(out, t->bos, dg);
    if (!s)
        s = add_text(&e, text, length, (flags & TOKENIZER_CONTROL) != 0, dg);
    join_room_free(&e.room);
    if (s)
        out->count = before;
    return s;
}
