/* fifo.c -- first in, first out. The cheapest order there is, and the one that shows Belady's anomaly: a
 * larger cache can miss more. */
#include "sim/policy/key_list.h"

struct fifo {
    uint32_t queue; /* the list's sentinel */
    struct key_link link[];
};

static size_t fifo_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct fifo) + (s->keys + 1) * sizeof(struct key_link);
}

static void fifo_start(void *state, const struct policy_setup *s)
{
    struct fifo *f = state;
    f->queue = s->keys;
    key_list_start(f->link, f->queue);
}

static void fifo_hit(void *state, uint32_t key)
{
    (void)state, (void)key;
}

static void fifo_insert(void *state, uint32_t key)
{
    struct fifo *f = state;
    key_list_push(f->link, f->queue, key);
}

static uint32_t fifo_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct fifo *f = state;
    uint32_t key = key_list_oldest(f->link, f->queue, g);
    if (key != NO_KEY)
        key_list_remove(f->link, key);
    return key;
}

const struct cache_policy cache_fifo = {
    .name = "fifo",
    .summary = "first in, first out",
    .state_bytes = fifo_state_bytes,
    .start = fifo_start,
    .hit = fifo_hit,
    .insert = fifo_insert,
    .victim = fifo_victim,
};
