/* trace_stats.c -- see trace_stats.h.
 *
 * Each measure is one walk over the tokens of one layer (trace_path.h). Cost is linear in the rows, except
 * for recency, a search of a list, and co-activation, a row of `experts` counters a choice. */
#include "sim/trace/trace_stats.h"

#include "base/fixed.h"
#include "sim/trace/trace_foresight.h"
#include "sim/trace/trace_path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX

struct walker {
    const struct trace *t;
    struct trace_index index;
    struct foresight foresight;
    struct trace_path here, next;
    uint32_t *use;    /* experts: scratch, all 0 between measures */
    uint16_t *recent; /* experts: most recent first */
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

void part_add(struct part *to, struct part p)
{
    to->part += p.part;
    to->whole += p.whole;
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
            part_add(out, (struct part){distinct, 1});
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
                    part_add(&s->recency[d], (struct part){at < trace_stats_depth(w->t, d), 1});
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

/* ---- all of it ---- */

static enum status measure_layer(struct walker *w, uint32_t layer, struct trace_layer_stats *s,
                                 struct diag *dg)
{
    enum status st = trace_index_gather(&w->index, layer, &w->here, dg);
    uint32_t next = layer + 1;
    while (next < w->t->layers && !trace_index_has(&w->index, next))
        next++;
    if (st == ST_OK && next < w->t->layers)
        st = trace_index_gather(&w->index, next, &w->next, dg);
    if (st != ST_OK)
        return st;
    s->tokens = w->here.measured;
    measure_skew(w, s);
    measure_overlap(w, s);
    for (size_t i = 0; i < TRACE_STATS_WINDOWS; i++)
        measure_window(w, trace_stats_window(i), &s->distinct[i]);
    measure_recency(w, s);
    if (next < w->t->layers)
        foresight_coactivation(&w->foresight, &w->here, &w->next, s);
    return ST_OK;
}

static void add_layer(struct trace_layer_stats *to, const struct trace_layer_stats *s)
{
    for (size_t i = 0; i < TRACE_STATS_LAGS; i++)
        part_add(&to->overlap[i], s->overlap[i]);
    for (size_t i = 0; i < TRACE_STATS_WINDOWS; i++)
        part_add(&to->distinct[i], s->distinct[i]);
    for (size_t i = 0; i < TRACE_STATS_DEPTHS; i++)
        part_add(&to->recency[i], s->recency[i]);
    part_add(&to->coactivation, s->coactivation);
    for (size_t i = 0; i < TRACE_STATS_DISTANCES; i++) {
        part_add(&to->recall_top_k[i], s->recall_top_k[i]);
        part_add(&to->recall[i], s->recall[i]);
        part_add(&to->precision[i], s->precision[i]);
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
        if (!trace_index_has(&w->index, l))
            continue;
        s->routed_layers++;
        enum status st = measure_layer(w, l, &s->layer[l], dg);
        if (st != ST_OK)
            return st;
    }
    foresight_guesses(&w->foresight, &w->index, s->layer);
    count_tokens(s, w->t);
    for (uint32_t l = 0; l < s->layers; l++)
        add_layer(&s->overall, &s->layer[l]);
    s->overall.tokens = w->index.decode_only ? s->decode_tokens : s->prefill_tokens;
    s->overall.entropy_ratio = mean_of(s, pick_entropy);
    s->overall.zipf_exponent = mean_of(s, pick_zipf);
    return ST_OK;
}

static enum status walker_open(struct walker *w, const struct trace *t, struct diag *dg)
{
    w->t = t;
    w->use = calloc(t->experts, sizeof *w->use);
    w->recent = calloc(t->experts, sizeof *w->recent);
    if (!w->use || !w->recent)
        return diag_no_memory(dg);
    enum status st = trace_index_init(&w->index, t, dg);
    return st == ST_OK ? foresight_init(&w->foresight, t->experts, dg) : st;
}

static void walker_close(struct walker *w)
{
    trace_index_free(&w->index);
    foresight_free(&w->foresight);
    free(w->here.spot);
    free(w->next.spot);
    free(w->use);
    free(w->recent);
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
