/* json.h -- JSON files read with jansson: strict, duplicate keys refused, errors with file and line. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_doc;
typedef const void json_node; /* a borrowed jansson value */

MUST_CHECK enum status json_open(struct json_doc **out, const char *path, struct diag *dg);
void json_close(struct json_doc *doc);
const json_node *json_root(const struct json_doc *doc);
const char *json_name(const struct json_doc *doc);

/* All return NULL, or false, where the key is absent, null, or of another type. */
const json_node *json_get(const json_node *object, const char *key);
const json_node *json_at(const json_node *array, size_t i);
size_t json_count(const json_node *array_or_object);
const char *json_text(const json_node *node);
bool json_u64(const json_node *node, uint64_t *out);      /* integers >= 0 only */
bool json_double(const json_node *node, double *out);
bool json_flag(const json_node *node, bool *out);
bool json_is_array(const json_node *node);
bool json_is_object(const json_node *node);
const char *json_key_at(const json_node *object, size_t i); /* in the file's order */

/* Writes text as a JSON string with its quotes. */
struct json_out;
#include <stdio.h>
void json_write_text(FILE *stream, const char *text);

#endif
