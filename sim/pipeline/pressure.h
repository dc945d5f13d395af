/* pressure.h -- applications that open while a model runs: how much memory each takes, and when. */
#ifndef SIM_PIPELINE_PRESSURE_H
#define SIM_PIPELINE_PRESSURE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct pressure {
    uint64_t bytes, when_ns;
};

/* Reads `2GiB@5s` or a list, `2GiB@5s,512MiB@1min`, as on the command line (a bare size is bytes, a time needs its
 * unit). The result is ordered by time, equal times as written; free(*out). ST_PARSE or ST_RANGE where an entry
 * is no SIZE@TIME or the size is 0, ST_NO_MEMORY. */
MUST_CHECK enum status pressure_parse(struct pressure **out, size_t *count, const char *text,
                                      struct diag *dg);

#endif
