/* loader.h -- the threads that read experts: lanes between the decisions and the drive.
 *
 * A load is one expert on its way into a slot: `pieces` reads that may land in any order. Each of the
 * `lanes` threads takes the next piece, demand before prefetch, submits it, sleeps until it has
 * landed, and goes on. A thread that was idle must be woken first; one that shares its core with a busy
 * kernel waits for the scheduler before it sees its completion. Loads into one slot follow each
 * other: a read never starts into a slot that another read is still filling.
 *
 * Pieces that the operating system has in its page cache are copied instead of read. */
#ifndef SIM_PIPELINE_LOADER_H
#define SIM_PIPELINE_LOADER_H

#include "sim/pipeline/drive.h"
#include "sim/pipeline/unit.h"

#define LOAD_NONE UINT32_MAX

struct loader;

struct loader_setup {
    struct drive *drive; /* NULL: reads take given_Bps, see below */
    struct unit *unit;
    uint32_t lanes, pieces;
    uint32_t slots; /* of the cache, and transient ones */
    bool shares_cores;
    uint64_t submit_ns, complete_ns, wake_ns, wake_busy_ns, open_ns;
    /* The rate at which reads are served one by one when the I/O time is given by a measurement. */
    uint64_t given_Bps;
};

MUST_CHECK enum status loader_new(struct loader **out, struct evq *q, const struct loader_setup *s,
                                  struct diag *dg);
void loader_free(struct loader *l);

/* Starts filling `slot` with `bytes` of `key`. `landed` is called when the last piece is there. Level 0 is
 * demand, 1 prefetch. */
void loader_load(struct loader *l, uint32_t slot, uint32_t key, uint64_t bytes, uint32_t level,
                 evq_fn *landed, void *self);
/* True while a load of `slot` has not landed. */
bool loader_pending(const struct loader *l, uint32_t slot);
/* Somebody waits for the slot now: what is not yet in flight of its load goes before prefetches, and
 * `landed` is called at its end (at once if nothing is pending). */
void loader_await(struct loader *l, uint32_t slot, evq_fn *landed, void *self);

/* Reads that fill no slot (streamed dense weights): `bytes` in requests of at most `request` bytes. */
void loader_stream(struct loader *l, uint64_t bytes, uint64_t request, uint32_t level,
                   evq_fn *landed, void *self);

struct loader_counts {
    uint64_t bytes, reads;
    uint64_t demand_busy_ns; /* time with at least one demand read waiting or in flight */
};
struct loader_counts loader_counts(const struct loader *l, uint64_t now_ns);

#endif
