/* bare_ring.c -- see bare_ring.h. */
#include "kernels/bench/bare_ring.h"

#include "kernels/bench/bench_clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum status bare_ring_open(struct bare_ring *r, const char *path, void *arena, size_t slot_bytes,
                           unsigned depth, struct diag *dg)
{
    assert(depth >= 1 && depth <= BARE_RING_DEPTH_MAX);
    struct iovec all = {arena, slot_bytes * depth};
    *r = (struct bare_ring){.arena = arena, .slot_bytes = slot_bytes, .depth = depth};
    r->fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (r->fd < 0)
        return diag_errno(dg, path, "cannot be opened for direct reads");
    int error = io_uring_queue_init(depth, &r->ring, 0);
    if (error) {
        close(r->fd);
        return diag_set(dg, ST_UNSUPPORTED, "no io_uring: %s", strerror(-error));
    }
    error = io_uring_register_buffers(&r->ring, &all, 1);
    if (!error)
        error = io_uring_register_files(&r->ring, &r->fd, 1);
    if (!error)
        return ST_OK;
    bare_ring_close(r);
    return diag_set(dg, ST_UNSUPPORTED, "io_uring cannot register buffers or files: %s",
                    strerror(-error));
}

void bare_ring_close(struct bare_ring *r)
{
    io_uring_queue_exit(&r->ring);
    close(r->fd);
}

/* What is in flight: which read each slot holds, and since when. */
struct slots {
    size_t read[BARE_RING_DEPTH_MAX];
    double since_s[BARE_RING_DEPTH_MAX];
};

static void put(struct bare_ring *r, struct slots *s, unsigned slot, const struct bench_read *read,
                size_t i)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
    assert(sqe);
    io_uring_prep_read_fixed(sqe, 0, r->arena + slot * r->slot_bytes, (unsigned)read[i].bytes,
                             read[i].offset, 0);
    sqe->flags |= IOSQE_FIXED_FILE;
    sqe->user_data = slot;
    s->read[slot] = i;
    s->since_s[slot] = bench_clock_s();
}

enum status bare_ring_run(struct bare_ring *r, const struct bench_read *read, size_t count,
                          double *latency_ns, struct diag *dg)
{
    struct slots s;
    size_t next = 0, done = 0;
    int error = 0;
    for (unsigned slot = 0; slot < r->depth && next < count; slot++)
        put(r, &s, slot, read, next++);
    while (done < next) {
        struct io_uring_cqe *cqe;
        int n = io_uring_submit_and_wait(&r->ring, 1);
        if (n < 0 && n != -EINTR)
            return diag_set(dg, ST_IO, "io_uring: %s", strerror(-n));
        double now_s = bench_clock_s();
        while (io_uring_peek_cqe(&r->ring, &cqe) == 0) {
            unsigned slot = (unsigned)cqe->user_data;
            size_t i = s.read[slot];
            if (cqe->res != (int)read[i].bytes && !error)
                error = cqe->res < 0 ? -cqe->res : EIO;
            io_uring_cqe_seen(&r->ring, cqe);
            latency_ns[i] = (now_s - s.since_s[slot]) * 1e9;
            done++;
            if (next < count && !error)
                put(r, &s, slot, read, next++);
        }
    }
    return error ? diag_set(dg, ST_IO, "a direct read failed: %s", strerror(error)) : ST_OK;
}
