/* forced_route.h -- recorded routing as the choice of the router: a synthetic model then shows a real
 * model's access pattern. */
#ifndef KERNELS_GRAPH_FORCED_ROUTE_H
#define KERNELS_GRAPH_FORCED_ROUTE_H

#include "kernels/graph/graph.h"

struct forced_route;

/* Takes the first turn of a trace. ST_MISFIT: layers, experts or top_k, of all or of a layer that is named, are not the
 * model's. */
MUST_CHECK enum status forced_route_load(struct forced_route **out, const char *path,
                                         const struct model *m, struct diag *dg);
void forced_route_free(struct forced_route *f); /* NULL is fine */

/* Tokens of its prompt, and of all. */
size_t forced_route_prompt(const struct forced_route *f);
size_t forced_route_tokens(const struct forced_route *f);
/* The run that the trace tells of: its prompt, or one token if it has none, and what was generated after it. */
void forced_route_run(const struct forced_route *f, size_t *prompt, size_t *generate);
/* For graph_setup. A position beyond the trace goes round to its first decoded token. */
struct route forced_route_of(struct forced_route *f);

#endif
