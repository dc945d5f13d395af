/* json.c -- see json.h.
 *
 * A file is read whole before jansson sees it: its size is bounded first, and a failing read is told
 * apart from text that is no JSON. jansson already bounds the depth and checks UTF-8; this module adds
 * the path and gives absent, null and wrongly typed values one answer.
 */
#include "base/json.h"

#include "base/infile.h"
#include "base/utf8.h"

#include <jansson.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct json_doc {
    json_t *root;
    char *path;
};

/* Reads from `stream` to its end into a buffer that the caller frees, also after a failure. */
static enum status read_text(char **text, size_t *length, FILE *stream, const char *path,
                             struct diag *dg)
{
    size_t capacity = 0;
    *length = 0;
    do {
        if (*length == capacity) {
            capacity = capacity ? 2 * capacity : 64 << 10;
            char *larger = realloc(*text, capacity);
            if (!larger)
                return diag_no_memory(dg);
            *text = larger;
        }
        *length += fread(*text + *length, 1, capacity - *length, stream);
        if (ferror(stream))
            return diag_errno(dg, path, "cannot be read");
        if (*length > JSON_FILE_BYTES_MAX)
            return diag_set(dg, ST_RANGE, "%s: a JSON file of at most %zu MiB was expected", path,
                            JSON_FILE_BYTES_MAX >> 20);
    } while (!feof(stream));
    return ST_OK;
}

static enum status parse(struct json_doc *doc, const char *text, size_t length, struct diag *dg)
{
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        length -= 3;
    }
    json_error_t error;
    errno = 0;
    doc->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (doc->root)
        return ST_OK;
    if (errno == ENOMEM) /* jansson reports it as broken text, or with no text at all */
        return diag_no_memory(dg);
    return diag_set(dg, ST_PARSE, "%s:%d: %s", doc->path, error.line > 0 ? error.line : 1,
                    error.text);
}

static enum status load(struct json_doc *doc, struct diag *dg)
{
    int fd;
    enum status st = infile_open(&fd, doc->path, INFILE_STREAM, dg);
    if (st != ST_OK)
        return st;
    FILE *stream = fdopen(fd, "rb");
    if (!stream) {
        close(fd);
        return diag_no_memory(dg);
    }
    char *text = NULL;
    size_t length = 0;
    st = read_text(&text, &length, stream, doc->path, dg);
    fclose(stream);
    if (st == ST_OK)
        st = parse(doc, text, length, dg);
    free(text);
    return st;
}

enum status json_open(struct json_doc **out, const char *path, struct diag *dg)
{
    *out = NULL;
    struct json_doc *doc = calloc(1, sizeof *doc);
    char *copy = strdup(path);
    if (!doc || !copy) {
        free(doc);
        free(copy);
        return diag_no_memory(dg);
    }
    doc->path = copy;
    enum status st = load(doc, dg);
    if (st != ST_OK) {
        json_close(doc);
        return st;
    }
    *out = doc;
    return ST_OK;
}

void json_close(struct json_doc *doc)
{
    if (!doc)
        return;
    json_decref(doc->root);
    free(doc->path);
    free(doc);
}

const json_node *json_root(const struct json_doc *doc)
{
    return doc->root;
}

const char *json_name(const struct json_doc *doc)
{
    return doc->path;
}

static const json_node *null_is_absent(const json_t *value)
{
    return json_is_null(value) ? NULL : value;
}

const json_node *json_get(const json_node *object, const char *key)
{
    return null_is_absent(json_object_get(object, key));
}

const json_node *json_at(const json_node *array, size_t i)
{
    return null_is_absent(json_array_get(array, i));
}

size_t json_count(const json_node *array_or_object)
{
    const json_t *value = array_or_object;
    return json_is_object(value) ? json_object_size(value) : json_array_size(value);
}

const char *json_text(const json_node *node)
{
    return json_string_value(node);
}

bool json_u64(const json_node *node, uint64_t *out)
{
    const json_t *value = node;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

bool json_double(const json_node *node, double *out)
{
    const json_t *value = node;
    if (!json_is_number(value))
        return false;
    *out = json_number_value(value);
    return true;
}

bool json_flag(const json_node *node, bool *out)
{
    const json_t *value = node;
    if (!json_is_boolean(value))
        return false;
    *out = json_is_true(value);
    return true;
}

/* The parentheses keep jansson's macros of the same names from expanding. */
bool(json_is_array)(const json_node *node)
{
    return node && json_typeof((const json_t *)node) == JSON_ARRAY;
}

bool(json_is_object)(const json_node *node)
{
    return node && json_typeof((const json_t *)node) == JSON_OBJECT;
}

/* jansson's iterator wants a mutable object but changes nothing. */
const char *json_key_at(const json_node *object, size_t i)
{
    json_t *value = (json_t *)object;
    void *position = json_object_iter(value);
    while (position && i-- > 0)
        position = json_object_iter_next(value, position);
    return position ? json_object_iter_key(position) : NULL;
}

void json_write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    const char *c = text;
    while (*c) {
        int length = utf8_length(c);
        if (*c == '"' || *c == '\\')
            fprintf(stream, "\\%c", *c);
        else if (length == 1 && utf8_is_control(c, 1))
            fprintf(stream, "\\u%04x", *c);
        else if (length == 0)
            fputs("\\ufffd", stream);
        else
            fwrite(c, 1, (size_t)length, stream);
        c += length ? length : 1;
    }
    fputc('"', stream);
}
