/* gguf_attention.h -- the attention of one layer of a GGUF file. The family is told by the tensors that
 * the layer has; metadata adds what extents leave open, and both are checked against each other.
 */
#ifndef MODELS_GGUF_ATTENTION_H
#define MODELS_GGUF_ATTENTION_H

#include "models/gguf_import.h"

/* Fills c->m->layers[i].attention. */
MUST_CHECK enum status gguf_attention_fill(const struct gguf_import *c, size_t i);

#endif
