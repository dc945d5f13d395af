/* trace_foresight.c -- see trace_foresight.h. */
#include "sim/trace/trace_foresight.h"

#include <stdlib.h>
#include <string.h>

enum status foresight_init(struct foresight *f, uint32_t experts, struct diag *dg)
{
    *f = (struct foresight){
        .experts = experts,
        .pairs = calloc((size_t)experts * experts, sizeof *f->pairs),
        .score = calloc(experts, sizeof *f->score),
        .use = calloc(experts, sizeof *f->use),
    };
    return f->pairs && f->score && f->use ? ST_OK : diag_no_memory(dg);
}

void foresight_free(struct foresight *f)
{
    free(f->pairs);
    free(f->score);
    free(f->use);
    *f = (struct foresight){0};
}

/* How many of `wanted` lie among the wanted->count experts of highest score (larger, then lower index);
 * a score of 0 is no prediction. */
static uint64_t count_foretold(const uint64_t *score, uint32_t experts, const struct spot *wanted)
{
    uint64_t found = 0;
    for (uint32_t j = 0; j < wanted->count; j++) {
        uint64_t own = score[wanted->ids[j]];
        uint32_t better = 0;
        for (uint32_t e = 0; e < experts; e++)
            better += score[e] > own || (score[e] == own && e < wanted->ids[j]);
        found += own > 0 && better < wanted->count;
    }
    return found;
}

static void learn_pairs(struct foresight *f, const struct spot *from, const struct spot *to)
{
    for (uint32_t j = 0; j < from->count; j++)
        for (uint32_t i = 0; i < to->count; i++)
            f->pairs[(size_t)from->ids[j] * f->experts + to->ids[i]]++;
}

/* The same token in the layer `next`, which may lack some (a last layer run for the last token only). */
static const struct spot *same_token(const struct trace_path *next, size_t *at,
                                     const struct spot *spot)
{
    while (*at < next->count &&
           (next->spot[*at].pass < spot->pass ||
            (next->spot[*at].pass == spot->pass && next->spot[*at].step < spot->step)))
        ++*at;
    if (*at == next->count || next->spot[*at].pass != spot->pass ||
        next->spot[*at].step != spot->step)
        return NULL;
    return &next->spot[*at];
}

void foresight_coactivation(struct foresight *f, const struct trace_path *here,
                            const struct trace_path *next, struct trace_layer_stats *s)
{
    uint32_t experts = f->experts;
    memset(f->pairs, 0, (size_t)experts * experts * sizeof *f->pairs);
    size_t at = 0;
    for (size_t i = 0; i < here->count; i++) {
        const struct spot *from = &here->spot[i];
        const struct spot *to = same_token(next, &at, from);
        if (!to)
            continue;
        if (to->measured) {
            memset(f->score, 0, experts * sizeof *f->score);
            for (uint32_t j = 0; j < from->count; j++)
                for (uint32_t e = 0; e < experts; e++)
                    f->score[e] += f->pairs[(size_t)from->ids[j] * experts + e];
            part_add(&s->coactivation,
                     (struct part){count_foretold(f->score, experts, to), to->count});
        }
        learn_pairs(f, from, to);
    }
}

/* The batch a prediction speaks of: the target layer's in the same pass, or in the next one if the target
 * does not come later. NULL if there is none. */
static const struct trace_batch *target_batch(const struct trace *t, const struct trace_batch *from,
                                              uint32_t target)
{
    size_t pass = from->pass + (target <= from->layer ? 1u : 0u);
    if (pass >= t->pass_count)
        return NULL;
    const struct trace_batch *first = t->batch + t->pass[pass].first_batch;
    for (size_t i = 0; i < t->pass[pass].batch_count; i++)
        if (first[i].layer == target)
            return &first[i];
    return NULL;
}

/* One run of predictions for one target: ranks 0..count-1. */
static void score_guesses(struct foresight *f, const struct trace *t,
                          const struct trace_guess *guess, size_t count,
                          const struct trace_batch *target, struct trace_layer_stats *s, size_t d)
{
    uint64_t distinct = 0, found = 0, found_top_k = 0;
    const uint16_t *ids = t->expert + target->first_row;
    for (size_t i = 0; i < target->row_count; i++)
        distinct += f->use[ids[i]]++ == 0;
    for (size_t i = 0; i < count; i++)
        if (f->use[guess[i].expert]) {
            found++;
            found_top_k += i < t->top_k;
        }
    for (size_t i = 0; i < target->row_count; i++)
        f->use[ids[i]] = 0;
    part_add(&s->recall_top_k[d], (struct part){found_top_k, distinct});
    part_add(&s->recall[d], (struct part){found, distinct});
    part_add(&s->precision[d], (struct part){found, count});
}

void foresight_guesses(struct foresight *f, const struct trace_index *x,
                       struct trace_layer_stats *layers)
{
    const struct trace *t = x->t;
    for (size_t b = 0; b < t->batch_count; b++) {
        const struct trace_batch *from = &t->batch[b];
        const struct trace_guess *guess = t->guess + from->first_guess;
        for (size_t i = 0, run; i < from->guess_count; i += run) {
            for (run = 1; i + run < from->guess_count && guess[i + run].target == guess[i].target;)
                run++;
            uint32_t layer = guess[i].target;
            const struct trace_batch *target = target_batch(t, from, layer);
            uint32_t distance = x->ordinal[layer] - x->ordinal[from->layer] +
                                (layer <= from->layer ? x->ordinal[t->layers] : 0);
            if (target && distance >= 1 && distance <= TRACE_STATS_DISTANCES)
                score_guesses(f, t, guess + i, run, target, &layers[layer], distance - 1);
        }
    }
}
