/* yaml_read.c -- from a document to structs, by tables of fields.
 *
 * One walk over the file's keys finds what is unknown, one over the table's finds what is missing.
 * Each reader of a type is a small function; they share `struct reader`, and a chain of places on
 * the stack from which an error's path ("storage.0.latency") is written. */
#include "base/nearest.h"
#include "base/utf8.h"
#include "base/yaml.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const struct yaml_doc *doc;
    struct arena *arena;
    struct diag *dg;
};

/* One step of a path: a key, or with key NULL a list position. */
struct place {
    const struct place *up;
    const char *key;
    size_t index;
};

static enum status read_map(const struct reader *r, yaml_node node, const struct yaml_field *fields,
                            void *out, const struct place *at);

static void place_write(const struct place *at, char *out, size_t room)
{
    *out = 0;
    if (!at)
        return;
    place_write(at->up, out, room);
    size_t used = strlen(out);
    const char *dot = used ? "." : "";
    if (at->key)
        snprintf(out + used, room - used, "%s%s", dot, at->key);
    else
        snprintf(out + used, room - used, "%s%zu", dot, at->index);
}

/* file:line: path: reason */
static enum status PRINTF_LIKE(5, 6)
    complain(const struct reader *r, yaml_node node, const struct place *at, enum status status,
             const char *format, ...)
{
    char path[256], reason[sizeof r->dg->text];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    place_write(at, path, sizeof path);
    (void)yaml_error(r->doc, node, r->dg, "%s%s%s", path, *path ? ": " : "", reason);
    return r->dg->status = status;
}

/* A scalar that says something: not empty, not null. */
static enum status read_scalar(const struct reader *r, yaml_node node, const struct place *at,
                               const char *expected, const char **out)
{
    *out = yaml_text(r->doc, node);
    if (!*out)
        return complain(r, node, at, ST_PARSE, "%s is expected, not a %s", expected,
                        yaml_kind(r->doc, node) == YAML_MAP ? "map" : "list");
    if (yaml_is_empty(r->doc, node))
        return complain(r, node, at, ST_PARSE, "%s is expected, nothing is here", expected);
    return ST_OK;
}

/* Texts are printed within lines and tables: block scalars bring line ends, which become spaces, as
 * do tabs; any other control character could only harm. */
static enum status keep_text(const struct reader *r, yaml_node node, const struct place *at,
                             const char *text, const char **out)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        length--;
    char *copy = arena_alloc(r->arena, length + 1);
    if (!copy)
        return diag_no_memory(r->dg);
    for (size_t i = 0; i < length; i++) {
        bool blank = text[i] == '\n' || text[i] == '\t';
        copy[i] = blank ? ' ' : text[i];
        if (!blank && utf8_is_control(text + i, utf8_length(text + i)))
            return complain(r, node, at, ST_PARSE, "a text without control characters is expected");
    }
    *out = copy;
    return ST_OK;
}

static enum status read_text(const struct reader *r, yaml_node node, const struct place *at,
                             const char **out)
{
    const char *text;
    enum status status = read_scalar(r, node, at, "a text", &text);
    return status == ST_OK ? keep_text(r, node, at, text, out) : status;
}

static enum status check_limits(const struct reader *r, yaml_node node, const struct place *at,
                                const struct yaml_field *f, uint64_t amount)
{
    char low[QUANTITY_TEXT_MAX], high[QUANTITY_TEXT_MAX];
    if (amount >= f->min && (f->max == 0 || amount <= f->max))
        return ST_OK;
    quantity_print(low, f->min, f->dim);
    quantity_print(high, f->max, f->dim);
    if (f->max == 0)
        return complain(r, node, at, ST_RANGE, "'%s': at least %s is expected",
                        yaml_text(r->doc, node), low);
    return complain(r, node, at, ST_RANGE, "'%s': %s to %s is expected", yaml_text(r->doc, node),
                    low, high);
}

/* A number of dimension f->dim, within the field's limits. */
static enum status read_amount(const struct reader *r, yaml_node node, const struct place *at,
                               const struct yaml_field *f, uint64_t *out)
{
    const char *text;
    struct diag why;
    const char *expected = f->dim == DIM_COUNT ? "a whole number" : dimension_name(f->dim);
    enum status status = read_scalar(r, node, at, expected, &text);
    if (status != ST_OK)
        return status;
    status = quantity_parse(out, f->dim, text, QUANTITY_UNIT_REQUIRED, &why);
    if (status != ST_OK)
        return complain(r, node, at, status, "%s", why.text);
    return check_limits(r, node, at, f, *out);
}

/* The list form; `v` has its dimension set. */
static enum status read_value_list(const struct reader *r, yaml_node node, const struct place *at,
                                   const struct yaml_field *f, struct value *v)
{
    const char *kind, *source;
    struct diag why;
    yaml_node third = yaml_item(r->doc, node, 2);
    enum status status = read_amount(r, yaml_item(r->doc, node, 0), at, f, &v->amount);
    if (status == ST_OK)
        status = read_scalar(r, yaml_item(r->doc, node, 1), at, "a kind", &kind);
    if (status != ST_OK)
        return status;
    status = value_kind_parse(&v->kind, kind, &why);
    if (status != ST_OK)
        return complain(r, yaml_item(r->doc, node, 1), at, status, "%s", why.text);
    status = read_scalar(r, third, at, "a source", &source);
    if (status == ST_OK && strspn(source, " \t\n") == strlen(source))
        status = complain(r, third, at, ST_PARSE, "a source is expected, nothing is here");
    if (status == ST_OK)
        status = keep_text(r, third, at, source, &v->source);
    if (status != ST_OK || yaml_count(r->doc, node) == 3)
        return status;
    const struct yaml_field spread = {.dim = DIM_RATIO, .max = 1000000000};
    v->spread_given = true;
    return read_amount(r, yaml_item(r->doc, node, 3), at, &spread, &v->spread);
}

static enum status read_value(const struct reader *r, yaml_node node, const struct place *at,
                              const struct yaml_field *f, struct value *out)
{
    struct value v = {.dim = f->dim, .given = true, .kind = KIND_ASSUMED, .source = "--set"};
    enum status status;
    if (yaml_kind(r->doc, node) == YAML_SCALAR && yaml_is_override(r->doc, node))
        status = read_amount(r, node, at, f, &v.amount);
    else if (yaml_kind(r->doc, node) == YAML_LIST &&
             (yaml_count(r->doc, node) == 3 || yaml_count(r->doc, node) == 4))
        status = read_value_list(r, node, at, f, &v);
    else
        status = complain(r, node, at, ST_PARSE,
                          "[amount, kind, source] or [amount, kind, source, spread] is expected; "
                          "a source with a comma needs quotes");
    if (status == ST_OK)
        *out = v;
    return status;
}

static enum status read_flag(const struct reader *r, yaml_node node, const struct place *at,
                             bool *out)
{
    const char *text;
    enum status status = read_scalar(r, node, at, "true or false", &text);
    if (status != ST_OK)
        return status;
    *out = !strcmp(text, "true");
    if (!*out && strcmp(text, "false") != 0)
        return complain(r, node, at, ST_PARSE, "'%s': true or false is expected", text);
    return ST_OK;
}

static enum status read_choice(const struct reader *r, yaml_node node, const struct place *at,
                               const struct yaml_field *f, int *out)
{
    const char *text;
    char list[512] = "";
    size_t count = 0, used = 0;
    enum status status = read_scalar(r, node, at, "a name", &text);
    if (status != ST_OK)
        return status;
    for (; f->choices[count]; count++) {
        if (!strcmp(text, f->choices[count])) {
            *out = (int)count;
            return ST_OK;
        }
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, " %s", f->choices[count]);
    }
    const char *hint = nearest_name(text, f->choices, count);
    return complain(r, node, at, ST_PARSE, "'%s': one of%s is expected%s%s%s", text, list,
                    hint ? " (did you mean '" : "", hint ? hint : "", hint ? "'?)" : "");
}

/* Room for `count` items of `bytes` each, zeroed. */
static enum status list_new(const struct reader *r, struct yaml_list *list, size_t count,
                            size_t bytes)
{
    assert(bytes > 0);
    if (count > SIZE_MAX / bytes || !(list->items = arena_alloc(r->arena, count * bytes)))
        return diag_no_memory(r->dg);
    list->count = count;
    return ST_OK;
}

/* Lists of maps (YAML_TYPE_LIST) and of whole numbers (YAML_TYPE_COUNT_LIST). */
static enum status read_list(const struct reader *r, yaml_node node, const struct place *at,
                             const struct yaml_field *f, struct yaml_list *out)
{
    bool counts = f->type == YAML_TYPE_COUNT_LIST;
    size_t bytes = counts ? sizeof(uint64_t) : f->item_bytes;
    struct yaml_list list;
    if (yaml_kind(r->doc, node) != YAML_LIST)
        return complain(r, node, at, ST_PARSE, "a list is expected");
    enum status status = list_new(r, &list, yaml_count(r->doc, node), bytes);
    for (size_t i = 0; status == ST_OK && i < list.count; i++) {
        const struct place item = {at, NULL, i};
        yaml_node n = yaml_item(r->doc, node, i);
        if (counts)
            status = read_amount(r, n, &item, f, (uint64_t *)list.items + i);
        else
            status = read_map(r, n, f->fields, (char *)list.items + i * bytes, &item);
    }
    if (status == ST_OK)
        *out = list;
    return status;
}

static enum status read_field(const struct reader *r, yaml_node node, const struct yaml_field *f,
                              void *out, const struct place *at)
{
    void *member = (char *)out + f->offset;
    switch (f->type) {
    case YAML_TYPE_TEXT:
        return read_text(r, node, at, member);
    case YAML_TYPE_COUNT:
        assert(f->dim == DIM_COUNT);
        return read_amount(r, node, at, f, member);
    case YAML_TYPE_QUANTITY:
        return read_amount(r, node, at, f, member);
    case YAML_TYPE_FLAG:
        return read_flag(r, node, at, member);
    case YAML_TYPE_CHOICE:
        return read_choice(r, node, at, f, member);
    case YAML_TYPE_VALUE:
        return read_value(r, node, at, f, member);
    case YAML_TYPE_MAP:
        return read_map(r, node, f->fields, member, at);
    case YAML_TYPE_LIST:
    case YAML_TYPE_COUNT_LIST:
        return read_list(r, node, at, f, member);
    case YAML_TYPE_NODE:
        *(yaml_node *)member = node;
        return ST_OK;
    }
    assert(!"a type of the table");
    return ST_PARSE;
}

static enum status unknown_key(const struct reader *r, yaml_node key,
                               const struct yaml_field *fields)
{
    size_t count = 0;
    while (fields[count].key)
        count++;
    const char **names = malloc((count + 1) * sizeof *names);
    if (!names)
        return diag_no_memory(r->dg);
    for (size_t i = 0; i < count; i++)
        names[i] = fields[i].key;
    const char *text = yaml_text(r->doc, key), *hint = nearest_name(text, names, count);
    free(names);
    return yaml_error(r->doc, key, r->dg, "unknown key '%s'%s%s%s", text,
                      hint ? " (did you mean '" : "", hint ? hint : "", hint ? "'?)" : "");
}

static enum status read_map(const struct reader *r, yaml_node node, const struct yaml_field *fields,
                            void *out, const struct place *at)
{
    if (yaml_kind(r->doc, node) != YAML_MAP)
        return complain(r, node, at, ST_PARSE, "a map (key: value) is expected");
    for (size_t i = 0; i < yaml_count(r->doc, node); i++) {
        const char *key = yaml_key_at(r->doc, node, i);
        const struct yaml_field *f = fields;
        while (f->key && strcmp(f->key, key) != 0)
            f++;
        if (!f->key)
            return unknown_key(r, yaml_key_node_at(r->doc, node, i), fields);
        const struct place inside = {at, key, 0};
        enum status status = read_field(r, yaml_value_at(r->doc, node, i), f, out, &inside);
        if (status != ST_OK)
            return status;
    }
    for (const struct yaml_field *f = fields; f->key; f++)
        if (f->required && !yaml_find(r->doc, node, f->key))
            return complain(r, node, at, ST_PARSE, "key '%s' is missing", f->key);
    return ST_OK;
}

enum status yaml_read(const struct yaml_doc *doc, yaml_node node, const struct yaml_field *fields,
                      void *out, struct arena *arena, struct diag *dg)
{
    const struct reader r = {doc, arena, dg};
    return read_map(&r, node, fields, out, NULL);
}
