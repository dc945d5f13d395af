/* futures.c -- the uses of every key in order of time, by counting sort: see feed.h. */
#include "sim/replay/feed.h"

#include <stdlib.h>

struct futures {
    struct policy_future *list;
    uint32_t *first; /* for each cache keys + 1 entries */
    uint32_t *use;
};

void futures_free(struct futures *f)
{
    if (!f)
        return;
    free(f->list);
    free(f->first);
    free(f->use);
    free(f);
}

const struct policy_future *futures_list(const struct futures *f)
{
    return f->list;
}

/* Ordinals count the batches of one cache; `ordinal` has one counter a cache. */
static void fill(struct futures *f, const struct feed *feed, bool layered, uint32_t *ordinal)
{
    const struct trace *t = feed->trace;
    size_t stride = layered ? (size_t)t->experts + 1 : 0;
    for (size_t i = 0; i < feed->batch_count; i++) {
        const struct feed_batch *b = &feed->batch[i];
        uint32_t now = ordinal[layered ? b->layer : 0]++;
        uint32_t *next = f->first + (layered ? b->layer * stride : (size_t)b->layer * t->experts);
        for (size_t row = b->first_row; row < b->first_row + b->row_count; row++)
            f->use[next[t->expert[row]]++] = now;
    }
}

/* Turns counts into starts, cache by cache; rows of the trace bound the sum. */
static void accumulate(uint32_t *first, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t uses = first[i];
        first[i] = sum;
        sum += uses;
    }
}

/* fill() moved every start to the end of its key's uses, which is where the next key starts. */
static void shift_back(uint32_t *first, size_t count)
{
    for (size_t i = count - 1; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
}

enum status futures_new(struct futures **out, const struct feed *feed, enum scope scope,
                        struct diag *dg)
{
    const struct trace *t = feed->trace;
    bool layered = scope == SCOPE_LAYER;
    size_t caches = layered ? t->layers : 1;
    size_t stride = layered ? (size_t)t->experts + 1 : (size_t)t->layers * t->experts + 1;
    if (t->row_count > UINT32_MAX)
        return diag_set(dg, ST_RANGE, "belady: a trace of more than 2^32 rows");
    struct futures *f = calloc(1, sizeof *f);
    uint32_t *ordinal = calloc(caches, sizeof *ordinal);
    if (f) {
        f->list = calloc(caches, sizeof *f->list);
        f->first = calloc(caches * stride, sizeof *f->first);
        f->use = calloc(t->row_count, sizeof *f->use);
    }
    if (!f || !ordinal || !f->list || !f->first || !f->use) {
        futures_free(f);
        free(ordinal);
        return diag_no_memory(dg);
    }
    for (size_t i = 0; i < feed->batch_count; i++) {
        const struct feed_batch *b = &feed->batch[i];
        size_t base = layered ? b->layer * stride : (size_t)b->layer * t->experts;
        for (size_t row = b->first_row; row < b->first_row + b->row_count; row++)
            f->first[base + t->expert[row]]++;
    }
    accumulate(f->first, caches * stride);
    fill(f, feed, layered, ordinal);
    shift_back(f->first, caches * stride);
    for (size_t c = 0; c < caches; c++)
        f->list[c] = (struct policy_future){f->first + c * stride, f->use};
    free(ordinal);
    *out = f;
    return ST_OK;
}
