/* mattson.c -- see mattson.h. A Fenwick tree over access times holds the weight of each key at the time of
 * its last use, so a stack distance is one prefix sum; times are renumbered when they run out. */
#include "sim/replay/mattson.h"

#include <stdlib.h>
#include <string.h>

struct stack {
    uint32_t keys;
    uint32_t capacity;    /* times before renumbering */
    uint32_t now;         /* last time used, from 1 */
    uint32_t count;       /* keys seen so far */
    uint32_t *used_at;    /* by key; 0: never */
    uint32_t *key_at;     /* by time: the key that was last used then, or NO_KEY */
    uint32_t *tree;       /* Fenwick sums of presence */
    uint32_t batch_floor; /* keys used after this time were used by the batch before */
};

static void tree_add(struct stack *s, uint32_t time, uint32_t delta)
{
    for (; time <= s->capacity; time += time & -time)
        s->tree[time] += delta;
}

static uint32_t tree_sum(const struct stack *s, uint32_t time)
{
    uint32_t sum = 0;
    for (; time > 0; time -= time & -time)
        sum += s->tree[time];
    return sum;
}

static bool stack_start(struct stack *s, uint32_t keys)
{
    s->keys = keys;
    s->capacity = 4 * keys + 64;
    s->used_at = calloc(keys, sizeof *s->used_at);
    s->key_at = calloc((size_t)s->capacity + 1, sizeof *s->key_at);
    s->tree = calloc((size_t)s->capacity + 1, sizeof *s->tree);
    return s->used_at && s->key_at && s->tree;
}

static void stack_free(struct stack *s)
{
    free(s->used_at);
    free(s->key_at);
    free(s->tree);
}

/* Gives the keys seen so far the times 1..count in the order of their last use. */
static void renumber(struct stack *s)
{
    uint32_t next = 0, floor = 0;
    for (uint32_t time = 1; time <= s->now; time++) {
        uint32_t key = s->key_at[time];
        bool current = key != NO_KEY && s->used_at[key] == time;
        if (current) {
            s->key_at[++next] = key;
            s->used_at[key] = next;
        }
        if (time == s->batch_floor)
            floor = next;
    }
    s->now = next;
    s->batch_floor = floor;
    memset(s->tree, 0, ((size_t)s->capacity + 1) * sizeof *s->tree);
    for (uint32_t time = 1; time <= next; time++)
        tree_add(s, time, 1);
}

static void stack_use(struct stack *s, uint32_t key)
{
    if (s->now == s->capacity)
        renumber(s);
    if (s->used_at[key])
        tree_add(s, s->used_at[key], UINT32_MAX);
    else
        s->count++;
    s->used_at[key] = ++s->now;
    s->key_at[s->now] = key;
    tree_add(s, s->now, 1);
}

/* The least number of slots with which `key` hits: one more than the other keys used since it was, none
 * if the batch before used it; UINT32_MAX if it never was. */
static uint32_t slots_needed(const struct stack *s, uint32_t key)
{
    uint32_t used_at = s->used_at[key];
    if (used_at == 0)
        return UINT32_MAX;
    return used_at > s->batch_floor ? 0 : s->count - tree_sum(s, used_at) + 1;
}

struct pass_over {
    const struct trace *t;
    struct mattson *m;
    struct stack *stack; /* one, or one a layer */
    uint32_t *seen;      /* by key: number of the last batch + 1 that looked it up */
};

static void batch(struct pass_over *p, size_t index)
{
    const struct trace *t = p->t;
    const struct trace_batch *b = &t->batch[index];
    bool layered = p->m->scope == SCOPE_LAYER;
    struct stack *s = &p->stack[layered ? b->layer : 0];
    uint32_t base = layered ? 0 : b->layer * t->experts;
    bool decode = trace_batch_is_decode(t, b);
    for (size_t i = b->first_row; i < b->first_row + b->row_count; i++) {
        uint32_t *seen = &p->seen[(size_t)b->layer * t->experts + t->expert[i]];
        if (*seen == index + 1)
            continue;
        *seen = (uint32_t)index + 1;
        uint32_t needed = slots_needed(s, base + t->expert[i]);
        p->m->lookups++;
        p->m->decode_lookups += decode;
        if (needed <= p->m->slots) {
            p->m->hits[needed]++;
            p->m->decode_hits[needed] += decode;
        }
    }
    s->batch_floor = s->now;
    for (size_t i = b->first_row; i < b->first_row + b->row_count; i++)
        stack_use(s, base + t->expert[i]);
}

static void accumulate(uint64_t *hits, size_t slots)
{
    for (size_t c = 1; c <= slots; c++)
        hits[c] += hits[c - 1];
}

static void size_slots(struct mattson *m, const struct trace *t)
{
    uint64_t sum = 0, layers = 0, first = 0;
    m->exact = true;
    for (uint32_t l = 0; l < t->layers; l++) {
        uint64_t bytes = t->layer[l].expert_bytes;
        if (bytes == 0)
            continue;
        first = first ? first : bytes;
        m->exact &= m->scope == SCOPE_LAYER || bytes == first;
        sum += bytes;
        layers++;
    }
    m->slots = m->scope == SCOPE_LAYER ? t->experts : (size_t)t->experts * layers;
    m->slot_bytes = m->scope == SCOPE_LAYER ? sum : layers ? (sum + layers / 2) / layers : 0;
}

void mattson_free(struct mattson *m)
{
    free(m->hits);
    free(m->decode_hits);
}

enum status mattson_run(struct mattson *out, const struct trace *t, enum scope scope,
                        struct diag *dg)
{
    *out = (struct mattson){.scope = scope};
    size_slots(out, t);
    uint32_t stacks = scope == SCOPE_LAYER ? t->layers : 1;
    struct pass_over p = {.t = t, .m = out};
    p.stack = calloc(stacks, sizeof *p.stack);
    p.seen = calloc((size_t)t->layers * t->experts, sizeof *p.seen);
    out->hits = calloc(out->slots + 2, sizeof *out->hits);
    out->decode_hits = calloc(out->slots + 2, sizeof *out->decode_hits);
    bool ready = p.stack && p.seen && out->hits && out->decode_hits;
    for (uint32_t i = 0; ready && i < stacks; i++)
        ready =
            stack_start(&p.stack[i], scope == SCOPE_LAYER ? t->experts : t->layers * t->experts);
    for (size_t i = 0; ready && i < t->batch_count; i++)
        batch(&p, i);
    for (uint32_t i = 0; p.stack && i < stacks; i++)
        stack_free(&p.stack[i]);
    free(p.stack);
    free(p.seen);
    if (!ready) {
        mattson_free(out);
        return diag_no_memory(dg);
    }
    accumulate(out->hits, out->slots);
    accumulate(out->decode_hits, out->slots);
    return ST_OK;
}
