/* experts.c -- see experts.h. */
#include "kernels/graph/experts.h"

#include "kernels/graph/expert_math.h"
#include "kernels/graph/expert_slots.h"
#include "sim/policy/timed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One expert of the layer's union: rows first .. first + count - 1 of the row arrays are its tokens. */
struct choice {
    uint32_t expert, slot;
    uint32_t first, count, filled;
    bool done;
};

struct experts {
    struct experts_setup setup;
    struct expert_source source;
    struct expert_slots slots;
    struct decide *decide;
    struct decision_log *log;   /* NULL: none */
    struct timed_queue guesses; /* of a timed prefetcher */
    struct foreseen *foreseen;  /* NULL: nothing is known ahead */
    uint32_t pass, layer;       /* of the last choice */
    size_t chunk, hidden, width_max, rows_max;
    struct choice *choice;
    uint32_t choices;
    uint32_t *choice_of; /* by expert: index + 1, or 0 */
    uint32_t *row_of;    /* by (token, slot): its row */
    uint32_t *ready;     /* indices of choices to compute together */
    uint32_t *ticket;
    struct matrix *matrix; /* three a ready choice */
    struct expert_job *job;
    struct input in; /* rows: the token's state */
    struct expert_math math;
    uint64_t chosen_ns; /* when the present layer's choice came */
};

/* ---- set-up ---- */

static const struct ffn *ffn_of(const struct experts *e, uint32_t layer)
{
    return &e->setup.weights->model->layers[layer].ffn;
}

/* The most that `tokens` tokens can ask for in one layer. */
static uint64_t union_bytes(const struct experts *e, size_t tokens)
{
    uint64_t most = 0;
    for (uint32_t l = 0; l < e->setup.weights->model->layer_count; l++) {
        const struct ffn *f = ffn_of(e, l);
        uint64_t n = tokens * f->top_k < f->experts ? tokens * f->top_k : f->experts;
        if (n * e->source.expert_bytes[l] > most)
            most = n * e->source.expert_bytes[l];
    }
    return most;
}

static void shape_decisions(struct experts *e)
{
    struct decide_setup *d = &e->setup.decide;
    const struct model *m = e->setup.weights->model;
    d->layers = (uint32_t)m->layer_count;
    d->experts = (uint32_t)model_experts(m);
    d->expert_bytes = e->source.expert_bytes;
    if (d->prefetch_experts_max == 0)
        d->prefetch_experts_max = (uint32_t)model_top_k(m);
    e->hidden = m->hidden;
    for (uint32_t l = 0; l < d->layers; l++)
        if (ffn_of(e, l)->expert_width > e->width_max)
            e->width_max = ffn_of(e, l)->expert_width;
}

static bool knows_future(const struct experts *e)
{
    const struct decide_setup *d = &e->setup.decide;
    return d->policy->clairvoyant || (d->prefetch && d->prefetch->needs_future);
}

static enum status look_ahead(struct experts *e, struct diag *dg)
{
    if (!knows_future(e))
        return ST_OK;
    enum status st = foreseen_new(&e->foreseen, &e->setup.foreseen, e->setup.weights->model,
                                  e->chunk, e->setup.decide.scope, dg);
    if (st == ST_OK)
        e->setup.decide.future = foreseen_future(e->foreseen);
    return st;
}

static enum status decisions_new(struct experts *e, struct diag *dg)
{
    uint64_t limit = decide_batch_limit(&e->setup.decide);
    e->chunk = e->setup.chunk;
    while (e->chunk > 1 && union_bytes(e, e->chunk) > limit)
        e->chunk--;
    e->rows_max = e->chunk * model_top_k(e->setup.weights->model);
    uint64_t most = union_bytes(e, e->chunk);
    enum status st = look_ahead(e, dg);
    if (st == ST_OK)
        st = decide_new(&e->decide, &e->setup.decide, most, dg);
    if (st == ST_OK && e->setup.prefetch_timed)
        st = timed_init(&e->guesses, 4 * e->setup.decide.experts, dg);
    if (st == ST_OK && e->setup.decisions_path)
        st = decision_log_open(&e->log, e->setup.decisions_path, &e->setup.decide, most,
                               e->setup.prefetch_timed, dg);
    return st;
}

/* What may be members beyond the budget: a batch and what is foretold, where nothing is evicted before. */
static uint64_t reserve_bytes(const struct experts *e)
{
    struct decide_setup before = e->setup.decide;
    if (!before.policy->keeps_nothing && before.evict == EVICT_BEFORE)
        return 0;
    before.policy = cache_policy_find("lru");
    before.evict = EVICT_BEFORE;
    before.scope = SCOPE_GLOBAL;
    return decide_minimum_bytes(&before, union_bytes(e, e->chunk));
}

enum status experts_measure(struct experts_need *out, const struct experts_setup *s,
                            struct diag *dg)
{
    struct experts e = {.setup = *s, .chunk = s->chunk};
    enum status st = expert_source_open(&e.source, s->weights, s->pack_path, dg);
    if (st != ST_OK)
        return st;
    shape_decisions(&e);
    size_t rows = s->chunk * model_top_k(s->weights->model);
    *out = (struct experts_need){decide_minimum_bytes(&e.setup.decide, union_bytes(&e, 1)),
                                 reserve_bytes(&e),
                                 rows * sizeof *e.row_of + input_bytes(e.hidden, rows) +
                                     expert_math_bytes(e.hidden, e.width_max, rows),
                                 decide_minimum_bytes(&e.setup.decide, union_bytes(&e, s->chunk))};
    expert_source_close(&e.source);
    return ST_OK;
}

static enum status buffers_new(struct experts *e, struct diag *dg)
{
    size_t experts = e->setup.decide.experts, rows = e->rows_max;
    e->choice = calloc(experts, sizeof *e->choice);
    e->choice_of = calloc(experts, sizeof *e->choice_of);
    e->ready = calloc(experts, sizeof *e->ready);
    e->ticket = calloc(experts, sizeof *e->ticket);
    e->matrix = calloc(experts, PART_MAX * sizeof *e->matrix);
    e->job = calloc(experts, sizeof *e->job);
    e->row_of = calloc(rows, sizeof *e->row_of);
    bool whole =
        e->choice && e->choice_of && e->ready && e->ticket && e->matrix && e->job && e->row_of;
    enum status st = whole ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        st = input_new(&e->in, e->hidden, rows, dg);
    return st == ST_OK
               ? expert_math_new(&e->math, &e->setup.compute, e->setup.weights->recipe->activation,
                                 e->hidden, e->width_max, rows, experts, dg)
               : st;
}

enum status experts_new(struct experts **out, const struct experts_setup *s, struct diag *dg)
{
    struct experts *e = calloc(1, sizeof *e);
    if (!e)
        return diag_no_memory(dg);
    e->setup = *s;
    enum status st = expert_source_open(&e->source, s->weights, s->pack_path, dg);
    if (st == ST_OK && model_experts(s->weights->model) > 0) {
        shape_decisions(e);
        st = decisions_new(e, dg);
        if (st == ST_OK)
            st = expert_slots_new(&e->slots, &e->source, &e->setup.loader, s->direct,
                                  e->setup.decide.budget_bytes, reserve_bytes(e), s->record, dg);
        e->slots.log = e->log;
        if (st == ST_OK)
            st = buffers_new(e, dg);
    } else {
        e->chunk = s->chunk;
    }
    if (st != ST_OK) {
        experts_free(e);
        return st;
    }
    *out = e;
    return ST_OK;
}

void experts_free(struct experts *e)
{
    if (!e)
        return;
    expert_slots_free(&e->slots);
    decision_log_abandon(e->log);
    foreseen_free(e->foreseen);
    timed_free(&e->guesses);
    decide_free(e->decide);
    expert_source_close(&e->source);
    input_free(&e->in);
    expert_math_free(&e->math);
    void *arrays[] = {e->choice, e->choice_of, e->ready, e->ticket, e->matrix, e->job, e->row_of};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    free(e);
}

/* ---- the choice, and guesses ---- */

/* The union in order of first choice, each with its tokens' rows one after another. */
static void list_choices(struct experts *e, const uint16_t *ids, size_t n)
{
    e->choices = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t *of = &e->choice_of[ids[i]];
        if (*of == 0) {
            *of = ++e->choices;
            e->choice[*of - 1] = (struct choice){.expert = ids[i]};
        }
        e->choice[*of - 1].count++;
    }
    uint32_t first = 0;
    for (uint32_t c = 0; c < e->choices; c++) {
        e->choice[c].first = first;
        first += e->choice[c].count;
    }
    for (size_t i = 0; i < n; i++) {
        struct choice *c = &e->choice[e->choice_of[ids[i]] - 1];
        e->row_of[i] = c->first + c->filled++;
    }
    for (uint32_t c = 0; c < e->choices; c++)
        e->choice_of[e->choice[c].expert] = 0;
}

/* A hit whose read is still under way is late, and goes before all prefetches from now on. */
static void find_slots(struct experts *e, uint32_t layer)
{
    for (uint32_t i = 0; i < e->choices; i++) {
        struct choice *c = &e->choice[i];
        c->slot = e->slots.slot_of[layer * e->setup.decide.experts + c->expert];
        struct expert_slot *slot = &e->slots.slot[c->slot];
        if (!slot->pending || !slot->prefetched || loader_io_ready(e->slots.io, slot->ticket))
            continue;
        e->setup.record->sums.late_hits++;
        loader_io_promote(e->slots.io, slot->ticket);
    }
}

/* The oracle's guess, at the place where replay has it. */
static enum status predict_known(struct experts *e, struct diag *dg)
{
    const struct decide_setup *d = &e->setup.decide;
    uint32_t target;
    size_t n;
    if (!d->prefetch || !d->prefetch->needs_future)
        return ST_OK;
    const uint16_t *ids = foreseen_ahead(e->foreseen, d->prefetch_distance, &target, &n);
    return ids ? experts_predict(e, e->pass, e->layer, target, ids, n, dg) : ST_OK;
}

enum status experts_choose(struct experts *e, uint32_t pass, uint32_t layer, const uint16_t *ids,
                           size_t tokens, struct diag *dg)
{
    size_t n = tokens * ffn_of(e, layer)->top_k, count;
    assert(n <= e->rows_max);
    e->slots.pass = e->pass = pass;
    e->chosen_ns = record_now_ns();
    e->layer = layer;
    enum status st = e->foreseen ? foreseen_step(e->foreseen, layer, ids, n, dg) : ST_OK;
    if (st != ST_OK)
        return st;
    list_choices(e, ids, n);
    const struct decision *d = decide_batch(e->decide, pass, layer, ids, n, &count);
    decision_log_batch(e->log, pass, layer, ids, n, d, count);
    st = expert_slots_execute(&e->slots, d, count, dg);
    if (st == ST_OK)
        find_slots(e, layer);
    return st == ST_OK ? predict_known(e, dg) : st;
}

static enum status prefetch(struct experts *e, uint32_t target, const uint16_t *ids, size_t n,
                            struct diag *dg)
{
    size_t count;
    const struct decision *d =
        decide_predict(e->decide, e->pass, e->layer, target, ids, NULL, n, &count);
    decision_log_predict(e->log, e->pass, e->layer, target, ids, n, d, count);
    return expert_slots_execute(&e->slots, d, count, dg);
}

enum status experts_poll(struct experts *e, uint32_t pass, uint32_t layer, struct diag *dg)
{
    struct timed_guess g;
    if (!e->decide || !e->setup.prefetch_timed)
        return ST_OK;
    enum status st = expert_slots_poll(&e->slots, dg);
    while (st == ST_OK && e->slots.pending_count == 0 && timed_take(&e->guesses, pass, layer, &g))
        st = prefetch(e, g.target, &g.expert, 1, dg);
    return st;
}

enum status experts_predict(struct experts *e, uint32_t pass, uint32_t layer, uint32_t target,
                            const uint16_t *ids, size_t n, struct diag *dg)
{
    assert(pass == e->pass && layer == e->layer);
    if (!e->setup.prefetch_timed)
        return prefetch(e, target, ids, n, dg);
    for (size_t i = 0; i < n && i < e->setup.decide.prefetch_experts_max; i++)
        timed_add(&e->guesses, &(struct timed_guess){pass, layer, target, ids[i]});
    return experts_poll(e, pass, layer, dg);
}

/* ---- computing ---- */

static const float *part_of(const float *stacked, uint32_t expert, size_t rows)
{
    return stacked ? stacked + expert * rows : NULL;
}

static const struct low_rank *adapter_of(const struct low_rank *stacked, uint32_t expert)
{
    return stacked && stacked[expert].rank ? &stacked[expert] : NULL;
}

static void set_matrices(struct experts *e, uint32_t layer, const struct choice *c,
                         struct matrix *m)
{
    const struct layer_weights *l = &e->setup.weights->layers[layer];
    struct weights w[PART_MAX];
    expert_source_matrices(&e->source, e->slots.io, layer, c->expert,
                           store_address(e->slots.store, c->slot), w);
    const float *bias[PART_MAX] = {l->gate_bias, l->up_bias, l->down_bias};
    uint32_t number = (layer * e->setup.decide.experts + c->expert) * PART_MAX;
    for (uint32_t part = 0; part < PART_MAX; part++)
        m[part] = (struct matrix){.weights = w[part],
                                  .bias = part_of(bias[part], c->expert, w[part].rows),
                                  .adapter = adapter_of(l->expert_adapter[part], c->expert),
                                  .expert_matrix = 1 + number + part};
}

static struct activations state_of(const struct experts *e, const struct choice *c,
                                   const struct input *x, size_t tokens)
{
    return tokens == 1 ? input_view(x, 0, 1, &e->setup.compute)
                       : input_view(&e->in, c->first, c->count, &e->setup.compute);
}

/* The experts listed in `ready`. */
static void compute_ready(struct experts *e, uint32_t layer, uint32_t n, const struct input *x,
                          size_t tokens)
{
    for (uint32_t i = 0; i < n; i++) {
        struct choice *c = &e->choice[e->ready[i]];
        struct matrix *m = &e->matrix[(size_t)i * PART_MAX];
        set_matrices(e, layer, c, m);
        e->job[i] = (struct expert_job){m, state_of(e, c, x, tokens), c->first};
        c->done = true;
    }
    expert_math_run(&e->math, e->job, n);
}

/* Which experts are there and not computed yet; their reads are collected. */
static enum status find_ready(struct experts *e, uint32_t *n, uint32_t *waiting, struct diag *dg)
{
    enum status st = ST_OK;
    *n = *waiting = 0;
    for (uint32_t i = 0; st == ST_OK && i < e->choices; i++) {
        struct choice *c = &e->choice[i];
        const struct expert_slot *slot = &e->slots.slot[c->slot];
        if (c->done)
            continue;
        if (slot->pending && !loader_io_ready(e->slots.io, slot->ticket)) {
            e->ticket[(*waiting)++] = slot->ticket;
            continue;
        }
        st = expert_slots_settle(&e->slots, c->slot, dg);
        e->ready[(*n)++] = i;
    }
    return st;
}

static enum status settle_all(struct experts *e, struct diag *dg)
{
    enum status st = ST_OK;
    for (uint32_t i = 0; st == ST_OK && i < e->choices; i++)
        st = expert_slots_settle(&e->slots, e->choice[i].slot, dg);
    return st;
}

/* The tokens' states, row by row as the choices have them. */
static void gather(struct experts *e, const struct input *x, size_t tokens, size_t top_k)
{
    for (size_t t = 0; tokens > 1 && t < tokens; t++)
        for (size_t s = 0; s < top_k; s++)
            input_copy(&e->in, e->row_of[t * top_k + s], x, t);
}

static void combine(const struct experts *e, const float *weights, size_t tokens, size_t top_k,
                    float *out)
{
    const struct isa *isa = e->setup.compute.isa;
    for (size_t t = 0; t < tokens; t++) {
        float *y = out + t * e->hidden;
        memset(y, 0, e->hidden * sizeof *y);
        for (size_t s = 0; s < top_k; s++)
            isa->add_scaled(y, e->math.row + e->row_of[t * top_k + s] * e->hidden,
                            weights[t * top_k + s], e->hidden);
    }
}

/* What this layer's reads took since the choice, and the longer of that and its experts: what perfect overlap would
 * take. */
static void note_overlap(struct experts *e, uint64_t expert_ns)
{
    struct record_sums *sums = &e->setup.record->sums;
    uint64_t landed = e->slots.demand_landed_ns;
    uint64_t span = landed > e->chosen_ns ? landed - e->chosen_ns : 0;
    sums->read_span_ns += span;
    sums->overlap_ns += span > expert_ns ? span : expert_ns;
}

enum status experts_compute(struct experts *e, uint32_t pass, uint32_t layer, const float *weights,
                            const struct input *x, size_t tokens, float *out, struct diag *dg)
{
    struct record *r = e->setup.record;
    size_t top_k = ffn_of(e, layer)->top_k;
    uint64_t clock = record_now_ns(), before = r->sums.operation_ns[OPERATION_EXPERT];
    enum status st = ST_OK;
    gather(e, x, tokens, top_k);
    if (!e->setup.overlap) {
        r->sums.stalls += e->slots.pending_count > 0;
        st = settle_all(e, dg);
        clock = record_operation(r, OPERATION_STALL, pass, layer, clock);
    }
    for (uint32_t left = e->choices, n, waiting; st == ST_OK && left > 0; left -= n) {
        st = find_ready(e, &n, &waiting, dg);
        if (st == ST_OK && n > 0)
            st = experts_poll(e, pass, layer, dg);
        if (st == ST_OK && n == 0) {
            r->sums.stalls++;
            loader_io_wait_any(e->slots.io, e->ticket, waiting);
            clock = record_operation(r, OPERATION_STALL, pass, layer, clock);
        } else if (st == ST_OK) {
            compute_ready(e, layer, n, x, tokens);
            clock = record_operation(r, OPERATION_EXPERT, pass, layer, clock);
        }
    }
    if (st == ST_OK)
        combine(e, weights, tokens, top_k, out);
    note_overlap(e, r->sums.operation_ns[OPERATION_EXPERT] - before);
    return st;
}

enum status experts_layer_end(struct experts *e, uint32_t pass, uint32_t layer, struct diag *dg)
{
    size_t count;
    const struct decision *d = decide_layer_end(e->decide, pass, layer, &count);
    decision_log_layer_end(e->log, pass, layer, d, count);
    enum status st = expert_slots_execute(&e->slots, d, count, dg);
    if (st == ST_OK)
        st = expert_slots_poll(&e->slots, dg);
    return st == ST_OK ? experts_poll(e, pass, layer, dg) : st;
}

/* ---- what there is ---- */

enum status experts_settle(struct experts *e, struct diag *dg)
{
    enum status st = ST_OK;
    while (st == ST_OK && e->slots.pending_count > 0)
        st = expert_slots_settle(&e->slots, e->slots.pending[0], dg);
    return st;
}

size_t experts_chunk(const struct experts *e)
{
    return e->chunk;
}

const struct decide_setup *experts_decisions(const struct experts *e)
{
    return &e->setup.decide;
}

const struct decide_counts *experts_counts(const struct experts *e)
{
    static const struct decide_counts none;
    return e->decide ? decide_counts(e->decide) : &none;
}

bool experts_prefetch_timed(const struct experts *e)
{
    return e->setup.prefetch_timed;
}

uint64_t experts_stale_guesses(const struct experts *e)
{
    return e->guesses.dropped;
}

enum status experts_save_decisions(struct experts *e, struct diag *dg)
{
    struct decision_log *log = e->log;
    e->log = e->slots.log = NULL;
    return log ? decision_log_close(log, experts_counts(e)->command_hash, dg) : ST_OK;
}

const struct decide_layer *experts_by_layer(const struct experts *e)
{
    return e->decide ? decide_by_layer(e->decide) : NULL;
}

size_t experts_arena_bytes(const struct experts *e)
{
    return e->slots.store ? store_arena_bytes(e->slots.store) : 0;
}

uint64_t experts_moved_bytes(const struct experts *e)
{
    return e->slots.store ? store_moved_bytes(e->slots.store) : 0;
}

const char *experts_backend(const struct experts *e)
{
    return e->slots.io ? loader_io_backend(e->slots.io) : "none";
}

const char *experts_note(const struct experts *e)
{
    return e->slots.io ? loader_io_note(e->slots.io) : "";
}
