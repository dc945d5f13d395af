/* experts.h -- the executor: it asks sim/policy what to keep and to load, does it, and computes with what came.
 *
 * The decisions are those of decide.h, unchanged; this is its third driver beside replay and simulator. A
 * layer is four calls, in this order:
 *
 *     experts_choose        the router's choice: decide_batch; demand reads are issued
 *     experts_predict       (any number) a guess about a later layer: decide_predict; prefetch reads are issued
 *     experts_poll          (any time) a timed prefetcher looks whether the device is idle
 *     experts_compute       hits first, then experts as they arrive; the weighted sum of their outputs
 *     experts_layer_end     decide_layer_end
 *
 * Order of sums. The output of each expert for each token is stored by itself; for a token they are added
 * in the order of the router's slots. So what is computed does not depend on what was cached, read late,
 * foretold, or who computed it.
 *
 * Threading contract. One thread calls everything here; it owns decisions, store and loader: it submits
 * and reaps reads, between products too, and sleeps when nothing that it needs has landed. Products are
 * shared with the workers, which know nothing of reads. With LOADER_THREADS the loader's threads read,
 * and nobody reaps.
 *
 * Timed. With prefetch_timed a guess waits in a queue until every read commanded has landed, then goes to
 * decide_predict by itself; one whose layer was reached first is dropped. That is looked for between the
 * products of a layer and between attention and router. What is decided then depends on time: the decision
 * log tells the order (decision_log.h).
 *
 * Late. A hit whose read is still under way is promoted before all prefetches and waited for; a slot
 * whose old read is not finished is waited for before it is filled anew. The decision itself never waits.
 */
#ifndef KERNELS_GRAPH_EXPERTS_H
#define KERNELS_GRAPH_EXPERTS_H

#include "kernels/graph/expert_source.h"
#include "kernels/graph/foreseen.h"
#include "kernels/graph/record.h"
#include "sim/policy/decision_log.h"

struct experts_setup {
    const struct graph_weights *weights;
    struct compute_setup compute;
    /* Policy, prefetch, scope, evict, budget, limits, seed, future, rank; shapes and sizes are filled in
     * here. prefetch_experts_max 0: top_k. */
    struct decide_setup decide;
    struct foreseen_setup foreseen; /* for a policy or prefetcher that knows the future */
    bool prefetch_timed;            /* guesses from outside only; see above */
    const char *decisions_path;     /* decision log of the run; NULL: none */
    const char *pack_path;          /* NULL: experts are read from the GGUF */
    struct loader_io_setup loader;  /* backend, depth, limits, ops; the rest is filled in here */
    bool direct;
    bool
        overlap; /* compute what is there while the rest is read; else all reads, then all experts */
    size_t chunk; /* tokens of a pass at most; a budget too small for it makes it smaller */
    struct record *record;
};

/* What a cache takes beside its budget: the least budget, with passes of one token; and, with passes of s->chunk tokens,
 * what stands beyond the budget in the arena (experts without a place in it) and what the rows of a pass take.
 * s->decide.budget_bytes does not matter. */
struct experts_need {
    uint64_t least_bytes, reserve_bytes, pass_bytes;
    uint64_t batch_bytes; /* the least budget with passes of s->chunk tokens */
};
MUST_CHECK enum status experts_measure(struct experts_need *out, const struct experts_setup *s,
                                       struct diag *dg);

struct experts;
/* ST_MISFIT: the budget cannot hold one token's experts of a layer; the reason names the least. */
MUST_CHECK enum status experts_new(struct experts **out, const struct experts_setup *s,
                                   struct diag *dg);
void experts_free(struct experts *e); /* NULL is fine */

/* Waits for all reads that were commanded, so that the record tells of each. */
MUST_CHECK enum status experts_settle(struct experts *e, struct diag *dg);

size_t experts_chunk(const struct experts *e); /* tokens a pass may have */
const struct decide_setup *experts_decisions(const struct experts *e);
const struct decide_counts *experts_counts(const struct experts *e);
bool experts_prefetch_timed(const struct experts *e);
uint64_t experts_stale_guesses(const struct experts *e); /* of a timed prefetcher, dropped */
const struct decide_layer *experts_by_layer(const struct experts *e);
size_t experts_arena_bytes(const struct experts *e); /* slots with their alignment */
uint64_t experts_moved_bytes(const struct experts *e);
const char *experts_backend(const struct experts *e); /* "uring" or "threads" */
const char *experts_note(const struct experts *e);    /* what the loader does without, or "" */

/* `ids`: tokens x top_k of the layer, slot order within a token. ST_IO: a read failed. */
MUST_CHECK enum status experts_choose(struct experts *e, uint32_t pass, uint32_t layer,
                                      const uint16_t *ids, size_t tokens, struct diag *dg);
MUST_CHECK enum status experts_predict(struct experts *e, uint32_t pass, uint32_t layer,
                                       uint32_t target, const uint16_t *ids, size_t n,
                                       struct diag *dg);
/* `out`: tokens x hidden, written. `x` is ready; `weights` are laid out as `ids` was. */
MUST_CHECK enum status experts_compute(struct experts *e, uint32_t pass, uint32_t layer,
                                       const float *weights, const struct input *x, size_t tokens,
                                       float *out, struct diag *dg);
MUST_CHECK enum status experts_layer_end(struct experts *e, uint32_t pass, uint32_t layer,
                                         struct diag *dg);
/* `layer` is reached: guesses about it are too late. Does nothing unless the prefetcher is timed. */
MUST_CHECK enum status experts_poll(struct experts *e, uint32_t pass, uint32_t layer,
                                    struct diag *dg);
/* Ends the decision log and puts it under its path; a log that is not saved is dropped. */
MUST_CHECK enum status experts_save_decisions(struct experts *e, struct diag *dg);

#endif
