/* hf_config.h -- models from a Hugging Face config.json.
 *
 * One table row a model_type with its reader (hf_families.c). The text part of a multimodal config is
 * read from its text_config. Layers for multi-token prediction are left out. Weight formats come from
 * quantization_config and dtype; a config that states neither is taken as bf16, the customary one.
 */
#ifndef MODELS_HF_CONFIG_H
#define MODELS_HF_CONFIG_H

#include "models/model.h"

/* The model is named after the file (ORG--NAME.json, NAME.json), or after its folder if the file is
 * called config.json. Errors: ST_UNSUPPORTED for a model_type or a quantisation that no table row has,
 * ST_MISSING for a key that the family needs, ST_PARSE for a value of another kind; each names file
 * and key. */
MUST_CHECK enum status hf_config_load(struct model **out, const char *path, struct diag *dg);

#endif
