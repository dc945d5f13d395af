/* loader_ops.c -- the system's own calls, as the loader's table of operations. */
#include "kernels/loader/loader_ops.h"

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

static int system_open(void *self, const char *path, int flags)
{
    (void)self;
    return open(path, flags);
}

static int system_stat(void *self, const char *path, struct stat *out)
{
    (void)self;
    return stat(path, out);
}

static uint32_t system_direct_align(void *self, const char *path)
{
    struct statx s;
    (void)self;
    if (statx(AT_FDCWD, path, 0, STATX_DIOALIGN, &s) != 0 || !(s.stx_mask & STATX_DIOALIGN))
        return 0;
    return s.stx_dio_offset_align > s.stx_dio_mem_align ? s.stx_dio_offset_align
                                                        : s.stx_dio_mem_align;
}

static ssize_t system_pread(void *self, int fd, void *to, size_t bytes, off_t offset)
{
    (void)self;
    return pread(fd, to, bytes, offset);
}

static int system_ring_init(void *self, struct io_uring *ring, unsigned entries)
{
    (void)self;
    return io_uring_queue_init(entries, ring, 0);
}

static int system_ring_submit(void *self, struct io_uring *ring)
{
    (void)self;
    return io_uring_submit(ring);
}

static int system_ring_result(void *self, uint64_t offset_bytes, size_t bytes, int result)
{
    (void)self;
    (void)offset_bytes;
    (void)bytes;
    return result;
}

const struct loader_ops loader_ops_system = {
    .open = system_open,
    .stat = system_stat,
    .direct_align = system_direct_align,
    .pread = system_pread,
    .ring_init = system_ring_init,
    .ring_submit = system_ring_submit,
    .ring_result = system_ring_result,
};
