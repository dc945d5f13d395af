/* yaml_set.c -- `--set PATH=VALUE`: edits a loaded document before anything is read from it, so that
 * an override passes the same checks as the file. New nodes remember the override that made them;
 * a complaint about one names it instead of a line that does not say so. */
#include "base/nearest.h"
#include "base/yaml_doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where one --set has got to: the node reached, and the place that holds it. */
struct cursor {
    struct yaml_doc *doc;
    const char *text; /* PATH=VALUE, for errors */
    yaml_node node;
    char *rest; /* what is left of the path */
    struct diag *dg;
};

static enum status set_error(const struct cursor *c, enum status status, const char *reason,
                             const char *name)
{
    return diag_set(c->dg, status, "%s: --set %s: '%s' %s", c->doc->name, c->text, name, reason);
}

static enum status unknown_key(const struct cursor *c, const char *key)
{
    size_t count = yaml_count(c->doc, c->node);
    const char **names = malloc((count + 1) * sizeof *names);
    if (!names)
        return diag_no_memory(c->dg);
    for (size_t i = 0; i < count; i++)
        names[i] = yaml_key_at(c->doc, c->node, i);
    const char *hint = nearest_name(key, names, count);
    free(names);
    return diag_set(c->dg, ST_MISSING, "%s: --set %s: no key '%s'%s%s%s", c->doc->name, c->text,
                    key, hint ? " (did you mean '" : "", hint ? hint : "", hint ? "'?)" : "");
}

static enum status list_index(const struct cursor *c, const char *part, size_t *index)
{
    size_t count = yaml_count(c->doc, c->node);
    if (strspn(part, "0123456789") != strlen(part) || strlen(part) > 9)
        return set_error(c, ST_MISSING, "should be the number of a list item, from 0", part);
    *index = strtoul(part, NULL, 10);
    if (*index < count)
        return ST_OK;
    return diag_set(c->dg, ST_MISSING, "%s: --set %s: item %s does not exist, the list has %zu",
                    c->doc->name, c->text, part, count);
}

/* The place in `c->node` that `part` names; NULL in *slot if a map has no such key. */
static enum status find_slot(const struct cursor *c, const char *part, int **slot)
{
    yaml_node_t *n = yaml_doc_node(c->doc, c->node);
    size_t i = 0;
    *slot = NULL;
    if (yaml_kind(c->doc, c->node) == YAML_LIST) {
        enum status status = list_index(c, part, &i);
        if (status == ST_OK)
            *slot = &n->data.sequence.items.start[i];
        return status;
    }
    if (yaml_kind(c->doc, c->node) != YAML_MAP)
        return set_error(c, ST_MISSING, "has nothing above it that could hold it", part);
    for (i = 0; i < yaml_count(c->doc, c->node); i++)
        if (!strcmp(yaml_key_at(c->doc, c->node, i), part))
            *slot = &n->data.mapping.pairs.start[i].value;
    return ST_OK;
}

/* `[amount, kind, source]` with or without a spread. */
static bool is_value(const struct yaml_doc *doc, yaml_node node)
{
    struct diag ignored;
    enum value_kind kind;
    if (yaml_kind(doc, node) != YAML_LIST || yaml_count(doc, node) < 3 || yaml_count(doc, node) > 4)
        return false;
    for (size_t i = 0; i < yaml_count(doc, node); i++)
        if (yaml_kind(doc, yaml_item(doc, node, i)) != YAML_SCALAR)
            return false;
    return value_kind_parse(&kind, yaml_text(doc, yaml_item(doc, node, 1)), &ignored) == ST_OK;
}

/* A new scalar at the line of `beside`; 0 if the text is not UTF-8 or there is no memory. */
static yaml_node add_scalar(struct yaml_doc *doc, const char *text, yaml_node beside)
{
    yaml_node node = yaml_document_add_scalar(&doc->tree, NULL, (const yaml_char_t *)text, -1,
                                              YAML_PLAIN_SCALAR_STYLE);
    if (node)
        yaml_doc_node(doc, node)->start_mark = yaml_doc_node(doc, beside)->start_mark;
    return node;
}

static yaml_node add_value(struct yaml_doc *doc, const char *amount, yaml_node beside)
{
    const char *const items[] = {amount, value_kind_name(KIND_ASSUMED), "--set"};
    yaml_node list = yaml_document_add_sequence(&doc->tree, NULL, YAML_FLOW_SEQUENCE_STYLE);
    if (!list)
        return 0;
    yaml_doc_node(doc, list)->start_mark = yaml_doc_node(doc, beside)->start_mark;
    for (size_t i = 0; i < 3; i++) {
        yaml_node item = add_scalar(doc, items[i], beside);
        if (!item || !yaml_document_append_sequence_item(&doc->tree, list, item))
            return 0;
    }
    return list;
}

/* Puts `value` where `c` stands, under the last part of the path. */
static enum status put(const struct cursor *c, const char *part, const char *value)
{
    struct yaml_doc *doc = c->doc;
    int *slot;
    enum status status = find_slot(c, part, &slot);
    if (status != ST_OK)
        return status;
    if (slot && !is_value(doc, *slot) && yaml_kind(doc, *slot) != YAML_SCALAR)
        return set_error(c, ST_UNSUPPORTED, "is a map or a list, only a single value can be set",
                         part);
    if (slot && is_value(doc, c->node))
        return set_error(c, ST_UNSUPPORTED, "is a part of a value, set the value itself", part);
    yaml_node made = slot && is_value(doc, *slot) ? add_value(doc, value, *slot)
                                                  : add_scalar(doc, value, slot ? *slot : c->node);
    bool done = made != 0;
    if (done && slot) {
        *slot = made;
    } else if (done) {
        yaml_node key = add_scalar(doc, part, c->node);
        done = key && yaml_document_append_mapping_pair(&doc->tree, c->node, key, made);
    }
    if (!done)
        return diag_set(c->dg, ST_PARSE, "%s: --set: the text is not UTF-8, or out of memory",
                        doc->name);
    return ST_OK;
}

static enum status walk_and_put(struct cursor *c, const char *value)
{
    for (;;) {
        char *part = c->rest;
        size_t length = strcspn(part, ".");
        bool last = !part[length];
        int *slot;
        part[length] = 0;
        c->rest += length + !last;
        if (!*part)
            return set_error(c, ST_PARSE, "is not a path: keys and numbers joined by dots",
                             c->text);
        if (last)
            return put(c, part, value);
        enum status status = find_slot(c, part, &slot);
        if (status != ST_OK)
            return status;
        if (!slot)
            return unknown_key(c, part);
        c->node = *slot;
    }
}

enum status yaml_set(struct yaml_doc *doc, const char *path, const char *value, struct diag *dg)
{
    char *copy = strdup(path), *text = NULL;
    struct yaml_override *grown =
        realloc(doc->overrides, (doc->override_count + 1) * sizeof *doc->overrides);
    if (grown)
        doc->overrides = grown;
    if (!copy || !grown || asprintf(&text, "%s=%s", path, value) < 0) {
        free(copy);
        return diag_no_memory(dg);
    }
    yaml_node next = (yaml_node)(doc->tree.nodes.top - doc->tree.nodes.start) + 1;
    doc->overrides[doc->override_count++] = (struct yaml_override){next, text};
    struct cursor c = {doc, text, yaml_root(doc), copy, dg};
    enum status status = walk_and_put(&c, value);
    free(copy);
    return status;
}
