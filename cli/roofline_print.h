/* roofline_print.h -- a pass and its bounds, for people, CSV and JSON. */
#ifndef CLI_ROOFLINE_PRINT_H
#define CLI_ROOFLINE_PRINT_H

#include "cli/report.h"
#include "cli/scenario.h"
#include "sim/plan/hit_curve.h"
#include "sim/plan/placement.h"
#include "sim/roofline/estimate.h"

struct roofline_picture {
    struct scenario s;
    struct machine machine;
    struct placement place;
    bool placed;            /* false: hypothetical */
    bool dense_streams;     /* nobody asked for it, but dense weights do not fit */
    struct hit_curve curve; /* of the routing: uniform where no preset is known or needed */
    struct workload load;
    struct regime regime;
    struct tally tally;
    struct bounds bounds;
    uint64_t wanted_ns; /* of a token; 0: nothing wanted */
    double efficiency;  /* of the measured rate; below 0: none given */
};

/* What --row prints: a pass of `tokens` tokens, its figures by token. */
#define ROOFLINE_ROW_COLUMNS 23
extern const struct column roofline_row_columns[ROOFLINE_ROW_COLUMNS];

/* The operations, the summary, or for people both, as the command line asks. */
MUST_CHECK enum status roofline_print(const struct roofline_picture *p, const struct args *a,
                                      struct diag *dg);

#endif
