/* hf_quant.h -- what weights a config.json was published with: dtype and quantization_config. */
#ifndef MODELS_HF_QUANT_H
#define MODELS_HF_QUANT_H

#include "models/hf_reader.h"

/* Fills m->native by tensor group. A method, width or block that no row knows is ST_UNSUPPORTED. */
void hf_read_formats(struct hf *h);

#endif
