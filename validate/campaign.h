/* campaign.h -- the engine run and simulated, cell by cell: what a device description made by calibrate alone foretells.
 *
 * A cell is one choice of policy, prefetch, cache, overlap, lanes, threads, emulated flash. It is run on the engine several
 * times, in turn with all other cells, so that drift of the machine meets all alike; its first run's routing is what the
 * simulator is given. Nothing is tuned to a cell.
 *
 * Admission, fixed beforehand: a repeat counts only if sentinels of about 20 ms just before and just after it
 * (a loop over memory, bursts of reads) are within 5 % of the ones taken with the calibration, and no processor time was
 * stolen meanwhile. A cell of which no repeat is admitted is kept in the table and not counted; on a machine that is never
 * that quiet the wider figures over all cells are what there is, and both are given. */
#ifndef VALIDATE_CAMPAIGN_H
#define VALIDATE_CAMPAIGN_H

#include "sim/pipeline/forecast.h"
#include "validate/calibration.h"

struct measured_cell {
    /* what is run */
    const struct cache_policy *policy;
    const struct prefetch_policy *prefetch; /* NULL: none */
    uint64_t cache_bytes;
    bool overlap, packed;
    uint32_t lanes;
    size_t threads;
    uint64_t limit_rate_Bps, add_latency_ns; /* emulated flash; 0: as it is */
    int base; /* index of the same cell without the intervention, or -1 */
    /* measured */
    struct decide_counts measured;
    uint64_t late_measured;
    double s_per_token, spread_ratio; /* median over repeats; (p90 - p10) / median */
    double compute_s, stall_s;        /* a token, of the median repeat's kind */
    size_t repeats, admitted;
    /* simulated */
    struct decide_counts simulated;
    uint64_t late_simulated;
    double s_simulated, low_s, high_s; /* a token */
    double compute_s_simulated, stall_s_simulated;
    bool equal; /* tier E1: counts, bytes and command hash */
};

/* Signed: simulated seconds per token over measured ones, less 1. */
static inline double measured_cell_error(const struct measured_cell *c)
{
    return c->s_simulated / c->s_per_token - 1;
}

struct measured_setup {
    const char *model, *pack,
        *route; /* pack for cells that are packed; route NULL: the model's own */
    const char *isa;
    const char *profiles; /* catalogue folder of engine profiles */
    const char *folder;   /* for the traces and the description, temporary */
    size_t prompt, tokens, repeats;
    uint64_t draws, seed;
    bool quick;
    void (*progress)(void *self, const char *step, size_t done, size_t all);
    void *self;
};

/* The matrix for a model: cells from the least cache to all resident, chosen by `quick`. At most `room`; returns how
 * many. */
size_t measured_cells(struct measured_cell *cell, size_t room, const struct model *m,
                      const struct measured_setup *s);

/* Calibrates, runs, simulates. `calibration` may be NULL. */
MUST_CHECK enum status measured_run(struct measured_cell *cell, size_t count,
                                    const struct measured_setup *s, struct calibration *calibration,
                                    struct diag *dg);

struct measured_score {
    size_t cells, admitted_cells, equal_cells, ordered_cells;
    double error_median, error_p95; /* |signed error| of seconds per token, admitted or all */
    double ratio_error_median;      /* of interventions: predicted over measured ratio */
    size_t interventions;
    double coverage; /* share of cells within [low, high] */
    double tau;      /* Kendall, over policies of one budget that differ by more than spread */
    size_t prefetch_signs, prefetch_signs_right;
    bool admitted_only;
};
void measured_score_of(struct measured_score *out, const struct measured_cell *cell, size_t count,
                       bool admitted_only);

#endif
