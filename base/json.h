/* json.h -- JSON files read with jansson: strict, duplicate keys refused, errors with file and line. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_FILE_BYTES_MAX ((size_t)64 << 20)

struct json_doc;
typedef const void json_node; /* a borrowed jansson value, until json_close; NULL is no node */

/* A file of at most JSON_FILE_BYTES_MAX, nested at most 2048 deep (jansson's own limit). A UTF-8
 * byte order mark is skipped. What is no JSON is ST_PARSE with the line. */
MUST_CHECK enum status json_open(struct json_doc **out, const char *path, struct diag *dg);
void json_close(struct json_doc *doc);
const json_node *json_root(const struct json_doc *doc);
const char *json_name(const struct json_doc *doc); /* the path it was read from */

/* All return NULL, or false, where the key is absent, null, or of another type. */
const json_node *json_get(const json_node *object, const char *key);
const json_node *json_at(const json_node *array, size_t i);
size_t json_count(const json_node *array_or_object);
const char *json_text(const json_node *node);
bool json_u64(const json_node *node, uint64_t *out); /* integers >= 0 only */
bool json_double(const json_node *node, double *out);
bool json_flag(const json_node *node, bool *out);
bool json_is_array(const json_node *node);
bool json_is_object(const json_node *node);
const char *json_key_at(const json_node *object, size_t i); /* in the file's order; walks i keys */

/* Writes text as a JSON string with its quotes. A byte that is no UTF-8 becomes U+FFFD, so that the
 * output is JSON whatever a file name holds. */
void json_write_text(FILE *stream, const char *text);

#endif
