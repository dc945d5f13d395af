/* bench_report.h -- what the benchmarks of the program itself print: name, value, unit, the reference it
 * must reach and their ratio. Times are of the processor, not of the wall: the machine may be shared. */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include "cli/report.h"

MUST_CHECK enum status bench_open(struct report **out, const struct args *a, struct diag *dg);
/* `reference` NaN: there is none. */
void bench_row(struct report *r, const char *name, double value, const char *unit,
               double reference);
double bench_now_s(void); /* processor time of this process */

#endif
