/* station_fit.c -- see station_fit.h. */
#include "validate/station_fit.h"

#include "base/stats.h"
#include "devices/fit.h"
#include "sim/pipeline/drive_bench.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>

#define LANE_MOST 9.0
/* What the first landing counts beside the last: it is there to tell grains apart. */
#define FIRST_WEIGHT 0.3
#define READS_MAX    1024
enum { LATENCY, LANE, BANDWIDTH, PARAMETERS };

struct fitting {
    const struct read_burst *burst;
    size_t count;
    double host_ns; /* a read */
    double wake_ns; /* a burst */
    uint32_t lanes;
    uint64_t grain;
};

bool station_fit_held_out(size_t i)
{
    return i % 3 == 2;
}

static struct value amount(double x, enum dimension dim)
{
    return (struct value){.amount = x >= 1 ? (uint64_t)(x + 0.5) : 1, .dim = dim, .given = true};
}

static void describe(struct storage *s, const double *x, uint64_t grain, uint32_t lanes)
{
    *s = (struct storage){.name = "fit",
                          .latency = amount(x[LATENCY], DIM_TIME),
                          .lane_bandwidth = amount(x[LANE], DIM_RATE),
                          .bandwidth = amount(x[BANDWIDTH], DIM_RATE),
                          .queue_depth = amount(lanes, DIM_COUNT),
                          .grain = amount((double)grain, DIM_SIZE)};
}

/* What the station takes for a burst, and until the first expert has landed; false if it cannot run it. */
static bool station_run(const struct storage *s, const struct read_burst *b, uint32_t lanes,
                        double *ns, double *first_ns)
{
    uint64_t last, ends[READS_MAX];
    struct diag dg;
    struct drive_run run = {.bytes = b->bytes / b->reads, .lanes = lanes};
    if (b->reads > READS_MAX || drive_run_burst(&last, ends, s, &run, b->reads, &dg) != ST_OK)
        return false;
    *ns = (double)last;
    *first_ns = (double)ends[b->reads / b->experts - 1];
    return true;
}

static double station_ns(const struct storage *s, const struct read_burst *b, uint32_t lanes)
{
    double ns, first;
    return station_run(s, b, lanes, &ns, &first) ? ns : -1;
}

static double target_ns(const struct fitting *f, const struct read_burst *b)
{
    double ns = b->ns - f->wake_ns - f->host_ns * b->reads;
    return ns > 1000 ? ns : 1000;
}

static double residual(const struct fitting *f, const struct storage *s, const struct read_burst *b)
{
    double ns = station_ns(s, b, f->lanes);
    return ns > 0 ? ns / target_ns(f, b) - 1 : 1e3;
}

/* Whether reads land one by one or all at the end shows in the first one, in bursts of several. */
static double first_residual(const struct fitting *f, const struct storage *s,
                             const struct read_burst *b)
{
    double ns, first, want = b->first_ns - f->wake_ns - f->host_ns * b->reads;
    if (b->first_ns <= 0 || b->experts < 2 || want < 1000)
        return 0;
    return station_run(s, b, f->lanes, &ns, &first) ? first / want - 1 : 1e3;
}

static double badness(const gsl_vector *v, void *self)
{
    const struct fitting *f = self;
    struct storage s;
    double x[PARAMETERS], sum = 0;
    for (int p = 0; p < PARAMETERS; p++)
        x[p] = exp(gsl_vector_get(v, (size_t)p));
    if (x[BANDWIDTH] > 1e12 || x[LANE] > 1e12 || x[LATENCY] > 1e9)
        return 1e6;
    describe(&s, x, f->grain, f->lanes);
    for (size_t i = 0; i < f->count; i++)
        if (!station_fit_held_out(i))
            sum += fabs(residual(f, &s, &f->burst[i])) +
                   FIRST_WEIGHT * fabs(first_residual(f, &s, &f->burst[i]));
    return sum;
}

/* From a start that the first and the last burst suggest. */
static void start_at(gsl_vector *v, const struct fitting *f)
{
    const struct read_burst *small = &f->burst[0], *large = &f->burst[f->count - 1];
    double rate = (double)large->bytes / target_ns(f, large) * 1e9;
    gsl_vector_set(v, LATENCY, log(target_ns(f, small) * 0.5));
    gsl_vector_set(v, LANE, log(rate));
    gsl_vector_set(v, BANDWIDTH, log(rate * 1.1));
}

static double minimise(double *x, struct fitting *f)
{
    gsl_multimin_function fn = {badness, PARAMETERS, f};
    gsl_vector *v = gsl_vector_alloc(PARAMETERS), *step = gsl_vector_alloc(PARAMETERS);
    gsl_multimin_fminimizer *m =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, PARAMETERS);
    double best = 1e9;
    if (v && step && m) {
        start_at(v, f);
        for (int round = 0; round < 3;
             round++) { /* a simplex that has shrunk too early starts anew */
            gsl_vector_set_all(step, 0.5);
            gsl_multimin_fminimizer_set(m, &fn, v, step);
            for (int i = 0; i < 200 && gsl_multimin_fminimizer_iterate(m) == GSL_SUCCESS; i++)
                if (gsl_multimin_fminimizer_size(m) < 1e-3)
                    break;
            gsl_vector_memcpy(v, gsl_multimin_fminimizer_x(m));
        }
        best = gsl_multimin_fminimizer_minimum(m);
        for (int p = 0; p < PARAMETERS; p++)
            x[p] = exp(gsl_vector_get(v, (size_t)p));
    }
    gsl_vector_free(v);
    gsl_vector_free(step);
    gsl_multimin_fminimizer_free(m);
    return best;
}

/* Medians and maxima of the residuals, fitted and held out apart. */
static void judge(struct station_fit *out, double *fitted_ns, const struct fitting *f,
                  const struct storage *s, double *room)
{
    for (int held = 0; held < 2; held++) {
        size_t n = 0;
        for (size_t i = 0; i < f->count; i++)
            if (station_fit_held_out(i) == held)
                room[n++] = fabs(residual(f, s, &f->burst[i]));
        double median = n ? stats_median(room, n) : 0.0 / 0.0, most = n ? room[n - 1] : 0.0 / 0.0;
        *(held ? &out->held_out_median : &out->residual_median) = median;
        *(held ? &out->held_out_max : &out->residual_max) = most;
    }
    for (size_t i = 0; i < f->count; i++)
        fitted_ns[i] =
            station_ns(s, &f->burst[i], f->lanes) + f->host_ns * f->burst[i].reads + f->wake_ns;
}

enum status station_fit(struct station_fit *out, double *fitted_ns, const struct read_burst *burst,
                        size_t count, double host_ns_per_read, double wake_ns, uint32_t lanes,
                        struct diag *dg)
{
    static const uint64_t grains[] = {UINT64_C(1) << 30, 262144, 65536, 16384, 4096};
    struct fitting f = {burst, count, host_ns_per_read, wake_ns, lanes, 0};
    if (count < 4)
        return diag_set(dg, ST_MISFIT, "a drive is fitted to at least 4 sizes of bursts");
    double *room = calloc(count, sizeof *room), best = 1e18;
    if (!room)
        return diag_no_memory(dg);
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
        double x[PARAMETERS] = {1e5, 1e9, 1e9};
        f.grain = grains[g];
        double bad = minimise(x, &f);
        if (bad >= best * 0.98) /* a finer grain must earn its place */
            continue;
        best = bad;
        x[LANE] = fmin(x[LANE], LANE_MOST * x[BANDWIDTH]); /* beyond it a lane limits nothing */
        *out = (struct station_fit){x[LATENCY], x[LANE], x[BANDWIDTH], grains[g], 0, 0, 0, 0};
    }
    gsl_set_error_handler(before);
    struct storage s;
    double x[PARAMETERS] = {out->latency_ns, out->lane_Bps, out->bandwidth_Bps};
    f.grain = out->grain_bytes;
    describe(&s, x, f.grain, lanes);
    judge(out, fitted_ns, &f, &s, room);
    free(room);
    return ST_OK;
}

static struct value fitted(double x, enum dimension dim, double spread, const char *source)
{
    struct value v = amount((double)storage_fit_rounded(x), dim);
    v.kind = KIND_FITTED;
    v.source = source;
    v.spread_given = true;
    v.spread = (uint64_t)(spread * 1e9 + 0.5);
    return v;
}

void station_fit_values(struct storage *out, const struct station_fit *f, const char *source)
{
    double spread = f->residual_max < 0.5 ? f->residual_max : 0.5;
    out->latency = fitted(f->latency_ns, DIM_TIME, spread, source);
    out->lane_bandwidth = fitted(f->lane_Bps, DIM_RATE, spread, source);
    out->bandwidth = fitted(f->bandwidth_Bps, DIM_RATE, spread, source);
    out->grain = fitted((double)f->grain_bytes, DIM_SIZE, 0, source);
    out->grain.spread_given = false;
}
