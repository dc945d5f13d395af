/* trace_measure.h -- the figures of trace_stats.h by name, one table for the columns of `trace info` and
 * the targets of routing presets:
 *     entropy_ratio, zipf_exponent, overlap_lag1 .. overlap_lag64, distinct_1 .. distinct_128,
 *     recency_top_k, recency_eighth, recency_quarter, recency_half, coactivation,
 *     recall_top_k_1 .. _3, recall_1 .. _3, precision_1 .. _3 (by distance in layers)
 */
#ifndef SIM_TRACE_TRACE_MEASURE_H
#define SIM_TRACE_TRACE_MEASURE_H

#include "sim/trace/trace_stats.h"

#include <stdbool.h>

size_t trace_measure_count(void);
const char *trace_measure_name(size_t i);
/* A number of experts rather than a ratio. */
bool trace_measure_is_count(size_t i);
/* NaN where undefined. */
double trace_measure(const struct trace_layer_stats *s, size_t i);
/* False: no measure of that name. */
bool trace_measure_find(const char *name, size_t *i);

#endif
