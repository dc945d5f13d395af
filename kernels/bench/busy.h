/* busy.h -- foreign processes that want the cores too: what a measurement beside other work is made of. */
#ifndef KERNELS_BENCH_BUSY_H
#define KERNELS_BENCH_BUSY_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

#define BUSY_MAX 64

struct busy {
    pid_t process[BUSY_MAX];
    size_t count;
};

/* Starts `count` processes (at most BUSY_MAX), each bound to a core of its own, the last core first, that
 * compute until they are stopped, or until the calling thread ends. ST_IO, with none left. */
MUST_CHECK enum status busy_start(struct busy *b, size_t count, struct diag *dg);
void busy_stop(struct busy *b);

#endif
