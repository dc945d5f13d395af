/* fit_solve.c -- see fit_solve.h. */
#include "devices/fit_solve.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>

#include <math.h>
#include <string.h>

#define NS_PER_S         1e9
#define ITERATIONS_MAX   200
#define ROUNDED_EXPONENT 3.0

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

enum status fit_solve(struct storage_fit *f, const bool *given, enum fit_corner corner,
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
