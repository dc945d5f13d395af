/* routing.c -- see routing.h. */
#include "sim/pipeline/routing.h"

#include <stdlib.h>
#include <string.h>

struct routing {
    struct routing_setup setup;
    /* ROUTING_TRACE */
    size_t first, end; /* batches of the present pass */
    uint64_t decoded;
    uint16_t *guess;
    /* ROUTING_GENERATED */
    struct generator *generator;
    uint16_t *ids;   /* [layer][token][slot] of the present pass */
    uint16_t *token; /* [layer][slot] of one token */
    uint64_t made, pass_tokens;
};

void routing_free(struct routing *r)
{
    if (!r)
        return;
    generate_free(r->generator);
    free(r->guess);
    free(r->ids);
    free(r->token);
    free(r);
}

static enum status start_generator(struct routing *r, struct diag *dg)
{
    const struct routing_setup *s = &r->setup;
    struct generate_shape shape = {s->layers, s->experts, s->top_k, s->layer};
    uint64_t most = s->chunk && s->chunk < s->prompt_tokens ? s->chunk : s->prompt_tokens;
    most = most ? most : 1;
    r->ids = calloc((size_t)s->layers * most * s->top_k, sizeof *r->ids);
    r->token = calloc((size_t)s->layers * s->top_k, sizeof *r->token);
    if (!r->ids || !r->token)
        return diag_no_memory(dg);
    return generate_new(&r->generator, s->params, &shape, s->seed, dg);
}

enum status routing_new(struct routing **out, const struct routing_setup *s, struct diag *dg)
{
    struct routing *r = calloc(1, sizeof *r);
    if (!r)
        return diag_no_memory(dg);
    r->setup = *s;
    r->guess = calloc(s->experts ? s->experts : 1, sizeof *r->guess);
    enum status st = r->guess ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK && s->kind == ROUTING_GENERATED)
        st = start_generator(r, dg);
    if (st != ST_OK) {
        routing_free(r);
        return st;
    }
    *out = r;
    return ST_OK;
}

static bool next_of_trace(struct routing *r, struct routing_pass *out)
{
    const struct feed *f = r->setup.feed;
    r->first = r->end;
    if (r->first == f->batch_count)
        return false;
    const struct feed_batch *b = &f->batch[r->first];
    out->phase = b->phase;
    out->tokens = 0;
    while (r->end < f->batch_count && f->batch[r->end].pass == b->pass) {
        if (f->batch[r->end].tokens > out->tokens)
            out->tokens = f->batch[r->end].tokens;
        r->end++;
    }
    return true;
}

static void generate_pass(struct routing *r, uint64_t tokens)
{
    const struct routing_setup *s = &r->setup;
    for (uint64_t t = 0; t < tokens; t++) {
        generate_token(r->generator, r->token, NULL);
        for (uint32_t l = 0; l < s->layers; l++)
            memcpy(r->ids + (l * tokens + t) * s->top_k, r->token + (size_t)l * s->top_k,
                   s->top_k * sizeof *r->ids);
    }
}

/* The next pass of a run that counts its own tokens: prompt chunks, then one token a pass. */
static bool next_of_count(struct routing *r, struct routing_pass *out)
{
    const struct routing_setup *s = &r->setup;
    if (r->made >= s->prompt_tokens + s->decode_tokens)
        return false;
    uint64_t left = r->made < s->prompt_tokens ? s->prompt_tokens - r->made : 1;
    if (s->chunk && left > s->chunk)
        left = s->chunk;
    out->phase = r->made < s->prompt_tokens ? PHASE_PREFILL : PHASE_DECODE;
    out->tokens = (uint32_t)left;
    r->made += left;
    r->pass_tokens = left;
    if (s->kind == ROUTING_GENERATED)
        generate_pass(r, left);
    return true;
}

bool routing_next(struct routing *r, struct routing_pass *out)
{
    if (r->setup.kind != ROUTING_TRACE)
        return next_of_count(r, out);
    if (!next_of_trace(r, out))
        return false;
    r->decoded += out->phase == PHASE_DECODE;
    return out->phase != PHASE_DECODE || r->decoded <= r->setup.decode_tokens;
}

static const struct feed_batch *find_batch(const struct routing *r, uint32_t layer)
{
    for (size_t i = r->first; i < r->end; i++)
        if (r->setup.feed->batch[i].layer == layer)
            return &r->setup.feed->batch[i];
    return NULL;
}

const uint16_t *routing_batch(const struct routing *r, uint32_t layer, size_t *n)
{
    const struct routing_setup *s = &r->setup;
    if (s->kind == ROUTING_TRACE) {
        const struct feed_batch *b = find_batch(r, layer);
        *n = b ? b->row_count : 0;
        return b ? &s->feed->trace->expert[b->first_row] : NULL;
    }
    *n = r->pass_tokens * s->top_k;
    return s->kind == ROUTING_GENERATED ? r->ids + layer * r->pass_tokens * s->top_k : NULL;
}

const uint16_t *routing_guess(const struct routing *r, uint32_t layer, uint32_t *target, size_t *n)
{
    const struct routing_setup *s = &r->setup;
    *n = 0;
    if (s->kind == ROUTING_TRACE) {
        const struct feed_batch *b = find_batch(r, layer);
        if (!b || b->guess_count == 0)
            return r->guess;
        const struct trace_guess *g = &s->feed->trace->guess[b->first_guess];
        *target = g->target;
        for (size_t i = 0; i < b->guess_count && g[i].target == *target && *n < s->experts; i++)
            r->guess[(*n)++] = g[i].expert;
        return r->guess;
    }
    *target = layer + s->guess_distance;
    if (s->kind == ROUTING_FIXED || s->guess_count == 0 || *target >= s->layers ||
        s->layer[*target].expert_bytes == 0 || s->layer[layer].expert_bytes == 0)
        return r->guess;
    int64_t scores[GENERATE_TOP_K_MAX];
    *n = s->guess_count < GENERATE_TOP_K_MAX ? s->guess_count : GENERATE_TOP_K_MAX;
    generate_guess(r->generator, layer, *target, (uint32_t)*n, r->guess, scores);
    return r->guess;
}

const uint16_t *routing_ahead(const struct routing *r, uint32_t layer, uint32_t distance,
                              uint32_t *target, size_t *n)
{
    const struct routing_setup *s = &r->setup;
    if (s->kind == ROUTING_TRACE) {
        const struct feed_batch *b = find_batch(r, layer);
        size_t i = b ? (size_t)(b - s->feed->batch) + distance : s->feed->batch_count;
        if (i >= s->feed->batch_count)
            return NULL;
        *target = s->feed->batch[i].layer;
        *n = s->feed->batch[i].row_count;
        return &s->feed->trace->expert[s->feed->batch[i].first_row];
    }
    *target = layer + distance;
    if (s->kind == ROUTING_FIXED || *target >= s->layers || s->layer[*target].expert_bytes == 0)
        return NULL;
    return routing_batch(r, *target, n);
}
