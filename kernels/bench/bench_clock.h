/* bench_clock.h -- seconds: what a measured rate is divided by. */
#ifndef KERNELS_BENCH_BENCH_CLOCK_H
#define KERNELS_BENCH_BENCH_CLOCK_H

#include <time.h>

static inline double bench_clock_read_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* On the wall. */
static inline double bench_clock_s(void)
{
    return bench_clock_read_s(CLOCK_MONOTONIC);
}

/* That the calling thread has computed: what other processes take of the core does not count. */
static inline double bench_clock_thread_s(void)
{
    return bench_clock_read_s(CLOCK_THREAD_CPUTIME_ID);
}

#endif
