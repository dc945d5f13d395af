/* stats.h -- descriptive statistics over doubles, with GSL. Results are for people: never on the
 * event path. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stddef.h>

double stats_mean(const double *x, size_t n);
double stats_sd(const double *x, size_t n);                  /* sample standard deviation; 0 for n < 2 */
double stats_median(double *x, size_t n);                    /* sorts x */
double stats_quantile(double *x, size_t n, double q);        /* sorts x; q in 0..1, linear between order statistics */
double stats_kendall_tau(const double *x, const double *y, size_t n); /* tau-b */

#endif
