/* run_memory.c -- where a run's bytes live before it starts: the planner's placement, as the profile bends it. */
#include "base/fixed.h"
#include "sim/pipeline/run_state.h"

uint64_t run_sequences(const struct run *r)
{
    return r->setup.batch ? r->setup.batch : 1;
}

bool run_keeps_cache(const struct run *r)
{
    return r->setup.policy && !r->setup.policy->keeps_nothing;
}

/* Dense weights are pages like any others: the cache may take the memory that they would need, and they are
 * read again and again then. */
static enum status place_beside_pages(struct run *r, struct diag *dg)
{
    struct placement *p = &r->placement;
    uint64_t used = p->state + p->buffers, room = p->given > used ? p->given - used : 0;
    uint64_t wanted = !run_keeps_cache(r)        ? 0
                      : r->setup.cache_given     ? r->setup.cache_bytes
                      : room > p->dense_resident ? room - p->dense_resident
                                                 : 0;
    if (wanted > room) {
        char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
        return diag_set(dg, ST_MISFIT, "a cache of %s does not fit: %s is left for it",
                        quantity_round(a, wanted, DIM_SIZE), quantity_round(b, room, DIM_SIZE));
    }
    p->cache = wanted < p->experts ? wanted : p->experts;
    p->dense_resident = p->stream_trunk = p->stream_bytes = 0;
    p->spare = room - p->cache;
    return ST_OK;
}

/* The expert cache is what dense weights, state and buffers leave of the unit's own memory. */
static enum status place_in_vram(struct run *r, struct diag *dg)
{
    struct placement *p = &r->placement;
    uint64_t used = p->dense_resident + p->state + p->buffers;
    uint64_t room = r->machine.memory_bytes > used ? r->machine.memory_bytes - used : 0;
    uint64_t wanted = r->setup.cache_given ? r->setup.cache_bytes : p->experts;
    if (r->setup.cache_given && wanted > room) {
        char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
        return diag_set(dg, ST_MISFIT, "a cache of %s does not fit: the %s has %s left",
                        quantity_round(a, wanted, DIM_SIZE), r->machine.unit,
                        quantity_round(b, room, DIM_SIZE));
    }
    if (!p->experts_on_unit)
        p->spare += p->cache; /* of the DRAM, which now holds no expert */
    p->cache = wanted < room ? wanted : room;
    return ST_OK;
}

/* Tokens of state at the end of the longest sequence, over all sequences that decode together. */
static uint64_t context_tokens(const struct run *r)
{
    const struct pipeline_setup *s = &r->setup;
    uint64_t each = (s->warmup + s->tokens + run_sequences(r) - 1) / run_sequences(r);
    uint64_t own =
        s->prompt_tokens + each + s->draft; /* the last pass may yield more than is asked */
    if (s->trace) {
        uint64_t last = 0;
        for (size_t i = 0; i < s->trace->row_count; i++)
            last = s->trace->step[i] > last ? s->trace->step[i] : last;
        own = last + 1;
    }
    return run_sequences(r) * (s->context + own);
}

enum status run_place(struct run *r, struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    struct placement_request q = {
        .memory = r->setup.memory_bytes,
        .cache = run_keeps_cache(r) ? r->setup.cache_bytes : 0,
        .cache_given =
            (r->setup.cache_given || !run_keeps_cache(r)) && p->dense != DENSE_PAGE_CACHE,
        .context = context_tokens(r),
        .state_bits = r->setup.state_bits,
        .lanes = r->lanes,
        .pieces = r->pieces,
        .chunk = run_amount(&p->chunk, RUN_CHUNK),
        .stream_dense = p->dense != DENSE_RESIDENT,
        .dense_most = r->setup.dense_bytes,
    };
    enum status st = placement_find(&r->placement, r->model, r->setup.device, &r->machine, &q, dg);
    if (st != ST_OK)
        return st;
    if (r->machine.own_memory && p->cache_home == HOME_VRAM)
        st = place_in_vram(r, dg);
    else if (p->dense == DENSE_PAGE_CACHE)
        st = place_beside_pages(r, dg);
    if (st != ST_OK)
        return st;
    if (p->embed_streamed) { /* the engine re-reads everything, whatever would fit */
        r->placement.stream_trunk = RATIO_ONE;
        r->placement.stream_bytes = r->model->bytes_embedding + r->model->bytes_head;
    }
    return ST_OK;
}
