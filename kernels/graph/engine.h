/* engine.h -- a model that is open and runs: weights, experts, graph and what is recorded, as one thing.
 *
 *     engine_open          the model, its dense weights, cache, reader, threads
 *     engine_prompt        a prompt in chunks
 *     engine_step          one more token
 *     engine_save_...      what was recorded
 *
 * After each pass `on_pass` is told what it took. */
#ifndef KERNELS_GRAPH_ENGINE_H
#define KERNELS_GRAPH_ENGINE_H

#include "kernels/graph/graph.h"
#include "kernels/graph/host_meter.h"

/* One pass: a chunk of the prompt or a decoded token. Counts and times are of this pass alone. */
struct engine_pass {
    uint64_t pass;
    enum trace_phase phase;
    size_t tokens;
    uint32_t first_token;
    uint64_t start_ns, wall_ns;
    uint64_t compute_ns; /* wall without io_wait */
    uint64_t io_wait_ns; /* nothing ran because a read was awaited */
    struct record_sums sums;
    struct decide_counts counts;
    struct host_meter host; /* after it; faults and stolen time are of this pass */
};
typedef void engine_pass_fn(void *self, const struct engine_pass *p);

struct engine_setup {
    const char *model;           /* GGUF */
    const char *pack;            /* NULL: experts from the GGUF */
    const char *route;           /* trace whose routing is forced, or NULL */
    const char *const *adapters; /* GGUF LoRA files, all applied */
    size_t adapter_count;
    const char *isa;       /* "auto" or a name */
    size_t threads;        /* 0: all processors */
    size_t context, chunk; /* 0: what the prompt and the tokens need; ENGINE_CHUNK */
    bool activations_f32, overlap, direct;
    struct decide_setup decide; /* as in experts_setup; budget_bytes 0: all that fits */
    bool prefetch_timed;        /* as in experts_setup */
    /* How the run will be, for policies and prefetchers that know the future with `route`. */
    size_t run_prompt; /* tokens; 0: those of the trace */
    size_t
        run_generate; /* all but the last go through the layers; ENGINE_AS_TRACED: those of the trace */
    const char *decisions;         /* decision log of the run, or NULL */
    uint64_t memory_bytes;         /* all together; 0: no limit but the system's */
    struct loader_io_setup loader; /* backend, depth, limits */
    bool record_trace, record_timeline;
    const char *heads;         /* trained heads that foretell, or NULL */
    size_t predict_distance;   /* 0: nothing is foretold; that of the heads, if there are any */
    graph_predict_fn *predict; /* NULL: the next router, run early */
    void *predict_self;
    product_watch_fn *watch; /* of all products (matrix.h), or NULL */
    void *watch_self;
    graph_progress_fn *progress; /* of loading */
    void *progress_self;
    engine_pass_fn *on_pass;
    void *on_pass_self;
};
#define ENGINE_CHUNK     32u
#define ENGINE_AS_TRACED SIZE_MAX
/* What a run takes beside weights, adapters, heads, cache and state: buffers, tables, code, stacks. A chunk so long that the
 * buffers of a pass take more than half of it (memory_plan.h) has what is beyond in addition. */
#define ENGINE_OVERHEAD_BYTES ((uint64_t)64 << 20)

struct engine;
/* ST_MISFIT: the memory cannot hold it; the reason names the least. Other failures as those of its parts. */
MUST_CHECK enum status engine_open(struct engine **out, const struct engine_setup *s,
                                   struct diag *dg);
void engine_close(struct engine *e); /* NULL is fine */

/* The whole prompt in chunks; `logits` (n x vocabulary) or, if NULL, `last` (vocabulary) may be given. */
MUST_CHECK enum status engine_prompt(struct engine *e, const uint32_t *tokens, size_t n,
                                     float *logits, float *last, struct diag *dg);
/* One token; logits of what follows it. */
MUST_CHECK enum status engine_step(struct engine *e, uint32_t token, float *logits,
                                   struct diag *dg);

MUST_CHECK enum status engine_save_trace(struct engine *e, const char *path, struct diag *dg);
MUST_CHECK enum status engine_save_decisions(struct engine *e, struct diag *dg);
MUST_CHECK enum status engine_save_timeline(struct engine *e, const char *path, struct diag *dg);

/* Token `i` of a run whose words do not matter: routes of others, calibration, benches all ask the same ones. */
static inline uint32_t engine_made_up_token(size_t i, size_t vocab)
{
    return (uint32_t)((i * 37 + 11) % vocab);
}

const struct graph_weights *engine_weights(const struct engine *e);
const struct compute_setup *engine_compute(const struct engine *e);
struct graph *engine_graph(const struct engine *e);
const struct experts *engine_experts(const struct engine *e);
const struct record_sums *engine_sums(const struct engine *e);
const struct forced_route *engine_route(const struct engine *e); /* or NULL */
const char *engine_isa(const struct engine *e);
size_t engine_threads(const struct engine *e);
/* Weights, adapters, heads, slots, state: what it holds. */
uint64_t engine_memory_bytes(const struct engine *e);

#endif
