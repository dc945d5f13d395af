/* feed.c -- see feed.h. */
#include "sim/replay/feed.h"

#include <stdlib.h>

struct cutter {
    const struct trace *t;
    struct feed *f;
    size_t room;
    uint64_t limit_bytes;
    uint32_t *seen; /* by key: stamp of the last union that counted it */
    uint32_t stamp;
    size_t *at; /* by batch of the pass: next row not yet handed out */
};

void feed_free(struct feed *f)
{
    if (!f)
        return;
    free(f->batch);
    free(f);
}

/* Adds the rows [from, to) of a batch to the current union; returns the bytes that were new. */
static uint64_t add_to_union(struct cutter *c, const struct trace_batch *b, size_t from, size_t to)
{
    uint64_t bytes = 0;
    for (size_t i = from; i < to; i++) {
        uint32_t *seen = &c->seen[b->layer * c->t->experts + c->t->expert[i]];
        if (*seen != c->stamp)
            bytes += c->t->layer[b->layer].expert_bytes;
        *seen = c->stamp;
    }
    return bytes;
}

static size_t rows_up_to(const struct trace *t, const struct trace_batch *b, size_t from,
                         uint32_t step)
{
    size_t end = b->first_row + b->row_count;
    while (from < end && t->step[from] <= step)
        from++;
    return from;
}

static uint32_t count_tokens(const struct trace *t, size_t from, size_t to)
{
    uint32_t tokens = 0;
    for (size_t i = from; i < to; i++)
        tokens += i == from || t->step[i] != t->step[i - 1];
    return tokens;
}

static enum status append(struct cutter *c, const struct trace_batch *b, uint32_t phase, size_t to,
                          bool first_chunk, uint64_t union_bytes, struct diag *dg)
{
    struct feed *f = c->f;
    if (f->batch_count == c->room) {
        size_t room = c->room ? c->room * 2 : c->t->batch_count;
        struct feed_batch *bigger = realloc(f->batch, room * sizeof *bigger);
        if (!bigger)
            return diag_no_memory(dg);
        f->batch = bigger;
        c->room = room;
    }
    size_t from = c->at[b - &c->t->batch[c->t->pass[b->pass].first_batch]];
    f->batch[f->batch_count++] = (struct feed_batch){
        .pass = (uint32_t)f->pass_count,
        .layer = b->layer,
        .turn = c->t->pass[b->pass].turn,
        .phase = phase,
        .tokens = count_tokens(c->t, from, to),
        .first_row = from,
        .row_count = to - from,
        .first_guess = b->first_guess,
        .guess_count = first_chunk ? b->guess_count : 0,
    };
    if (union_bytes > f->batch_bytes_max)
        f->batch_bytes_max = union_bytes;
    return ST_OK;
}

/* The largest step up to which every layer's union stays within the limit; at least one token. */
static uint32_t chunk_end(struct cutter *c, const struct trace_pass *p, uint32_t first,
                          uint32_t last)
{
    uint32_t end = last;
    if (c->limit_bytes == UINT64_MAX)
        return end;
    for (size_t i = 0; i < p->batch_count; i++) {
        const struct trace_batch *b = &c->t->batch[p->first_batch + i];
        uint64_t bytes = 0;
        c->stamp++;
        for (size_t from = c->at[i];
             from < b->first_row + b->row_count && c->t->step[from] <= end;) {
            uint32_t step = c->t->step[from];
            size_t to = rows_up_to(c->t, b, from, step);
            bytes += add_to_union(c, b, from, to);
            if (bytes > c->limit_bytes && step > first) {
                end = step - 1;
                break;
            }
            from = to;
        }
    }
    return end;
}

static void steps_left(const struct cutter *c, const struct trace_pass *p, uint32_t *first,
                       uint32_t *last, bool *any)
{
    *first = UINT32_MAX;
    *last = 0;
    *any = false;
    for (size_t i = 0; i < p->batch_count; i++) {
        const struct trace_batch *b = &c->t->batch[p->first_batch + i];
        size_t end = b->first_row + b->row_count;
        if (c->at[i] == end)
            continue;
        *any = true;
        if (c->t->step[c->at[i]] < *first)
            *first = c->t->step[c->at[i]];
        if (c->t->step[end - 1] > *last)
            *last = c->t->step[end - 1];
    }
}

static enum status cut_pass(struct cutter *c, const struct trace_pass *p, struct diag *dg)
{
    uint32_t first, last;
    bool any, first_chunk = true;
    for (size_t i = 0; i < p->batch_count; i++)
        c->at[i] = c->t->batch[p->first_batch + i].first_row;
    for (steps_left(c, p, &first, &last, &any); any || first_chunk; first_chunk = false) {
        uint32_t end = any ? chunk_end(c, p, first, last) : 0;
        c->f->cut |= any && end < last;
        for (size_t i = 0; i < p->batch_count; i++) {
            const struct trace_batch *b = &c->t->batch[p->first_batch + i];
            size_t to = any ? rows_up_to(c->t, b, c->at[i], end) : c->at[i];
            if (to == c->at[i] && !(first_chunk && b->guess_count > 0))
                continue;
            c->stamp++;
            uint64_t bytes = add_to_union(c, b, c->at[i], to);
            enum status st = append(c, b, p->phase, to, first_chunk, bytes, dg);
            if (st != ST_OK)
                return st;
            c->at[i] = to;
        }
        c->f->pass_count++;
        steps_left(c, p, &first, &last, &any);
    }
    return ST_OK;
}

enum status feed_new(struct feed **out, const struct trace *t, uint64_t limit_bytes,
                     struct diag *dg)
{
    struct cutter c = {.t = t, .limit_bytes = limit_bytes};
    c.f = calloc(1, sizeof *c.f);
    c.seen = calloc((size_t)t->layers * t->experts, sizeof *c.seen);
    c.at = calloc(t->layers, sizeof *c.at);
    enum status st = c.f && c.seen && c.at ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        c.f->trace = t;
    for (size_t i = 0; st == ST_OK && i < t->pass_count; i++)
        st = cut_pass(&c, &t->pass[i], dg);
    free(c.seen);
    free(c.at);
    if (st != ST_OK) {
        feed_free(c.f);
        return st;
    }
    *out = c.f;
    return ST_OK;
}

enum status feed_future(struct future **out, const struct feed *feed, enum scope scope,
                        struct diag *dg)
{
    const struct trace *t = feed->trace;
    struct future *f;
    enum status st = future_new(&f, t->layers, t->experts, scope, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; st == ST_OK && i < feed->batch_count; i++) {
        const struct feed_batch *b = &feed->batch[i];
        st = future_batch(f, b->layer, &t->expert[b->first_row], b->row_count, dg);
    }
    if (st == ST_OK)
        st = future_finish(f, dg);
    if (st != ST_OK) {
        future_free(f);
        return st;
    }
    *out = f;
    return ST_OK;
}

static int by_uses_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

enum status feed_rank(const struct feed *f, uint32_t *rank, struct diag *dg)
{
    const struct trace *t = f->trace;
    size_t keys = (size_t)t->layers * t->experts;
    uint64_t *order = calloc(keys, sizeof *order); /* uses << 32 | ~key: sorts by both */
    if (!order)
        return diag_no_memory(dg);
    for (size_t k = 0; k < keys; k++)
        order[k] = UINT32_MAX - (uint32_t)k;
    for (size_t i = 0; i < f->batch_count; i++) {
        const struct feed_batch *b = &f->batch[i];
        for (size_t row = b->first_row; row < b->first_row + b->row_count; row++)
            order[(size_t)b->layer * t->experts + t->expert[row]] += (uint64_t)1 << 32;
    }
    qsort(order, keys, sizeof *order, by_uses_descending);
    for (size_t i = 0; i < keys; i++)
        rank[UINT32_MAX - (uint32_t)order[i]] = order[i] >> 32 ? (uint32_t)i : NO_KEY;
    free(order);
    return ST_OK;
}
