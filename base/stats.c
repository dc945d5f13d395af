/* stats.c -- see stats.h: GSL's estimators behind the cases that GSL leaves undefined, and the one
 * coefficient that GSL does not have. */
#include "base/stats.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include <assert.h>
#include <math.h>
#include <stdint.h>

double stats_mean(const double *x, size_t n)
{
    return n > 0 ? gsl_stats_mean(x, 1, n) : 0;
}

double stats_sd(const double *x, size_t n)
{
    return n > 1 ? gsl_stats_sd(x, 1, n) : 0;
}

double stats_median(double *x, size_t n)
{
    return stats_quantile(x, n, 0.5);
}

double stats_quantile(double *x, size_t n, double q)
{
    assert(q >= 0 && q <= 1);
    if (n == 0)
        return 0;
    gsl_sort(x, 1, n);
    return gsl_stats_quantile_from_sorted_data(x, 1, n, q);
}

static int sign(double difference)
{
    return (difference > 0) - (difference < 0);
}

double stats_kendall_tau(const double *x, const double *y, size_t n)
{
    int64_t concordant = 0; /* pairs in the same order minus pairs in opposite order */
    uint64_t untied_x = 0, untied_y = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            int order_x = sign(x[i] - x[k]), order_y = sign(y[i] - y[k]);
            concordant += order_x * order_y;
            untied_x += order_x != 0;
            untied_y += order_y != 0;
        }
    if (untied_x == 0 || untied_y == 0)
        return 0;
    return (double)concordant / (sqrt((double)untied_x) * sqrt((double)untied_y));
}

double stats_trimmed_mean(double *x, size_t n, double cut)
{
    size_t out = (size_t)((double)n * cut);
    if (n == 0 || 2 * out >= n)
        return stats_median(x, n);
    stats_median(x, n); /* sorts */
    return stats_mean(x + out, n - 2 * out);
}
