/* arena.c -- see arena.h. Blocks are zeroed when they are made and never reused, so what is handed
 * out is zero; a large object gets a block of its own. */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)4096)

struct arena_block {
    struct arena_block *next;
    size_t used, room;
    alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *block_new(size_t room)
{
    if (room > PTRDIFF_MAX - sizeof(struct arena_block)) /* no object is larger */
        return NULL;
    struct arena_block *b = calloc(1, sizeof *b + room);
    if (b)
        b->room = room;
    return b;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    const size_t step = alignof(max_align_t);
    if (bytes > SIZE_MAX - step)
        return NULL;
    bytes = bytes ? (bytes + step - 1) / step * step : step;
    struct arena_block *b = a->head;
    if (!b || b->room - b->used < bytes) {
        b = block_new(bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES);
        if (!b)
            return NULL;
        /* A full block goes behind the head, where there is still room. */
        struct arena_block **place = a->head && b->room == bytes ? &a->head->next : &a->head;
        b->next = *place;
        *place = b;
    }
    void *p = b->bytes + b->used;
    b->used += bytes;
    return p;
}

char *arena_text(struct arena *a, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = arena_alloc(a, bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void arena_free(struct arena *a)
{
    while (a->head) {
        struct arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
}
