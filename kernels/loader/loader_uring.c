/* loader_uring.c -- the io_uring backend. It has no thread of its own: whoever calls the loader
 * submits, and reaps what has landed. One waiting caller at a time sleeps in the kernel
 * (`asleep`), without the lock; while it does, nobody else takes completions, because liburing's
 * wait would go to sleep again on completions that another thread has taken. Submitting meanwhile
 * is fine: the two rings are apart.
 *
 * The arena is registered in regions of at most REGION_BYTES, the kernel's limit for one buffer;
 * a read that crosses from one region into the next, or goes elsewhere, is a plain one. */
#include "kernels/loader/loader_inside.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#define REGION_BYTES   ((size_t)1 << 30)
#define REGIONS_MAX    1024u
#define READ_BYTES_MAX (1u << 30) /* of one request; the rest is read on */
#define RETRY_NS       1000000u   /* until a ring that is out of resources is asked again */
#define RETRIES_MAX    1000u

struct loader_uring {
    struct io_uring ring;
    bool asleep;
    bool fixed_files, fixed_buffers;
    char *arena;
    size_t arena_bytes;
    uint64_t handed, taken; /* requests put into the ring, and taken over by the kernel */
    uint32_t retries;       /* in a row, of handing over */
    int broken;             /* errno, once the ring refuses to work */
    uint32_t held;          /* reads that are over and not yet due, linked by `next` */
    uint32_t held_count;
};

static void hold(struct loader_io *io, uint32_t flight)
{
    struct loader_uring *u = io->engine;
    io->queue.flight[flight].next = u->held;
    u->held = flight;
    u->held_count++;
}

static bool in_arena(const struct loader_uring *u, const char *to, size_t bytes, int *region)
{
    if (!u->fixed_buffers || to < u->arena || to + bytes > u->arena + u->arena_bytes)
        return false;
    size_t from = (size_t)(to - u->arena);
    *region = (int)(from / REGION_BYTES);
    return from / REGION_BYTES == (from + bytes - 1) / REGION_BYTES;
}

/* Puts what is left of a read into the ring. */
static void put(struct loader_io *io, uint32_t flight)
{
    struct loader_uring *u = io->engine;
    struct load_queue *q = &io->queue;
    struct flight *f = &q->flight[flight];
    if (u->broken) {
        while (load_queue_result(q, flight, -u->broken))
            ;
        hold(io, flight);
        return;
    }
    uint32_t file = q->entry[f->load].load.piece[f->piece].file;
    uint64_t left = f->bytes - f->got;
    unsigned bytes = left < READ_BYTES_MAX ? (unsigned)left : READ_BYTES_MAX;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    int region, fd = u->fixed_files ? (int)file : q->file[file].fd;
    assert(sqe); /* the ring has room for all reads in flight */
    if (in_arena(u, f->to + f->got, bytes, &region))
        io_uring_prep_read_fixed(sqe, fd, f->to + f->got, bytes, f->file_from + f->got, region);
    else
        io_uring_prep_read(sqe, fd, f->to + f->got, bytes, f->file_from + f->got);
    if (u->fixed_files)
        sqe->flags |= IOSQE_FIXED_FILE;
    sqe->user_data = flight;
    f->ring_order = u->handed++;
}

static void deliver_due(struct loader_io *io)
{
    struct loader_uring *u = io->engine;
    struct flight *flights = io->queue.flight;
    uint64_t now = load_queue_now_ns();
    bool landed = false;
    for (uint32_t *at = &u->held; *at != LOAD_NONE;) {
        uint32_t i = *at;
        if (flights[i].due_ns > now) {
            at = &flights[i].next;
            continue;
        }
        *at = flights[i].next;
        u->held_count--;
        landed |= load_queue_deliver(&io->queue, i);
    }
    if (landed)
        pthread_cond_broadcast(&io->landed);
}

/* The ring takes nothing more: what it did not take over has failed. */
static void break_ring(struct loader_io *io, int error)
{
    struct loader_uring *u = io->engine;
    struct load_queue *q = &io->queue;
    u->broken = error;
    for (uint32_t i = 0; i < q->depth; i++)
        if (q->flight[i].bytes > 0 && q->flight[i].ring_order >= u->taken &&
            q->flight[i].ring_order < u->handed)
            put(io, i);
    u->handed = u->taken;
    deliver_due(io);
}

static void hand_over(struct loader_io *io)
{
    struct loader_uring *u = io->engine;
    if (u->handed == u->taken || u->broken)
        return;
    int n = io->queue.ops->ring_submit(io->queue.ops->self, &u->ring);
    if (n > 0) {
        u->taken += (uint64_t)n;
        u->retries = 0;
        return;
    }
    bool passing = n == 0 || n == -EAGAIN || n == -EBUSY || n == -EINTR;
    if (!passing || ++u->retries > RETRIES_MAX)
        break_ring(io, n == 0 ? EAGAIN : -n);
}

/* A completion: the read goes on, or is over. */
static void complete(struct loader_io *io, uint32_t flight, int result)
{
    struct load_queue *q = &io->queue;
    struct flight *f = &q->flight[flight];
    f->ring_order = UINT64_MAX;
    result = q->ops->ring_result(q->ops->self, f->file_from + f->got, f->bytes - f->got, result);
    if (load_queue_result(q, flight, result))
        put(io, flight);
    else
        hold(io, flight);
}

static void uring_work(struct loader_io *io)
{
    struct loader_uring *u = io->engine;
    struct io_uring_cqe *cqe;
    while (!u->asleep && io_uring_peek_cqe(&u->ring, &cqe) == 0) {
        uint32_t flight = (uint32_t)cqe->user_data;
        int result = cqe->res;
        io_uring_cqe_seen(&u->ring, cqe);
        complete(io, flight, result);
    }
    deliver_due(io);
    for (uint32_t i; (i = load_queue_next(&io->queue)) != LOAD_NONE;)
        put(io, i);
    hand_over(io);
}

static uint64_t first_due_ns(const struct loader_io *io)
{
    const struct loader_uring *u = io->engine;
    uint64_t first = UINT64_MAX;
    for (uint32_t i = u->held; i != LOAD_NONE; i = io->queue.flight[i].next)
        if (io->queue.flight[i].due_ns < first)
            first = io->queue.flight[i].due_ns;
    return first;
}

/* Until a completion, or until `due_ns`. */
static void wait_in_kernel(struct loader_uring *u, uint64_t due_ns)
{
    struct io_uring_cqe *cqe;
    uint64_t now = load_queue_now_ns(), left = due_ns > now ? due_ns - now : 0;
    struct __kernel_timespec t = {.tv_sec = (int64_t)(left / 1000000000u),
                                  .tv_nsec = (long long)(left % 1000000000u)};
    io_uring_wait_cqe_timeout(&u->ring, &cqe, due_ns == UINT64_MAX ? NULL : &t);
}

static void uring_sleep(struct loader_io *io)
{
    struct loader_uring *u = io->engine;
    if (u->asleep) {
        pthread_cond_wait(&io->landed, &io->lock);
        return;
    }
    uint64_t due_ns = first_due_ns(io);
    bool in_kernel = io->queue.in_flight - u->held_count > u->handed - u->taken;
    if (u->handed > u->taken) {
        uint64_t retry_ns = load_queue_now_ns() + RETRY_NS;
        due_ns = due_ns < retry_ns ? due_ns : retry_ns;
    }
    u->asleep = true;
    pthread_mutex_unlock(&io->lock);
    if (in_kernel)
        wait_in_kernel(u, due_ns);
    else if (due_ns != UINT64_MAX)
        loader_io_sleep_until(due_ns);
    pthread_mutex_lock(&io->lock);
    u->asleep = false;
    uring_work(io);
    pthread_cond_broadcast(&io->landed);
}

static void uring_stop(struct loader_io *io)
{
    struct loader_uring *u = io->engine;
    pthread_mutex_lock(&io->lock);
    for (uring_work(io); io->queue.in_flight > 0; uring_work(io))
        uring_sleep(io);
    pthread_mutex_unlock(&io->lock);
    io_uring_queue_exit(&u->ring);
    free(u);
    io->engine = NULL;
}

static void register_arena(struct loader_io *io, struct loader_uring *u)
{
    struct iovec region[REGIONS_MAX];
    size_t count = (u->arena_bytes + REGION_BYTES - 1) / REGION_BYTES;
    if (count == 0 || count > REGIONS_MAX)
        return;
    for (size_t i = 0; i < count; i++) {
        size_t from = i * REGION_BYTES, left = u->arena_bytes - from;
        region[i] = (struct iovec){u->arena + from, left < REGION_BYTES ? left : REGION_BYTES};
    }
    int error = io_uring_register_buffers(&u->ring, region, (unsigned)count);
    u->fixed_buffers = error == 0;
    if (error)
        loader_io_remark(io, "buffers are not registered with the ring: %s", strerror(-error));
}

static enum status uring_start(struct loader_io *io, const struct loader_io_setup *s,
                               struct diag *dg)
{
    struct loader_uring *u = calloc(1, sizeof *u);
    if (!u)
        return diag_no_memory(dg);
    int error = io->queue.ops->ring_init(io->queue.ops->self, &u->ring, s->depth);
    if (error) {
        free(u);
        return diag_set(dg, ST_UNSUPPORTED, "no io_uring: %s", strerror(-error));
    }
    if (!(u->ring.features & IORING_FEAT_EXT_ARG)) {
        io_uring_queue_exit(&u->ring);
        free(u);
        return diag_set(dg, ST_UNSUPPORTED, "no io_uring: Linux 5.11 or later is needed");
    }
    u->held = LOAD_NONE;
    u->arena = s->arena;
    u->arena_bytes = s->arena ? s->arena_bytes : 0;
    io->engine = u;
    register_arena(io, u);
    return ST_OK;
}

static void uring_files(struct loader_io *io)
{
    struct loader_uring *u = io->engine;
    int fd[LOADER_FILES_MAX];
    for (uint32_t i = 0; i < io->queue.file_count; i++)
        fd[i] = io->queue.file[i].fd;
    if (u->fixed_files)
        io_uring_unregister_files(&u->ring);
    int error = io_uring_register_files(&u->ring, fd, io->queue.file_count);
    u->fixed_files = error == 0;
    if (error)
        loader_io_remark(io, "files are not registered with the ring: %s", strerror(-error));
}

const struct loader_backend loader_backend_uring = {
    .name = "uring",
    .start = uring_start,
    .stop = uring_stop,
    .files = uring_files,
    .work = uring_work,
    .sleep = uring_sleep,
};
