/* workers.h -- the threads that compute: one caller and its workers, forked and joined for each product.
 *
 * A product of a decode step takes tens of microseconds, so fork and join must cost a few; and the
 * machine may be shared, so nobody may spin for long: a thread that spins beside a process that wants
 * the core keeps it from the very thread that everybody waits for. Hence the rules of waiting:
 *
 *   - a wait spins at first, at most WORKERS_SPIN_NS, and then sleeps in the kernel, which gives the
 *     core away (and lets the system move a stalled worker to it);
 *   - a spin that was in vain halves the next one of that thread, one that was not doubles it;
 *   - with more threads than this process has cores nobody spins.
 *
 * Work is shared in one of two ways. workers_run() calls a function on every thread, each of which takes
 * its fixed share (workers_share); the slowest thread decides. workers_each() hands out pieces of a range,
 * large ones first, to whoever comes: a slow core takes fewer, and one that has not woken up
 * when the last piece is taken is not waited for. What is computed must not depend on who computes
 * it: rows of a product do not (isa.h).
 *
 * Threading contract. One thread, the caller, uses the struct; runs do not nest. The caller computes
 * too, as thread 0. What it wrote before a run is seen by all in it, and what they wrote is seen
 * by the caller after it.
 */
#ifndef KERNELS_GRAPH_WORKERS_H
#define KERNELS_GRAPH_WORKERS_H

#include "base/status.h"

#include <stddef.h>

#define WORKERS_SPIN_NS     20000
#define WORKERS_THREADS_MAX 1024

struct workers;

/* thread: 0 (the caller) .. threads - 1. */
typedef void workers_fn(void *context, size_t thread, size_t threads);
/* Items begin .. end - 1; `thread` for scratch memory of its own. */
typedef void workers_piece_fn(void *context, size_t begin, size_t end, size_t thread);

/* `threads` counts the caller: 1..WORKERS_THREADS_MAX; 1 starts none. ST_NO_MEMORY; ST_IO: a thread
 * cannot be started. */
MUST_CHECK enum status workers_new(struct workers **out, size_t threads, struct diag *dg);
/* Between runs; NULL is fine. */
void workers_free(struct workers *w);

size_t workers_threads(const struct workers *w);

/* Calls fn once on each thread and returns when all have returned. */
void workers_run(struct workers *w, workers_fn *fn, void *context);

/* Calls fn for pieces that cover 0 .. count - 1 exactly once, on any threads, and returns when all
 * have returned. Pieces begin at multiples of `unit` (> 0). */
void workers_each(struct workers *w, workers_piece_fn *fn, void *context, size_t count,
                  size_t unit);

/* The fixed share of one thread: whole units, spread evenly; the last unit may be cut. begin == end: none. */
void workers_share(size_t count, size_t unit, size_t thread, size_t threads, size_t *begin,
                   size_t *end);

#endif
