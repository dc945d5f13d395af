/* fit.h -- the closed form of a drive (SYSTEMS 1.4) fitted to a rate table, with GSL.
 *
 *   lanes   = q*c/(latency + c/lane_bandwidth)            q reads of c bytes under way
 *   rounded = (lanes^-3 + bandwidth^-3 + (iops*c)^-3)^(-1/3)
 *   sharp   = min(lanes, bandwidth, iops*c)
 *
 * The rounded corner is what a least-squares solver can follow and what drives really have; the
 * sharp one is storage_closed_rate_Bps() of device.h, so a description wants its parameters. A
 * sharp fit begins at the rounded one and raises the exponent. Parameters are fitted as logarithms
 * (so they stay positive), residuals are relative (fitted/measured - 1), so that a 4 KiB row counts
 * as much as an 8 MiB row; several starts, the best end wins.
 *
 * Every subset of the parameters is tried; of those that the table determines (no 90 % interval
 * wider than its value) the best by Akaike's criterion is taken. So there is no lane_bandwidth if
 * every row is at the ceiling or at the latency, no bandwidth if no row is at the ceiling or all
 * are of one depth, iops only if there are reads of at most 64 KiB and they need it. A table in
 * which not even the latency shows is refused.
 *
 * These are parameters of a formula, not of a machine: the storage station of the simulator is
 * fitted by itself. Results are for people and files, never recomputed at run time. */
#ifndef DEVICES_FIT_H
#define DEVICES_FIT_H

#include "devices/device.h"
#include "devices/rate_table.h"

enum fit_parameter { FIT_LATENCY, FIT_LANE, FIT_BANDWIDTH, FIT_IOPS, FIT_PARAMETERS };

enum fit_corner { FIT_ROUNDED, FIT_SHARP };

struct storage_fit {
    enum fit_corner corner;
    bool given[FIT_PARAMETERS];
    double amount[FIT_PARAMETERS];     /* ns, B/s, B/s, reads/s */
    double half_width[FIT_PARAMETERS]; /* relative, of the 90 % interval */
    double rms;                        /* of the relative residuals */
    double rate_max_Bps;               /* the greatest of the table */
    size_t rows, fitted;               /* data and parameters */
};

/* ST_MISFIT, with the reason, if the table does not determine the closed form: too few rows, one
 * read size, or no row in which the latency shows. */
MUST_CHECK enum status storage_fit_run(struct storage_fit *out, const struct rate_table *t,
                                       enum fit_corner corner, struct diag *dg);

const char *fit_parameter_key(enum fit_parameter p); /* as in a description: "lane_bandwidth" */

/* A positive amount to four significant digits, at least 1: what is worth writing down of a fit,
 * and the same digits from every compiler and library. */
uint64_t storage_fit_rounded(double x);

/* The fitted rate in B/s, with the corner of the fit. */
double storage_fit_rate(const struct storage_fit *f, uint64_t bytes, uint64_t depth);

/* The fit as the values of a description: four significant digits, kind fitted, `source` as
 * given, the half-width as spread. Where the table has no ceiling `bandwidth` is its greatest
 * rate, measured. */
void storage_fit_values(struct storage *out, const struct storage_fit *f, const char *source);

#endif
