/* trace_foresight.h -- how well a trace's next choices could be foretold: from the layer before, by counting
 * which experts are chosen together, and by the prediction rows the trace holds. */
#ifndef SIM_TRACE_TRACE_FORESIGHT_H
#define SIM_TRACE_TRACE_FORESIGHT_H

#include "sim/trace/trace_path.h"
#include "sim/trace/trace_stats.h"

struct foresight {
    uint32_t experts;
    uint32_t *pairs; /* experts x experts: times chosen together */
    uint64_t *score; /* experts */
    uint32_t *use;   /* experts: all 0 between calls */
};

/* Free with foresight_free also after a failure. */
MUST_CHECK enum status foresight_init(struct foresight *f, uint32_t experts, struct diag *dg);
void foresight_free(struct foresight *f);

/* Fills s->coactivation for a layer (`here`) and the next routed one. */
void foresight_coactivation(struct foresight *f, const struct trace_path *here,
                            const struct trace_path *next, struct trace_layer_stats *s);
/* Adds every prediction of the trace to the recall and precision of its target in `layers`. */
void foresight_guesses(struct foresight *f, const struct trace_index *x,
                       struct trace_layer_stats *layers);

#endif
