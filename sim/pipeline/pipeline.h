/* pipeline.h -- tokens as events: a model on a machine under an engine profile, in time.
 *
 * Every pass goes through the layers in order: fixed part (attention, router, dense weights), then the
 * decisions on the experts that the router chose (sim/policy, the same code as replay and engine), then
 * reads and expert kernels as the profile lets them wait for each other, then the head. Queueing,
 * overlap, prefetch and contention follow from the resources: lanes and drives, DRAM, the compute unit.
 */
#ifndef SIM_PIPELINE_PIPELINE_H
#define SIM_PIPELINE_PIPELINE_H

#include "devices/device.h"
#include "models/model.h"
#include "sim/pipeline/array.h"
#include "sim/pipeline/pressure.h"
#include "sim/pipeline/profile.h"
#include "sim/pipeline/routing.h"
#include "sim/policy/decide.h"
#include "sim/roofline/machine.h"
#include "sim/trace/timeline.h"

/* One decode pass, for the per-token CSV. */
struct pipeline_token {
    uint64_t index, start_ns, end_ns;
    uint64_t produced;   /* tokens that the pass yielded: more than 1 with batches and drafts */
    uint64_t compute_ns; /* kernels ran */
    uint64_t io_ns;      /* a demand read was waiting or under way */
    uint64_t stall_ns;   /* nothing ran because a read was awaited */
    uint64_t read_bytes, lookups, hits, late_hits;
};

/* One layer over the whole run. */
struct pipeline_layer {
    uint32_t layer;
    uint64_t lookups, hits, late_hits;
    uint64_t prefetches, prefetch_used, prefetch_wasted, pollution;
};

/* One resource over the whole run: busy + idle = the time up to the end of the last pass. */
struct pipeline_resource {
    const char *name;
    uint64_t busy_ns, span_ns;
    uint64_t bytes, operations;
};

struct pipeline_setup {
    const struct model *model;
    struct device *device;
    const struct engine_profile *profile;
    const char *unit; /* NULL: the profile's site, else the fastest */
    /* routing */
    const struct trace *trace;            /* recorded; NULL: see below */
    const struct generate_params *params; /* generated; NULL: fixed */
    uint64_t hit_ratio;                   /* fixed: parts in 10^9 */
    uint64_t prompt_tokens,
        tokens;            /* generated and fixed; `tokens` decode tokens at most in any case */
    uint64_t warmup;       /* of the decode tokens, the first so many are run but not counted */
    uint64_t requests;     /* made-up routing: one after another; 0 is 1 */
    uint32_t batch, draft; /* sequences that decode together (0 is 1); tokens drafted for each */
    uint64_t acceptance;   /* of a drafted token, parts in 10^9 */
    uint64_t context;      /* tokens of state that exist before */
    /* decisions */
    const struct cache_policy *policy;
    const struct prefetch_policy *prefetch; /* NULL: none */
    enum scope scope;
    enum evict_when evict;
    uint64_t cache_bytes;
    bool cache_given;      /* else all that fits */
    uint64_t memory_bytes; /* what the run may use; 0: capacity less reserve */
    uint64_t
        dense_bytes; /* where the profile streams dense weights: no more of them stay; 0: all that fits */
    uint32_t prefetch_distance, prefetch_experts_max;
    uint64_t prefetch_bytes_max;
    uint64_t
        prefetch_recall; /* of an oracle's guesses so many are true, parts in 10^9, the others random;
                                 0: all */
    bool prefetch_timed; /* guesses wait until the drive has nothing else to do; see timed.h */
    /* knobs; 0: the profile's or the device's */
    uint64_t lanes, pieces, threads;
    enum array_layout drives; /* of a device that has several */
    int overlap;              /* enum overlap, or -1: the profile's */
    uint32_t state_bits;
    uint64_t given_compute_ns, given_io_ns; /* per decode token, from a measurement */
    uint64_t seed;
    uint32_t jitter_e3;
    struct timeline *timeline;       /* NULL: none; lanes and tracks are made by the run */
    const struct pressure *pressure; /* applications that open, ordered by time */
    size_t pressure_count;
    void (*token)(void *self, const struct pipeline_token *t);       /* NULL: none */
    void (*layer)(void *self, const struct pipeline_layer *l);       /* at the end; NULL: none */
    void (*resource)(void *self, const struct pipeline_resource *x); /* at the end; NULL: none */
    void *token_self, *layer_self, *resource_self;
};

struct pipeline_result {
    uint64_t tokens; /* decoded */
    uint64_t decode_ns, prefill_ns;
    uint64_t first_token_ns; /* the first decoded token's own time */
    uint64_t token_ns_p50, token_ns_p99;
    uint64_t compute_ns, io_ns, stall_ns; /* sums over decode tokens */
    uint64_t flash_bytes;                 /* read while decoding */
    uint64_t read_bytes;               /* of the whole run, until nothing was in flight any more */
    uint64_t copied_bytes;             /* that the page cache had */
    uint64_t lookups, hits, late_hits; /* while decoding */
    struct decide_counts counts;       /* whole run */
    uint64_t cache_bytes, peak_bytes;  /* peak: all of the memory ledger */
    uint64_t page_cache_bytes;
    uint64_t energy_nJ;          /* of the decode */
    unsigned energy_missing;     /* enum energy_input: what counts as nothing in it */
    uint64_t end_ns;             /* of the last pass; reads in advance may go on after it */
    uint64_t lower_ns, upper_ns; /* roofline bound and serial sum of the same bytes, per run */
    uint64_t stale_guesses;      /* of a timed prefetcher, dropped */
    uint64_t pressure_events;    /* caches shrunk, state refused, kills */
    uint64_t events, fingerprint;
    const char *bound; /* what most of the time went to: flash, DRAM, compute, overhead */
    bool cut;
};

/* ST_MISFIT where something does not fit or belong together, with what would. */
MUST_CHECK enum status pipeline_run(struct pipeline_result *out, const struct pipeline_setup *s,
                                    struct diag *dg);

#endif
