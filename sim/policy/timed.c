/* timed.c -- see timed.h. */
#include "sim/policy/timed.h"

#include <stdlib.h>

enum status timed_init(struct timed_queue *q, uint32_t room, struct diag *dg)
{
    *q = (struct timed_queue){.room = room};
    q->ring = calloc(room, sizeof *q->ring);
    return q->ring ? ST_OK : diag_no_memory(dg);
}

void timed_free(struct timed_queue *q)
{
    free(q->ring);
}

static void drop_first(struct timed_queue *q)
{
    q->first = (q->first + 1) % q->room;
    q->count--;
}

void timed_add(struct timed_queue *q, const struct timed_guess *g)
{
    if (q->count == q->room) {
        drop_first(q);
        q->dropped++;
    }
    q->ring[(q->first + q->count++) % q->room] = *g;
}

static bool is_stale(const struct timed_guess *g, uint32_t pass, uint32_t layer)
{
    uint32_t wanted = g->target > g->made_at ? g->pass : g->pass + 1;
    return pass > wanted || (pass == wanted && layer >= g->target);
}

bool timed_take(struct timed_queue *q, uint32_t pass, uint32_t layer, struct timed_guess *out)
{
    while (q->count > 0) {
        struct timed_guess g = q->ring[q->first];
        drop_first(q);
        if (is_stale(&g, pass, layer)) {
            q->dropped++;
            continue;
        }
        *out = g;
        return true;
    }
    return false;
}
