/* score.h -- how wrong the predictions are: quantiles of the signed and the absolute error, by class and
 * engine.
 *
 * Over several engines each weighs the same, however many rows it published: a row weighs one over the rows
 * of its engine. Only outcomes that are `counted` enter. An engine is its name up to the first " (", so forks
 * belong to what they forked; rows without one go by their profile.
 *
 * A row is held out if nothing was fitted to its engine on its machine: no row of rule `fitted` shares both.
 * Rows beside a fitted one are easier, so the held-out median is the sterner figure. */
#ifndef VALIDATE_SCORE_H
#define VALIDATE_SCORE_H

#include "validate/published_run.h"

#define SCORE_ENGINE_MAX 48

struct score_line {
    enum published_class class_of;
    char engine[SCORE_ENGINE_MAX]; /* "" : all, weighted equally */
    bool grade_a;                  /* rows of grade A alone */
    bool held_out;                 /* of them those that are held out */
    size_t rows, engines;
    double absolute_median;
    double signed_p10, signed_median, signed_p90;
    const struct published_outcome *worst; /* largest ratio, whichever way */
};

struct score {
    struct score_line *lines;
    size_t count;
};

/* Lines, class by class, blind first: all engines on all grades, the same on grade A, on grade A held out, then
 * engine by engine in order of name. What has no counted row has no line. `rows` says what was fitted; the
 * outcomes may be of one class alone. */
MUST_CHECK enum status score_find(struct score *out, const struct published *rows,
                                  const struct published_outcome *outcome, size_t count,
                                  struct diag *dg);
void score_free(struct score *s);

/* Smallest x at which at least the share q of all weight lies at or below; where it is met exactly, the
 * middle between that x and the next: of equal weights the usual median. Sorts both arrays. n > 0. */
double score_quantile(double *x, double *weight, size_t n, double q);

/* How far apart two figures are, whichever is larger: 0.5 and 2.0 times are both 2. */
double score_factor(double signed_error);

#endif
