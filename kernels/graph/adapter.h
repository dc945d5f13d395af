/* adapter.h -- low-rank adapters (LoRA) in GGUF files, over weights that stay as they are.
 *
 * An adapter is a GGUF file with general.type "adapter", adapter.type "lora", the architecture of
 * the model that it is for, and for each matrix NAME of rows x cols that it adapts two tensors
 * (extents, contiguous one first):
 *
 *     NAME.lora_a   [cols, rank]            NAME.lora_b   [rank, rows]
 *     NAME.lora_a   [cols, rank, experts]   NAME.lora_b   [rank, rows, experts]     stacked experts
 *
 * The product gains scale * lora_b (lora_a x); scale is adapter.lora.alpha / rank, or 1 if alpha is
 * 0 or absent. Any matrix of the graph may be adapted: dense ones, the router, routed experts (also
 * where a file keeps gate and up in one), the output; not the embedding, whose rows are looked up.
 *
 * Nothing is merged, so one read-only base serves many adapters, in turn or together: the ranks of
 * several are stacked, which adds their products up. A rank costs rank * (rows + cols) floats of
 * memory a matrix.
 */
#ifndef KERNELS_GRAPH_ADAPTER_H
#define KERNELS_GRAPH_ADAPTER_H

#include "kernels/graph/graph_weights.h"

struct adapters;

/* Reads `n` files for a model. ST_PARSE: no adapter, or a half of a pair is missing; ST_MISFIT: of
 * another architecture, or a tensor's shape does not fit the model's (it is named); ST_UNSUPPORTED:
 * what it adapts is no matrix of a product; ST_RANGE: the ranks of a matrix exceed LOW_RANK_MAX
 * together. */
MUST_CHECK enum status adapters_load(struct adapters **out, const struct graph_weights *w,
                                     const char *const *paths, size_t n, struct diag *dg);
void adapters_free(struct adapters *a); /* removed first, if they were applied; NULL is fine */

size_t adapters_bytes(const struct adapters *a);    /* memory that they take; of NULL: none */
size_t adapters_matrices(const struct adapters *a); /* matrices adapted, a layer's experts as one */

/* Between passes. Whoever applies others removes these first. */
void adapters_apply(const struct adapters *a, struct graph_weights *w);
void adapters_remove(const struct adapters *a, struct graph_weights *w);

#endif
