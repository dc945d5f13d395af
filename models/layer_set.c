/* layer_set.c -- see layer_set.h. */
#include "models/layer_set.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct cursor {
    const char *at;
};

static void skip_spaces(struct cursor *c)
{
    while (*c->at == ' ')
        c->at++;
}

static bool take_word(struct cursor *c, const char *word)
{
    skip_spaces(c);
    size_t length = strlen(word);
    if (strncmp(c->at, word, length) != 0 || isalnum((unsigned char)c->at[length]))
        return false;
    c->at += length;
    return true;
}

static bool take_mark(struct cursor *c, char mark)
{
    skip_spaces(c);
    if (*c->at != mark)
        return false;
    c->at++;
    return true;
}

static bool take_number(struct cursor *c, size_t *out)
{
    skip_spaces(c);
    if (!isdigit((unsigned char)*c->at))
        return false;
    size_t n = 0;
    for (; isdigit((unsigned char)*c->at); c->at++)
        if (n < 1000000000) /* far beyond any layer, so it saturates into "no such layer" */
            n = n * 10 + (size_t)(*c->at - '0');
    *out = n;
    return true;
}

static enum status mark_steps(bool *out, size_t count, size_t first, size_t last, size_t step,
                              struct diag *dg)
{
    if (first > last || last >= count || step == 0)
        return diag_set(dg, ST_RANGE, "layers %zu to %zu by %zu, of %zu that count from 0", first,
                        last, step, count);
    for (size_t i = first; i <= last; i += step)
        out[i] = true;
    return ST_OK;
}

static enum status bad_set(const char *text, struct diag *dg)
{
    return diag_set(dg, ST_PARSE,
                    "layers '%s': expected all, rest, N, A-B or every K from A [to B]", text);
}

static enum status parse_item(bool *out, size_t count, struct cursor *c, const char *text,
                              const bool *taken, struct diag *dg)
{
    size_t first, last, step = 1;
    if (take_word(c, "all"))
        return mark_steps(out, count, 0, count - 1, 1, dg);
    if (take_word(c, "rest")) {
        for (size_t i = 0; i < count; i++)
            out[i] = out[i] || !taken[i];
        return ST_OK;
    }
    if (take_word(c, "every")) {
        if (!take_number(c, &step) || !take_word(c, "from") || !take_number(c, &first))
            return bad_set(text, dg);
        last = count - 1;
        if (take_word(c, "to") && !take_number(c, &last))
            return bad_set(text, dg);
        return mark_steps(out, count, first, last, step, dg);
    }
    if (!take_number(c, &first))
        return bad_set(text, dg);
    last = first;
    if (take_mark(c, '-') && !take_number(c, &last))
        return bad_set(text, dg);
    return mark_steps(out, count, first, last, 1, dg);
}

enum status layer_set_parse(bool *out, size_t count, const char *text, const bool *taken,
                            struct diag *dg)
{
    assert(count > 0);
    memset(out, 0, count * sizeof *out);
    struct cursor c = {text};
    do {
        enum status st = parse_item(out, count, &c, text, taken, dg);
        if (st != ST_OK)
            return st;
    } while (take_mark(&c, ','));
    skip_spaces(&c);
    if (*c.at)
        return bad_set(text, dg);
    for (size_t i = 0; i < count; i++)
        if (out[i])
            return ST_OK;
    return diag_set(dg, ST_RANGE, "layers '%s' names no layer", text);
}

/* The next marked layer after `i`, or `count`. */
static size_t next_marked(const bool *in, size_t count, size_t i)
{
    for (i++; i < count && !in[i]; i++)
        ;
    return i;
}

/* One item that starts at `first`: as many of the following marked layers as have equal distances.
 * Returns the last layer it covers. */
static size_t print_item(char *out, size_t capacity, const bool *in, size_t count, size_t first)
{
    size_t second = next_marked(in, count, first), last = first, members = 1;
    size_t step = second - first;
    for (size_t at = second; at < count && at - last == step; at = next_marked(in, count, at)) {
        last = at;
        members++;
    }
    if (members == 1 || (step > 1 && members < 3))
        last = first;
    if (last == first)
        snprintf(out, capacity, "%zu", first);
    else if (step == 1)
        snprintf(out, capacity, "%zu-%zu", first, last);
    else if (last + step >= count)
        snprintf(out, capacity, "every %zu from %zu", step, first);
    else
        snprintf(out, capacity, "every %zu from %zu to %zu", step, first, last);
    return last;
}

bool layer_set_print(char *out, size_t capacity, const bool *in, size_t count)
{
    size_t first = in[0] ? 0 : next_marked(in, count, 0), used = 0;
    assert(first < count);
    for (size_t i = first; i < count;) {
        char item[80];
        size_t last = print_item(item, sizeof item, in, count, i);
        if (i == 0 && last == count - 1 && count > 1 && in[1])
            snprintf(item, sizeof item, "all");
        int n = snprintf(out + used, capacity - used, "%s%s", used ? ", " : "", item);
        used += (size_t)n;
        if (used >= capacity)
            return false;
        i = next_marked(in, count, last);
    }
    return true;
}
