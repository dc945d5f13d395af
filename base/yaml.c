/* yaml.c -- loading and walking description files, with libyaml.
 *
 * A file is parsed twice: once as events, which show what a loaded document no longer does (anchors,
 * tags, depth, further documents), then into a yaml_document_t. Files are small, code is dear. */
#include "base/yaml.h"

#include "base/infile.h"
#include "base/yaml_doc.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)4 << 20)
#define DEPTH_MAX      32

/* ---- from bytes to a document ---- */

struct source {
    const char *name;
    const char *text;
    size_t bytes;
};

static size_t line_of(yaml_mark_t mark)
{
    return mark.line + 1;
}

static enum status parser_error(const yaml_parser_t *parser, const struct source *from,
                                struct diag *dg)
{
    const char *problem = parser->problem ? parser->problem : "unknown problem";
    size_t line = 1;
    switch (parser->error) {
    case YAML_NO_ERROR: /* the loader fails without a reason if it finds no memory for a node */
    case YAML_MEMORY_ERROR:
        return diag_no_memory(dg);
    case YAML_READER_ERROR:
        for (size_t i = 0; i < parser->problem_offset && i < from->bytes; i++)
            line += from->text[i] == '\n';
        return diag_set(dg, ST_PARSE, "%s:%zu: UTF-8 text is expected (%s)", from->name, line,
                        problem);
    default:
        line = line_of(parser->problem_mark);
        if (parser->context && parser->context_mark.line != parser->problem_mark.line)
            return diag_set(dg, ST_PARSE, "%s:%zu: not valid YAML: %s, %s that begins in line %zu",
                            from->name, line, problem, parser->context,
                            line_of(parser->context_mark));
        return diag_set(dg, ST_PARSE, "%s:%zu: not valid YAML: %s%s%s", from->name, line, problem,
                        parser->context ? ", " : "", parser->context ? parser->context : "");
    }
}

struct shape {
    size_t documents, depth;
};

/* Every event passes here; returns what is wrong with it, or NULL. */
static const char *event_fault(struct shape *shape, const yaml_event_t *e)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return shape->documents++ ? "one document is expected, here begins another" : NULL;
    case YAML_ALIAS_EVENT:
        return "anchors and aliases are not allowed, write the value out";
    case YAML_SCALAR_EVENT:
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
        if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
            return "a text may not contain a NUL character";
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
        shape->depth++;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
        shape->depth++;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        shape->depth--;
        break;
    default:
        break;
    }
    if (anchor)
        return "anchors and aliases are not allowed, write the value out";
    if (tag)
        return "tags (!...) are not allowed";
    return shape->depth > DEPTH_MAX ? "nested too deeply (more than 32 levels)" : NULL;
}

static void parser_start(yaml_parser_t *parser, const struct source *from)
{
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)from->text, from->bytes);
}

static enum status check_events(const struct source *from, struct diag *dg)
{
    yaml_parser_t parser;
    yaml_event_t event;
    struct shape shape = {0};
    enum status status = ST_OK;
    if (!yaml_parser_initialize(&parser))
        return diag_no_memory(dg);
    parser_start(&parser, from);
    for (bool more = true; more && status == ST_OK;) {
        if (!yaml_parser_parse(&parser, &event)) {
            status = parser_error(&parser, from, dg);
            break;
        }
        const char *fault = event_fault(&shape, &event);
        if (fault)
            status =
                diag_set(dg, ST_PARSE, "%s:%zu: %s", from->name, line_of(event.start_mark), fault);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

static enum status load_tree(yaml_document_t *tree, const struct source *from, struct diag *dg)
{
    yaml_parser_t parser;
    enum status status = ST_OK;
    if (!yaml_parser_initialize(&parser))
        return diag_no_memory(dg);
    parser_start(&parser, from);
    if (!yaml_parser_load(&parser, tree))
        status = parser_error(&parser, from, dg);
    yaml_parser_delete(&parser);
    return status;
}

struct key {
    const char *text;
    size_t line, order;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* Keys must be texts, each once. `keys` has room for all pairs of the map. */
static enum status check_keys(const struct yaml_doc *doc, yaml_node map, struct key *keys,
                              struct diag *dg)
{
    size_t count = yaml_count(doc, map);
    for (size_t i = 0; i < count; i++) {
        yaml_node key = yaml_doc_node(doc, map)->data.mapping.pairs.start[i].key;
        if (yaml_kind(doc, key) != YAML_SCALAR)
            return yaml_error(doc, key, dg, "a key is expected to be a text");
        keys[i] = (struct key){yaml_text(doc, key), yaml_line(doc, key), i};
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(keys[i].text, keys[i - 1].text))
            return diag_set(dg, ST_PARSE, "%s:%zu: key '%s' is given twice, first in line %zu",
                            doc->name, keys[i].line, keys[i].text, keys[i - 1].line);
    return ST_OK;
}

static enum status check_maps(const struct yaml_doc *doc, struct diag *dg)
{
    size_t nodes = (size_t)(doc->tree.nodes.top - doc->tree.nodes.start), most = 1;
    for (size_t n = 1; n <= nodes; n++)
        if (yaml_count(doc, (yaml_node)n) > most)
            most = yaml_count(doc, (yaml_node)n);
    struct key *keys = malloc(most * sizeof *keys);
    if (!keys)
        return diag_no_memory(dg);
    enum status status = ST_OK;
    for (size_t n = 1; n <= nodes && status == ST_OK; n++)
        if (yaml_kind(doc, (yaml_node)n) == YAML_MAP)
            status = check_keys(doc, (yaml_node)n, keys, dg);
    free(keys);
    return status;
}

enum status yaml_open_text(struct yaml_doc **out, const char *name, const char *text, size_t bytes,
                           struct diag *dg)
{
    struct source from = {name, text, bytes};
    *out = NULL;
    if (bytes > FILE_BYTES_MAX)
        return diag_set(dg, ST_PARSE, "%s: at most 4 MiB are expected in a description", name);
    enum status status = check_events(&from, dg);
    if (status != ST_OK)
        return status;
    struct yaml_doc *doc = calloc(1, sizeof *doc);
    if (!doc || !(doc->name = strdup(name))) {
        free(doc);
        return diag_no_memory(dg);
    }
    status = load_tree(&doc->tree, &from, dg);
    if (status == ST_OK && doc->tree.nodes.top == doc->tree.nodes.start)
        status =
            diag_set(dg, ST_PARSE, "%s:1: keys and values are expected, nothing is here", name);
    if (status == ST_OK)
        status = check_maps(doc, dg);
    if (status != ST_OK) {
        yaml_close(doc);
        return status;
    }
    *out = doc;
    return ST_OK;
}

/* Reads at most FILE_BYTES_MAX + 1 bytes, so that a longer file shows. */
static enum status read_text(int fd, const char *path, char **text, size_t *bytes, struct diag *dg)
{
    *text = malloc(FILE_BYTES_MAX + 1);
    if (!*text)
        return diag_no_memory(dg);
    while (*bytes <= FILE_BYTES_MAX) {
        ssize_t got = read(fd, *text + *bytes, FILE_BYTES_MAX + 1 - *bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return diag_errno(dg, path, "cannot be read");
        if (got == 0)
            break;
        *bytes += (size_t)got;
    }
    return ST_OK;
}

enum status yaml_open(struct yaml_doc **out, const char *path, struct diag *dg)
{
    char *text = NULL;
    size_t bytes = 0;
    *out = NULL;
    int fd;
    enum status status = infile_open(&fd, path, INFILE_REGULAR, dg);
    if (status != ST_OK)
        return status;
    status = read_text(fd, path, &text, &bytes, dg);
    close(fd);
    if (status == ST_OK)
        status = yaml_open_text(out, path, text, bytes, dg);
    free(text);
    return status;
}

void yaml_close(struct yaml_doc *doc)
{
    if (!doc)
        return;
    yaml_document_delete(&doc->tree);
    for (size_t i = 0; i < doc->override_count; i++)
        free(doc->overrides[i].text);
    free(doc->overrides);
    free(doc->name);
    free(doc);
}

/* ---- walking ---- */

yaml_node yaml_root(const struct yaml_doc *doc)
{
    (void)doc;
    return 1;
}

enum yaml_node_kind yaml_kind(const struct yaml_doc *doc, yaml_node node)
{
    assert(node > 0);
    switch (yaml_doc_node(doc, node)->type) {
    case YAML_SEQUENCE_NODE:
        return YAML_LIST;
    case YAML_MAPPING_NODE:
        return YAML_MAP;
    default:
        return YAML_SCALAR;
    }
}

size_t yaml_count(const struct yaml_doc *doc, yaml_node node)
{
    const yaml_node_t *n = yaml_doc_node(doc, node);
    switch (yaml_kind(doc, node)) {
    case YAML_LIST:
        return (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
    case YAML_MAP:
        return (size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start);
    case YAML_SCALAR:
        break;
    }
    return 0;
}

yaml_node yaml_item(const struct yaml_doc *doc, yaml_node list, size_t i)
{
    assert(yaml_kind(doc, list) == YAML_LIST && i < yaml_count(doc, list));
    return yaml_doc_node(doc, list)->data.sequence.items.start[i];
}

yaml_node yaml_value_at(const struct yaml_doc *doc, yaml_node map, size_t i)
{
    assert(yaml_kind(doc, map) == YAML_MAP && i < yaml_count(doc, map));
    return yaml_doc_node(doc, map)->data.mapping.pairs.start[i].value;
}

const char *yaml_key_at(const struct yaml_doc *doc, yaml_node map, size_t i)
{
    return yaml_text(doc, yaml_key_node_at(doc, map, i));
}

yaml_node yaml_key_node_at(const struct yaml_doc *doc, yaml_node map, size_t i)
{
    assert(yaml_kind(doc, map) == YAML_MAP && i < yaml_count(doc, map));
    return yaml_doc_node(doc, map)->data.mapping.pairs.start[i].key;
}

yaml_node yaml_find(const struct yaml_doc *doc, yaml_node map, const char *key)
{
    if (yaml_kind(doc, map) != YAML_MAP)
        return 0;
    for (size_t i = 0; i < yaml_count(doc, map); i++)
        if (!strcmp(yaml_key_at(doc, map, i), key))
            return yaml_value_at(doc, map, i);
    return 0;
}

const char *yaml_text(const struct yaml_doc *doc, yaml_node scalar)
{
    const yaml_node_t *n = yaml_doc_node(doc, scalar);
    return yaml_kind(doc, scalar) == YAML_SCALAR ? (const char *)n->data.scalar.value : NULL;
}

bool yaml_is_empty(const struct yaml_doc *doc, yaml_node scalar)
{
    const char *text = yaml_text(doc, scalar);
    bool plain = yaml_doc_node(doc, scalar)->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return !*text || (plain && (!strcmp(text, "~") || !strcmp(text, "null")));
}

size_t yaml_line(const struct yaml_doc *doc, yaml_node node)
{
    return line_of(yaml_doc_node(doc, node)->start_mark);
}

const char *yaml_name(const struct yaml_doc *doc)
{
    return doc->name;
}

const struct yaml_override *yaml_doc_override(const struct yaml_doc *doc, yaml_node node)
{
    for (size_t i = doc->override_count; i-- > 0;)
        if (node >= doc->overrides[i].first)
            return &doc->overrides[i];
    return NULL;
}

bool yaml_is_override(const struct yaml_doc *doc, yaml_node node)
{
    return yaml_doc_override(doc, node) != NULL;
}

enum status yaml_error(const struct yaml_doc *doc, yaml_node node, struct diag *dg,
                       const char *format, ...)
{
    char text[sizeof dg->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct yaml_override *set = node ? yaml_doc_override(doc, node) : NULL;
    if (set)
        return diag_set(dg, ST_PARSE, "%s: --set %s: %s", doc->name, set->text, text);
    if (!node)
        return diag_set(dg, ST_PARSE, "%s: %s", doc->name, text);
    return diag_set(dg, ST_PARSE, "%s:%zu: %s", doc->name, yaml_line(doc, node), text);
}
