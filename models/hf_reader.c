/* hf_reader.c -- see hf_reader.h. */
#include "models/hf_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hf_fail(struct hf *h, enum status status, const char *format, ...)
{
    if (h->status != ST_OK)
        return;
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    h->status = diag_set(h->dg, status, "%s: %s (model_type %s)", h->path, reason, h->model_type);
}

bool hf_has(const struct hf *h, const char *key)
{
    return json_get(h->text, key) != NULL;
}

static uint64_t number(struct hf *h, const char *key, const json_node *node)
{
    uint64_t value = 0;
    if (!json_u64(node, &value))
        hf_fail(h, ST_PARSE, "'%s': expected a whole number", key);
    return value;
}

uint64_t hf_need(struct hf *h, const char *key, const char *other)
{
    const json_node *node = json_get(h->text, key);
    if (!node && other)
        node = json_get(h->text, other);
    if (node)
        return number(h, key, node);
    hf_fail(h, ST_MISSING, "missing field '%s'", key);
    return 0;
}

uint64_t hf_count(struct hf *h, const char *key, uint64_t absent)
{
    const json_node *node = json_get(h->text, key);
    return node ? number(h, key, node) : absent;
}

bool hf_flag(struct hf *h, const char *key, bool absent)
{
    const json_node *node = json_get(h->text, key);
    bool value = absent;
    if (node && !json_flag(node, &value))
        hf_fail(h, ST_PARSE, "'%s': expected true or false", key);
    return value;
}

const char *hf_text(struct hf *h, const char *key)
{
    const json_node *node = json_get(h->text, key);
    const char *text = node ? json_text(node) : NULL;
    if (node && !text)
        hf_fail(h, ST_PARSE, "'%s': expected a text", key);
    return text;
}

uint64_t hf_each(struct hf *h, const char *key, size_t i, size_t length)
{
    const json_node *node = json_get(h->text, key);
    if (!node) {
        hf_fail(h, ST_MISSING, "missing field '%s'", key);
        return 0;
    }
    if (!json_is_array(node))
        return number(h, key, node);
    if (json_count(node) < length) {
        hf_fail(h, ST_PARSE, "'%s': %zu entries for %zu layers", key, json_count(node), length);
        return 0;
    }
    return number(h, key, json_at(node, i));
}

bool hf_list_has(struct hf *h, const char *key, uint64_t value)
{
    const json_node *list = json_get(h->text, key);
    if (!list)
        return false;
    if (!json_is_array(list)) {
        hf_fail(h, ST_PARSE, "'%s': expected a list", key);
        return false;
    }
    for (size_t i = 0; i < json_count(list); i++)
        if (number(h, key, json_at(list, i)) == value)
            return true;
    return false;
}

static bool word_in(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return length > 0;
    return false;
}

bool hf_layer_type_is(struct hf *h, size_t i, const char *name, const char *known)
{
    const json_node *list = json_get(h->text, "layer_types");
    if (!list)
        return false;
    const char *type = json_is_array(list) ? json_text(json_at(list, i)) : NULL;
    if (!type)
        hf_fail(h, ST_PARSE, "'layer_types': expected a text for each layer, none for layer %zu",
                i);
    else if (!word_in(known, type))
        hf_fail(h, ST_UNSUPPORTED, "'layer_types': unknown layer type '%s'", type);
    return type && strcmp(type, name) == 0;
}

const json_node *hf_enter(struct hf *h, const char *key)
{
    const json_node *before = h->text, *inner = json_get(h->text, key);
    if (inner && json_is_object(inner))
        h->text = inner;
    else
        hf_fail(h, ST_MISSING, "missing field '%s'", key);
    return before;
}

void hf_leave(struct hf *h, const json_node *before)
{
    h->text = before;
}
