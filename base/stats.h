/* stats.h -- descriptive statistics over doubles, with GSL. Results are for people: never on the
 * event path. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stddef.h>

/* All give 0 where nothing is defined: no values, or one for the deviation. */
double stats_mean(const double *x, size_t n);
double stats_sd(const double *x, size_t n); /* of a sample: divides by n - 1 */
double stats_median(double *x, size_t n);   /* sorts x */
/* Sorts x; q in 0..1; linear between order statistics, the first at 0 and the last at 1. */
double stats_quantile(double *x, size_t n, double q);
/* Mean without the `cut` (0..0.5) smallest and as many largest shares of the values; sorts x. */
double stats_trimmed_mean(double *x, size_t n, double cut);
/* Kendall's tau-b (Kendall 1945), which allows for ties: 1 same order, -1 opposite, 0 also where all
 * x or all y are equal. Compares every pair: for up to some ten thousand values. */
double stats_kendall_tau(const double *x, const double *y, size_t n);

#endif
