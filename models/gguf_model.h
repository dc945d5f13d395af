/* gguf_model.h -- a GGUF file as a struct model: exact parameters, bytes and places of experts.
 *
 * Parameters and bytes are sums over the tensors that are really there, whatever the architecture and
 * however formats are mixed; widths and expert counts come from the tensors' extents; heads, windows,
 * ranks and top_k, which no extent tells, from the metadata keys `ARCH.*` of llama.cpp. A key that is
 * needed and missing, or contradicts the tensors, is ST_PARSE and named; an architecture that is not
 * in the table is ST_UNSUPPORTED and named. Layers beyond block_count - nextn_predict_layers (MTP) and
 * tensors called nextn.* are left out, as in published totals.
 */
#ifndef MODELS_GGUF_MODEL_H
#define MODELS_GGUF_MODEL_H

#include "models/gguf.h"
#include "models/model.h"

/* Opens `path` (any part of a split model) and closes it again. The model is freed by model_free. */
MUST_CHECK enum status gguf_model_load(struct model **out, const char *path, struct diag *dg);

/* The same from a container that is open, and stays open: for whoever also reads the weights. */
MUST_CHECK enum status gguf_model_import(struct model **out, const struct gguf *g, struct diag *dg);

/* The mix that general.file_type stands for, by llama.cpp's numbers: "q4_k_m"; NULL for a number without one. */
const char *gguf_model_file_type(uint64_t type);

/* The group of a tensor by its name without "blk.N.", such as ffn_down_exps.weight. Vectors, biases
 * and scales are GROUP_OTHER, except those of the indexer. */
enum tensor_group gguf_model_group(const struct gguf_tensor *t, struct gguf_text name);

#endif
