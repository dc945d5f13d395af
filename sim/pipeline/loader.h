/* loader.h -- the threads that read: lanes between the decisions and the drive.
 *
 * A load is one expert on its way into a slot, or a stretch of dense weights; it is cut into pieces that
 * may land in any order. Each of the `lanes` threads takes the next piece, demand before prefetch,
 * submits it, sleeps until it has landed, and goes on. A thread that was idle must be woken first; one
 * that shares its core with a busy kernel waits for the scheduler before it sees its completion. Loads
 * into one slot follow each other: a read never starts into a slot that another read still fills.
 *
 * What the operating system has in its page cache is copied instead of read; what is read past it may be
 * copied too (`copies`). A copy reads and writes memory, and so competes with the kernels.
 */
#ifndef SIM_PIPELINE_LOADER_H
#define SIM_PIPELINE_LOADER_H

#include "sim/pipeline/array.h"
#include "sim/pipeline/page_cache.h"
#include "sim/pipeline/unit.h"

#define SLOT_NONE UINT32_MAX

struct loader;

/* Reading around a fault is given up while a mapping misses, and taken up again as it hits: a count that rises
 * with each miss and falls with each hit is compared with 100 and kept below 1000 (Linux, mm/filemap.c,
 * MMAP_LOTSAMISS and do_sync_mmap_readahead). Here whole loads are counted, not pages. */
#define LOADER_MISSES_MANY 100u
#define LOADER_MISSES_MAX  1000u
/* Faults of one thread that bring less than this each are simulated as chains of it. */
#define LOADER_CHAIN_BYTES (128u << 10)

struct loader_setup {
    struct array *array; /* the drives; NULL if given_Bps is set */
    uint64_t
        given_Bps; /* the I/O time is given by a measurement: loads are served one after another at
                                this rate, without pieces, lanes or host costs */
    struct unit *unit;
    struct flow_net *net;
    uint32_t dram, dram_weight;
    uint64_t copy_Bps;             /* what one copying thread moves */
    struct page_cache *page_cache; /* NULL: reads bypass it */
    bool mapped;                   /* what the page cache has is there at once, without a copy */
    uint64_t fault_bytes; /* mapped: largest request while misses outnumber hits; 0: request_max */
    uint32_t lanes, slots;
    uint32_t loads_max;   /* waiting and under way at once */
    uint64_t pieces;      /* of an expert, >= 1 */
    uint64_t request_max; /* largest request in bytes (readahead window, transfer limit); 0: none */
    uint64_t copies;      /* of what was read, after it landed */
    /* What lands goes on into a memory of the unit's own, over a link; link_Bps 0: it stays in the DRAM. */
    uint32_t link;
    uint64_t link_Bps, link_sync_ns;
    const struct storage *storage; /* the first drive: for serial_ns */
    bool shares_cores;
    /* Experts read ahead are awaited as one: demand asked for after them starts when they have all landed. */
    bool await_ahead;
    /* The thread that computes issues reads, one after another: no thread is woken for them, kernels wait until
     * all are issued, and what lands under a kernel is seen at its end. */
    bool caller_issues;
    uint64_t open_ns; /* per load */
    uint64_t submit_ns, complete_ns, wake_ns,
        wake_busy_ns; /* per piece; wake: per thread that was idle */
};

MUST_CHECK enum status loader_new(struct loader **out, struct evq *q, const struct loader_setup *s,
                                  struct diag *dg);
void loader_free(struct loader *l);

struct load {
    uint32_t slot; /* or SLOT_NONE: fills none (streamed dense weights) */
    uint32_t key;  /* for the page cache and the place on the drive */
    uint64_t bytes;
    uint32_t level;        /* 0 demand, 1 prefetch */
    const char *operation; /* of timeline.h */
    bool uncached;         /* known not to be in the page cache */
    bool resident;         /* known to be in it */
    evq_fn *landed;        /* when the last piece is there; or NULL */
    void *self;
};

/* ST_MISFIT when loads_max are there already: prefetches pile up faster than the drive can read. */
MUST_CHECK enum status loader_load(struct loader *l, const struct load *load);
/* True while a load of `slot` has not landed. */
bool loader_pending(const struct loader *l, uint32_t slot);
/* Somebody waits for `slot`, which is pending: its loads go before prefetches from now on (unless those are
 * awaited as one), and landed(q, self) is called when the last of them is there. */
void loader_await(struct loader *l, uint32_t slot, evq_fn *landed, void *self);

/* No load waits or is under way. */
bool loader_idle(const struct loader *l);

/* Records loads on `lane` of a timeline from now on; `experts` tells a key's layer. */
void loader_trace(struct loader *l, struct timeline *t, uint32_t lane, uint32_t experts);
void loader_mark_pass(struct loader *l, uint32_t pass);

struct loader_counts {
    uint64_t bytes, reads;   /* that came from the drives */
    uint64_t copied_bytes;   /* from the page cache */
    uint64_t serial_ns;      /* what the same pieces take one after another, host costs included */
    uint64_t demand_busy_ns; /* time with a demand load waiting or under way */
};
struct loader_counts loader_counts(const struct loader *l, uint64_t now_ns);

#endif
