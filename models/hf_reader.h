/* hf_reader.h -- the keys of a config.json, read one after the other by a family's reader.
 *
 * A reader asks for keys in a row and never looks at errors: the first failure is kept in `status`,
 * after which every question answers 0. Keys are looked up in the text part. A key that is null counts
 * as absent, as in transformers.
 */
#ifndef MODELS_HF_READER_H
#define MODELS_HF_READER_H

#include "base/json.h"
#include "models/model.h"

struct hf {
    struct model *m;
    const char *path, *model_type;
    const json_node *root, *text;
    enum status status;
    struct diag *dg;
};

/* A whole number that must be there; `other` is a second name for it, or NULL. */
uint64_t hf_need(struct hf *h, const char *key, const char *other);
uint64_t hf_count(struct hf *h, const char *key, uint64_t absent);
bool hf_flag(struct hf *h, const char *key, bool absent);
const char *hf_text(struct hf *h, const char *key); /* NULL if absent */
bool hf_has(const struct hf *h, const char *key);

/* Position i of a list of numbers that must have at least `length`; or the number itself, if the key
 * holds one for all. */
uint64_t hf_each(struct hf *h, const char *key, size_t i, size_t length);
/* Is `value` in the list `key`? False if the list is absent. */
bool hf_list_has(struct hf *h, const char *key, uint64_t value);
/* layer_types[i] is `name`. `known` names all types the family understands, separated by spaces; any
 * other is an error. False without a layer_types. */
bool hf_layer_type_is(struct hf *h, size_t i, const char *name, const char *known);

/* Looks in the object `key` of the text part from now on; hf_leave goes back. */
const json_node *hf_enter(struct hf *h, const char *key);
void hf_leave(struct hf *h, const json_node *before);

/* Records the first failure: "path: reason (model_type ...)". */
void hf_fail(struct hf *h, enum status status, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
