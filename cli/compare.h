/* compare.h -- rows of `memwall compare`: a figure of two things, and how many times the second is the first. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli/report.h"

/* Equal figures are left out unless `all`. */
struct comparison {
    struct report *report;
    bool all;
};
void compare_text(struct comparison *c, const char *what, const char *a, const char *b);
/* `a` and `b` as text; ratio b / a, where both are numbers above 0. NULL text: it has none. */
void compare_number(struct comparison *c, const char *what, const char *a, const char *b, double x,
                    double y);
void compare_quantity(struct comparison *c, const char *what, enum dimension dim, uint64_t a,
                      uint64_t b);

/* Result files: rows are paired by their text columns, in order; each number that differs is a row. ST_MISFIT: the columns
 * are not the same. */
MUST_CHECK enum status compare_results(struct comparison *c, const char *a, const char *b,
                                       struct diag *dg);

#endif
