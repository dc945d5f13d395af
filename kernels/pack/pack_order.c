/* pack_order.c -- see pack_order.h. */
#include "kernels/pack/pack_order.h"

#include "base/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t experts_of(const struct model *m, size_t layer)
{
    return (size_t)m->layers[layer].ffn.experts;
}

enum status pack_order_plain(struct pack_order *out, const struct model *m, struct diag *dg)
{
    size_t total = 0;
    *out = (struct pack_order){0};
    for (size_t i = 0; i < m->layer_count; i++)
        total += experts_of(m, i);
    out->key = calloc(total ? total : 1, sizeof *out->key);
    if (!out->key)
        return diag_no_memory(dg);
    for (size_t i = 0; i < m->layer_count; i++)
        for (size_t e = 0; e < experts_of(m, i); e++)
            out->key[out->count++] = (struct pack_key){(uint32_t)i, (uint32_t)e};
    return ST_OK;
}

void pack_order_free(struct pack_order *o)
{
    free(o->key);
    *o = (struct pack_order){0};
}

static enum status check_trace(const struct model *m, const struct trace *t, struct diag *dg)
{
    if (t->layers != m->layer_count || t->experts != model_experts(m))
        return diag_set(dg, ST_MISFIT,
                        "the trace of '%s' has %" PRIu32 " layers of %" PRIu32
                        " experts, the model %zu of %" PRIu64,
                        t->model, t->layers, t->experts, m->layer_count, model_experts(m));
    for (size_t b = 0; b < t->batch_count; b++)
        for (size_t r = 0; r < t->batch[b].row_count; r++)
            if (t->expert[t->batch[b].first_row + r] >= experts_of(m, t->batch[b].layer))
                return diag_set(dg, ST_MISFIT,
                                "the trace of '%s' has experts in layer %" PRIu32
                                " that the model has not",
                                t->model, t->batch[b].layer);
    return ST_OK;
}

/* Rows of one token from `row` on, within its batch. */
static size_t token_rows(const struct trace *t, const struct trace_batch *b, size_t row)
{
    size_t end = b->first_row + b->row_count, n = 1;
    while (row + n < end && t->step[row + n] == t->step[row])
        n++;
    return n;
}

/* Two experts of a layer and the tokens that chose both. */
struct pair {
    uint32_t tokens, a, b;
};

static int compare_pairs(const void *x, const void *y)
{
    const struct pair *p = x, *q = y;
    if (p->tokens != q->tokens)
        return p->tokens > q->tokens ? -1 : 1;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

/* The paths of one layer under construction. */
struct paths {
    size_t experts;
    uint32_t *tokens;   /* experts x experts, above the diagonal */
    struct pair *pairs; /* those with tokens, sorted */
    size_t pair_count;
    uint32_t (*next)[2]; /* neighbours; NOBODY: a free end */
    uint32_t *set;       /* union-find: the path an expert is on */
    bool *placed;
};

#define NOBODY UINT32_MAX

static void paths_free(struct paths *p)
{
    free(p->tokens);
    free(p->pairs);
    free(p->next);
    free(p->set);
    free(p->placed);
}

static enum status paths_init(struct paths *p, size_t experts, struct diag *dg)
{
    *p = (struct paths){.experts = experts};
    p->tokens = calloc(experts * experts, sizeof *p->tokens);
    p->pairs = calloc(experts * experts / 2 + 1, sizeof *p->pairs);
    p->next = calloc(experts, sizeof *p->next);
    p->set = calloc(experts, sizeof *p->set);
    p->placed = calloc(experts, sizeof *p->placed);
    return p->tokens && p->pairs && p->next && p->set && p->placed ? ST_OK : diag_no_memory(dg);
}

static void count_token(struct paths *p, const uint16_t *expert, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (expert[i] < expert[k])
                p->tokens[expert[i] * p->experts + expert[k]]++;
}

static void count_layer(struct paths *p, const struct trace *t, size_t layer)
{
    for (size_t b = 0; b < t->batch_count; b++) {
        const struct trace_batch *batch = &t->batch[b];
        size_t end = batch->first_row + batch->row_count;
        for (size_t row = batch->first_row, n; batch->layer == layer && row < end; row += n) {
            n = token_rows(t, batch, row);
            count_token(p, t->expert + row, n);
        }
    }
}

static void sort_pairs(struct paths *p)
{
    for (uint32_t a = 0; a < p->experts; a++)
        for (uint32_t b = a + 1; b < p->experts; b++)
            if (p->tokens[a * p->experts + b])
                p->pairs[p->pair_count++] = (struct pair){p->tokens[a * p->experts + b], a, b};
    if (p->pair_count)
        qsort(p->pairs, p->pair_count, sizeof *p->pairs, compare_pairs);
}

static uint32_t path_of(struct paths *p, uint32_t expert)
{
    while (p->set[expert] != expert)
        expert = p->set[expert] = p->set[p->set[expert]];
    return expert;
}

static void join_pairs(struct paths *p)
{
    for (uint32_t e = 0; e < p->experts; e++) {
        p->set[e] = e;
        p->next[e][0] = p->next[e][1] = NOBODY;
    }
    for (size_t i = 0; i < p->pair_count; i++) {
        uint32_t a = p->pairs[i].a, b = p->pairs[i].b;
        bool free_ends = p->next[a][1] == NOBODY && p->next[b][1] == NOBODY;
        if (!free_ends || path_of(p, a) == path_of(p, b))
            continue;
        p->next[a][p->next[a][0] != NOBODY] = b;
        p->next[b][p->next[b][0] != NOBODY] = a;
        p->set[path_of(p, a)] = path_of(p, b);
    }
}

/* Walks every path from its lower end. */
static void emit_paths(struct paths *p, struct pack_key *out)
{
    for (uint32_t start = 0; start < p->experts; start++) {
        if (p->placed[start] || p->next[start][1] != NOBODY)
            continue;
        for (uint32_t at = start, before = NOBODY; at != NOBODY;) {
            p->placed[at] = true;
            (out++)->expert = at;
            uint32_t on = p->next[at][0] == before ? p->next[at][1] : p->next[at][0];
            before = at;
            at = on;
        }
    }
}

static enum status order_layer(struct pack_key *out, size_t experts, const struct trace *t,
                               size_t layer, struct diag *dg)
{
    struct paths p;
    enum status st = paths_init(&p, experts, dg);
    if (st == ST_OK) {
        count_layer(&p, t, layer);
        sort_pairs(&p);
        join_pairs(&p);
        emit_paths(&p, out);
    }
    paths_free(&p);
    return st;
}

enum status pack_order_coactivation(struct pack_order *out, const struct model *m,
                                    const struct trace *t, struct diag *dg)
{
    *out = (struct pack_order){0};
    enum status st = check_trace(m, t, dg);
    if (st == ST_OK)
        st = pack_order_plain(out, m, dg);
    for (size_t i = 0, first = 0; i < m->layer_count && st == ST_OK; first += experts_of(m, i++))
        if (experts_of(m, i))
            st = order_layer(out->key + first, experts_of(m, i), t, i, dg);
    if (st != ST_OK)
        pack_order_free(out);
    return st;
}

/* Position of every expert in an order, by layer and expert; `none` where it is not yet. */
struct places {
    const struct model *m;
    size_t *first; /* by layer, in `place` */
    size_t *place, total;
};

static void places_free(struct places *p)
{
    free(p->first);
    free(p->place);
}

static enum status places_init(struct places *p, const struct model *m, struct diag *dg)
{
    *p = (struct places){.m = m, .first = calloc(m->layer_count + 1, sizeof *p->first)};
    if (!p->first)
        return diag_no_memory(dg);
    for (size_t i = 0; i < m->layer_count; i++) {
        p->first[i] = p->total;
        p->total += experts_of(m, i);
    }
    p->place = malloc((p->total + 1) * sizeof *p->place);
    if (!p->place)
        return diag_no_memory(dg);
    for (size_t i = 0; i < p->total; i++)
        p->place[i] = SIZE_MAX;
    return ST_OK;
}

struct order_file {
    const char *path;
    struct pack_order *order;
    struct places places;
};

static enum status take_row(void *self, size_t line, const struct csv_field *fields,
                            struct diag *dg)
{
    struct order_file *f = self;
    uint64_t layer, expert;
    if (!csv_u64(fields[0], &layer) || layer >= f->places.m->layer_count ||
        !csv_u64(fields[1], &expert) || expert >= experts_of(f->places.m, (size_t)layer))
        return diag_set(dg, ST_PARSE, "%s:%zu: expected a layer and an expert of %s", f->path, line,
                        f->places.m->name);
    size_t *place = &f->places.place[f->places.first[layer] + expert];
    if (*place != SIZE_MAX)
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: layer %" PRIu64 ", expert %" PRIu64 ", stands there twice",
                        f->path, line, layer, expert);
    *place = f->order->count;
    f->order->key[f->order->count++] = (struct pack_key){(uint32_t)layer, (uint32_t)expert};
    return ST_OK;
}

enum status pack_order_load(struct pack_order *out, const struct model *m, const char *path,
                            struct diag *dg)
{
    static const struct csv_column columns[] = {{"layer", true}, {"expert", true}};
    struct order_file f = {path, out, {0}};
    enum status st = pack_order_plain(out, m, dg);
    if (st == ST_OK)
        st = places_init(&f.places, m, dg);
    out->count = 0;
    if (st == ST_OK)
        st = csv_read(path, columns, 2, false, take_row, NULL, &f, dg);
    if (st == ST_OK && out->count != f.places.total)
        st = diag_set(dg, ST_PARSE, "%s: names %zu experts, %s has %zu", path, out->count, m->name,
                      f.places.total);
    places_free(&f.places);
    if (st != ST_OK)
        pack_order_free(out);
    return st;
}

/* Neighbours are two of the token's experts whose records follow each other. */
static uint64_t token_runs(const struct places *p, size_t layer, const uint16_t *expert,
                           size_t count)
{
    uint64_t runs = count;
    const size_t *place = p->place + p->first[layer];
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            runs -= place[expert[i]] + 1 == place[expert[k]];
    return runs;
}

enum status pack_order_runs(struct pack_runs *out, const struct pack_order *o,
                            const struct model *m, const struct trace *t, struct diag *dg)
{
    struct places p = {0};
    *out = (struct pack_runs){0};
    enum status st = check_trace(m, t, dg);
    if (st == ST_OK)
        st = places_init(&p, m, dg);
    if (st == ST_OK) {
        for (size_t i = 0; i < o->count; i++)
            p.place[p.first[o->key[i].layer] + o->key[i].expert] = i;
        for (size_t b = 0; b < t->batch_count; b++) {
            const struct trace_batch *batch = &t->batch[b];
            size_t end = batch->first_row + batch->row_count;
            for (size_t row = batch->first_row, n; row < end; row += n) {
                n = token_rows(t, batch, row);
                out->choices += n;
                out->runs += token_runs(&p, batch->layer, t->expert + row, n);
            }
        }
    }
    places_free(&p);
    return st;
}

enum status pack_order_foresight(struct pack_runs *ordered, struct pack_runs *plain,
                                 const struct model *m, const struct trace *t, struct diag *dg)
{
    struct trace first = *t,
                 second = *t; /* views of its batches, which are all that is looked at */
    struct pack_order order, none = {0};
    first.batch_count = t->batch_count / 2;
    second.batch += first.batch_count;
    second.batch_count -= first.batch_count;
    enum status st = pack_order_coactivation(&order, m, &first, dg);
    if (st == ST_OK)
        st = pack_order_runs(ordered, &order, m, &second, dg);
    if (st == ST_OK)
        st = pack_order_plain(&none, m, dg);
    if (st == ST_OK)
        st = pack_order_runs(plain, &none, m, &second, dg);
    pack_order_free(&none);
    pack_order_free(&order);
    return st;
}
