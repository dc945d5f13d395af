/* profile.h -- how an engine works: what waits for what, and what each step costs the host.
 *
 * One YAML file an engine in sim/pipeline/profiles/, every number with kind and source; behaviour from
 * SYSTEMS section 3 and the engines' own documents. docs/profiles.md has them side by side. Every key must
 * be there, so that a profile is read without knowing any default; a cost that does not occur is 0. An engine
 * without a profile uses `generic`, and the result says so. */
#ifndef SIM_PIPELINE_PROFILE_H
#define SIM_PIPELINE_PROFILE_H

#include "base/arena.h"
#include "base/value.h"

#include <stdbool.h>

enum overlap {
    OVERLAP_SERIAL, /* all reads, then all experts */
    OVERLAP_EXPERT, /* hits and arrivals as they come, one at a time */
    OVERLAP_READY   /* the same, all that are there together */
};
enum io_path {
    IO_DIRECT,   /* past the page cache */
    IO_BUFFERED, /* read() through the page cache */
    IO_MMAP      /* page faults */
};
enum dense_home { DENSE_RESIDENT, DENSE_STREAMED, DENSE_PAGE_CACHE };
enum expert_site { SITE_CPU, SITE_GPU };  /* where experts are computed */
enum cache_home { HOME_DRAM, HOME_VRAM }; /* where the expert cache lives */
enum issuer {
    ISSUER_THREADS, /* loader threads, one a lane, which sleep on their read */
    ISSUER_CALLER /* the thread that computes: it issues all reads itself, and sees what has landed when it looks */
};
enum copy_kind { COPY_NONE, COPY_PINNED, COPY_PAGEABLE }; /* from host memory to the unit */

struct engine_profile {
    struct arena arena;
    const char *name, *title, *origin, *source;

    /* who waits for what */
    int overlap;              /* enum overlap */
    int io;                   /* enum io_path */
    int dense;                /* enum dense_home */
    int site;                 /* enum expert_site */
    int cache_home;           /* enum cache_home */
    int copy;                 /* enum copy_kind */
    int issuer;               /* enum issuer: who issues reads */
    bool loader_shares_cores; /* loader threads run on the kernels' cores */
    bool
        overlap_shared_expert; /* shared expert and hits are computed while reads run, even if serial */
    bool embed_streamed;       /* embedding and head are re-read every token too */
    bool expand_experts; /* experts are expanded to 16 bits before use (bytes cross DRAM again) */
    bool await_prefetch; /* reads ahead are awaited as one before a layer's misses are asked for */

    /* decisions, unless the command line says otherwise */
    const char *policy;             /* a cache policy */
    int scope;                      /* enum scope: 0 global, 1 layer */
    int evict;                      /* enum evict_when */
    const char *prefetch;           /* a prefetcher, or "none" */
    struct value prefetch_distance; /* layers ahead */
    struct value prefetch_experts;  /* from one prediction; 0: as many as a token chooses */
    struct value predict; /* what running a later router early takes from the kernels, a layer */
    /* Reads ahead begin so long before the layer's router has spoken; 0: as soon as they are guessed. */
    struct value prefetch_lead;

    struct value lanes;       /* reads in flight */
    struct value pieces;      /* reads an expert takes */
    struct value request_max; /* an engine's or kernel's largest request in bytes; 0: none */
    struct value threads;     /* compute threads; 0 in the file, and then not given: the device's */
    struct value chunk;       /* prompt tokens a prefill pass takes */
    struct value dense_ahead; /* layers whose streamed dense weights are read in advance */

    /* what a read costs the host */
    struct value open;      /* per expert: opening its file */
    struct value submit;    /* CPU time to submit a read */
    struct value complete;  /* CPU time to complete a read */
    struct value wake;      /* from a completion to the running of the thread that sleeps on it */
    struct value wake_busy; /* the same while kernels occupy the loader's core: a scheduler slice */
    struct value copies;    /* extra memory copies of what is read (page cache -> buffer) */
    struct value fault;     /* CPU time of a page fault with reclaim (mmap) */
    struct value readahead; /* bytes the kernel reads at once (buffered, mmap) */
    struct value
        fault_bytes; /* mmap: what a fault brings once reading ahead has given up; 0: as before */

    /* what computing costs beside its kernels */
    struct value layer_overhead;    /* per layer: graph, synchronisation, launch */
    struct value token_overhead;    /* per token: sampling, cache management, host */
    struct value kernel_efficiency; /* share of memory bandwidth that its GEMV reaches */
    struct value
        copy_rate; /* share of the link that host-to-unit copies reach; 0 if there are none */
    struct value copy_sync; /* launch and synchronisation of one such copy */
};

/* PROFILE is a name in `catalogue` (a folder) or a path ending in .yaml; overrides are PATH=VALUE, applied
 * in order (`lanes=8`, `overlap=expert`).
 *
 * Errors: ST_MISSING for a name that the catalogue lacks, with the nearest; ST_PARSE, with file:line,
 * for a file or an override that breaks the format or names no such policy; ST_RANGE for a number
 * outside its limits; ST_USAGE for an override that is not PATH=VALUE. */
MUST_CHECK enum status profile_load(struct engine_profile **out, const char *profile,
                                    const char *catalogue, const char *const *overrides,
                                    size_t override_count, struct diag *dg);
void profile_free(struct engine_profile *p); /* NULL is fine */

/* True if the first `length` bytes of `text` are a key of the format. */
bool profile_is_key(const char *text, size_t length);

/* The catalogue's names in byte order; texts and array live in `arena`. */
MUST_CHECK enum status profile_names(struct arena *arena, const char *catalogue,
                                     const char *const **names, size_t *count, struct diag *dg);

/* Calls back for every value of a profile with its key: for listing sources, counting assumptions and
 * drawing the inputs of an interval. */
typedef void profile_value_fn(void *self, const char *key, struct value *v);
void profile_each_value(struct engine_profile *p, profile_value_fn *fn, void *self);
/* The same for keys that choose (overlap, io, ...) and flags, as the file writes them. */
typedef void profile_choice_fn(void *self, const char *key, const char *choice);
void profile_each_choice(const struct engine_profile *p, profile_choice_fn *fn, void *self);

#endif
