/* bare_ring.h -- the least that reads through io_uring can cost: registered buffers and file, `depth` reads
 * in flight, one system call a round, nothing else. What the loader is held against. */
#ifndef KERNELS_BENCH_BARE_RING_H
#define KERNELS_BENCH_BARE_RING_H

#include "kernels/bench/bench_file.h"

#include <liburing.h>

#define BARE_RING_DEPTH_MAX 256
/* The kernel registers a buffer of so many bytes at most: all slots together are one. */
#define BARE_RING_BYTES_MAX (UINT64_C(1) << 30)

struct bare_ring {
    struct io_uring ring;
    char *arena;
    size_t slot_bytes;
    unsigned depth;
    int fd;
};

/* Read i goes into slot i of the arena while it is in flight. ST_IO; ST_UNSUPPORTED: no io_uring or no direct
 * reads here. */
MUST_CHECK enum status bare_ring_open(struct bare_ring *r, const char *path, void *arena,
                                      size_t slot_bytes, unsigned depth, struct diag *dg);
void bare_ring_close(struct bare_ring *r);
/* Reads all and gives the time that each took, from its submission until it was seen. */
MUST_CHECK enum status bare_ring_run(struct bare_ring *r, const struct bench_read *read,
                                     size_t count, double *latency_ns, struct diag *dg);

#endif
