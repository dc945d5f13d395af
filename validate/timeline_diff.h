/* timeline_diff.h -- two timelines side by side, by pass, layer and operation: where a simulated run and a measured one
 * spend their time differently, also where the differences cancel.
 *
 * Of each operation of a (pass, layer) the durations of its spans add up; reads of one layer, which overlap, count as one
 * burst from the first start to the last end. The operations are those of sim/trace/timeline.h. */
#ifndef VALIDATE_TIMELINE_DIFF_H
#define VALIDATE_TIMELINE_DIFF_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DIFF_OPERATIONS 7

struct diff_component {
    const char *operation;
    size_t places; /* (pass, layer) pairs that either timeline has */
    size_t only_first, only_second;
    double first_s, second_s;         /* sums over all places */
    double error_median;              /* of |first / second - 1| over places that both have */
    double signed_error;              /* first_s / second_s - 1; NaN if second_s is 0 */
    uint64_t worst_pass, worst_layer; /* where the two are furthest apart, in seconds */
    double worst_s;                   /* first - second there */
};

/* `first` is usually simulated, `second` measured. Passes before `from_pass` are left out. ST_PARSE, ST_IO: no Chrome
 * trace with passes and layers in its spans; ST_MISFIT: of models with different layers. */
MUST_CHECK enum status timeline_diff(struct diff_component out[DIFF_OPERATIONS], const char *first,
                                     const char *second, uint64_t from_pass, struct diag *dg);

#endif
