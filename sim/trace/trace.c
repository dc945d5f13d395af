/* trace.c -- a trace in memory and how it is built: see trace.h. Reading and writing files is in
 * trace_read.c, trace_foreign.c and trace_write.c; all of them, the generator and the engine build
 * through the builder here, so the rules of order are checked in one place. */
#include "sim/trace/trace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void trace_free(struct trace *t)
{
    if (!t)
        return;
    free(t->model);
    free(t->layer);
    free(t->pass);
    free(t->batch);
    free(t->step);
    free(t->slot);
    free(t->expert);
    free(t->weight);
    free(t->guess);
    free(t);
}

struct trace_builder {
    struct trace *t;
    size_t pass_room, batch_room, row_room, guess_room;
};

void trace_builder_free(struct trace_builder *b)
{
    if (!b)
        return;
    trace_free(b->t);
    free(b);
}

static enum status check_shape(const char *model, uint32_t layers, uint32_t experts, uint32_t top_k,
                               struct diag *dg)
{
    if (!model || !*model)
        return diag_set(dg, ST_RANGE, "a trace needs a model name");
    if (layers == 0 || layers > TRACE_LAYERS_MAX)
        return diag_set(dg, ST_RANGE, "layers must be 1..%d, not %u", TRACE_LAYERS_MAX, layers);
    if (experts == 0 || experts > TRACE_EXPERTS_MAX)
        return diag_set(dg, ST_RANGE, "experts must be 1..%d, not %u", TRACE_EXPERTS_MAX, experts);
    if (top_k == 0 || top_k > experts)
        return diag_set(dg, ST_RANGE, "top_k must be 1..%u, not %u", experts, top_k);
    return ST_OK;
}

static enum status check_sizes(uint32_t layers, uint32_t experts, const struct trace_layer *layer,
                               struct diag *dg)
{
    uint64_t largest = 0;
    for (uint32_t l = 0; l < layers; l++) {
        if (layer[l].expert_bytes > TRACE_EXPERT_BYTES_MAX ||
            layer[l].dense_bytes > TRACE_DENSE_BYTES_MAX)
            return diag_set(
                dg, ST_RANGE,
                "layer %u: at most 1 TiB an expert and 256 TiB of all else are expected", l);
        if (layer[l].expert_bytes > largest)
            largest = layer[l].expert_bytes;
    }
    if ((uint64_t)layers * experts > TRACE_BYTES_MAX / (largest ? largest : 1))
        return diag_set(dg, ST_RANGE, "%u layers of %u experts: at most 256 PiB are expected",
                        layers, experts);
    return ST_OK;
}

enum status trace_builder_new(struct trace_builder **out, const char *model, uint32_t layers,
                              uint32_t experts, uint32_t top_k, const struct trace_layer *layer,
                              struct diag *dg)
{
    enum status st = check_shape(model, layers, experts, top_k, dg);
    if (st != ST_OK)
        return st;
    st = check_sizes(layers, experts, layer, dg);
    if (st != ST_OK)
        return st;
    struct trace_builder *b = calloc(1, sizeof *b);
    if (b)
        b->t = calloc(1, sizeof *b->t);
    if (!b || !b->t) {
        trace_builder_free(b);
        return diag_no_memory(dg);
    }
    struct trace *t = b->t;
    t->layers = layers;
    t->experts = experts;
    t->top_k = top_k;
    t->model = strdup(model);
    t->layer = calloc(layers, sizeof *t->layer);
    if (!t->model || !t->layer) {
        trace_builder_free(b);
        return diag_no_memory(dg);
    }
    memcpy(t->layer, layer, layers * sizeof *layer);
    *out = b;
    return ST_OK;
}

/* Makes room for one more element of `size` bytes in *array. */
static bool grow(void *array, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return true;
    size_t wanted = *room ? *room * 2 : 256;
    void **slot = array;
    void *bigger = realloc(*slot, wanted * size);
    if (!bigger)
        return false;
    *slot = bigger;
    *room = wanted;
    return true;
}

/* The row arrays share one room. */
static bool grow_rows(struct trace_builder *b)
{
    struct trace *t = b->t;
    size_t n = t->row_count, room = b->row_room;
    if (n < room)
        return true;
    for (int i = 0; i < 4; i++) {
        void *array[] = {&t->step, &t->slot, &t->expert, &t->weight};
        size_t size[] = {sizeof *t->step, sizeof *t->slot, sizeof *t->expert, sizeof *t->weight};
        room = b->row_room;
        if (!grow(array[i], &room, n, size[i]))
            return false;
    }
    b->row_room = room;
    return true;
}

static enum status begin_pass(struct trace_builder *b, uint32_t turn, uint32_t phase, uint32_t pass,
                              struct diag *dg)
{
    struct trace *t = b->t;
    if (t->pass_count > 0) {
        const struct trace_pass *last = &t->pass[t->pass_count - 1];
        if (pass + 1 == t->pass_count) {
            if (last->turn != turn || last->phase != phase)
                return diag_set(dg, ST_RANGE, "pass %u has rows of two turns or phases", pass);
            return ST_OK;
        }
        if (turn < last->turn)
            return diag_set(dg, ST_RANGE, "turn %u after turn %u", turn, last->turn);
    }
    if (pass != t->pass_count)
        return diag_set(dg, ST_RANGE, "pass %zu expected, not %u", t->pass_count, pass);
    if (phase > PHASE_DECODE)
        return diag_set(dg, ST_RANGE, "phase must be 0 (prefill) or 1 (decode), not %u", phase);
    if (!grow(&t->pass, &b->pass_room, t->pass_count, sizeof *t->pass))
        return diag_no_memory(dg);
    t->pass[t->pass_count++] =
        (struct trace_pass){.turn = turn, .phase = phase, .first_batch = t->batch_count};
    return ST_OK;
}

/* Makes (pass, layer) the current batch, opening it if it is new. */
static enum status begin_batch(struct trace_builder *b, uint32_t turn, uint32_t phase,
                               uint32_t pass, uint32_t layer, struct diag *dg)
{
    struct trace *t = b->t;
    if (t->batch_count > 0) {
        const struct trace_batch *last = &t->batch[t->batch_count - 1];
        const struct trace_pass *p = &t->pass[last->pass];
        if (last->pass == pass && last->layer == layer && p->turn == turn && p->phase == phase)
            return ST_OK;
    }
    enum status st = begin_pass(b, turn, phase, pass, dg);
    if (st != ST_OK)
        return st;
    struct trace_pass *p = &t->pass[pass];
    if (p->batch_count > 0 && layer <= t->batch[t->batch_count - 1].layer)
        return diag_set(dg, ST_RANGE, "layer %u after layer %u of the same pass", layer,
                        t->batch[t->batch_count - 1].layer);
    if (!grow(&t->batch, &b->batch_room, t->batch_count, sizeof *t->batch))
        return diag_no_memory(dg);
    p->batch_count++;
    t->batch[t->batch_count++] = (struct trace_batch){
        .pass = pass, .layer = layer, .first_row = t->row_count, .first_guess = t->guess_count};
    return ST_OK;
}

/* The new row must come after the last one of its batch, and repeat none of its token's experts. */
static enum status check_row_order(const struct trace *t, const struct trace_batch *last,
                                   uint32_t step, uint32_t slot, uint32_t expert, struct diag *dg)
{
    if (last->guess_count > 0)
        return diag_set(dg, ST_RANGE, "a routing row after predictions made at the same layer");
    size_t i = t->row_count;
    bool same_token = last->row_count > 0 && t->step[i - 1] == step;
    if (last->row_count > 0 && step < t->step[i - 1])
        return diag_set(dg, ST_RANGE, "step %u after step %u of the same layer", step,
                        t->step[i - 1]);
    if (same_token ? slot != t->slot[i - 1] + 1u : slot != 0)
        return diag_set(dg, ST_RANGE, "slot %d expected, not %u",
                        same_token ? t->slot[i - 1] + 1 : 0, slot);
    for (uint32_t back = 1; back <= slot; back++)
        if (t->expert[i - back] == expert)
            return diag_set(dg, ST_RANGE, "expert %u twice for one token", expert);
    return ST_OK;
}

enum status trace_builder_row(struct trace_builder *b, uint32_t turn, uint32_t phase, uint32_t pass,
                              uint32_t step, uint32_t layer, uint32_t slot, uint32_t expert,
                              int64_t weight, struct diag *dg)
{
    struct trace *t = b->t;
    if (layer >= t->layers)
        return diag_set(dg, ST_RANGE, "layer must be below %u, not %u", t->layers, layer);
    if (expert >= t->experts)
        return diag_set(dg, ST_RANGE, "expert must be below %u, not %u", t->experts, expert);
    if (slot >= t->top_k)
        return diag_set(dg, ST_RANGE, "slot must be below top_k %u, not %u", t->top_k, slot);
    if (t->layer[layer].expert_bytes == 0)
        return diag_set(dg, ST_RANGE, "layer %u has no routed experts (expert_bytes=0)", layer);
    enum status st = begin_batch(b, turn, phase, pass, layer, dg);
    if (st != ST_OK)
        return st;
    struct trace_batch *last = &t->batch[t->batch_count - 1];
    st = check_row_order(t, last, step, slot, expert, dg);
    if (st != ST_OK)
        return st;
    if (!grow_rows(b))
        return diag_no_memory(dg);
    size_t i = t->row_count++;
    t->step[i] = step;
    t->slot[i] = (uint16_t)slot;
    t->expert[i] = (uint16_t)expert;
    t->weight[i] = weight;
    t->weights_given |= weight != 0;
    last->row_count++;
    return ST_OK;
}

enum status trace_builder_guess(struct trace_builder *b, uint32_t turn, uint32_t phase,
                                uint32_t pass, uint32_t made_at, uint32_t target, uint32_t rank,
                                uint32_t expert, int64_t score, struct diag *dg)
{
    struct trace *t = b->t;
    if (made_at >= t->layers || target >= t->layers)
        return diag_set(dg, ST_RANGE, "a prediction's layer and step must be below %u", t->layers);
    if (expert >= t->experts)
        return diag_set(dg, ST_RANGE, "expert must be below %u, not %u", t->experts, expert);
    if (t->layer[target].expert_bytes == 0)
        return diag_set(dg, ST_RANGE, "layer %u has no routed experts (expert_bytes=0)", target);
    enum status st = begin_batch(b, turn, phase, pass, made_at, dg);
    if (st != ST_OK)
        return st;
    struct trace_batch *last = &t->batch[t->batch_count - 1];
    const struct trace_guess *before = last->guess_count ? &t->guess[t->guess_count - 1] : NULL;
    uint32_t expected = before && before->target == target ? before->rank + 1 : 0;
    if (rank != expected)
        return diag_set(dg, ST_RANGE, "rank %u expected in slot, not %u", expected, rank);
    if (!grow(&t->guess, &b->guess_room, t->guess_count, sizeof *t->guess))
        return diag_no_memory(dg);
    t->guess[t->guess_count++] = (struct trace_guess){
        .target = (uint16_t)target, .expert = (uint16_t)expert, .rank = rank, .score = score};
    last->guess_count++;
    return ST_OK;
}

enum status trace_builder_finish(struct trace_builder *b, struct trace **out, struct diag *dg)
{
    struct trace *t = b->t;
    if (t->row_count == 0) {
        trace_builder_free(b);
        return diag_set(dg, ST_PARSE, "a trace without routing rows");
    }
    b->t = NULL;
    trace_builder_free(b);
    *out = t;
    return ST_OK;
}
