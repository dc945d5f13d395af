/* record.c -- see record.h. */
#include "kernels/graph/record.h"

#include <time.h>

const char *operation_name(enum operation o)
{
    static const char *const names[OPERATION_COUNT] = {
        TIMELINE_FIXED, TIMELINE_SHARED, TIMELINE_EXPERT, TIMELINE_HEAD, TIMELINE_STALL};
    return names[o];
}

uint64_t record_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t record_operation(struct record *r, enum operation o, uint32_t pass, uint32_t layer,
                          uint64_t start_ns)
{
    uint64_t now = record_now_ns();
    r->sums.operation_ns[o] += now - start_ns;
    timeline_span(r->timeline, &(struct timeline_span){.lane = r->compute_lane,
                                                       .operation = operation_name(o),
                                                       .start_ns = start_ns - r->start_ns,
                                                       .end_ns = now - r->start_ns,
                                                       .pass = pass,
                                                       .layer = layer,
                                                       .expert = TIMELINE_NONE});
    return now;
}
