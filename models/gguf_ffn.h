/* gguf_ffn.h -- the feed-forward part of one layer of a GGUF file: widths from the tensors' extents, and
 * where each expert's slices lie.
 */
#ifndef MODELS_GGUF_FFN_H
#define MODELS_GGUF_FFN_H

#include "models/gguf_import.h"

/* Fills ffn, extent, expert_params, expert_bytes and the expert biases of c->m->layers[i]. */
MUST_CHECK enum status gguf_ffn_fill(const struct gguf_import *c, size_t i);

#endif
