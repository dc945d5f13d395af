/* fit.c -- see fit.h. */
#include "devices/fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>

#include <assert.h>
#include <math.h>
#include <string.h>

#define NS_PER_S         1e9
#define ITERATIONS_MAX   200
#define ROUNDED_EXPONENT 3.0
/* A half-width of the value itself: the interval reaches down to nothing. */
#define UNDETERMINED 1.0
/* Reads above this size say nothing of the small reads that iops bounds. */
#define SMALL_READ 65536

static const char *const keys[FIT_PARAMETERS] = {"latency", "lane_bandwidth", "bandwidth", "iops"};

const char *fit_parameter_key(enum fit_parameter p)
{
    return keys[p];
}

/* One limit of the closed form and how it moves with the logarithm of each parameter. */
struct limit {
    double rate;
    double slope[FIT_PARAMETERS];
};

/* The limits that are in force for c bytes at depth q; `amount` as in struct storage_fit. */
static size_t limits_of(struct limit limits[3], const bool *given, const double *amount, double c,
                        double q)
{
    size_t n = 0;
    double fixed = given[FIT_LATENCY] ? amount[FIT_LATENCY] / NS_PER_S : 0;
    double stream = given[FIT_LANE] ? c / amount[FIT_LANE] : 0;
    memset(limits, 0, 3 * sizeof *limits);
    if (given[FIT_LATENCY] || given[FIT_LANE]) {
        limits[n].rate = q * c / (fixed + stream);
        limits[n].slope[FIT_LATENCY] = -fixed / (fixed + stream);
        limits[n++].slope[FIT_LANE] = stream / (fixed + stream);
    }
    if (given[FIT_BANDWIDTH]) {
        limits[n].rate = amount[FIT_BANDWIDTH];
        limits[n++].slope[FIT_BANDWIDTH] = 1;
    }
    if (given[FIT_IOPS]) {
        limits[n].rate = amount[FIT_IOPS] * c;
        limits[n++].slope[FIT_IOPS] = 1;
    }
    return n;
}

/* The knee of fit.h over `n` limits, with any exponent; slope[p] becomes d rate / d ln p. Scaled by
 * the smallest limit, so that no power overflows. */
static double knee(const struct limit *limits, size_t n, double exponent, double *slope)
{
    double least = limits[0].rate, sum = 0, weight[3];
    for (size_t i = 1; i < n; i++)
        least = limits[i].rate < least ? limits[i].rate : least;
    for (size_t i = 0; i < n; i++) {
        weight[i] = pow(least / limits[i].rate, exponent);
        sum += weight[i];
    }
    double rate = least * pow(sum, -1 / exponent);
    for (size_t p = 0; slope && p < FIT_PARAMETERS; p++) {
        slope[p] = 0;
        for (size_t i = 0; i < n; i++)
            slope[p] += rate * weight[i] / sum * limits[i].slope[p];
    }
    return rate;
}

double storage_fit_rate(const struct storage_fit *f, uint64_t bytes, uint64_t depth)
{
    struct limit limits[3];
    size_t n = limits_of(limits, f->given, f->amount, (double)bytes, (double)depth);
    if (f->corner == FIT_ROUNDED)
        return knee(limits, n, ROUNDED_EXPONENT, NULL);
    double least = limits[0].rate;
    for (size_t i = 1; i < n; i++)
        least = limits[i].rate < least ? limits[i].rate : least;
    return least;
}

/* What the solver's callbacks see. */
struct problem {
    const struct rate_table *table;
    double exponent;
    bool given[FIT_PARAMETERS];
};

static void amounts_of(double *amount, const bool *given, const gsl_vector *x)
{
    size_t column = 0;
    for (size_t p = 0; p < FIT_PARAMETERS; p++)
        amount[p] = given[p] ? exp(gsl_vector_get(x, column++)) : 0;
}

static int residuals(const gsl_vector *x, void *self, gsl_vector *f)
{
    const struct problem *pb = self;
    double amount[FIT_PARAMETERS];
    struct limit limits[3];
    amounts_of(amount, pb->given, x);
    for (size_t i = 0; i < pb->table->count; i++) {
        const struct rate_row *row = &pb->table->rows[i];
        size_t n = limits_of(limits, pb->given, amount, (double)row->bytes, (double)row->depth);
        gsl_vector_set(f, i, knee(limits, n, pb->exponent, NULL) / (double)row->rate_Bps - 1);
    }
    return GSL_SUCCESS;
}

static int jacobian(const gsl_vector *x, void *self, gsl_matrix *j)
{
    const struct problem *pb = self;
    double amount[FIT_PARAMETERS], slope[FIT_PARAMETERS];
    struct limit limits[3];
    amounts_of(amount, pb->given, x);
    for (size_t i = 0; i < pb->table->count; i++) {
        const struct rate_row *row = &pb->table->rows[i];
        size_t n = limits_of(limits, pb->given, amount, (double)row->bytes, (double)row->depth);
        knee(limits, n, pb->exponent, slope);
        size_t column = 0;
        for (size_t p = 0; p < FIT_PARAMETERS; p++)
            if (pb->given[p])
                gsl_matrix_set(j, i, column++, slope[p] / (double)row->rate_Bps);
    }
    return GSL_SUCCESS;
}

/* Half-widths of the 90 % intervals from the covariance at the solution. */
static bool half_widths(struct storage_fit *f, gsl_multifit_nlinear_workspace *w, double sum)
{
    size_t n = f->fitted, column = 0;
    double freedom = (double)(f->rows - n);
    gsl_matrix *covariance = gsl_matrix_alloc(n, n);
    if (!covariance)
        return false;
    int bad = gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(w), 0, covariance);
    double quantile = gsl_cdf_tdist_Pinv(0.95, freedom);
    for (size_t p = 0; p < FIT_PARAMETERS; p++) {
        if (!f->given[p])
            continue;
        double variance = gsl_matrix_get(covariance, column, column) * sum / freedom;
        f->half_width[p] = bad || !(variance >= 0) ? INFINITY : quantile * sqrt(variance);
        column++;
    }
    gsl_matrix_free(covariance);
    return true;
}

/* One descent from `start`; keeps it in `best` if it ends lower. False when there is no memory. */
static bool descend(struct storage_fit *best, const struct problem *pb, const double *start,
                    gsl_multifit_nlinear_workspace *w, gsl_vector *x)
{
    gsl_multifit_nlinear_fdf fdf = {.f = residuals,
                                    .df = jacobian,
                                    .n = pb->table->count,
                                    .p = best->fitted,
                                    .params = (void *)pb};
    size_t column = 0;
    for (size_t p = 0; p < FIT_PARAMETERS; p++)
        if (pb->given[p])
            gsl_vector_set(x, column++, log(start[p]));
    int why, st = gsl_multifit_nlinear_init(x, &fdf, w);
    if (st == GSL_ENOMEM)
        return false;
    if (st == GSL_SUCCESS)
        st = gsl_multifit_nlinear_driver(ITERATIONS_MAX, 1e-10, 1e-10, 0, NULL, NULL, &why, w);
    double sum, n = (double)best->rows;
    gsl_blas_ddot(gsl_multifit_nlinear_residual(w), gsl_multifit_nlinear_residual(w), &sum);
    /* A solver that stopped for want of progress has still reached a point; only the sum judges
     * it. */
    if (!(sum < best->rms * best->rms * n))
        return true;
    best->rms = sqrt(sum / n);
    amounts_of(best->amount, pb->given, gsl_multifit_nlinear_position(w));
    return half_widths(best, w, sum);
}

/* Where to start: the slowest read gives a latency, the fastest lane a lane rate, the greatest
 * rate a ceiling, each also half and twice as large. */
struct guess {
    double latency_ns, lane_Bps, rate_Bps, iops;
};

static struct guess guess_from(const struct rate_table *t)
{
    struct guess g = {.latency_ns = INFINITY};
    for (size_t i = 0; i < t->count; i++) {
        double c = (double)t->rows[i].bytes, q = (double)t->rows[i].depth;
        double rate = (double)t->rows[i].rate_Bps;
        g.latency_ns = fmin(g.latency_ns, q * c / rate * NS_PER_S);
        g.lane_Bps = fmax(g.lane_Bps, rate / q);
        g.rate_Bps = fmax(g.rate_Bps, rate);
        g.iops = fmax(g.iops, rate / c);
    }
    return g;
}

static bool descend_from_all(struct storage_fit *f, const struct problem *pb,
                             gsl_multifit_nlinear_workspace *w, gsl_vector *x)
{
    static const double factors[] = {0.5, 1, 2};
    const struct guess g = guess_from(pb->table);
    bool fits = true;
    for (size_t i = 0; i < 3 && fits; i++)
        for (size_t j = 0; j < 3 && fits; j++) {
            const double start[FIT_PARAMETERS] = {g.latency_ns * factors[i],
                                                  g.lane_Bps * factors[j] * 2, g.rate_Bps, g.iops};
            fits = descend(f, pb, start, w, x);
        }
    return fits;
}

/* From the rounded corner to the sharp one: the exponent doubles, each descent starts where the
 * last one ended. At 48 the corner is within 1.5 % of min(). */
static bool sharpen(struct storage_fit *f, struct problem *pb, gsl_multifit_nlinear_workspace *w,
                    gsl_vector *x)
{
    bool fits = true;
    for (pb->exponent = 2 * ROUNDED_EXPONENT; fits && pb->exponent <= 48; pb->exponent *= 2) {
        double start[FIT_PARAMETERS];
        memcpy(start, f->amount, sizeof start);
        f->rms = INFINITY;
        fits = descend(f, pb, start, w, x);
    }
    return fits;
}

/* The best fit with exactly the parameters of `given`. */
static enum status fit_given(struct storage_fit *f, const bool *given, enum fit_corner corner,
                             const struct rate_table *t, struct diag *dg)
{
    struct problem pb = {.table = t, .exponent = ROUNDED_EXPONENT};
    *f = (struct storage_fit){.rms = INFINITY, .rows = t->count, .corner = corner};
    memcpy(pb.given, given, sizeof pb.given);
    memcpy(f->given, given, sizeof f->given);
    for (size_t p = 0; p < FIT_PARAMETERS; p++)
        f->fitted += given[p];
    if (f->rows <= f->fitted)
        return diag_set(dg, ST_MISFIT, "%s: %zu rows cannot determine %zu parameters", t->name,
                        f->rows, f->fitted);
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, f->rows, f->fitted);
    gsl_vector *x = gsl_vector_alloc(f->fitted);
    bool fits = w && x && descend_from_all(f, &pb, w, x);
    if (fits && corner == FIT_SHARP)
        fits = sharpen(f, &pb, w, x);
    gsl_multifit_nlinear_free(w);
    gsl_vector_free(x);
    if (!fits)
        return diag_no_memory(dg);
    if (isinf(f->rms))
        return diag_set(dg, ST_MISFIT, "%s: no start leads to a fit", t->name);
    return ST_OK;
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
        enum status st = fit_given(&f, given, FIT_ROUNDED, t, dg);
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
        st = fit_given(out, given, FIT_SHARP, t, dg);
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
