/* yaml_doc.h -- inside of a YAML document, shared by yaml.c (loading, walking) and yaml_set.c
 * (overrides) and nobody else. */
#ifndef BASE_YAML_DOC_H
#define BASE_YAML_DOC_H

#include "base/yaml.h"

#include <yaml.h>

/* One --set: it made the nodes from `first` on, up to the next override's first. */
struct yaml_override {
    yaml_node first;
    char *text; /* PATH=VALUE */
};

/* A yaml_node is the number libyaml gives a node of its document: from 1, in a growing array. */
struct yaml_doc {
    yaml_document_t tree;
    char *name;
    struct yaml_override *overrides;
    size_t override_count;
};

static inline yaml_node_t *yaml_doc_node(const struct yaml_doc *doc, yaml_node node)
{
    return doc->tree.nodes.start + node - 1;
}

/* The override that made this node, or NULL if it came from the file. */
const struct yaml_override *yaml_doc_override(const struct yaml_doc *doc, yaml_node node);

#endif
