/* yaml.h -- description files: read strictly, addressed by path, every complaint with its line.
 *
 * A file is loaded whole into a document. Repeated keys, several documents, anchors, tags and
 * excessive depth are errors at once. `--set PATH=VALUE` edits the document before it is read into
 * structs, so an override goes through the same checks as the file. A struct is described by a table
 * of fields; the table is parser, limits and documentation in one. An unknown key, a missing
 * required key, a missing unit or a missing source is an error naming file, line and key.
 * Why libyaml and a table rather than a schema library: docs/adr/0001-yaml.md.
 */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include "base/arena.h"
#include "base/value.h"

#include <stdio.h>

struct yaml_doc;
typedef int yaml_node; /* 0 is no node */

enum yaml_node_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

/* At most 4 MiB of UTF-8 in a regular file, nested at most 32 deep. */
MUST_CHECK enum status yaml_open(struct yaml_doc **out, const char *path, struct diag *dg);
MUST_CHECK enum status yaml_open_text(struct yaml_doc **out, const char *name, const char *text,
                                      size_t bytes, struct diag *dg);
void yaml_close(struct yaml_doc *doc);

/* PATH is keys and list positions joined by dots: storage.0.bandwidth. The last key may be new if
 * its parent map exists. A value that was `[amount, kind, source]` becomes `[VALUE, assumed, --set]`.
 * ST_MISSING: no such key or item on the way. ST_UNSUPPORTED: PATH is a map, a list or an element of
 * a value. Whether VALUE is fit to be there shows when the document is read; the reason then names
 * the override in place of a line. */
MUST_CHECK enum status yaml_set(struct yaml_doc *doc, const char *path, const char *value,
                                struct diag *dg);

/* Walking by hand, for what no table describes (maps with free keys). yaml_find is 0 if there is no
 * such key or `map` is none; the others assert that the node is of the kind their argument names. */
yaml_node yaml_root(const struct yaml_doc *doc);
yaml_node yaml_find(const struct yaml_doc *doc, yaml_node map, const char *key);
enum yaml_node_kind yaml_kind(const struct yaml_doc *doc, yaml_node node);
size_t yaml_count(const struct yaml_doc *doc, yaml_node node); /* items or pairs */
yaml_node yaml_item(const struct yaml_doc *doc, yaml_node list, size_t i);
yaml_node yaml_value_at(const struct yaml_doc *doc, yaml_node map, size_t i);
const char *yaml_key_at(const struct yaml_doc *doc, yaml_node map, size_t i);
yaml_node yaml_key_node_at(const struct yaml_doc *doc, yaml_node map, size_t i); /* for its line */
bool yaml_is_override(const struct yaml_doc *doc, yaml_node node);   /* made by yaml_set() */
const char *yaml_text(const struct yaml_doc *doc, yaml_node scalar); /* NULL if not a scalar */
size_t yaml_line(const struct yaml_doc *doc, yaml_node node);        /* from 1 */
const char *yaml_name(const struct yaml_doc *doc);                   /* the path it was read from */
/* Nothing: empty, or null or ~ without quotes. */
bool yaml_is_empty(const struct yaml_doc *doc, yaml_node scalar);

/* diag_set with `file:line: ` in front, or `file: --set PATH=VALUE: ` if yaml_set() made the node, or
 * `file: ` for node 0. Returns ST_PARSE. */
enum status yaml_error(const struct yaml_doc *doc, yaml_node node, struct diag *dg,
                       const char *format, ...) PRINTF_LIKE(4, 5);

enum yaml_type {
    YAML_TYPE_TEXT,     /* const char *        */
    YAML_TYPE_COUNT,    /* uint64_t: whole number, limits min..max (max 0: none) */
    YAML_TYPE_FLAG,     /* bool: true or false */
    YAML_TYPE_CHOICE,   /* int: index into `choices` */
    YAML_TYPE_QUANTITY, /* uint64_t: a bare quantity with unit, of dimension `dim`, min..max */
    YAML_TYPE_VALUE,    /* struct value: [amount, kind, source] or [.., spread], of dimension `dim`,
                           amount within min..max */
    YAML_TYPE_MAP,      /* a struct, described by `fields` */
    YAML_TYPE_LIST,     /* struct yaml_list: items of `item_bytes`, maps described by `fields` */
    YAML_TYPE_COUNT_LIST, /* struct yaml_list of uint64_t: whole numbers, each within min..max */
    YAML_TYPE_NODE        /* yaml_node: left to the caller */
};

struct yaml_list {
    void *items;
    size_t count;
};

struct yaml_field {
    const char *key;
    enum yaml_type type;
    size_t offset;
    bool required;
    enum dimension dim;
    uint64_t min, max;
    const char *const *choices;      /* ends with NULL */
    const struct yaml_field *fields; /* ends with a NULL key */
    size_t item_bytes;
    const char *help; /* one line, for the documentation */
};

/* Writes `text` in double quotes, so that it is read again as it is; what a description may not hold is
 * replaced: control characters by spaces, bytes that are no UTF-8 and U+FEFF by U+FFFD. */
void yaml_write_text(FILE *stream, const char *text);

/* Reads the map `node` into the struct at `out`, which is zeroed by the caller beforehand. Texts and
 * lists live in `arena` and outlast the document. A key that is absent and not required leaves the
 * member as it was. A key without a value, or null, is an error, and so
 * is a control character in a text; but a tab or line end in it becomes a space, and line ends
 * at its end go. ST_RANGE for a number outside its
 * limits, else ST_PARSE. */
MUST_CHECK enum status yaml_read(const struct yaml_doc *doc, yaml_node node,
                                 const struct yaml_field *fields, void *out, struct arena *arena,
                                 struct diag *dg);

#endif
