/* bench_report.c -- see bench_report.h. */
#include "cli/bench_report.h"

#include <time.h>

static const struct column columns[] = {
    {"name", CELL_TEXT, 0, false},    {"value", CELL_NUMBER, 3, false},
    {"unit", CELL_TEXT, 0, false},    {"reference", CELL_NUMBER, 3, false},
    {"ratio", CELL_NUMBER, 3, false},
};

enum status bench_open(struct report **out, const struct args *a, struct diag *dg)
{
    return report_open(out, a, columns, sizeof columns / sizeof *columns, dg);
}

void bench_row(struct report *r, const char *name, double value, const char *unit, double reference)
{
    report_text(r, name);
    report_number(r, value);
    report_text(r, unit);
    report_number(r, reference);
    report_number(r, value / reference);
}

double bench_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
