/* trace_measure.c -- see trace_measure.h. */
#include "sim/trace/trace_measure.h"

#include <stddef.h>
#include <string.h>

struct measure {
    const char *name;
    size_t offset;
    enum { MEASURE_PART, MEASURE_DOUBLE, MEASURE_MEAN_COUNT } type;
};

#define AT(member) offsetof(struct trace_layer_stats, member)

static const struct measure measures[] = {
    {"entropy_ratio", AT(entropy_ratio), MEASURE_DOUBLE},
    {"zipf_exponent", AT(zipf_exponent), MEASURE_DOUBLE},
    {"overlap_lag1", AT(overlap[0]), MEASURE_PART},
    {"overlap_lag2", AT(overlap[1]), MEASURE_PART},
    {"overlap_lag4", AT(overlap[2]), MEASURE_PART},
    {"overlap_lag8", AT(overlap[3]), MEASURE_PART},
    {"overlap_lag16", AT(overlap[4]), MEASURE_PART},
    {"overlap_lag32", AT(overlap[5]), MEASURE_PART},
    {"overlap_lag64", AT(overlap[6]), MEASURE_PART},
    {"distinct_1", AT(distinct[0]), MEASURE_MEAN_COUNT},
    {"distinct_2", AT(distinct[1]), MEASURE_MEAN_COUNT},
    {"distinct_4", AT(distinct[2]), MEASURE_MEAN_COUNT},
    {"distinct_8", AT(distinct[3]), MEASURE_MEAN_COUNT},
    {"distinct_16", AT(distinct[4]), MEASURE_MEAN_COUNT},
    {"distinct_32", AT(distinct[5]), MEASURE_MEAN_COUNT},
    {"distinct_64", AT(distinct[6]), MEASURE_MEAN_COUNT},
    {"distinct_128", AT(distinct[7]), MEASURE_MEAN_COUNT},
    {"recency_top_k", AT(recency[0]), MEASURE_PART},
    {"recency_eighth", AT(recency[1]), MEASURE_PART},
    {"recency_quarter", AT(recency[2]), MEASURE_PART},
    {"recency_half", AT(recency[3]), MEASURE_PART},
    {"coactivation", AT(coactivation), MEASURE_PART},
    {"recall_top_k_1", AT(recall_top_k[0]), MEASURE_PART},
    {"recall_top_k_2", AT(recall_top_k[1]), MEASURE_PART},
    {"recall_top_k_3", AT(recall_top_k[2]), MEASURE_PART},
    {"recall_1", AT(recall[0]), MEASURE_PART},
    {"recall_2", AT(recall[1]), MEASURE_PART},
    {"recall_3", AT(recall[2]), MEASURE_PART},
    {"precision_1", AT(precision[0]), MEASURE_PART},
    {"precision_2", AT(precision[1]), MEASURE_PART},
    {"precision_3", AT(precision[2]), MEASURE_PART},
};

size_t trace_measure_count(void)
{
    return sizeof measures / sizeof *measures;
}

const char *trace_measure_name(size_t i)
{
    return measures[i].name;
}

bool trace_measure_is_count(size_t i)
{
    return measures[i].type == MEASURE_MEAN_COUNT;
}

double trace_measure(const struct trace_layer_stats *s, size_t i)
{
    const void *member = (const char *)s + measures[i].offset;
    if (measures[i].type == MEASURE_DOUBLE)
        return *(const double *)member;
    return part_ratio(*(const struct part *)member);
}

bool trace_measure_find(const char *name, size_t *i)
{
    for (*i = 0; *i < trace_measure_count(); ++*i)
        if (!strcmp(measures[*i].name, name))
            return true;
    return false;
}
