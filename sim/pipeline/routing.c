/* routing.c -- see routing.h. Prefill passes come one by one as they are; decode passes are put together from
 * the next tokens of each sequence (`wide`), unless there is one sequence without drafts. */
#include "sim/pipeline/routing.h"

#include "base/pcg.h"

#include <stdlib.h>
#include <string.h>

struct routing {
    struct routing_setup setup;
    uint32_t width;    /* tokens of a decode pass */
    struct pcg chance; /* acceptance of drafts */
    uint16_t *guess;
    uint16_t *ids; /* [layer][token][slot] of the present pass, where it is put together */
    uint64_t pass_tokens;
    bool wide; /* the present pass is in `ids` */
    /* ROUTING_TRACE */
    size_t first, end; /* batches of the present pass, where it is the trace's own */
    uint32_t turn;     /* of the present pass + 1 */
    uint64_t decoded;
    size_t *decode_pass; /* first batch of every decode pass */
    size_t decode_count;
    size_t *cursor; /* by sequence: next decode pass */
    /* ROUTING_GENERATED */
    struct generator **generator; /* one a sequence */
    uint16_t *token;              /* [layer][slot] of one token */
    uint64_t made;                /* tokens of the present request */
    uint32_t prompted;            /* sequences whose prompt is done */
    uint64_t request;
};

void routing_free(struct routing *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->generator && i < r->setup.batch; i++)
        generate_free(r->generator[i]);
    free(r->generator);
    free(r->decode_pass);
    free(r->cursor);
    free(r->guess);
    free(r->ids);
    free(r->token);
    free(r);
}

static enum status start_generators(struct routing *r, struct diag *dg)
{
    const struct routing_setup *s = &r->setup;
    struct generate_shape shape = {s->layers, s->experts, s->top_k, s->layer};
    r->token = calloc((size_t)s->layers * s->top_k, sizeof *r->token);
    r->generator = calloc(s->batch, sizeof *r->generator);
    if (!r->token || !r->generator)
        return diag_no_memory(dg);
    enum status st = ST_OK;
    for (uint32_t i = 0; st == ST_OK && i < s->batch; i++)
        st = generate_new(&r->generator[i], s->params, &shape, s->seed + i, dg);
    return st;
}

static bool is_decode_start(const struct feed *f, size_t i)
{
    return f->batch[i].phase == PHASE_DECODE &&
           (i == 0 || f->batch[i].pass != f->batch[i - 1].pass);
}

static enum status index_decode(struct routing *r, struct diag *dg)
{
    const struct feed *f = r->setup.feed;
    for (size_t i = 0; i < f->batch_count; i++)
        r->decode_count += is_decode_start(f, i);
    if (r->decode_count < r->width)
        return diag_set(dg, ST_MISFIT, "the trace has %zu decode tokens, a pass of %u needs more",
                        r->decode_count, r->width);
    r->decode_pass = calloc(r->decode_count, sizeof *r->decode_pass);
    r->cursor = calloc(r->setup.batch, sizeof *r->cursor);
    if (!r->decode_pass || !r->cursor)
        return diag_no_memory(dg);
    size_t n = 0;
    for (size_t i = 0; i < f->batch_count; i++)
        if (is_decode_start(f, i))
            r->decode_pass[n++] = i;
    for (uint32_t i = 0; i < r->setup.batch; i++)
        r->cursor[i] = i * r->decode_count / r->setup.batch;
    return ST_OK;
}

static enum status start(struct routing *r, struct diag *dg)
{
    const struct routing_setup *s = &r->setup;
    uint64_t most = s->kind == ROUTING_TRACE ? 0 : s->prompt_tokens;
    most = s->chunk && s->chunk < most ? s->chunk : most;
    most = most > r->width ? most : r->width;
    r->guess = calloc(s->experts ? s->experts : 1, sizeof *r->guess);
    r->ids = calloc((size_t)s->layers * most * s->top_k, sizeof *r->ids);
    if (!r->guess || !r->ids)
        return diag_no_memory(dg);
    if (s->kind == ROUTING_GENERATED)
        return start_generators(r, dg);
    return s->kind == ROUTING_TRACE && r->width > 1 ? index_decode(r, dg) : ST_OK;
}

enum status routing_new(struct routing **out, const struct routing_setup *s, struct diag *dg)
{
    struct routing *r = calloc(1, sizeof *r);
    if (!r)
        return diag_no_memory(dg);
    r->setup = *s;
    r->setup.batch = s->batch ? s->batch : 1;
    r->setup.requests = s->requests ? s->requests : 1;
    r->width = r->setup.batch * (1 + s->draft);
    pcg_stream(&r->chance, s->seed, "routing/acceptance");
    enum status st = start(r, dg);
    if (st != ST_OK) {
        routing_free(r);
        return st;
    }
    *out = r;
    return ST_OK;
}

/* ---- decode passes that are put together ---- */

/* Of a draft's tokens, those before the first that is refused; the model's own comes on top. */
static uint32_t draw_accepted(struct routing *r)
{
    uint32_t n = 0;
    while (n < r->setup.draft &&
           (uint64_t)pcg_u32(&r->chance) * 1000000000 >> 32 < r->setup.acceptance)
        n++;
    return n;
}

static void copy_token(struct routing *r, uint32_t layer, uint64_t token, const uint16_t *ids,
                       size_t n)
{
    uint16_t *to = r->ids + ((size_t)layer * r->pass_tokens + token) * r->setup.top_k;
    for (uint32_t k = 0; k < r->setup.top_k; k++)
        to[k] = n ? ids[k < n ? k : n - 1] : 0; /* fewer choices than top_k: the last one again */
}

static void take_trace_token(struct routing *r, size_t decode_pass, uint64_t token)
{
    const struct feed *f = r->setup.feed;
    size_t i = r->decode_pass[decode_pass];
    for (uint32_t pass = f->batch[i].pass; i < f->batch_count && f->batch[i].pass == pass; i++)
        copy_token(r, f->batch[i].layer, token, &f->trace->expert[f->batch[i].first_row],
                   f->batch[i].row_count);
}

static void take_generated_token(struct routing *r, uint32_t sequence, uint64_t token)
{
    generate_token(r->generator[sequence], r->token, NULL);
    for (uint32_t l = 0; l < r->setup.layers; l++)
        copy_token(r, l, token, r->token + (size_t)l * r->setup.top_k, r->setup.top_k);
}

static void decode_pass(struct routing *r, struct routing_pass *out)
{
    const struct routing_setup *s = &r->setup;
    out->phase = PHASE_DECODE;
    out->tokens = r->width;
    out->produced = 0;
    r->pass_tokens = r->width;
    r->wide = true;
    for (uint32_t i = 0; i < s->batch; i++) {
        for (uint32_t d = 0; d <= s->draft; d++) {
            uint64_t token = (uint64_t)i * (s->draft + 1) + d;
            if (s->kind == ROUTING_TRACE)
                take_trace_token(r, (r->cursor[i] + d) % r->decode_count, token);
            else if (s->kind == ROUTING_GENERATED)
                take_generated_token(r, i, token);
        }
        uint32_t produced = 1 + draw_accepted(r);
        if (s->kind == ROUTING_TRACE)
            r->cursor[i] += produced;
        out->produced += produced;
    }
}

/* ---- the next pass ---- */

static bool next_of_trace(struct routing *r, struct routing_pass *out)
{
    const struct feed *f = r->setup.feed;
    const struct feed_batch *b = NULL;
    for (;;) {
        r->first = r->end;
        if (r->first == f->batch_count)
            return false;
        b = &f->batch[r->first];
        while (r->end < f->batch_count && f->batch[r->end].pass == b->pass)
            r->end++;
        if (r->width == 1 || b->phase == PHASE_PREFILL)
            break; /* decode passes of a wide run are taken by the cursors */
    }
    out->phase = b->phase;
    out->tokens = 0;
    for (size_t i = r->first; i < r->end; i++)
        if (f->batch[i].tokens > out->tokens)
            out->tokens = f->batch[i].tokens;
    out->produced = out->tokens;
    out->new_turn = b->turn + 1 != r->turn;
    r->turn = b->turn + 1;
    return true;
}

static bool trace_pass(struct routing *r, struct routing_pass *out)
{
    r->wide = false;
    if (next_of_trace(r, out)) {
        r->decoded += out->phase == PHASE_DECODE;
        return out->phase != PHASE_DECODE || r->decoded <= r->setup.decode_tokens;
    }
    if (r->width == 1 || r->decoded >= r->setup.decode_tokens ||
        r->decoded + r->width > r->decode_count)
        return false;
    decode_pass(r, out);
    r->decoded += out->produced;
    return true;
}

static void prompt_pass(struct routing *r, struct routing_pass *out, uint64_t left)
{
    const struct routing_setup *s = &r->setup;
    left = s->chunk && left > s->chunk ? s->chunk : left;
    out->phase = PHASE_PREFILL;
    out->tokens = out->produced = (uint32_t)left;
    r->pass_tokens = left;
    r->wide = true;
    for (uint64_t t = 0; s->kind == ROUTING_GENERATED && t < left; t++)
        take_generated_token(r, r->prompted, t);
    r->made += left;
    if (r->made == s->prompt_tokens) {
        r->made = 0;
        r->prompted++;
    }
}

/* Of a run that counts its own tokens: each sequence's prompt, then decode passes; then the next request. */
static bool counted_pass(struct routing *r, struct routing_pass *out)
{
    const struct routing_setup *s = &r->setup;
    bool prompting = s->prompt_tokens > 0 && r->prompted < s->batch;
    out->new_turn = r->made == 0 && r->decoded == 0;
    if (prompting) {
        prompt_pass(r, out, s->prompt_tokens - r->made);
        return true;
    }
    if (r->decoded >= s->decode_tokens) {
        if (++r->request >= s->requests)
            return false;
        r->decoded = r->prompted = 0;
        for (uint32_t i = 0; r->generator && i < s->batch; i++)
            generate_turn(r->generator[i]);
        return counted_pass(r, out);
    }
    decode_pass(r, out);
    r->decoded += out->produced;
    return true;
}

bool routing_next(struct routing *r, struct routing_pass *out)
{
    *out = (struct routing_pass){0};
    return r->setup.kind == ROUTING_TRACE ? trace_pass(r, out) : counted_pass(r, out);
}

/* ---- what the present pass chose and foresaw ---- */

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
    *n = 0;
    if (s->kind == ROUTING_TRACE && !r->wide) {
        const struct feed_batch *b = find_batch(r, layer);
        *n = b ? b->row_count : 0;
        return b ? &s->feed->trace->expert[b->first_row] : NULL;
    }
    if (s->kind == ROUTING_FIXED || s->layer[layer].expert_bytes == 0)
        return NULL;
    *n = r->pass_tokens * s->top_k;
    return r->ids + layer * *n;
}

const uint16_t *routing_guess(const struct routing *r, uint32_t layer, uint32_t *target, size_t *n)
{
    const struct routing_setup *s = &r->setup;
    *n = 0;
    if (s->kind == ROUTING_TRACE) {
        const struct feed_batch *b = r->wide ? NULL : find_batch(r, layer);
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
    generate_guess(r->generator[0], layer, *target, (uint32_t)*n, r->guess, scores);
    return r->guess;
}

const uint16_t *routing_ahead(const struct routing *r, uint32_t layer, uint32_t distance,
                              uint32_t *target, size_t *n)
{
    const struct routing_setup *s = &r->setup;
    if (s->kind == ROUTING_TRACE && !r->wide) {
        const struct feed_batch *b = find_batch(r, layer);
        size_t i = b ? (size_t)(b - s->feed->batch) + distance : s->feed->batch_count;
        if (i >= s->feed->batch_count)
            return NULL;
        *target = s->feed->batch[i].layer;
        *n = s->feed->batch[i].row_count;
        return &s->feed->trace->expert[s->feed->batch[i].first_row];
    }
    *target = layer + distance;
    if (*target >= s->layers)
        return NULL;
    return routing_batch(r, *target, n);
}
