/* tokenizer_vocabulary.c -- see tokenizer_inside.h: what the tokens of a GGUF file are. */
#include "kernels/graph/tokenizer_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A space as `llama` vocabularies write it, U+2581. */
#define SPACE_MARK       "\xe2\x96\x81"
#define SPACE_MARK_BYTES 3

/* The byte that a character of GPT-2's alphabet stands for, or -1. Bytes that print in Latin-1
 * stand for themselves; the other ones, in order, are U+0100 to U+0143. (Radford et al. 2019,
 * encoder.py.) */
static int byte_of_character(uint32_t c)
{
    if ((c > 32 && c < 127) || (c > 160 && c < 256 && c != 173))
        return (int)c;
    if (c < 256)
        return -1;
    if (c <= 256 + 32)
        return (int)c - 256;
    if (c <= 256 + 66)
        return (int)c - 289 + 127;
    return c == 256 + 67 ? 173 : -1;
}

/* Spells a gpt2 token out in bytes; a text outside the alphabet, as of padding, stays as it is.
 * Writes at most as many bytes as the text has. */
static size_t decode_byte_level(char *out, struct gguf_text text)
{
    const unsigned char *in = (const unsigned char *)text.data;
    size_t n = 0;
    for (size_t i = 0; i < text.length; i++) {
        uint32_t c = in[i];
        if (c >= 0xc0 && c < 0xe0 && i + 1 < text.length && (in[i + 1] & 0xc0) == 0x80)
            c = (c & 0x1f) << 6 | (in[++i] & 0x3f);
        else if (c >= 0x80)
            c = UINT32_MAX;
        int byte = byte_of_character(c);
        if (byte < 0) {
            memcpy(out, text.data, text.length);
            return text.length;
        }
        out[n++] = (char)byte;
    }
    return n;
}

static size_t decode_space_marks(char *out, struct gguf_text text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.length;) {
        if (text.length - i >= SPACE_MARK_BYTES &&
            !memcmp(text.data + i, SPACE_MARK, SPACE_MARK_BYTES)) {
            out[n++] = ' ';
            i += SPACE_MARK_BYTES;
        } else {
            out[n++] = text.data[i++];
        }
    }
    return n;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that <0x00> to <0xFF> names, or -1. */
static int byte_of_name(struct gguf_text name)
{
    if (name.length != 6 || memcmp(name.data, "<0x", 3) || name.data[5] != '>')
        return -1;
    int high = hex_digit(name.data[3]), low = hex_digit(name.data[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* Writes the bytes of one token and says how many. */
static size_t decode_token(char *out, const struct tokenizer *t, enum token_kind kind,
                           struct gguf_text raw)
{
    int byte = byte_of_name(raw);
    if (kind == TOKEN_BYTE && byte >= 0) {
        *out = (char)byte;
        return 1;
    }
    if (kind == TOKEN_UNDEFINED || kind == TOKEN_NORMAL || kind == TOKEN_BYTE)
        return t->sentence_piece ? decode_space_marks(out, raw) : decode_byte_level(out, raw);
    memcpy(out, raw.data, raw.length);
    return raw.length;
}

static enum status load_kinds(struct tokenizer *t, const struct gguf *g, struct diag *dg)
{
    struct gguf_array kinds;
    memset(t->kinds, TOKEN_NORMAL, t->count);
    if (!gguf_has(g, TOKENIZER_KEY("token_type")))
        return ST_OK;
    if (!gguf_get_array(g, TOKENIZER_KEY("token_type"), &kinds) || kinds.count != t->count)
        return diag_set(dg, ST_PARSE,
                        "%s: tokenizer.ggml.token_type must have a number for each of %zu tokens",
                        gguf_file_path(g, 0), t->count);
    for (size_t i = 0; i < t->count; i++) {
        uint64_t kind;
        if (!gguf_array_u64(&kinds, i, &kind) || kind >= TOKEN_KINDS)
            return diag_set(
                dg, ST_PARSE,
                "%s: the type of token %zu must be one of 0 to %d of tokenizer.ggml.token_type",
                gguf_file_path(g, 0), i, TOKEN_KINDS - 1);
        t->kinds[i] = (uint8_t)kind;
    }
    return ST_OK;
}

/* Decodes all tokens into one block. */
static enum status load_texts(struct tokenizer *t, const struct gguf *g,
                              const struct gguf_text *raw, struct diag *dg)
{
    size_t total = 1;
    for (size_t i = 0; i < t->count; i++)
        total += raw[i].length;
    t->bytes = malloc(total);
    if (!t->bytes)
        return diag_no_memory(dg);
    char *at = t->bytes;
    for (size_t i = 0; i < t->count; i++) {
        enum token_kind kind = t->kinds[i];
        if (raw[i].length == 0 && kind != TOKEN_UNUSED)
            return diag_set(dg, ST_PARSE, "%s: token %zu of tokenizer.ggml.tokens is empty",
                            gguf_file_path(g, 0), i);
        if (kind == TOKEN_BYTE && t->sentence_piece && byte_of_name(raw[i]) < 0)
            return diag_set(dg, ST_PARSE,
                            "%s: token %zu is of type byte, expected <0x00> to <0xFF>",
                            gguf_file_path(g, 0), i);
        size_t length = decode_token(at, t, kind, raw[i]);
        t->texts[i] = (struct gguf_text){at, length};
        if (length > t->longest_bytes)
            t->longest_bytes = (uint32_t)length;
        at += length;
    }
    return ST_OK;
}

/* What a text's characters may become: of a `llama` vocabulary not <0x41>, which is for characters
 * without a token. */
static bool for_text(const struct tokenizer *t, size_t id)
{
    switch ((enum token_kind)t->kinds[id]) {
    case TOKEN_UNDEFINED:
    case TOKEN_NORMAL:
    case TOKEN_USER_DEFINED:
        return true;
    case TOKEN_BYTE:
        return !t->sentence_piece;
    default:
        return false;
    }
}

static enum status index_texts(struct tokenizer *t, struct diag *dg)
{
    enum status s = token_map_new(&t->by_text, t->texts, t->count, dg);
    if (s)
        return s;
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        t->byte_ids[i] = TOKEN_NONE;
    for (size_t i = 0; i < t->count; i++) {
        struct gguf_text text = t->texts[i];
        if (for_text(t, i) && text.length)
            token_map_put(&t->by_text, (uint32_t)i);
        bool one = t->sentence_piece ? t->kinds[i] == TOKEN_BYTE : for_text(t, i);
        if (one && text.length == 1 && t->byte_ids[(unsigned char)*text.data] == TOKEN_NONE)
            t->byte_ids[(unsigned char)*text.data] = (uint32_t)i;
    }
    return ST_OK;
}

/* An id that a key names; TOKEN_NONE if the key is absent. */
static enum status load_id(uint32_t *out, const struct tokenizer *t, const struct gguf *g,
                           const char *key, struct diag *dg)
{
    uint64_t id;
    *out = TOKEN_NONE;
    if (!gguf_has(g, key))
        return ST_OK;
    if (!gguf_u64(g, key, &id) || id >= t->count)
        return diag_set(dg, ST_PARSE, "%s: %s must be one of the %zu tokens", gguf_file_path(g, 0),
                        key, t->count);
    *out = (uint32_t)id;
    return ST_OK;
}

static enum status load_ids(struct tokenizer *t, const struct gguf *g, struct diag *dg)
{
    struct {
        uint32_t *id;
        const char *key;
    } ids[] = {{&t->bos, TOKENIZER_KEY("bos_token_id")},
               {&t->eos, TOKENIZER_KEY("eos_token_id")},
               {&t->unknown, TOKENIZER_KEY("unknown_token_id")},
               {&t->ends[0], TOKENIZER_KEY("eos_token_id")},
               {&t->ends[1], TOKENIZER_KEY("eot_token_id")},
               {&t->ends[2], TOKENIZER_KEY("eom_token_id")}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        enum status s = load_id(ids[i].id, t, g, ids[i].key, dg);
        if (s)
            return s;
    }
    return ST_OK;
}

struct scored {
    double score;
    uint32_t id;
};

static int compare_scores(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Turns scores into places; equal scores share one. */
static enum status load_scores(struct tokenizer *t, const struct gguf *g, struct diag *dg)
{
    struct gguf_array scores;
    if (!gguf_get_array(g, TOKENIZER_KEY("scores"), &scores) || scores.count != t->count)
        return diag_set(dg, ST_PARSE,
                        "%s: tokenizer.ggml.scores must have a number for each of %zu tokens",
                        gguf_file_path(g, 0), t->count);
    struct scored *sorted = malloc(t->count * sizeof *sorted);
    t->order = malloc(t->count * sizeof *t->order);
    enum status s = sorted && t->order ? ST_OK : diag_no_memory(dg);
    for (size_t i = 0; i < t->count && !s; i++) {
        sorted[i].id = (uint32_t)i;
        if (!gguf_array_double(&scores, i, &sorted[i].score) || isnan(sorted[i].score))
            s = diag_set(dg, ST_PARSE, "%s: the score of token %zu must be a number",
                         gguf_file_path(g, 0), i);
    }
    if (!s) {
        qsort(sorted, t->count, sizeof *sorted, compare_scores);
        uint32_t place = 0;
        for (size_t i = 0; i < t->count; i++) {
            place += i > 0 && sorted[i].score != sorted[i - 1].score;
            t->order[sorted[i].id] = place;
        }
    }
    free(sorted);
    return s;
}

enum status vocabulary_load(struct tokenizer *t, const struct gguf *g, const struct gguf_text *raw,
                            struct diag *dg)
{
    t->texts = calloc(t->count, sizeof *t->texts);
    t->kinds = malloc(t->count);
    if (!t->texts || !t->kinds)
        return diag_no_memory(dg);
    enum status s = load_kinds(t, g, dg);
    if (!s)
        s = load_texts(t, g, raw, dg);
    if (!s)
        s = index_texts(t, dg);
    if (!s)
        s = load_ids(t, g, dg);
    if (!s && t->sentence_piece)
        s = load_scores(t, g, dg);
    return s;
}
