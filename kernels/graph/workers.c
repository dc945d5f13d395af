/* workers.c -- one atomic word says which run is on, who may join it, and how many are in it.
 *
 *   bits 63..32   number of the run
 *   bit 31        everyone: all workers count as in from the start, and none may miss it
 *   bit 30        closed: nobody may come in any more
 *   bits 29..0    workers that are in
 *
 * A worker reads what the run is only after it is counted in, and the caller writes the next run only
 * when nobody is in: so a worker that wakes up late finds a closed run, or the next one, never
 * half of each. */
#include "kernels/graph/workers.h"

#include "base/small_thread.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define RUN_SHIFT   32
#define EVERYONE    (UINT64_C(1) << 31)
#define CLOSED      (UINT64_C(1) << 30)
#define INSIDE      (CLOSED - 1)
#define SPIN_NS_MIN 1000
#define LINE_BYTES  64

/* Where threads sleep. The sleeper counts itself and then looks at the state; who changes the state
 * looks at the count afterwards: one of the two sees the other. */
struct bed {
    _Alignas(LINE_BYTES) atomic_uint sleepers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

struct worker {
    struct workers *all;
    size_t index;
    pthread_t thread;
    uint64_t spin_ns;
};

struct workers {
    size_t threads, started; /* started: of the array */
    struct worker *worker;   /* of index 0 only spin_ns is used: the caller's */
    uint64_t spin_ns_max;
    workers_fn *fn;
    void *context;
    workers_piece_fn *piece_fn;
    void *piece_context;
    size_t count, unit;
    _Alignas(LINE_BYTES) _Atomic uint64_t state;
    _Alignas(LINE_BYTES) atomic_size_t next; /* the first item that nobody has taken */
    struct bed idle, join;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

typedef bool until_fn(uint64_t state, uint32_t run);

static bool other_run(uint64_t state, uint32_t run)
{
    return (uint32_t)(state >> RUN_SHIFT) != run;
}

static bool nobody_inside(uint64_t state, uint32_t run)
{
    (void)run;
    return (state & INSIDE) == 0;
}

static bool spin(struct worker *me, until_fn *until, uint32_t run)
{
    struct workers *w = me->all;
    uint64_t end_ns = now_ns() + me->spin_ns;
    do
        if (until(atomic_load(&w->state), run)) {
            me->spin_ns = 2 * me->spin_ns < w->spin_ns_max ? 2 * me->spin_ns : w->spin_ns_max;
            return true;
        }
    while (now_ns() < end_ns);
    me->spin_ns = me->spin_ns / 2 > SPIN_NS_MIN ? me->spin_ns / 2 : SPIN_NS_MIN;
    return false;
}

static void wait_until(struct worker *me, struct bed *bed, until_fn *until, uint32_t run)
{
    struct workers *w = me->all;
    if (until(atomic_load(&w->state), run) || (w->spin_ns_max > 0 && spin(me, until, run)))
        return;
    pthread_mutex_lock(&bed->lock);
    atomic_fetch_add(&bed->sleepers, 1);
    while (!until(atomic_load(&w->state), run))
        pthread_cond_wait(&bed->wake, &bed->lock);
    atomic_fetch_sub(&bed->sleepers, 1);
    pthread_mutex_unlock(&bed->lock);
}

static void wake(struct bed *bed)
{
    if (atomic_load(&bed->sleepers) == 0)
        return;
    pthread_mutex_lock(&bed->lock);
    pthread_cond_broadcast(&bed->wake);
    pthread_mutex_unlock(&bed->lock);
}

/* False: the run was closed meanwhile. */
static bool enter(struct workers *w, uint32_t run)
{
    uint64_t state = atomic_load(&w->state);
    while (!other_run(state, run)) {
        if (state & EVERYONE)
            return true;
        if (state & CLOSED)
            return false;
        if (atomic_compare_exchange_weak(&w->state, &state, state + 1))
            return true;
    }
    return false;
}

static void leave(struct workers *w)
{
    if ((atomic_fetch_sub(&w->state, 1) & INSIDE) == 1)
        wake(&w->join);
}

static void *work(void *argument)
{
    struct worker *me = argument;
    struct workers *w = me->all;
    uint32_t seen = 0;
    for (;;) {
        wait_until(me, &w->idle, other_run, seen);
        uint32_t run = (uint32_t)(atomic_load(&w->state) >> RUN_SHIFT);
        seen = run;
        if (!enter(w, run))
            continue;
        if (!w->fn)
            return NULL;
        w->fn(w->context, me->index, w->threads);
        leave(w);
    }
}

/* Opens the next run, with all workers in it or none yet. */
static void open_run(struct workers *w, workers_fn *fn, void *context, bool everyone)
{
    uint64_t run = (uint32_t)((atomic_load(&w->state) >> RUN_SHIFT) + 1);
    w->fn = fn;
    w->context = context;
    atomic_store(&w->state, run << RUN_SHIFT | (everyone ? EVERYONE | (w->threads - 1) : 0));
    wake(&w->idle);
}

static uint64_t cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint64_t)CPU_COUNT(&set) : 1;
}

static void bed_init(struct bed *b)
{
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->wake, NULL);
}

static void bed_destroy(struct bed *b)
{
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->wake);
}

enum status workers_new(struct workers **out, size_t threads, struct diag *dg)
{
    assert(threads >= 1 && threads <= WORKERS_THREADS_MAX);
    *out = NULL;
    struct workers *w = aligned_alloc(LINE_BYTES, sizeof *w);
    struct worker *worker = calloc(threads, sizeof *worker);
    if (!w || !worker) {
        free(w);
        free(worker);
        return diag_no_memory(dg);
    }
    *w = (struct workers){.threads = threads,
                          .started = 1,
                          .worker = worker,
                          .spin_ns_max = threads <= cores() ? WORKERS_SPIN_NS : 0};
    bed_init(&w->idle);
    bed_init(&w->join);
    for (size_t i = 0; i < threads; i++)
        worker[i] = (struct worker){.all = w, .index = i, .spin_ns = w->spin_ns_max};
    for (; w->started < threads; w->started++)
        if (small_thread_start(&worker[w->started].thread, work, &worker[w->started]) != 0) {
            size_t number = w->started;
            workers_free(w);
            return diag_set(dg, ST_IO, "thread %zu of %zu cannot be started", number + 1, threads);
        }
    *out = w;
    return ST_OK;
}

void workers_free(struct workers *w)
{
    if (!w)
        return;
    open_run(w, NULL, NULL, true);
    for (size_t i = 1; i < w->started; i++)
        pthread_join(w->worker[i].thread, NULL);
    bed_destroy(&w->idle);
    bed_destroy(&w->join);
    free(w->worker);
    free(w);
}

size_t workers_threads(const struct workers *w)
{
    return w->threads;
}

void workers_run(struct workers *w, workers_fn *fn, void *context)
{
    if (w->threads > 1)
        open_run(w, fn, context, true);
    fn(context, 0, w->threads);
    wait_until(&w->worker[0], &w->join, nobody_inside, 0);
}

/* The next piece: half of what would be each thread's part of the rest, so that the last ones are
 * small and all threads end together. */
static bool take(struct workers *w, size_t *begin, size_t *end)
{
    *begin = atomic_load(&w->next);
    do {
        if (*begin >= w->count)
            return false;
        size_t left = w->count - *begin, size = left / (2 * w->threads) / w->unit * w->unit;
        size = size > w->unit ? size : w->unit;
        *end = *begin + (size < left ? size : left);
    } while (!atomic_compare_exchange_weak(&w->next, begin, *end));
    return true;
}

static void take_pieces(void *context, size_t thread, size_t threads)
{
    struct workers *w = context;
    size_t begin, end;
    (void)threads;
    while (take(w, &begin, &end))
        w->piece_fn(w->piece_context, begin, end, thread);
}

void workers_each(struct workers *w, workers_piece_fn *fn, void *context, size_t count, size_t unit)
{
    assert(unit > 0);
    if (w->threads == 1) {
        if (count > 0)
            fn(context, 0, count, 0);
        return;
    }
    w->piece_fn = fn;
    w->piece_context = context;
    w->count = count;
    w->unit = unit;
    atomic_store(&w->next, 0);
    open_run(w, take_pieces, w, false);
    take_pieces(w, 0, w->threads);
    atomic_fetch_or(&w->state, CLOSED);
    wait_until(&w->worker[0], &w->join, nobody_inside, 0);
}

void workers_share(size_t count, size_t unit, size_t thread, size_t threads, size_t *begin,
                   size_t *end)
{
    assert(unit > 0 && thread < threads);
    size_t units = count / unit + (count % unit > 0), each = units / threads;
    size_t more = units % threads; /* the first threads take one unit more */
    size_t first = thread * each + (thread < more ? thread : more);
    size_t last = first + each + (thread < more);
    *begin = first * unit < count ? first * unit : count;
    *end = last * unit < count ? last * unit : count;
}
