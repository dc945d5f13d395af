/* host_meter.h -- what the system says of this process and of itself: faults, memory, stolen time.
 *
 * Reading costs some tens of microseconds, so it is done between tokens, not within them. */
#ifndef KERNELS_GRAPH_HOST_METER_H
#define KERNELS_GRAPH_HOST_METER_H

#include <stdint.h>

struct host_meter {
    uint64_t major_faults; /* since the process began */
    uint64_t rss_bytes, peak_rss_bytes;
    uint64_t page_cache_bytes; /* of the whole system */
    uint64_t available_bytes;  /* what the system could give: MemAvailable */
    uint64_t stolen_ns; /* time that the hypervisor gave to others, all processors together */
};

/* What cannot be read is 0. */
void host_meter_read(struct host_meter *h);
/* Processors that this process may run on. */
unsigned host_processors(void);

#endif
