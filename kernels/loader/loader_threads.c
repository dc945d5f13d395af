/* loader_threads.c -- the portable backend: as many threads as reads may be in flight, each of
 * which takes the next piece, reads it with pread(), waits until it is due and delivers it. */
#include "base/small_thread.h"
#include "kernels/loader/loader_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct loader_threads {
    pthread_cond_t queued; /* something is, or it is time to stop */
    bool stopping;
    uint32_t count;
    pthread_t thread[];
};

static void read_one(struct loader_io *io, uint32_t flight)
{
    struct load_queue *q = &io->queue;
    struct flight *f = &q->flight[flight];
    int fd = q->file[q->entry[f->load].load.piece[f->piece].file].fd;
    bool more = true;
    while (more) {
        uint64_t got = f->got;
        pthread_mutex_unlock(&io->lock);
        ssize_t n = q->ops->pread(q->ops->self, fd, f->to + got, f->bytes - got,
                                  (off_t)(f->file_from + got));
        int64_t result = n < 0 ? -errno : n;
        pthread_mutex_lock(&io->lock);
        more = load_queue_result(q, flight, result);
    }
    uint64_t due_ns = f->due_ns;
    pthread_mutex_unlock(&io->lock);
    loader_io_sleep_until(due_ns);
    pthread_mutex_lock(&io->lock);
    if (load_queue_deliver(q, flight))
        pthread_cond_broadcast(&io->landed);
}

static void *thread_main(void *argument)
{
    struct loader_io *io = argument;
    struct loader_threads *t = io->engine;
    pthread_mutex_lock(&io->lock);
    while (!t->stopping) {
        uint32_t flight = load_queue_next(&io->queue);
        if (flight == LOAD_NONE)
            pthread_cond_wait(&t->queued, &io->lock);
        else
            read_one(io, flight);
    }
    pthread_mutex_unlock(&io->lock);
    return NULL;
}

static void threads_stop(struct loader_io *io)
{
    struct loader_threads *t = io->engine;
    pthread_mutex_lock(&io->lock);
    t->stopping = true;
    pthread_cond_broadcast(&t->queued);
    pthread_mutex_unlock(&io->lock);
    for (uint32_t i = 0; i < t->count; i++)
        pthread_join(t->thread[i], NULL);
    pthread_cond_destroy(&t->queued);
    free(t);
    io->engine = NULL;
}

static enum status threads_start(struct loader_io *io, const struct loader_io_setup *s,
                                 struct diag *dg)
{
    struct loader_threads *t = calloc(1, sizeof *t + s->depth * sizeof *t->thread);
    if (!t)
        return diag_no_memory(dg);
    io->engine = t;
    pthread_cond_init(&t->queued, NULL);
    for (; t->count < s->depth; t->count++) {
        int error = small_thread_start(&t->thread[t->count], thread_main, io);
        if (error) {
            threads_stop(io);
            return diag_set(dg, ST_IO, "loader: %u reader threads cannot be started: %s", s->depth,
                            strerror(error));
        }
    }
    return ST_OK;
}

static void threads_files(struct loader_io *io)
{
    (void)io;
}

static void threads_work(struct loader_io *io)
{
    struct loader_threads *t = io->engine;
    const struct load_queue *q = &io->queue;
    if (q->queued[LOAD_DEMAND].first != LOAD_NONE || q->queued[LOAD_PREFETCH].first != LOAD_NONE)
        pthread_cond_broadcast(&t->queued);
}

static void threads_sleep(struct loader_io *io)
{
    pthread_cond_wait(&io->landed, &io->lock);
}

const struct loader_backend loader_backend_threads = {
    .name = "threads",
    .start = threads_start,
    .stop = threads_stop,
    .files = threads_files,
    .work = threads_work,
    .sleep = threads_sleep,
};
