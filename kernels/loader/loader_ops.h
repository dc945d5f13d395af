/* loader_ops.h -- the calls through which the loader touches the world, in one table.
 *
 * Production code passes NULL for loader_ops_system. A test passes its own table, so that a read
 * can end short, with EIO or with EAGAIN, a file can change, and a ring can be refused, on a sound
 * machine. `self` of the table goes to each call. Results are those of the system calls, errors in
 * errno, but for the three ring calls, which return -errno as liburing does.
 */
#ifndef KERNELS_LOADER_LOADER_OPS_H
#define KERNELS_LOADER_LOADER_OPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct io_uring;

struct loader_ops {
    void *self;
    int (*open)(void *self, const char *path, int flags);
    int (*stat)(void *self, const char *path, struct stat *out);
    /* What offsets, lengths and addresses of direct reads must be multiples of; 0: not known. */
    uint32_t (*direct_align)(void *self, const char *path);
    ssize_t (*pread)(void *self, int fd, void *to, size_t bytes, off_t offset);
    int (*ring_init)(void *self, struct io_uring *ring, unsigned entries);
    int (*ring_submit)(void *self, struct io_uring *ring);
    /* Sees each completion of a ring before the loader does; returns what the loader is to see. */
    int (*ring_result)(void *self, uint64_t offset_bytes, size_t bytes, int result);
};

extern const struct loader_ops loader_ops_system;

#endif
