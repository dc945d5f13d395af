/* replay_run.c -- see replay_run.h. The first driver of sim/policy: it feeds batches, predictions and layer ends,
 * and counts. */
#include "sim/replay/replay_run.h"

#include "sim/replay/feed.h"

#include <stdlib.h>

static enum status check(const struct trace *t, const struct replay_setup *s, struct diag *dg)
{
    if (!s->prefetch)
        return ST_OK;
    if (s->prefetch->from_outside && !s->prefetch->needs_future && t->guess_count == 0)
        return diag_set(dg, ST_MISFIT,
                        "prefetch %s needs predictions, and the trace has no rows of kind p",
                        s->prefetch->name);
    if (s->prefetch_distance == 0 || s->prefetch_distance >= t->layers)
        return diag_set(dg, ST_RANGE, "the prefetch distance must be 1..%u layers", t->layers - 1);
    return ST_OK;
}

static void predict(struct decide *d, const struct feed *f, size_t i, const struct replay_setup *s,
                    uint16_t *ids)
{
    const struct trace *t = f->trace;
    const struct feed_batch *b = &f->batch[i];
    size_t count;
    if (s->prefetch->needs_future) {
        if (i + s->prefetch_distance >= f->batch_count)
            return;
        const struct feed_batch *target = &f->batch[i + s->prefetch_distance];
        decide_predict(d, b->pass, b->layer, target->layer, &t->expert[target->first_row], NULL,
                       target->row_count, &count);
        return;
    }
    for (size_t g = b->first_guess; g < b->first_guess + b->guess_count;) {
        uint32_t target = t->guess[g].target;
        size_t n = 0;
        for (; g < b->first_guess + b->guess_count && t->guess[g].target == target; g++)
            if (n < t->experts)
                ids[n++] = t->guess[g].expert;
        decide_predict(d, b->pass, b->layer, target, ids, NULL, n, &count);
    }
}

static void run(struct decide *d, const struct feed *f, const struct replay_setup *s,
                struct replay_result *out, uint16_t *ids)
{
    const struct decide_counts *c = decide_counts(d);
    for (size_t i = 0; i < f->batch_count; i++) {
        const struct feed_batch *b = &f->batch[i];
        uint64_t lookups = c->lookups, hits = c->hits, bytes = c->demand_bytes + c->prefetch_bytes;
        size_t count;
        decide_batch(d, b->pass, b->layer, &f->trace->expert[b->first_row], b->row_count, &count);
        if (s->prefetch && s->prefetch->from_outside)
            predict(d, f, i, s, ids);
        decide_layer_end(d, b->pass, b->layer, &count);
        if (b->phase != PHASE_DECODE)
            continue;
        out->decode_lookups += c->lookups - lookups;
        out->decode_hits += c->hits - hits;
        out->decode_read_bytes += c->demand_bytes + c->prefetch_bytes - bytes;
    }
    out->counts = *c;
    out->read_bytes = c->demand_bytes + c->prefetch_bytes;
    out->peak_bytes = decide_peak_bytes(d);
    out->cut = f->cut;
}

enum status replay_run(struct replay_result *out, const struct trace *t,
                       const struct replay_setup *s, struct diag *dg)
{
    *out = (struct replay_result){0};
    enum status st = check(t, s, dg);
    if (st != ST_OK)
        return st;
    struct decide_setup setup = {
        .policy = s->policy,
        .prefetch = s->prefetch,
        .scope = s->scope,
        .evict = s->evict,
        .layers = t->layers,
        .experts = t->experts,
        .budget_bytes = s->budget_bytes,
        .prefetch_bytes_max = s->prefetch_bytes_max,
        .prefetch_distance = s->prefetch_distance,
        .prefetch_experts_max = s->prefetch_experts_max,
        .seed = s->seed,
        .rank = s->rank,
    };
    struct feed *f = NULL;
    struct future *future = NULL;
    struct decide *d = NULL;
    uint16_t *ids = calloc(t->experts, sizeof *ids);
    uint64_t *expert_bytes = calloc(t->layers, sizeof *expert_bytes);
    st = ids && expert_bytes ? ST_OK : diag_no_memory(dg);
    for (uint32_t l = 0; expert_bytes && l < t->layers; l++)
        expert_bytes[l] = t->layer[l].expert_bytes;
    setup.expert_bytes = expert_bytes;
    if (st == ST_OK)
        st = feed_new(&f, t, decide_batch_limit(&setup), dg);
    if (st == ST_OK && s->policy->clairvoyant)
        st = feed_future(&future, f, s->scope, dg);
    if (future)
        setup.future = future_list(future);
    if (st == ST_OK)
        st = decide_new(&d, &setup, f->batch_bytes_max, dg);
    if (st == ST_OK)
        run(d, f, s, out, ids);
    decide_free(d);
    future_free(future);
    feed_free(f);
    free(ids);
    free(expert_bytes);
    return st;
}
