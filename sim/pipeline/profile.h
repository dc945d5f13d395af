/* profile.h -- how an engine works: what waits for what, and what each step costs the host.
 *
 * One YAML file an engine in sim/pipeline/profiles/, every number with kind and source; behaviour from
 * SYSTEMS section 3 and the engines' own documents. An engine without a profile uses `generic`, and the
 * result says so. */
#ifndef SIM_PIPELINE_PROFILE_H
#define SIM_PIPELINE_PROFILE_H

#include "base/arena.h"
#include "base/value.h"

#include <stdbool.h>

enum overlap {
    OVERLAP_SERIAL,
    OVERLAP_EXPERT
}; /* all reads then all experts | hits and arrivals as they come */
enum io_path { IO_DIRECT, IO_BUFFERED, IO_MMAP };
enum dense_home { DENSE_RESIDENT, DENSE_STREAMED, DENSE_PAGE_CACHE };
enum expert_site { SITE_CPU, SITE_GPU }; /* where experts are computed */
enum copy_kind { COPY_NONE, COPY_PINNED, COPY_PAGEABLE };

struct engine_profile {
    struct arena arena;
    const char *name, *title, *origin, *source;
    int overlap;          /* enum overlap */
    int io;               /* enum io_path */
    int dense;            /* enum dense_home */
    int site;             /* enum expert_site */
    int copy;             /* enum copy_kind: from host memory to the unit that computes */
    const char *policy;   /* default cache policy */
    int scope;            /* enum scope: 0 global, 1 layer */
    int evict;            /* enum evict_when */
    const char *prefetch; /* default prefetcher; "none" */
    struct value lanes;   /* reads in flight */
    struct value pieces;  /* reads an expert takes */
    struct value threads; /* compute threads; not given: the device's */
    struct value prefetch_distance;
    struct value prefetch_experts;
    struct value chunk;       /* prompt tokens a prefill pass takes */
    bool loader_shares_cores; /* loader threads run on the kernels' cores */
    bool
        overlap_shared_expert; /* shared expert and hits are computed while reads run, even if serial */
    bool embed_streamed;       /* embedding and head are re-read every token too */
    bool expand_experts;   /* experts are expanded to 16 bits before use (bytes cross DRAM again) */
    struct value submit;   /* CPU time to submit a read */
    struct value complete; /* CPU time to complete a read */
    struct value open;     /* per expert: opening its file */
    struct value wake;     /* from a completion to the running of the thread that sleeps on it */
    struct value wake_busy; /* the same while kernels occupy the loader's core: a scheduler slice */
    struct value layer_overhead;    /* per layer: graph, synchronisation, launch */
    struct value token_overhead;    /* per token: sampling, cache management, host */
    struct value copies;            /* extra memory copies of what is read (page cache -> buffer) */
    struct value fault;             /* CPU time of a page fault with reclaim (mmap) */
    struct value readahead;         /* bytes the kernel reads at once (buffered, mmap) */
    struct value kernel_efficiency; /* share of DRAM bandwidth that its GEMV reaches */
};

/* A name in `catalogue` or a path ending in .yaml; overrides are PATH=VALUE. A misspelt name gets the nearest
 * as a hint. */
MUST_CHECK enum status profile_load(struct engine_profile **out, const char *profile,
                                    const char *catalogue, const char *const *overrides,
                                    size_t override_count, struct diag *dg);
void profile_free(struct engine_profile *p);

#endif
