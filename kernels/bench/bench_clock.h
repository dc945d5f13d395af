/* bench_clock.h -- seconds on the wall: what a measured rate is divided by. */
#ifndef KERNELS_BENCH_BENCH_CLOCK_H
#define KERNELS_BENCH_BENCH_CLOCK_H

#include <time.h>

static inline double bench_clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
