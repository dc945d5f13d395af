/* tokenizer_join.c -- see tokenizer_inside.h: joins the pairs of one piece of text.
 *
 * The piece is a chain of symbols, at first its bytes (or characters). Each adjacent pair that may
 * be joined stands in a heap, the most urgent on top, the leftmost first among equals. Joining
 * makes the left symbol longer, takes the right one out of the chain and adds at most two pairs.
 * Entries of the heap that a join has made stale are not searched for: one is stale if its right
 * symbol no longer follows its left one, or the two together are of another length. So n bytes cost
 * n log n.
 */
#include "kernels/graph/tokenizer_inside.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define NO_SYMBOL UINT32_MAX

struct join_symbol {
    uint32_t start, length; /* in the piece; length 0: joined to one before it */
    uint32_t id;            /* TOKEN_NONE: its text is no token */
    uint32_t before, after; /* neighbours, or NO_SYMBOL */
};

struct join_entry {
    uint32_t order; /* lower ones are joined first */
    uint32_t left, right;
    uint32_t length; /* of both */
    uint32_t id;     /* what they become */
};

size_t utf8_head(const char *text, size_t length)
{
    char copy[5] = "";
    if (length >= 4)
        return (size_t)utf8_length(text);
    memcpy(copy, text, length);
    size_t n = (size_t)utf8_length(copy);
    return n <= length ? n : 0;
}

enum status token_list_add(struct token_list *list, uint32_t id, struct diag *dg)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        uint32_t *moved = reallocarray(list->ids, room, sizeof *moved);
        if (!moved)
            return diag_no_memory(dg);
        list->ids = moved;
        list->room = room;
    }
    list->ids[list->count++] = id;
    return ST_OK;
}

void join_room_free(struct join_room *room)
{
    free(room->symbols);
    free(room->heap);
    memset(room, 0, sizeof *room);
}

/* For n symbols. There are never more than 2 n entries: n - 1 pairs at first, and each of at
 * most n - 1 joins takes one entry and adds two. */
static enum status reserve(struct join_room *room, size_t n, struct diag *dg)
{
    if (n <= room->symbols_max)
        return ST_OK;
    join_room_free(room);
    n += n / 2;
    room->symbols = malloc(n * sizeof *room->symbols);
    room->heap = malloc(2 * n * sizeof *room->heap);
    if (!room->symbols || !room->heap)
        return diag_no_memory(dg);
    room->symbols_max = n;
    return ST_OK;
}

static bool sooner(const struct join_entry *a, const struct join_entry *b)
{
    return a->order != b->order ? a->order < b->order : a->left < b->left;
}

static void heap_put(struct join_room *room, struct join_entry entry)
{
    size_t at = room->heap_count++;
    for (; at && sooner(&entry, &room->heap[(at - 1) / 2]); at = (at - 1) / 2)
        room->heap[at] = room->heap[(at - 1) / 2];
    room->heap[at] = entry;
}

static struct join_entry heap_take(struct join_room *room)
{
    struct join_entry top = room->heap[0], last = room->heap[--room->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < room->heap_count; at = child) {
        if (child + 1 < room->heap_count && sooner(&room->heap[child + 1], &room->heap[child]))
            child++;
        if (!sooner(&room->heap[child], &last))
            break;
        room->heap[at] = room->heap[child];
    }
    room->heap[at] = last;
    return top;
}

/* Puts the pair into the heap if it may be joined. */
static void offer(const struct tokenizer *t, struct join_room *room, const char *piece,
                  uint32_t left, uint32_t right)
{
    if (left == NO_SYMBOL || right == NO_SYMBOL)
        return;
    const struct join_symbol *a = &room->symbols[left], *b = &room->symbols[right];
    struct join_entry entry = {.left = left, .right = right, .length = a->length + b->length};
    if (t->sentence_piece) {
        if (entry.length > t->longest_bytes)
            return;
        entry.id = token_map_find(&t->by_text, piece + a->start, entry.length);
        if (entry.id == TOKEN_NONE)
            return;
        entry.order = t->order[entry.id];
    } else {
        const struct merge *m = merge_find(t, a->id, b->id);
        if (!m->order)
            return;
        entry.id = m->result;
        entry.order = m->order;
    }
    heap_put(room, entry);
}

/* The chain before any join. */
static size_t split_symbols(const struct tokenizer *t, struct join_room *room, const char *piece,
                            size_t length)
{
    uint32_t n = 0;
    for (size_t at = 0, step; at < length; at += step) {
        uint32_t id = t->byte_ids[(unsigned char)piece[at]];
        step = 1;
        if (t->sentence_piece) {
            step = utf8_head(piece + at, length - at);
            step = step ? step : 1;
            id = token_map_find(&t->by_text, piece + at, step);
        }
        room->symbols[n] = (struct join_symbol){.start = (uint32_t)at,
                                                .length = (uint32_t)step,
                                                .id = id,
                                                .before = n ? n - 1 : NO_SYMBOL,
                                                .after = n + 1};
        n++;
    }
    room->symbols[n - 1].after = NO_SYMBOL;
    return n;
}

static void join_all(const struct tokenizer *t, struct join_room *room, const char *piece)
{
    while (room->heap_count) {
        struct join_entry entry = heap_take(room);
        struct join_symbol *left = &room->symbols[entry.left];
        struct join_symbol *right = &room->symbols[entry.right];
        if (!left->length || left->after != entry.right ||
            left->length + right->length != entry.length)
            continue;
        left->length = entry.length;
        left->id = entry.id;
        left->after = right->after;
        right->length = 0;
        if (left->after != NO_SYMBOL)
            room->symbols[left->after].before = entry.left;
        offer(t, room, piece, left->before, entry.left);
        offer(t, room, piece, entry.left, left->after);
    }
}

/* A symbol without a token becomes its bytes, or the token that stands for the unknown. */
static enum status add_bytes(const struct tokenizer *t, struct token_list *out, const char *text,
                             size_t length, struct diag *dg)
{
    enum status s = ST_OK;
    bool known = true;
    for (size_t i = 0; i < length; i++)
        known &= t->byte_ids[(unsigned char)text[i]] != TOKEN_NONE;
    if (!known && t->unknown != TOKEN_NONE)
        return token_list_add(out, t->unknown, dg);
    for (size_t i = 0; i < length && !s; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (t->byte_ids[byte] == TOKEN_NONE)
            return diag_set(dg, ST_MISSING, "text: the vocabulary has no token for byte 0x%02x",
                            byte);
        s = token_list_add(out, t->byte_ids[byte], dg);
    }
    return s;
}

enum status join_piece(const struct tokenizer *t, struct join_room *room, struct token_list *out,
                       const char *piece, size_t length, struct diag *dg)
{
    if (!length)
        return ST_OK;
    if (t->whole_words && length <= t->longest_bytes) {
        uint32_t id = token_map_find(&t->by_text, piece, length);
        if (id != TOKEN_NONE)
            return token_list_add(out, id, dg);
    }
    enum status s = reserve(room, length, dg);
    if (s)
        return s;
    size_t count = split_symbols(t, room, piece, length);
    room->heap_count = 0;
    for (uint32_t i = 0; i + 1 < count; i++)
        offer(t, room, piece, i, i + 1);
    join_all(t, room, piece);
    for (uint32_t i = 0; i != NO_SYMBOL && !s; i = room->symbols[i].after) {
        const struct join_symbol *symbol = &room->symbols[i];
        s = symbol->id == TOKEN_NONE ? add_bytes(t, out, piece + symbol->start, symbol->length, dg)
                                     : token_list_add(out, symbol->id, dg);
    }
    return s;
}
