/* desc_model.h -- model descriptions, models/desc/NAME.yaml: read and written.
 *
 * The format is docs/formats.md, "Model description"; its keys are the tables of model_schema.h. */
#ifndef MODELS_DESC_MODEL_H
#define MODELS_DESC_MODEL_H

#include "models/model.h"

#include <stdio.h>

/* Reads a description. `overrides` are PATH=VALUE texts applied to the document before it is read. The
 * model's name is the file's name without .yaml. Errors name file and line. */
MUST_CHECK enum status desc_model_load(struct model **out, const char *path,
                                       const char *const *overrides, size_t override_count,
                                       struct diag *dg);

/* Completes a model whose shapes, origin and native mix are set: checks them, takes the native format
 * and fills parameters and bytes. Every way of loading but GGUF ends here. */
MUST_CHECK enum status desc_model_complete(struct model *m, struct diag *dg);

/* Takes a format name for the groups of m->native: `standard` for all, then `format[g]` where not NULL.
 * ST_MISSING if a name is unknown. */
MUST_CHECK enum status desc_model_formats(struct model *m, const char *standard,
                                          const char *const format[GROUP_MAX], struct diag *dg);

/* Writes `m` so that desc_model_load gives the same model. Not for a model with exact bytes (GGUF),
 * whose formats differ matrix by matrix. */
MUST_CHECK enum status desc_model_write(const struct model *m, FILE *out, struct diag *dg);

#endif
