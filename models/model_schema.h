/* model_schema.h -- the keys of a model description, as tables: parser, limits, writer and help in one.
 *
 * docs/formats.md, "Model description", is the same for people. Attention and feed-forward shapes come
 * in groups, each for a set of layers (layer_set.h); every layer must be in exactly one group of each.
 */
#ifndef MODELS_MODEL_SCHEMA_H
#define MODELS_MODEL_SCHEMA_H

#include "base/yaml.h"
#include "models/model.h"

struct attention_group {
    const char *layers;
    struct attention shape;
};
struct ffn_group {
    const char *layers;
    struct ffn shape;
};

/* What a description says, before its groups are spread over the layers. */
struct model_reading {
    const char *title, *source, *note, *router;
    int grade; /* index into model_grades */
    uint64_t layers, hidden, vocab, positions, max_context;
    bool tied_embeddings;
    const char *format_default;
    const char *format[GROUP_MAX]; /* NULL: as the default */
    struct yaml_list attention;    /* struct attention_group */
    struct yaml_list ffn;          /* struct ffn_group */
};

extern const struct yaml_field model_fields[];
extern const struct yaml_field model_attention_fields[];
extern const struct yaml_field model_ffn_fields[];
extern const struct yaml_field model_format_fields[]; /* offsets within struct model_reading */
extern const char *const model_grades[];              /* A B C D */

#define LAYERS_MAX 4096

/* Is `key` (of model_attention_fields) one that a layer of this family must, or may, have? */
bool model_key_required(const char *key, enum attention_family family);
bool model_key_allowed(const char *key, enum attention_family family);
const char *model_family_name(enum attention_family family);

/* Checks what every user of a model relies on, wherever it was loaded from: each number within its
 * limits, what the family needs is there, heads divide into groups, top_k experts exist. ST_RANGE
 * with `origin: layer N: ...`. */
MUST_CHECK enum status model_check(const struct model *m, struct diag *dg);

#endif
