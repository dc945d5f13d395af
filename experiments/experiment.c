/* experiment.c -- see experiment.h. */
#include "experiments/experiment.h"

#include "base/hash.h"
#include "base/text.h"
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

#define FIGURE(key, about)                                                                         \
    {                                                                                              \
#key, YAML_TYPE_TEXT, offsetof(struct figure, key), false, 0, 0, 0, NULL, NULL, 0, about   \
    }
static const struct yaml_field figure_fields[] = {
    {"kind", YAML_TYPE_TEXT, offsetof(struct figure, kind), true, 0, 0, 0, NULL, NULL, 0,
     "which plot"},
    FIGURE(x, "column along"),
    FIGURE(y, "column up"),
    FIGURE(z, "column of a contour plot"),
    FIGURE(low, "lower end of y"),
    FIGURE(high, "upper end of y"),
    FIGURE(by, "columns that tell curves apart"),
    FIGURE(x_label, "axis title"),
    FIGURE(y_label, "axis title"),
    FIGURE(z_label, "title of the grey scale"),
    FIGURE(x_unit, "unit of the axis"),
    FIGURE(y_unit, "unit of the axis"),
    FIGURE(z_unit, "unit of the grey scale"),
    FIGURE(log, "x, y or xy"),
    FIGURE(where, "rows that are drawn"),
    FIGURE(relative_to, "rows that the others are divided by"),
    FIGURE(levels, "contour lines"),
    FIGURE(marks, "points of a contour plot"),
    FIGURE(note, "a line below the title"),
    {NULL, YAML_TYPE_TEXT, 0, false, 0, 0, 0, NULL, NULL, 0, NULL},
};

/* Keys with a meaning of their own; any other is an edit. */
static const char *const reserved[] = {"question", "predict", "refuted_if", "finding", "refuted",
                                       "method",   "sweep",   "figure",     NULL};

/* The file while it is read. */
struct reader {
    const struct yaml_doc *doc;
    const struct experiment_rules *rules;
    struct experiment *e;
};

static bool is_reserved(const char *key)
{
    for (const char *const *r = reserved; *r; r++)
        if (strcmp(*r, key) == 0)
            return true;
    return false;
}

static const char *keep(struct reader *r, const char *text)
{
    return arena_text(&r->e->arena, text);
}

/* A text for people or a name; NULL where it is absent and may be. */
static enum status read_text(const char **out, struct reader *r, const char *key, bool required,
                             struct diag *dg)
{
    yaml_node root = yaml_root(r->doc), node = yaml_find(r->doc, root, key);
    *out = NULL;
    if (!node)
        return required ? yaml_error(r->doc, root, dg, "key '%s' is missing", key) : ST_OK;
    if (yaml_kind(r->doc, node) != YAML_SCALAR || yaml_is_empty(r->doc, node))
        return yaml_error(r->doc, node, dg, "%s: a text is expected", key);
    *out = keep(r, yaml_text(r->doc, node));
    return *out ? ST_OK : diag_no_memory(dg);
}

static enum status read_edit(struct edit *out, struct reader *r, const char *key, yaml_node value,
                             struct diag *dg)
{
    struct diag why;
    if (yaml_kind(r->doc, value) != YAML_SCALAR || yaml_is_empty(r->doc, value))
        return yaml_error(r->doc, value, dg, "%s: one value is expected", key);
    *out = (struct edit){keep(r, key), keep(r, yaml_text(r->doc, value)), yaml_line(r->doc, value)};
    if (!out->key || !out->value)
        return diag_no_memory(dg);
    enum status st = r->rules->check(r->rules->self, r->e->method, out, &why);
    return st == ST_OK ? ST_OK : yaml_error(r->doc, value, dg, "%s", why.text);
}

static enum status read_base(struct reader *r, struct diag *dg)
{
    yaml_node root = yaml_root(r->doc);
    size_t count = yaml_count(r->doc, root), used = 0;
    struct edit *edit = arena_alloc(&r->e->arena, (count + 1) * sizeof *edit);
    if (!edit)
        return diag_no_memory(dg);
    for (size_t i = 0; i < count; i++) {
        const char *key = yaml_key_at(r->doc, root, i);
        if (is_reserved(key))
            continue;
        enum status st = read_edit(&edit[used++], r, key, yaml_value_at(r->doc, root, i), dg);
        if (st != ST_OK)
            return st;
    }
    r->e->edit = edit;
    r->e->edit_count = used;
    return ST_OK;
}

/* One of several things at once: {name: TEXT, KEY: VALUE, ...}. */
static enum status read_case(struct axis_item *out, struct reader *r, yaml_node map,
                             struct diag *dg)
{
    size_t count = yaml_count(r->doc, map), used = 0;
    struct edit *edit = arena_alloc(&r->e->arena, (count + 1) * sizeof *edit);
    yaml_node name = yaml_find(r->doc, map, "name");
    if (!edit)
        return diag_no_memory(dg);
    if (!name || yaml_kind(r->doc, name) != YAML_SCALAR || yaml_is_empty(r->doc, name))
        return yaml_error(r->doc, map, dg, "a case needs a name");
    for (size_t i = 0; i < count; i++) {
        const char *key = yaml_key_at(r->doc, map, i);
        if (strcmp(key, "name") == 0)
            continue;
        enum status st = read_edit(&edit[used++], r, key, yaml_value_at(r->doc, map, i), dg);
        if (st != ST_OK)
            return st;
    }
    *out = (struct axis_item){keep(r, yaml_text(r->doc, name)), used, edit};
    return out->text ? ST_OK : diag_no_memory(dg);
}

static enum status read_item(struct axis_item *out, struct reader *r, const char *name,
                             yaml_node item, bool cases, struct diag *dg)
{
    if ((yaml_kind(r->doc, item) == YAML_MAP) != cases)
        return yaml_error(r->doc, item, dg,
                          "sweep.%s: its items are all values, or all cases {name: ..., ...}",
                          name);
    if (cases)
        return read_case(out, r, item, dg);
    struct edit *edit = arena_alloc(&r->e->arena, sizeof *edit);
    enum status st = edit ? read_edit(edit, r, name, item, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        *out = (struct axis_item){edit->value, 1, edit};
    return st;
}

static int by_text(const void *a, const void *b)
{
    const struct axis_item *x = *(const struct axis_item *const *)a;
    const struct axis_item *y = *(const struct axis_item *const *)b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x > y) - (x < y);
}

/* Names the first item that stands there again. Sorted, because a list may have as many items as a sweep points. */
static enum status check_distinct(struct reader *r, const char *name, yaml_node list,
                                  const struct axis_item *item, size_t count, struct diag *dg)
{
    const struct axis_item **sorted = malloc(count * sizeof(*sorted)), *again = NULL;
    if (!sorted)
        return diag_no_memory(dg);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &item[i];
    qsort(sorted, count, sizeof(*sorted), by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->text, sorted[i]->text) == 0 && (!again || sorted[i] < again))
            again = sorted[i];
    free(sorted);
    if (!again)
        return ST_OK;
    return yaml_error(r->doc, yaml_item(r->doc, list, (size_t)(again - item)), dg,
                      "sweep.%s: '%s' stands there twice", name, again->text);
}

static enum status read_axis(struct axis *out, struct reader *r, yaml_node key, const char *name,
                             yaml_node list, struct diag *dg)
{
    if (yaml_kind(r->doc, list) != YAML_LIST || yaml_count(r->doc, list) == 0)
        return yaml_error(r->doc, list, dg, "sweep.%s: a list of values is expected", name);
    size_t count = yaml_count(r->doc, list);
    struct axis_item *item = arena_alloc(&r->e->arena, count * sizeof *item);
    *out = (struct axis){keep(r, name), yaml_line(r->doc, key), count, item};
    if (!item || !out->name)
        return diag_no_memory(dg);
    bool cases = yaml_kind(r->doc, yaml_item(r->doc, list, 0)) == YAML_MAP;
    for (size_t i = 0; i < count; i++) {
        yaml_node node = yaml_item(r->doc, list, i);
        enum status st = read_item(&item[i], r, name, node, cases, dg);
        if (st != ST_OK)
            return st;
    }
    return check_distinct(r, name, list, item, count, dg);
}

/* What is swept may not be set as well: one of the two would be ignored. */
static enum status check_once(struct reader *r, yaml_node key, const char *name, struct diag *dg)
{
    for (size_t i = 0; i < r->e->edit_count; i++)
        if (strcmp(r->e->edit[i].key, name) == 0)
            return yaml_error(r->doc, key, dg, "sweep.%s: it is set above as well", name);
    return ST_OK;
}

static const struct edit *find_edit(const struct axis *a, const char *key)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < a->item[i].edit_count; k++)
            if (strcmp(a->item[i].edit[k].key, key) == 0)
                return &a->item[i].edit[k];
    return NULL;
}

/* Two axes that set the same key would not both count. */
static enum status check_apart(const struct experiment *e, const struct axis *a,
                               const struct axis *b, struct diag *dg)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < a->item[i].edit_count; k++) {
            const struct edit *own = &a->item[i].edit[k];
            if (find_edit(b, own->key))
                return diag_set(dg, ST_PARSE, "%s:%zu: sweep.%s and sweep.%s both set %s",
                                e->origin, own->line, b->name, a->name, own->key);
        }
    return ST_OK;
}

static enum status read_axes(struct reader *r, struct diag *dg)
{
    struct experiment *e = r->e;
    yaml_node map = yaml_find(r->doc, yaml_root(r->doc), "sweep");
    if (!map)
        return yaml_error(r->doc, yaml_root(r->doc), dg, "key 'sweep' is missing");
    if (yaml_kind(r->doc, map) != YAML_MAP || yaml_count(r->doc, map) == 0)
        return yaml_error(r->doc, map, dg, "sweep: a map of lists is expected");
    struct axis *axis = arena_alloc(&e->arena, yaml_count(r->doc, map) * sizeof *axis);
    if (!axis)
        return diag_no_memory(dg);
    e->axis = axis;
    e->points = 1;
    for (size_t i = 0; i < yaml_count(r->doc, map); i++) {
        const char *name = yaml_key_at(r->doc, map, i);
        yaml_node key = yaml_key_node_at(r->doc, map, i);
        enum status st = check_once(r, key, name, dg);
        if (st == ST_OK)
            st = read_axis(&axis[i], r, key, name, yaml_value_at(r->doc, map, i), dg);
        for (size_t b = 0; st == ST_OK && b < i; b++)
            st = check_apart(e, &axis[i], &axis[b], dg);
        if (st != ST_OK)
            return st;
        e->axis_count = i + 1;
        if (axis[i].count > EXPERIMENT_POINTS_MAX / e->points)
            return yaml_error(r->doc, key, dg, "sweep: at most %llu points",
                              (unsigned long long)EXPERIMENT_POINTS_MAX);
        e->points *= axis[i].count;
    }
    return ST_OK;
}

static enum status read_method(struct reader *r, struct diag *dg)
{
    char listed[256] = "";
    enum status st = read_text(&r->e->method, r, "method", false, dg);
    if (st != ST_OK)
        return st;
    if (!r->e->method)
        r->e->method = r->rules->methods[0];
    for (const char *const *m = r->rules->methods; *m; m++) {
        if (strcmp(*m, r->e->method) == 0)
            return ST_OK;
        text_list(listed, sizeof listed, ", ", "%s", *m);
    }
    return yaml_error(r->doc, yaml_find(r->doc, yaml_root(r->doc), "method"), dg,
                      "method: one of %s, not '%s'", listed, r->e->method);
}

/* KEY=VALUE over what the file sets, or beside it. */
static enum status override_base(struct experiment *e, const struct experiment_rules *rules,
                                 const char *text, struct diag *dg)
{
    struct diag why;
    const char *equals = strchr(text, '=');
    char *key = equals ? arena_text(&e->arena, text) : NULL;
    if (!equals || equals == text)
        return diag_set(dg, ST_USAGE, "--set %s: KEY=VALUE is expected", text);
    struct edit *edit = arena_alloc(&e->arena, (e->edit_count + 1) * sizeof *edit);
    if (!key || !edit)
        return diag_no_memory(dg);
    key[equals - text] = 0;
    struct edit made = {key, key + (equals - text) + 1, 0};
    for (size_t i = 0; i < e->axis_count; i++)
        if (strcmp(e->axis[i].name, key) == 0)
            return diag_set(dg, ST_USAGE, "--set %s: %s:%zu sweeps it", text, e->origin,
                            e->axis[i].line);
    if (rules->check(rules->self, e->method, &made, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--set %s: %s", text, why.text);
    size_t used = 0;
    for (size_t i = 0; i < e->edit_count; i++)
        if (strcmp(e->edit[i].key, key) != 0)
            edit[used++] = e->edit[i];
    edit[used++] = made;
    e->edit = edit;
    e->edit_count = used;
    return ST_OK;
}

static uint64_t add_edits(uint64_t h, const struct edit *edit, size_t count)
{
    for (size_t i = 0; i < count; i++)
        h = hash_add(hash_add(h, hash_text(edit[i].key)), hash_text(edit[i].value));
    return h;
}

static uint64_t fingerprint(const struct experiment *e)
{
    uint64_t h = hash_add(HASH_SEED, hash_text(MEMWALL_VERSION));
    h = add_edits(hash_add(h, hash_text(e->method)), e->edit, e->edit_count);
    for (size_t a = 0; a < e->axis_count; a++) {
        h = hash_add(hash_add(h, hash_text(e->axis[a].name)), e->axis[a].count);
        for (size_t i = 0; i < e->axis[a].count; i++) {
            const struct axis_item *item = &e->axis[a].item[i];
            h = add_edits(hash_add(h, hash_text(item->text)), item->edit, item->edit_count);
        }
    }
    return h;
}

static enum status read_all(struct reader *r, struct diag *dg)
{
    struct experiment *e = r->e;
    yaml_node root = yaml_root(r->doc);
    if (yaml_kind(r->doc, root) != YAML_MAP)
        return yaml_error(r->doc, root, dg, "a map of keys is expected");
    enum status st = read_text(&e->question, r, "question", true, dg);
    if (st == ST_OK)
        st = read_text(&e->predict, r, "predict", true, dg);
    if (st == ST_OK)
        st = read_text(&e->refuted_if, r, "refuted_if", true, dg);
    if (st == ST_OK)
        st = read_text(&e->finding, r, "finding", false, dg);
    if (st == ST_OK)
        st = read_text(&e->refuted, r, "refuted", false, dg);
    if (st == ST_OK)
        st = read_method(r, dg);
    yaml_node figure = yaml_find(r->doc, root, "figure");
    if (st == ST_OK && figure)
        st = yaml_read(r->doc, figure, figure_fields, &e->figure, &e->arena, dg);
    if (st == ST_OK)
        st = read_base(r, dg);
    return st == ST_OK ? read_axes(r, dg) : st;
}

enum status experiment_load(struct experiment **out, const char *path,
                            const struct experiment_rules *rules, const char *const *overrides,
                            size_t override_count, struct diag *dg)
{
    struct yaml_doc *doc;
    struct experiment *e = calloc(1, sizeof *e);
    if (!e)
        return diag_no_memory(dg);
    enum status st = yaml_open(&doc, path, dg);
    if (st == ST_OK) {
        struct reader r = {doc, rules, e};
        e->origin = keep(&r, path);
        st = e->origin ? read_all(&r, dg) : diag_no_memory(dg);
        yaml_close(doc);
    }
    for (size_t i = 0; st == ST_OK && i < override_count; i++)
        st = override_base(e, rules, overrides[i], dg);
    if (st != ST_OK) {
        experiment_free(e);
        return st;
    }
    e->key = fingerprint(e);
    *out = e;
    return ST_OK;
}

void experiment_free(struct experiment *e)
{
    if (!e)
        return;
    arena_free(&e->arena);
    free(e);
}
