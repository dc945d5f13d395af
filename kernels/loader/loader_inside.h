/* loader_inside.h -- what a backend of the loader is, for loader_io.c and the backends alone. */
#ifndef KERNELS_LOADER_LOADER_INSIDE_H
#define KERNELS_LOADER_LOADER_INSIDE_H

#include "kernels/loader/load_queue.h"

#include <pthread.h>

struct loader_io;

struct loader_backend {
    const char *name;
    /* Allocates io->engine. ST_UNSUPPORTED: the system has no such thing; the reason says why. */
    enum status (*start)(struct loader_io *io, const struct loader_io_setup *s, struct diag *dg);
    void (*stop)(struct loader_io *io);  /* waits for what is in flight, not for what is queued */
    void (*files)(struct loader_io *io); /* a file was added */
    /* With the lock held. work: something was queued; reaps and issues without sleeping. sleep:
     * until something may have landed; gives the lock away meanwhile. */
    void (*work)(struct loader_io *io);
    void (*sleep)(struct loader_io *io);
};

struct loader_io {
    struct load_queue queue;
    const struct loader_backend *backend;
    void *engine; /* the backend's own state */
    pthread_mutex_t lock;
    bool gathering;        /* submissions wait for the end of a batch */
    pthread_cond_t landed; /* some load has, or nobody sleeps in the kernel any more */
    char note[512];
};

extern const struct loader_backend loader_backend_uring;
extern const struct loader_backend loader_backend_threads;

/* Adds a line to the note. */
void loader_io_remark(struct loader_io *io, const char *format, ...) PRINTF_LIKE(2, 3);
void loader_io_sleep_until(uint64_t when_ns);

#endif
