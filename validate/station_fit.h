/* station_fit.h -- the drive station of the simulator fitted to measured bursts, by running that very station in
 * their shape (sim/pipeline/drive_bench.h), with GSL's simplex (Nelder and Mead 1965) on the logarithms of its
 * parameters and relative residuals. Host costs that the pipeline adds by itself are taken off first. */
#ifndef VALIDATE_STATION_FIT_H
#define VALIDATE_STATION_FIT_H

#include "devices/device.h"
#include "validate/measure_reads.h"

struct station_fit {
    double latency_ns, lane_Bps, bandwidth_Bps;
    uint64_t grain_bytes;
    double residual_median, residual_max; /* |fitted / measured - 1| over the points fitted */
    double held_out_median, held_out_max; /* over the others; NaN if there are none */
};

/* Every third burst is held out. `fitted_ns` gets the station's time of each. `lanes`: reads in flight at most.
 * ST_MISFIT: fewer than four bursts. */
MUST_CHECK enum status station_fit(struct station_fit *out, double *fitted_ns,
                                   const struct read_burst *burst, size_t count,
                                   double host_ns_per_read, double wake_ns, uint32_t lanes,
                                   struct diag *dg);

bool station_fit_held_out(size_t i);

/* The fit as a description's storage entry, kind fitted. `source` outlives it. */
void station_fit_values(struct storage *out, const struct station_fit *f, const char *source);

#endif
