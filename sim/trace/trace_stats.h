/* trace_stats.h -- what a routing trace is like: how skewed, how repetitive, how predictable.
 *
 * All measures are per layer, over the tokens of decode passes (of all passes where there is no decode
 * pass). Prefill tokens count as history. S_t is the set of experts that token t chose in the layer.
 *
 * Ratios are kept as two integers, so that layers add up exactly; an overall figure is the sum over
 * layers, and a ratio whose whole is 0 is undefined. Nothing here depends on a libm.
 */
#ifndef SIM_TRACE_TRACE_STATS_H
#define SIM_TRACE_TRACE_STATS_H

#include "base/status.h"
#include "sim/trace/trace.h"

enum {
    TRACE_STATS_LAGS = 7,    /* 1, 2, 4, .. 64 tokens */
    TRACE_STATS_WINDOWS = 8, /* 1, 2, 4, .. 128 tokens */
    TRACE_STATS_DEPTHS = 4,  /* top_k, experts / 8, / 4, / 2 slots */
    TRACE_STATS_DISTANCES = 3
};

struct part {
    uint64_t part, whole;
};

struct trace_layer_stats {
    uint64_t tokens; /* measured */
    /* Shannon entropy of expert use over log2(experts): 1 is uniform. */
    double entropy_ratio;
    /* Minus the least-squares slope of log(uses) over log(rank), experts never used left out. */
    double zipf_exponent;
    /* |S_t & S_{t-lag}| / |S_t|, both in one turn. */
    struct part overlap[TRACE_STATS_LAGS];
    /* Distinct experts in `window` tokens of one turn / number of such windows, laid end to end. */
    struct part distinct[TRACE_STATS_WINDOWS];
    /* Choices found among the `slots` most recently used distinct experts of the layer as it stood before
     * the token: the hit ratio of a per-layer LRU cache of that many slots. */
    struct part recency[TRACE_STATS_DEPTHS];
    /* Next-layer predictability from ids alone: share of the next routed layer's S_t among the |S_t|
     * experts there that were chosen most often together with this layer's S_t by earlier tokens. */
    struct part coactivation;
    /* Prediction rows whose target is this layer, by distance in routed layers (1..3): share of the batch's
     * experts among the first top_k ranks, among all ranks, and share of the ranks that came true. */
    struct part recall_top_k[TRACE_STATS_DISTANCES];
    struct part recall[TRACE_STATS_DISTANCES];
    struct part precision[TRACE_STATS_DISTANCES];
};

struct trace_stats {
    uint64_t turns, passes, rows, guesses;
    uint64_t prefill_tokens, decode_tokens;
    uint64_t routed_layers;
    uint32_t layers;
    struct trace_layer_stats *layer; /* `layers` of them; a layer without rows has tokens 0 */
    struct trace_layer_stats
        overall; /* parts summed; entropy and exponent averaged over routed layers */
};

uint32_t trace_stats_lag(size_t i);
uint32_t trace_stats_window(size_t i);
uint32_t trace_stats_depth(const struct trace *t, size_t i);

void part_add(struct part *to, struct part p);
/* part / whole, or NaN if the whole is 0. */
double part_ratio(struct part p);

MUST_CHECK enum status trace_stats_new(struct trace_stats **out, const struct trace *t,
                                       struct diag *dg);
void trace_stats_free(struct trace_stats *s);

#endif
