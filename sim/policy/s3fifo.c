/* s3fifo.c -- S3-FIFO (Yang et al., SOSP 2023): a small FIFO (a tenth) filters what is used once, a main
 * FIFO gives second chances by a count up to 3, and a ghost FIFO of keys lets a returning expert go
 * straight to the main queue. As in the authors' simulator a promotion that overfills the main queue evicts
 * nothing by itself: the next victim then comes from the main queue. */
#include "sim/policy/key_list.h"

enum place { NOWHERE, SMALL, MAIN, GHOST };

struct s3fifo {
    uint32_t queue[GHOST + 1]; /* sentinels by place */
    uint32_t count[GHOST + 1];
    uint32_t small_most, ghost_most, keys;
    struct key_link link[]; /* keys + 4; then two bytes a key: place, uses */
};

static uint8_t *place_of(struct s3fifo *s)
{
    return (uint8_t *)&s->link[s->keys + GHOST + 1];
}

static uint8_t *uses_of(struct s3fifo *s)
{
    return place_of(s) + s->keys;
}

static size_t s3fifo_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct s3fifo) + (s->keys + GHOST + 1) * sizeof(struct key_link) +
           2 * (size_t)s->keys;
}

static void s3fifo_start(void *state, const struct policy_setup *setup)
{
    struct s3fifo *s = state;
    s->keys = setup->keys;
    s->small_most = setup->slots / 10 ? setup->slots / 10 : 1;
    s->ghost_most = setup->slots - s->small_most;
    for (uint32_t q = NOWHERE; q <= GHOST; q++) {
        s->queue[q] = setup->keys + q;
        key_list_start(s->link, s->queue[q]);
    }
}

static void leave(struct s3fifo *s, uint32_t key)
{
    key_list_remove(s->link, key);
    s->count[place_of(s)[key]]--;
    place_of(s)[key] = NOWHERE;
}

static void enter(struct s3fifo *s, enum place place, uint32_t key)
{
    key_list_push(s->link, s->queue[place], key);
    s->count[place]++;
    place_of(s)[key] = (uint8_t)place;
}

static void s3fifo_hit(void *state, uint32_t key)
{
    uint8_t *uses = &uses_of(state)[key];
    *uses += *uses < 3;
}

static void s3fifo_insert(void *state, uint32_t key)
{
    struct s3fifo *s = state;
    bool ghost = place_of(s)[key] == GHOST;
    if (ghost)
        leave(s, key);
    uses_of(s)[key] = 0;
    enter(s, ghost ? MAIN : SMALL, key);
}

static void remember(struct s3fifo *s, uint32_t key)
{
    if (s->ghost_most == 0)
        return;
    if (s->count[GHOST] == s->ghost_most)
        leave(s, s->link[s->queue[GHOST]].previous);
    enter(s, GHOST, key);
}

/* The small queue's oldest: used twice or more it moves on to main, else it leaves. */
static uint32_t evict_small(struct s3fifo *s, const struct guard *g)
{
    for (;;) {
        uint32_t key = key_list_oldest(s->link, s->queue[SMALL], g);
        if (key == NO_KEY)
            return NO_KEY;
        leave(s, key);
        if (uses_of(s)[key] <= 1) {
            remember(s, key);
            return key;
        }
        uses_of(s)[key] = 0;
        enter(s, MAIN, key);
    }
}

static uint32_t evict_main(struct s3fifo *s, const struct guard *g)
{
    for (;;) {
        uint32_t key = key_list_oldest(s->link, s->queue[MAIN], g);
        if (key == NO_KEY)
            return NO_KEY;
        leave(s, key);
        if (uses_of(s)[key] == 0)
            return key;
        uses_of(s)[key]--;
        enter(s, MAIN, key);
    }
}

static uint32_t s3fifo_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    struct s3fifo *s = state;
    uint32_t key = NO_KEY;
    if (s->count[SMALL] >= s->small_most)
        key = evict_small(s, g);
    if (key == NO_KEY)
        key = evict_main(s, g);
    return key == NO_KEY ? evict_small(s, g) : key;
}

const struct cache_policy cache_s3fifo = {
    .name = "s3fifo",
    .summary = "small, main and ghost FIFO queues",
    .state_bytes = s3fifo_state_bytes,
    .start = s3fifo_start,
    .hit = s3fifo_hit,
    .insert = s3fifo_insert,
    .victim = s3fifo_victim,
};
