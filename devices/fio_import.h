/* fio_import.h -- fio's --output-format=json as a rate table and as a storage description.
 *
 * A row is a job: bs is the read size, iodepth x numjobs the depth (iodepth counts as 1 for engines
 * that read synchronously, as it does in fio), read.bw_bytes the rate. Clones of a job (numjobs
 * without group_reporting) are added up: rates and IOPS summed, mean latencies weighted by their
 * reads, the greatest percentile taken. Jobs that write are left out and counted.
 *
 * Refused, because the number would not mean what it says: a buffered job (direct=0 measures the
 * page cache), jobs of different names in one reporting group (they ran at the same time:
 * stonewall), a job that failed, block sizes that vary, or that io_bytes/total_ios contradicts. */
#ifndef DEVICES_FIO_IMPORT_H
#define DEVICES_FIO_IMPORT_H

#include "devices/fit.h"

struct fio_row {
    const char *job;
    const char *file;
    bool random;
    uint64_t group;
    uint64_t bytes, depth, rate_Bps, reads;
    double iops;
    double latency_mean_ns; /* of lat_ns: submission to completion */
    uint64_t latency_p50_ns,
        latency_p99_ns; /* of lat_ns, or clat_ns where fio keeps only that; 0: none */
};

struct fio_table {
    struct arena arena;
    struct fio_row *rows;
    size_t count, room;
    size_t write_jobs; /* left out */
};

/* Adds the jobs of one file; `t` is zeroed before the first and freed by the caller. */
MUST_CHECK enum status fio_import(struct fio_table *t, const char *path, struct diag *dg);
void fio_table_free(struct fio_table *t);

/* The random reads as a rate table; ST_MISSING if there are none. `out` is zeroed beforehand. */
MUST_CHECK enum status fio_rates(struct rate_table *out, const struct fio_table *t,
                                 struct diag *dg);

/* What the jobs say of the drive. If the random reads determine the closed form its parameters
 * are fitted (`*fit` filled, *reason empty); otherwise the values are the extremes that were
 * measured, and *reason, which lives in the table, says why there is no fit. Sequential jobs
 * give sequential_bandwidth. */
MUST_CHECK enum status fio_storage(struct storage *out, struct storage_fit *fit,
                                   const char **reason, enum fit_corner corner, struct fio_table *t,
                                   struct diag *dg);

#endif
