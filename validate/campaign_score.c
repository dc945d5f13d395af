/* campaign_score.c -- what the cells together say: errors, ratios of interventions, coverage, order of policies. */
#include "validate/campaign.h"

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

static bool counts(const struct measured_cell *c, bool admitted_only)
{
    return c->admitted > 0 || !admitted_only;
}

static bool alike_but_policy(const struct measured_cell *a, const struct measured_cell *b)
{
    return a->cache_bytes == b->cache_bytes && a->prefetch == b->prefetch &&
           a->overlap == b->overlap && a->packed == b->packed && a->lanes == b->lanes &&
           a->threads == b->threads && a->limit_rate_Bps == b->limit_rate_Bps &&
           a->add_latency_ns == b->add_latency_ns;
}

/* Differ by more than what repeats of one cell do. */
static bool apart(const struct measured_cell *a, const struct measured_cell *b)
{
    double spread = a->spread_ratio > b->spread_ratio ? a->spread_ratio : b->spread_ratio;
    double larger = a->s_per_token > b->s_per_token ? a->s_per_token : b->s_per_token;
    return fabs(a->s_per_token - b->s_per_token) > spread * larger;
}

static bool same_order(const struct measured_cell *a, const struct measured_cell *b)
{
    return (a->s_per_token < b->s_per_token) == (a->s_simulated < b->s_simulated);
}

/* Pairs of policies, and of with and without prefetch. */
static void judge_pairs(struct measured_score *out, const struct measured_cell *cell, size_t count,
                        bool admitted_only)
{
    size_t pairs = 0, right = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            const struct measured_cell *a = &cell[i], *b = &cell[j];
            if (!counts(a, admitted_only) || !counts(b, admitted_only) || !apart(a, b))
                continue;
            if (a->policy != b->policy && alike_but_policy(a, b)) {
                pairs++;
                right += same_order(a, b);
            }
            struct measured_cell without = *b;
            without.prefetch = a->prefetch;
            if (a->policy == b->policy && a->prefetch != b->prefetch &&
                (!a->prefetch || !b->prefetch) && alike_but_policy(a, &without)) {
                out->prefetch_signs++;
                out->prefetch_signs_right += same_order(a, b);
            }
        }
    out->tau = pairs ? 2.0 * (double)right / (double)pairs - 1 : 0.0 / 0.0;
}

void measured_score_of(struct measured_score *out, const struct measured_cell *cell, size_t count,
                       bool admitted_only)
{
    double *error = calloc(count + 1, sizeof *error), *ratio = calloc(count + 1, sizeof *ratio);
    size_t n = 0, covered = 0;
    *out = (struct measured_score){.admitted_only = admitted_only};
    for (size_t i = 0; error && ratio && i < count; i++) {
        const struct measured_cell *c = &cell[i];
        out->ordered_cells++;
        out->equal_cells += c->equal;
        out->admitted_cells += c->admitted > 0;
        if (!counts(c, admitted_only))
            continue;
        error[n++] = fabs(measured_cell_error(c));
        covered += c->s_per_token >= c->low_s && c->s_per_token <= c->high_s;
        if (c->base >= 0 && counts(&cell[c->base], admitted_only))
            ratio[out->interventions++] = fabs((c->s_simulated / cell[c->base].s_simulated) /
                                                   (c->s_per_token / cell[c->base].s_per_token) -
                                               1);
    }
    out->cells = n;
    out->error_median = n ? stats_median(error, n) : 0.0 / 0.0;
    out->error_p95 = n ? stats_quantile(error, n, 0.95) : 0.0 / 0.0;
    out->coverage = n ? (double)covered / (double)n : 0.0 / 0.0;
    out->ratio_error_median =
        out->interventions ? stats_median(ratio, out->interventions) : 0.0 / 0.0;
    judge_pairs(out, cell, count, admitted_only);
    free(error);
    free(ratio);
}
