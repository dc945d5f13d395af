/* fit_report.h -- a closed-form fit on standard output: what `device fit` and `device import`
 * share. */
#ifndef CLI_FIT_REPORT_H
#define CLI_FIT_REPORT_H

#include "cli/args.h"
#include "devices/fit.h"

/* clang-format off */
#define FIT_REPORT_OPTIONS \
    {"out", OPTION_TEXT, "FILE", "write a storage description a device can name as its part", \
     NULL, NULL, 0, 0, false}, \
    {"name", OPTION_TEXT, "TEXT", "what the description calls the drive", "drive", NULL, 1, 0, \
     false}, \
    {"print", OPTION_CHOICE, "residuals|parameters", "which table CSV and JSON hold", "residuals", \
     fit_report_tables, 0, 0, false}, \
    {"corner", OPTION_CHOICE, "sharp|rounded", "min(), as the roofline has it, or a smooth knee", \
     "sharp", fit_report_corners, 0, 0, false}
/* clang-format on */
extern const char *const fit_report_tables[], *const fit_report_corners[];

enum fit_corner fit_report_corner(const struct args *a);

/* For people both tables, headed by the quality of the fit; in CSV and JSON the one that --print
 * names. */
MUST_CHECK enum status fit_report(const struct args *a, const struct storage_fit *fit,
                                  const struct rate_table *table, struct diag *dg);

#endif
