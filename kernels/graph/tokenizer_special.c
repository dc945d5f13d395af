/* tokenizer_special.c -- see tokenizer_inside.h: tokens that are matched in a text before all
 * else. */
#include "kernels/graph/tokenizer_inside.h"

#include <stdlib.h>
#include <string.h>

static int compare_texts(const void *a, const void *b, void *self)
{
    const struct tokenizer *t = self;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    struct gguf_text x = t->texts[i], y = t->texts[j];
    int order = memcmp(x.data, y.data, x.length < y.length ? x.length : y.length);
    if (order)
        return order;
    if (x.length != y.length)
        return x.length < y.length ? -1 : 1;
    return (i > j) - (i < j);
}

static bool is_special(const struct tokenizer *t, size_t id)
{
    return t->kinds[id] == TOKEN_CONTROL || t->kinds[id] == TOKEN_USER_DEFINED;
}

enum status special_load(struct tokenizer *t, struct diag *dg)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        n += is_special(t, i);
    if (!n)
        return ST_OK;
    t->special = malloc(n * sizeof *t->special);
    if (!t->special)
        return diag_no_memory(dg);
    for (size_t i = 0; i < t->count; i++)
        if (is_special(t, i)) {
            t->special[t->special_count++] = (uint32_t)i;
            t->special_starts[(unsigned char)t->texts[i].data[0]] = true;
        }
    qsort_r(t->special, n, sizeof *t->special, compare_texts, t);
    return ST_OK;
}

/* The first of special[from..to), which agree in `depth` bytes and are longer, whose next byte
 * is at least `byte`; 256 finds the end. */
static size_t first_from(const struct tokenizer *t, size_t from, size_t to, size_t depth, int byte)
{
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if ((unsigned char)t->texts[t->special[middle]].data[depth] < byte)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Narrows the sorted list by one byte of the text after the other. Those that end at the present
 * depth stand first. */
uint32_t special_match(const struct tokenizer *t, const char *text, size_t length, bool control)
{
    uint32_t best = TOKEN_NONE;
    size_t from = 0, to = t->special_count;
    if (!length || !t->special_starts[(unsigned char)*text])
        return TOKEN_NONE;
    for (size_t depth = 0; from < to; depth++) {
        bool taken = false;
        for (; from < to && t->texts[t->special[from]].length == depth; from++)
            if (!taken && (control || t->kinds[t->special[from]] == TOKEN_USER_DEFINED)) {
                best = t->special[from];
                taken = true;
            }
        if (depth == length)
            break;
        int byte = (unsigned char)text[depth];
        from = first_from(t, from, to, depth, byte);
        to = first_from(t, from, to, depth, byte + 1);
    }
    return best;
}
