/* trace.h -- routing traces: which experts each token chose in each layer, in execution order.
 *
 * The file (docs/formats.md):
 *     # memwall-trace 1
 *     # model=qwen3-30b-a3b
 *     # layers=48
 *     # experts=128
 *     # top_k=8
 *     # layer=0 expert_bytes=2654208 dense_bytes=11682816      one line a layer, in order
 *     kind,turn,phase,pass,step,layer,slot,expert,weight
 *     r,0,0,0,0,0,0,49,0.221297                               a routing choice
 *     p,0,0,0,0,1,0,17,0.31                                   a prediction: layer = target, step = layer
 *     ...                                                     it was made at, slot = rank, weight = score
 *     # end rows=N
 * A pass is one run through the layers: a prefill chunk, a decode step, a draft of several tokens.
 * Rows go by pass, then layer, then step, then slot; predictions made at a layer follow its routing
 * rows. Layers without routed experts have no rows and expert_bytes=0. Anything truncated, reordered
 * or out of range is an error with its line.
 *
 * In memory a trace is flat: rows of one (pass, layer) lie together as a batch, which is what the
 * cache policies see.
 */
#ifndef SIM_TRACE_TRACE_H
#define SIM_TRACE_TRACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_LAYERS_MAX  4096
#define TRACE_EXPERTS_MAX 65535
/* Bytes of one expert, of a layer's dense part, and of as many of the largest experts as there are:
 * far above any model, and low enough that sums over a trace keep within 64 bits. */
#define TRACE_EXPERT_BYTES_MAX (UINT64_C(1) << 40)
#define TRACE_DENSE_BYTES_MAX  (UINT64_C(1) << 48)
#define TRACE_BYTES_MAX        (UINT64_C(1) << 58)
#define TRACE_WEIGHT_ONE       1000000000 /* weights and scores are integers, parts in 10^9 */

enum trace_phase { PHASE_PREFILL = 0, PHASE_DECODE = 1 };

struct trace_layer {
    uint64_t expert_bytes; /* 0: no routed experts here */
    uint64_t dense_bytes;
};

struct trace_pass {
    uint32_t turn;
    uint32_t phase;
    size_t first_batch, batch_count;
};

/* One (pass, layer): rows [first_row, first_row + row_count) of the row arrays. */
struct trace_batch {
    uint32_t pass, layer;
    size_t first_row, row_count;
    size_t first_guess, guess_count; /* predictions made at this layer in this pass */
};

struct trace_guess {
    uint16_t
        target; /* layer it speaks of; a target <= the layer it was made at is the next pass's */
    uint16_t expert;
    uint32_t rank;
    int64_t score; /* parts in 10^9 */
};

struct trace {
    char *model;
    uint32_t layers, experts, top_k;
    struct trace_layer *layer;
    size_t pass_count, batch_count, row_count, guess_count;
    struct trace_pass *pass;
    struct trace_batch *batch;
    uint32_t *step;   /* token position within its turn, per row */
    uint16_t *slot;   /* rank of the choice, per row */
    uint16_t *expert; /* per row */
    int64_t *weight;  /* router weight, parts in 10^9, per row; all 0 if the file had none */
    struct trace_guess *guess;
    bool weights_given;
};

/* Reads a memwall trace, a BigMoeOnEdge `route_trace v1` file or a folder of ESFT expert-score files
 * (expert_weights_1.txt ...), told apart by what they say of themselves. */
MUST_CHECK enum status trace_load(struct trace **out, const char *path, struct diag *dg);
MUST_CHECK enum status trace_save(const struct trace *t, const char *path, struct diag *dg);
void trace_free(struct trace *t);

/* Building a trace row by row, in order; what trace_load, the generator and the engine use. Rows out
 * of order or out of range are ST_RANGE. */
struct trace_builder;
MUST_CHECK enum status trace_builder_new(struct trace_builder **out, const char *model,
                                         uint32_t layers, uint32_t experts, uint32_t top_k,
                                         const struct trace_layer *layer, struct diag *dg);
MUST_CHECK enum status trace_builder_row(struct trace_builder *b, uint32_t turn, uint32_t phase,
                                         uint32_t pass, uint32_t step, uint32_t layer,
                                         uint32_t slot, uint32_t expert, int64_t weight,
                                         struct diag *dg);
MUST_CHECK enum status trace_builder_guess(struct trace_builder *b, uint32_t turn, uint32_t phase,
                                           uint32_t pass, uint32_t made_at, uint32_t target,
                                           uint32_t rank, uint32_t expert, int64_t score,
                                           struct diag *dg);
/* Hands over the finished trace; the builder is freed either way. */
MUST_CHECK enum status trace_builder_finish(struct trace_builder *b, struct trace **out,
                                            struct diag *dg);
void trace_builder_free(struct trace_builder *b);

/* First row's (turn, phase) of a batch's pass, for short. */
static inline bool trace_batch_is_decode(const struct trace *t, const struct trace_batch *b)
{
    return t->pass[b->pass].phase == PHASE_DECODE;
}

#endif
