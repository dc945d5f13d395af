/* future.h -- when each expert will be asked for, from the batches to come: what a clairvoyant policy is told.
 *
 * Whoever knows the routing ahead (a recorded trace, forced routing, a decision log) adds the batches in the order in
 * which the decisions will see them. */
#ifndef SIM_POLICY_FUTURE_H
#define SIM_POLICY_FUTURE_H

#include "sim/policy/decide.h"

struct future;
MUST_CHECK enum status future_new(struct future **out, uint32_t layers, uint32_t experts,
                                  enum scope scope, struct diag *dg);
/* The batch after those added so far; ids below `experts`, repeats are fine. ST_RANGE: more than 2^32 of them. */
MUST_CHECK enum status future_batch(struct future *f, uint32_t layer, const uint16_t *ids, size_t n,
                                    struct diag *dg);
/* All batches are known: future_list() is for decide_setup.future and lives as long as `f`. */
MUST_CHECK enum status future_finish(struct future *f, struct diag *dg);
const struct policy_future *future_list(const struct future *f);
void future_free(struct future *f); /* NULL is fine */

#endif
