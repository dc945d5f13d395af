/* pack_order.h -- in which order the records of a pack lie.
 *
 * Plain order is layer by layer, expert by expert. If experts that are often chosen together lie next to each
 * other, a device or a reader that merges neighbouring reads has fewer of them. The order of each layer is then
 * a path through its experts: pairs are taken by falling number of tokens that chose both (equal numbers by
 * the experts' numbers), and a pair is joined if both its experts still have a free end and are not
 * on one path already: the greedy heuristic for the longest path. The paths follow each other by their lowest
 * end.
 *
 * A file says the same by hand: CSV with the columns layer,expert, a row a record in the order of the
 * records, every expert of the model once.
 */
#ifndef KERNELS_PACK_PACK_ORDER_H
#define KERNELS_PACK_PACK_ORDER_H

#include "models/model.h"
#include "sim/trace/trace.h"

struct pack_key {
    uint32_t layer, expert;
};

struct pack_order {
    struct pack_key *key;
    size_t count;
};

/* Free with pack_order_free. ST_MISFIT: the trace's layers or experts are not the model's; ST_PARSE: a file with an
 * expert that is not the model's, repeated or missing. */
MUST_CHECK enum status pack_order_plain(struct pack_order *out, const struct model *m,
                                        struct diag *dg);
MUST_CHECK enum status pack_order_coactivation(struct pack_order *out, const struct model *m,
                                               const struct trace *t, struct diag *dg);
MUST_CHECK enum status pack_order_load(struct pack_order *out, const struct model *m,
                                       const char *path, struct diag *dg);
void pack_order_free(struct pack_order *o);

/* What an order is worth on a trace: the experts that its tokens chose, each token and layer by itself, and
 * the runs of neighbouring records that they lie in. */
struct pack_runs {
    uint64_t choices, runs;
};
MUST_CHECK enum status pack_order_runs(struct pack_runs *out, const struct pack_order *o,
                                       const struct model *m, const struct trace *t,
                                       struct diag *dg);

/* The same of what an order does not know yet: made from the first half of a trace's batches and counted on the
 * second, beside plain order. */
MUST_CHECK enum status pack_order_foresight(struct pack_runs *ordered, struct pack_runs *plain,
                                            const struct model *m, const struct trace *t,
                                            struct diag *dg);

#endif
