/* arena.h -- memory that is freed all at once: what a loaded description owns. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *head;
};

/* Zeroed memory aligned for any object, or NULL when there is none. */
void *arena_alloc(struct arena *a, size_t bytes);
char *arena_text(struct arena *a, const char *text);
void arena_free(struct arena *a);

#endif
