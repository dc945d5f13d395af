/* fit.c -- see fit.h: which parameters a table determines, and what is written down of them. */
#include "devices/fit.h"

#include "devices/fit_solve.h"

#include <gsl/gsl_errno.h>

#include <assert.h>
#include <math.h>
#include <string.h>

/* A half-width of the value itself: the interval reaches down to nothing. */
#define UNDETERMINED 1.0
/* Reads above this size say nothing of the small reads that iops bounds. */
#define SMALL_READ 65536

static const char *const keys[FIT_PARAMETERS] = {"latency", "lane_bandwidth", "bandwidth", "iops"};

const char *fit_parameter_key(enum fit_parameter p)
{
    return keys[p];
}

static bool is_determined(const struct storage_fit *f)
{
    for (size_t p = 0; p < FIT_PARAMETERS; p++)
        if (f->given[p] && !(f->half_width[p] <= UNDETERMINED))
            return false;
    return true;
}

/* Akaike's criterion, corrected for small tables; less is better. */
static double criterion(const struct storage_fit *f)
{
    double n = (double)f->rows, k = (double)f->fitted;
    double rms = f->rms > 1e-9 ? f->rms : 1e-9; /* rates are whole B/s: nothing is more exact */
    if (n <= k + 1)
        return INFINITY;
    return 2 * n * log(rms) + 2 * k + 2 * k * (k + 1) / (n - k - 1);
}

/* What a table covers decides what can be asked of it. */
struct coverage {
    bool several_sizes, several_depths, small_reads;
};

static struct coverage coverage_of(const struct rate_table *t)
{
    struct coverage c = {0};
    for (size_t i = 0; i < t->count; i++) {
        const struct rate_row *row = &t->rows[i];
        c.several_sizes |= row->bytes != t->rows[0].bytes;
        c.several_depths |= row->depth != t->rows[0].depth;
        c.small_reads |= row->bytes <= SMALL_READ && row->depth > 1;
    }
    return c;
}

static void add_fit_quality(struct storage_fit *f, const struct rate_table *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct rate_row *row = &t->rows[i];
        double off = storage_fit_rate(f, row->bytes, row->depth) / (double)row->rate_Bps - 1;
        sum += off * off;
        f->rate_max_Bps = fmax(f->rate_max_Bps, (double)row->rate_Bps);
    }
    f->rms = sqrt(sum / (double)t->count);
}

/* Which parameters the bits of `mask` name, if the table can tell them apart. */
static bool is_candidate(bool *given, unsigned mask, const struct coverage *c)
{
    for (size_t p = 0; p < FIT_PARAMETERS; p++)
        given[p] = mask >> p & 1;
    /* At one depth a lane and the ceiling are the same line. */
    return mask && (c->several_depths || !given[FIT_BANDWIDTH]) &&
           (c->small_reads || !given[FIT_IOPS]);
}

/* The set of parameters that explains the table best among those that it determines. */
static enum status fit_choose(struct storage_fit *best, const struct coverage *c,
                              const struct rate_table *t, struct diag *dg)
{
    double least = INFINITY;
    for (unsigned mask = 1; mask < 1u << FIT_PARAMETERS; mask++) {
        bool given[FIT_PARAMETERS];
        struct storage_fit f;
        if (!is_candidate(given, mask, c))
            continue;
        enum status st = fit_solve(&f, given, FIT_ROUNDED, t, dg);
        if (st != ST_OK && st != ST_MISFIT)
            return st;
        if (st == ST_OK && is_determined(&f) && criterion(&f) < least) {
            least = criterion(&f);
            *best = f;
        }
    }
    if (isinf(least))
        return diag_set(dg, ST_MISFIT, "%s: %zu rows determine no parameter", t->name, t->count);
    if (!best->given[FIT_LATENCY])
        return diag_set(
            dg, ST_MISFIT,
            "%s: the latency does not show in any row: smaller reads at a smaller depth "
            "are needed",
            t->name);
    return ST_OK;
}

static enum status fit_best(struct storage_fit *out, const struct rate_table *t,
                            enum fit_corner corner, struct diag *dg)
{
    const struct coverage c = coverage_of(t);
    if (!c.several_sizes)
        return diag_set(dg, ST_MISFIT,
                        "%s: rows of one read size: latency and lane rate cannot be told apart",
                        t->name);
    enum status st = fit_choose(out, &c, t, dg);
    if (st == ST_OK && corner == FIT_SHARP) {
        bool given[FIT_PARAMETERS];
        memcpy(given, out->given, sizeof given);
        st = fit_solve(out, given, FIT_SHARP, t, dg);
    }
    if (st == ST_OK)
        add_fit_quality(out, t);
    return st;
}

enum status storage_fit_run(struct storage_fit *out, const struct rate_table *t,
                            enum fit_corner corner, struct diag *dg)
{
    /* GSL's own handler aborts the program; its failures are ours to report. */
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    enum status st = fit_best(out, t, corner, dg);
    gsl_set_error_handler(before);
    return st;
}

uint64_t storage_fit_rounded(double x)
{
    assert(x > 0);
    double step = 1;
    while (x / step >= 10000)
        step *= 10;
    double whole = floor(x / step + 0.5) * step;
    return whole < 1 ? 1 : (uint64_t)whole;
}

void storage_fit_values(struct storage *out, const struct storage_fit *f, const char *source)
{
    static const enum dimension dims[FIT_PARAMETERS] = {DIM_TIME, DIM_RATE, DIM_RATE,
                                                        DIM_FREQUENCY};
    struct value *values[FIT_PARAMETERS] = {&out->latency, &out->lane_bandwidth, &out->bandwidth,
                                            &out->iops};
    for (size_t p = 0; p < FIT_PARAMETERS; p++) {
        if (!f->given[p])
            continue;
        *values[p] = (struct value){.amount = storage_fit_rounded(f->amount[p]),
                                    .spread = (uint64_t)(f->half_width[p] * 1000 + 0.5) * 1000000,
                                    .source = source,
                                    .kind = KIND_FITTED,
                                    .dim = dims[p],
                                    .given = true,
                                    .spread_given = true};
    }
    if (!f->given[FIT_BANDWIDTH])
        out->bandwidth = (struct value){.amount = storage_fit_rounded(f->rate_max_Bps),
                                        .source = source,
                                        .kind = KIND_MEASURED,
                                        .dim = DIM_RATE,
                                        .given = true};
}
