/* tokenizer_map.c -- see tokenizer_inside.h: from a text to its token, from a pair to its merge. */
#include "kernels/graph/tokenizer_inside.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t text_hash(const char *text, size_t length)
{
    uint64_t h = hash_add(HASH_SEED, length);
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t part;
        memcpy(&part, text, 8);
        h = hash_add(h, part);
    }
    uint64_t rest = 0;
    memcpy(&rest, text, length);
    return hash_add(h, rest);
}

/* Places for `count` entries, twice as many and a power of two, so that a search ends. */
static size_t places(size_t count)
{
    size_t n = 16;
    while (n < 2 * count)
        n *= 2;
    return n;
}

enum status token_map_new(struct token_map *m, const struct gguf_text *texts, size_t count,
                          struct diag *dg)
{
    size_t n = places(count);
    m->texts = texts;
    m->slots = calloc(n, sizeof *m->slots);
    m->mask = n - 1;
    return m->slots ? ST_OK : diag_no_memory(dg);
}

void token_map_free(struct token_map *m)
{
    free(m->slots);
    m->slots = NULL;
}

static size_t map_place(const struct token_map *m, const char *text, size_t length)
{
    size_t at = (size_t)text_hash(text, length) & m->mask;
    for (; m->slots[at]; at = (at + 1) & m->mask) {
        struct gguf_text have = m->texts[m->slots[at] - 1];
        if (have.length == length && !memcmp(have.data, text, length))
            break;
    }
    return at;
}

void token_map_put(struct token_map *m, uint32_t id)
{
    size_t at = map_place(m, m->texts[id].data, m->texts[id].length);
    if (!m->slots[at])
        m->slots[at] = id + 1;
}

uint32_t token_map_find(const struct token_map *m, const char *text, size_t length)
{
    uint32_t slot = m->slots[map_place(m, text, length)];
    return slot ? slot - 1 : TOKEN_NONE;
}

struct merge *merge_find(const struct tokenizer *t, uint32_t left, uint32_t right)
{
    size_t at = (size_t)hash_mix((uint64_t)left << 32 | right) & t->merge_mask;
    while (t->merges[at].order && (t->merges[at].left != left || t->merges[at].right != right))
        at = (at + 1) & t->merge_mask;
    return &t->merges[at];
}

/* The ids of "left right": the halves must be tokens. A name holds no space, for the vocabulary
 * spells a space otherwise; but the first byte may be one in files of a sloppy writer. */
static enum status merge_parse(struct merge *m, const struct token_map *names, const struct gguf *g,
                               struct gguf_text line, char *joined, struct diag *dg)
{
    const char *gap = line.length > 2 ? memchr(line.data + 1, ' ', line.length - 2) : NULL;
    if (!gap)
        return diag_set(dg, ST_PARSE,
                        "%s: merge %" PRIu32 " must be two tokens with a space between",
                        gguf_file_path(g, 0), m->order);
    size_t left = (size_t)(gap - line.data), right = line.length - left - 1;
    m->left = token_map_find(names, line.data, left);
    m->right = token_map_find(names, gap + 1, right);
    if (m->left == TOKEN_NONE || m->right == TOKEN_NONE)
        return diag_set(dg, ST_PARSE, "%s: merge %" PRIu32 ", '%.*s', names an unknown token",
                        gguf_file_path(g, 0), m->order,
                        (int)(line.length < 200 ? line.length : 200), line.data);
    memcpy(joined, line.data, left);
    memcpy(joined + left, gap + 1, right);
    m->result = token_map_find(names, joined, left + right);
    return ST_OK;
}

static size_t longest_line(struct gguf_array lines)
{
    size_t longest = 1;
    for (struct gguf_text line; gguf_array_take(&lines, &line);)
        longest = line.length > longest ? line.length : longest;
    return longest;
}

static enum status merges_fill(struct tokenizer *t, const struct gguf *g, struct gguf_array lines,
                               const struct token_map *names, char *joined, struct diag *dg)
{
    struct gguf_text line;
    for (uint32_t order = 1; gguf_array_take(&lines, &line); order++) {
        struct merge m = {.order = order};
        enum status s = merge_parse(&m, names, g, line, joined, dg);
        if (s)
            return s;
        struct merge *place = merge_find(t, m.left, m.right);
        if (m.result != TOKEN_NONE && !place->order)
            *place = m;
    }
    return ST_OK;
}

enum status merges_load(struct tokenizer *t, const struct gguf *g, const struct gguf_text *raw,
                        struct diag *dg)
{
    struct gguf_array lines;
    if (!gguf_get_array(g, TOKENIZER_KEY("merges"), &lines) || lines.type != GGUF_TEXT ||
        lines.count >= UINT32_MAX)
        return diag_set(dg, ST_PARSE, "%s: expected tokenizer.ggml.merges, a list of texts",
                        gguf_file_path(g, 0));
    size_t n = places((size_t)lines.count);
    struct token_map names = {0};
    char *joined = malloc(longest_line(lines));
    t->merges = calloc(n, sizeof *t->merges);
    t->merge_mask = n - 1;
    enum status s = joined && t->merges ? ST_OK : diag_no_memory(dg);
    if (!s)
        s = token_map_new(&names, raw, t->count, dg);
    if (!s) {
        for (size_t i = 0; i < t->count; i++)
            token_map_put(&names, (uint32_t)i);
        s = merges_fill(t, g, lines, &names, joined, dg);
    }
    token_map_free(&names);
    free(joined);
    return s;
}
