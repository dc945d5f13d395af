/* feed.h -- a recorded trace as the sequence of batches that a driver hands to the decisions.
 *
 * As long as every batch fits the cache this is the trace itself. Where a prefill chunk asks for more
 * experts of one layer than the cache can hold, its pass is cut into smaller chunks of whole tokens,
 * each run through all layers, as an engine with that budget would do it. Replay and simulator share
 * this, so they see the same batches. */
#ifndef SIM_REPLAY_FEED_H
#define SIM_REPLAY_FEED_H

#include "sim/policy/future.h"
#include "sim/trace/trace.h"

struct feed_batch {
    uint32_t pass; /* number of the pass after cutting */
    uint32_t layer;
    uint32_t turn;
    uint32_t phase;              /* enum trace_phase */
    uint32_t tokens;             /* tokens of this chunk in this layer */
    size_t first_row, row_count; /* rows of the trace */
    size_t first_guess, guess_count;
};

struct feed {
    const struct trace *trace;
    size_t batch_count, pass_count;
    struct feed_batch *batch;
    uint64_t batch_bytes_max; /* largest union of one batch after cutting */
    bool cut;                 /* some pass was */
};

/* `limit_bytes`: the most that one layer's union may weigh; UINT64_MAX for no limit. A single token that
 * exceeds it stays whole (decide_new will refuse it). */
MUST_CHECK enum status feed_new(struct feed **out, const struct trace *t, uint64_t limit_bytes,
                                struct diag *dg);
void feed_free(struct feed *f);

/* When each key is used next, for clairvoyant policies; future_free() it. */
MUST_CHECK enum status feed_future(struct future **out, const struct feed *f, enum scope scope,
                                   struct diag *dg);

/* Ranks keys by how often the trace asks for them (0 = most often, ties by key), NO_KEY if never: the
 * hot list for policy pinned. `rank` has layers * experts entries. */
MUST_CHECK enum status feed_rank(const struct feed *f, uint32_t *rank, struct diag *dg);

#endif
