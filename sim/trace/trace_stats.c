/* trace_stats.c -- see trace_stats.h.
 *
 * A trace lies pass by pass, the measures run layer by layer: so the tokens of one layer are gathered into
 * a list first, and each measure is one walk over that list. Cost is linear in the rows, except for
 * recency (list search) and co-activation (a row of `experts` counters a choice); memory is one layer's
 * tokens and one experts x experts table.
 */
#include "sim/trace/trace_stats.h"

#include "base/fixed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX

/* One token in one layer. */
struct spot {
    const uint16_t *ids;
    uint32_t count;
    uint32_t pass, step, turn;
    bool measured;
};

/* The tokens of one layer, in order. */
struct path {
    struct spot *spot;
    size_t count;
    uint64_t measured;
};

struct walker {
    const struct trace *t;
    bool decode_only;
    uint32_t *ordinal;   /* per layer: how many routed layers come before it */
    size_t *batch;       /* batch indices sorted by layer, */
    size_t *first_batch; /* where each layer's begin (layers + 1) */
    struct path here, next;
    uint32_t *use;    /* experts: scratch, all 0 between measures */
    uint16_t *recent; /* experts: most recent first */
    uint32_t *pairs;  /* experts x experts: times chosen together */
    uint64_t *score;  /* experts */
};

uint32_t trace_stats_lag(size_t i)
{
    return UINT32_C(1) << i;
}

uint32_t trace_stats_window(size_t i)
{
    return UINT32_C(1) << i;
}

uint32_t trace_stats_depth(const struct trace *t, size_t i)
{
    return i == 0 ? t->top_k : t->experts >> (4 - i);
}

double part_ratio(struct part p)
{
    return p.whole ? (double)p.part / (double)p.whole : (double)NAN;
}

static void add_part(struct part *to, struct part p)
{
    to->part += p.part;
    to->whole += p.whole;
}

/* ---- gathering ---- */

/* Counting sort of the batches by layer. */
static void sort_batches(struct walker *w)
{
    const struct trace *t = w->t;
    for (size_t i = 0; i < t->batch_count; i++)
        w->first_batch[t->batch[i].layer + 1]++;
    for (uint32_t l = 0; l < t->layers; l++) {
        w->ordinal[l + 1] = w->ordinal[l] + (w->first_batch[l + 1] > 0);
        w->first_batch[l + 1] += w->first_batch[l];
    }
    for (size_t i = 0; i < t->batch_count; i++)
        w->batch[w->first_batch[t->batch[i].layer]++] = i;
    memmove(w->first_batch + 1, w->first_batch, t->layers * sizeof *w->first_batch);
    w->first_batch[0] = 0;
}

static enum status walker_open(struct walker *w, const struct trace *t, struct diag *dg)
{
    w->t = t;
    for (size_t i = 0; i < t->pass_count; i++)
        w->decode_only |= t->pass[i].phase == PHASE_DECODE;
    w->ordinal = calloc((size_t)t->layers + 1, sizeof *w->ordinal);
    w->batch = calloc(t->batch_count + 1, sizeof *w->batch);
    w->first_batch = calloc((size_t)t->layers + 1, sizeof *w->first_batch);
    w->use = calloc(t->experts, sizeof *w->use);
    w->recent = calloc(t->experts, sizeof *w->recent);
    w->pairs = calloc((size_t)t->experts * t->experts, sizeof *w->pairs);
    w->score = calloc(t->experts, sizeof *w->score);
    if (!w->ordinal || !w->batch || !w->first_batch || !w->use || !w->recent || !w->pairs ||
        !w->score)
        return diag_no_memory(dg);
    sort_batches(w);
    return ST_OK;
}

static void walker_close(struct walker *w)
{
    free(w->ordinal);
    free(w->batch);
    free(w->first_batch);
    free(w->here.spot);
    free(w->next.spot);
    free(w->use);
    free(w->recent);
    free(w->pairs);
    free(w->score);
}

static void gather_batch(const struct walker *w, const struct trace_batch *b, struct path *path)
{
    const struct trace *t = w->t;
    const struct trace_pass *pass = &t->pass[b->pass];
    for (size_t i = b->first_row, end = b->first_row + b->row_count; i < end;) {
        size_t from = i;
        while (i < end && t->step[i] == t->step[from])
            i++;
        struct spot *spot = &path->spot[path->count++];
        *spot = (struct spot){.ids = t->expert + from,
                              .count = (uint32_t)(i - from),
                              .pass = b->pass,
                              .step = t->step[from],
                              .turn = pass->turn,
                              .measured = !w->decode_only || pass->phase == PHASE_DECODE};
        path->measured += spot->measured;
    }
}

/* Fills `path` with the tokens of a layer, replacing what it held. */
static enum status gather(const struct walker *w, uint32_t layer, struct path *path,
                          struct diag *dg)
{
    size_t rows = 0;
    for (size_t i = w->first_batch[layer]; i < w->first_batch[layer + 1]; i++)
        rows += w->t->batch[w->batch[i]].row_count;
    free(path->spot);
    *path = (struct path){.spot = calloc(rows + 1, sizeof *path->spot)};
    if (!path->spot)
        return diag_no_memory(dg);
    for (size_t i = w->first_batch[layer]; i < w->first_batch[layer + 1]; i++)
        gather_batch(w, &w->t->batch[w->batch[i]], path);
    return ST_OK;
}

/* ---- skew ---- */

static int descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static double log2_of(uint64_t x)
{
    return (double)fixed_log2_q32(x) / (double)FIXED_ONE;
}

/* H / log2(N) with H = log2(n) - sum c log2(c) / n. */
static double entropy_of(const uint32_t *uses, uint32_t experts, uint64_t total)
{
    if (total == 0 || experts < 2)
        return (double)NAN;
    double sum = 0;
    for (uint32_t e = 0; e < experts; e++)
        if (uses[e])
            sum += (double)uses[e] * log2_of(uses[e]);
    return (log2_of(total) - sum / (double)total) / log2_of(experts);
}

/* `uses` in descending order. */
static double zipf_of(const uint32_t *uses, uint32_t experts)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (uint32_t e = 0; e < experts && uses[e]; e++) {
        double x = log2_of((uint64_t)e + 1), y = log2_of(uses[e]);
        n += 1;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    double spread = n * sxx - sx * sx;
    return n < 2 ? (double)NAN : -(n * sxy - sx * sy) / spread;
}

static void measure_skew(struct walker *w, struct trace_layer_stats *s)
{
    uint64_t total = 0;
    for (size_t i = 0; i < w->here.count; i++) {
        const struct spot *spot = &w->here.spot[i];
        for (uint32_t j = 0; j < spot->count && spot->measured; j++, total++)
            w->use[spot->ids[j]]++;
    }
    qsort(w->use, w->t->experts, sizeof *w->use, descending);
    s->entropy_ratio = entropy_of(w->use, w->t->experts, total);
    s->zipf_exponent = zipf_of(w->use, w->t->experts);
    memset(w->use, 0, w->t->experts * sizeof *w->use);
}

/* ---- repetition ---- */

static void measure_overlap(struct walker *w, struct trace_layer_stats *s)
{
    for (size_t i = 0; i < w->here.count; i++) {
        const struct spot *spot = &w->here.spot[i];
        for (uint32_t j = 0; j < spot->count; j++)
            w->use[spot->ids[j]] = 1;
        for (size_t g = 0; g < TRACE_STATS_LAGS && spot->measured; g++) {
            const struct spot *old = i >= trace_stats_lag(g) ? spot - trace_stats_lag(g) : NULL;
            if (!old || !old->measured || old->turn != spot->turn)
                continue;
            s->overlap[g].whole += spot->count;
            for (uint32_t j = 0; j < old->count; j++)
                s->overlap[g].part += w->use[old->ids[j]];
        }
        for (uint32_t j = 0; j < spot->count; j++)
            w->use[spot->ids[j]] = 0;
    }
}

/* `use` holds the number of the window an expert was last seen in. */
static void measure_window(struct walker *w, uint32_t window, struct part *out)
{
    uint32_t number = 1, held = 0, distinct = 0;
    for (size_t i = 0; i < w->here.count; i++) {
        const struct spot *spot = &w->here.spot[i];
        if (held == window || (held && spot[-1].turn != spot->turn)) {
            number++;
            held = distinct = 0;
        }
        if (!spot->measured)
            continue;
        for (uint32_t j = 0; j < spot->count; j++) {
            distinct += w->use[spot->ids[j]] != number;
            w->use[spot->ids[j]] = number;
        }
        if (++held == window)
            add_part(out, (struct part){distinct, 1});
    }
    memset(w->use, 0, w->t->experts * sizeof *w->use);
}

/* Where an expert stands in the recency list, or NEVER. */
static uint32_t find_recent(const struct walker *w, uint32_t held, uint16_t expert)
{
    for (uint32_t i = 0; i < held; i++)
        if (w->recent[i] == expert)
            return i;
    return NEVER;
}

/* A pass is one batch: all of it is looked up in the list as it stood before, then moved to the front
 * in order. */
static void measure_recency(struct walker *w, struct trace_layer_stats *s)
{
    uint32_t held = 0;
    size_t ahead = 0;
    for (size_t i = 0; i < w->here.count; i = ahead) {
        for (ahead = i; ahead < w->here.count && w->here.spot[ahead].pass == w->here.spot[i].pass;
             ahead++) {
            const struct spot *spot = &w->here.spot[ahead];
            for (uint32_t j = 0; j < spot->count && spot->measured; j++) {
                uint32_t at = find_recent(w, held, spot->ids[j]);
                for (size_t d = 0; d < TRACE_STATS_DEPTHS; d++)
                    add_part(&s->recency[d], (struct part){at < trace_stats_depth(w->t, d), 1});
            }
        }
        for (size_t b = i; b < ahead; b++)
            for (uint32_t j = 0; j < w->here.spot[b].count; j++) {
                uint32_t at = find_recent(w, held, w->here.spot[b].ids[j]);
                if (at == NEVER)
                    at = held++;
                memmove(w->recent + 1, w->recent, at * sizeof *w->recent);
                w->recent[0] = w->here.spot[b].ids[j];
            }
    }
}

/* ---- prediction ---- */

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

static void learn_pairs(struct walker *w, const struct spot *from, const struct spot *to)
{
    for (uint32_t j = 0; j < from->count; j++)
        for (uint32_t i = 0; i < to->count; i++)
            w->pairs[(size_t)from->ids[j] * w->t->experts + to->ids[i]]++;
}

/* The same token in the layer `next`, which may lack some (a last layer run for the last token only). */
static const struct spot *same_token(const struct path *next, size_t *at, const struct spot *spot)
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

static void measure_coactivation(struct walker *w, struct trace_layer_stats *s)
{
    uint32_t experts = w->t->experts;
    memset(w->pairs, 0, (size_t)experts * experts * sizeof *w->pairs);
    size_t at = 0;
    for (size_t i = 0; i < w->here.count; i++) {
        const struct spot *from = &w->here.spot[i];
        const struct spot *to = same_token(&w->next, &at, from);
        if (!to)
            continue;
        if (to->measured) {
            memset(w->score, 0, experts * sizeof *w->score);
            for (uint32_t j = 0; j < from->count; j++)
                for (uint32_t e = 0; e < experts; e++)
                    w->score[e] += w->pairs[(size_t)from->ids[j] * experts + e];
            add_part(&s->coactivation,
                     (struct part){count_foretold(w->score, experts, to), to->count});
        }
        learn_pairs(w, from, to);
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
static void score_guesses(struct walker *w, const struct trace_guess *guess, size_t count,
                          const struct trace_batch *target, struct trace_layer_stats *s, size_t d)
{
    uint64_t distinct = 0, found = 0, found_top_k = 0;
    const uint16_t *ids = w->t->expert + target->first_row;
    for (size_t i = 0; i < target->row_count; i++)
        distinct += w->use[ids[i]]++ == 0;
    for (size_t i = 0; i < count; i++)
        if (w->use[guess[i].expert]) {
            found++;
            found_top_k += i < w->t->top_k;
        }
    for (size_t i = 0; i < target->row_count; i++)
        w->use[ids[i]] = 0;
    add_part(&s->recall_top_k[d], (struct part){found_top_k, distinct});
    add_part(&s->recall[d], (struct part){found, distinct});
    add_part(&s->precision[d], (struct part){found, count});
}

static void measure_guesses(struct walker *w, struct trace_stats *s)
{
    const struct trace *t = w->t;
    for (size_t b = 0; b < t->batch_count; b++) {
        const struct trace_batch *from = &t->batch[b];
        const struct trace_guess *guess = t->guess + from->first_guess;
        for (size_t i = 0, run; i < from->guess_count; i += run) {
            for (run = 1; i + run < from->guess_count && guess[i + run].target == guess[i].target;)
                run++;
            uint32_t layer = guess[i].target;
            const struct trace_batch *target = target_batch(t, from, layer);
            uint32_t distance = w->ordinal[layer] - w->ordinal[from->layer] +
                                (layer <= from->layer ? w->ordinal[t->layers] : 0);
            if (target && distance >= 1 && distance <= TRACE_STATS_DISTANCES)
                score_guesses(w, guess + i, run, target, &s->layer[layer], distance - 1);
        }
    }
}

/* ---- all of it ---- */

static enum status measure_layer(struct walker *w, uint32_t layer, struct trace_layer_stats *s,
                                 struct diag *dg)
{
    enum status st = gather(w, layer, &w->here, dg);
    uint32_t next = layer + 1;
    while (next < w->t->layers && w->first_batch[next] == w->first_batch[next + 1])
        next++;
    if (st == ST_OK && next < w->t->layers)
        st = gather(w, next, &w->next, dg);
    if (st != ST_OK)
        return st;
    s->tokens = w->here.measured;
    measure_skew(w, s);
    measure_overlap(w, s);
    for (size_t i = 0; i < TRACE_STATS_WINDOWS; i++)
        measure_window(w, trace_stats_window(i), &s->distinct[i]);
    measure_recency(w, s);
    if (next < w->t->layers)
        measure_coactivation(w, s);
    return ST_OK;
}

static void add_layer(struct trace_layer_stats *to, const struct trace_layer_stats *s)
{
    for (size_t i = 0; i < TRACE_STATS_LAGS; i++)
        add_part(&to->overlap[i], s->overlap[i]);
    for (size_t i = 0; i < TRACE_STATS_WINDOWS; i++)
        add_part(&to->distinct[i], s->distinct[i]);
    for (size_t i = 0; i < TRACE_STATS_DEPTHS; i++)
        add_part(&to->recency[i], s->recency[i]);
    add_part(&to->coactivation, s->coactivation);
    for (size_t i = 0; i < TRACE_STATS_DISTANCES; i++) {
        add_part(&to->recall_top_k[i], s->recall_top_k[i]);
        add_part(&to->recall[i], s->recall[i]);
        add_part(&to->precision[i], s->precision[i]);
    }
}

static double mean_of(const struct trace_stats *s, double (*pick)(const struct trace_layer_stats *))
{
    double sum = 0, n = 0;
    for (uint32_t l = 0; l < s->layers; l++) {
        double x = pick(&s->layer[l]);
        if (s->layer[l].tokens && x == x) {
            sum += x;
            n += 1;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}

static double pick_entropy(const struct trace_layer_stats *s)
{
    return s->entropy_ratio;
}

static double pick_zipf(const struct trace_layer_stats *s)
{
    return s->zipf_exponent;
}

/* Tokens of a pass: what its fullest batch holds. */
static void count_tokens(struct trace_stats *s, const struct trace *t)
{
    for (size_t p = 0; p < t->pass_count; p++) {
        uint64_t most = 0;
        for (size_t i = 0; i < t->pass[p].batch_count; i++) {
            const struct trace_batch *b = &t->batch[t->pass[p].first_batch + i];
            uint64_t tokens = 0;
            for (size_t r = b->first_row; r < b->first_row + b->row_count; r++)
                tokens += t->slot[r] == 0;
            most = tokens > most ? tokens : most;
        }
        *(t->pass[p].phase == PHASE_DECODE ? &s->decode_tokens : &s->prefill_tokens) += most;
        s->turns += p == 0 || t->pass[p].turn != t->pass[p - 1].turn;
    }
}

static enum status measure_all(struct walker *w, struct trace_stats *s, struct diag *dg)
{
    for (uint32_t l = 0; l < s->layers; l++) {
        if (w->first_batch[l] == w->first_batch[l + 1])
            continue;
        s->routed_layers++;
        enum status st = measure_layer(w, l, &s->layer[l], dg);
        if (st != ST_OK)
            return st;
    }
    measure_guesses(w, s);
    count_tokens(s, w->t);
    for (uint32_t l = 0; l < s->layers; l++)
        add_layer(&s->overall, &s->layer[l]);
    s->overall.tokens = w->decode_only ? s->decode_tokens : s->prefill_tokens;
    s->overall.entropy_ratio = mean_of(s, pick_entropy);
    s->overall.zipf_exponent = mean_of(s, pick_zipf);
    return ST_OK;
}

enum status trace_stats_new(struct trace_stats **out, const struct trace *t, struct diag *dg)
{
    *out = NULL;
    struct walker w = {0};
    struct trace_stats *s = calloc(1, sizeof *s);
    enum status st = s ? walker_open(&w, t, dg) : diag_no_memory(dg);
    if (st == ST_OK) {
        *s = (struct trace_stats){.passes = t->pass_count,
                                  .rows = t->row_count,
                                  .guesses = t->guess_count,
                                  .layers = t->layers,
                                  .layer = calloc(t->layers, sizeof *s->layer)};
        st = s->layer ? measure_all(&w, s, dg) : diag_no_memory(dg);
    }
    walker_close(&w);
    if (st == ST_OK)
        *out = s;
    else
        trace_stats_free(s);
    return st;
}

void trace_stats_free(struct trace_stats *s)
{
    if (!s)
        return;
    free(s->layer);
    free(s);
}
