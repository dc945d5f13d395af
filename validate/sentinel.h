/* sentinel.h -- is the machine now as it was when it was calibrated? About 20 ms of memory and of reads. */
#ifndef VALIDATE_SENTINEL_H
#define VALIDATE_SENTINEL_H

#include "validate/measure_reads.h"

struct sentinel;
/* What `s` says of model, loader and file is what is read. */
MUST_CHECK enum status sentinel_new(struct sentinel **out, const struct measure_reads_setup *s,
                                    struct diag *dg);
void sentinel_free(struct sentinel *s); /* NULL is fine */

struct sentinel_reading {
    double memory_ns, burst_ns; /* medians */
    uint64_t stolen_ns;         /* since the system started */
};
MUST_CHECK enum status sentinel_read(struct sentinel *s, struct sentinel_reading *out,
                                     struct diag *dg);

/* Both figures within 5 % of the other's, and nothing stolen between the two where `since` says so. */
bool sentinel_agrees(const struct sentinel_reading *now, const struct sentinel_reading *then);

#endif
