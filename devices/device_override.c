/* device_override.c -- see device_override.h. */
#include "devices/device_override.h"

#include "base/fixed.h"
#include "devices/device_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE "--set"

/* Where a path leads: its row and, if a device is given, the member. */
struct target {
    const struct yaml_field *field;
    void *member;
};

/* Reads "N." and returns what follows, or NULL. */
static const char *list_index(const char *path, size_t *index)
{
    char *end;
    if (*path < '0' || *path > '9')
        return NULL;
    *index = strtoul(path, &end, 10);
    return *end == '.' ? end + 1 : NULL;
}

/* Follows `path` (its first `length` bytes) through the maps of `fields`. */
static struct target in_fields(const struct yaml_field *fields, void *base, const char *path,
                               size_t length)
{
    const struct target none = {NULL, NULL};
    const char *dot = memchr(path, '.', length);
    size_t key_length = dot ? (size_t)(dot - path) : length;
    const struct yaml_field *f = device_field(fields, path, key_length);
    if (!f)
        return none;
    void *member = base ? (char *)base + f->offset : NULL;
    if (!dot)
        return f->type == YAML_TYPE_VALUE ? (struct target){f, member} : none;
    if (f->type != YAML_TYPE_MAP)
        return none;
    return in_fields(f->fields, member, dot + 1, length - key_length - 1);
}

/* `d` may be NULL: only the row is wanted. A list position that the device does not have gives a
 * row without member. */
static struct target find_target(struct device *d, const char *path, size_t length)
{
    static const char storage[] = "storage.", compute[] = "compute.";
    const struct yaml_field *fields = device_fields;
    void *base = d;
    const char *rest = path;
    size_t i = 0;
    if (strncmp(path, storage, sizeof storage - 1) == 0) {
        rest = list_index(path + sizeof storage - 1, &i);
        fields = storage_fields;
        base = d && i < d->storage_count ? &d->storage[i] : NULL;
    } else if (strncmp(path, compute, sizeof compute - 1) == 0) {
        rest = list_index(path + sizeof compute - 1, &i);
        fields = compute_fields;
        base = d && i < d->compute_count ? &d->compute[i] : NULL;
    }
    if (!rest || rest >= path + length)
        return (struct target){NULL, NULL};
    return in_fields(fields, base, rest, length - (size_t)(rest - path));
}

bool device_override_is_value(const char *override)
{
    return find_target(NULL, override, strcspn(override, "=")).field != NULL;
}

enum status device_override_document(struct yaml_doc *doc, const char *override, struct diag *dg)
{
    const char *equals = strchr(override, '=');
    char path[160];
    if (!equals || equals == override || (size_t)(equals - override) >= sizeof path)
        return diag_set(dg, ST_USAGE, "%s %s: PATH=VALUE is expected", SOURCE, override);
    memcpy(path, override, (size_t)(equals - override));
    path[equals - override] = 0;
    return yaml_set(doc, path, equals + 1, dg);
}

/* `KEY: [VALUE, assumed, --set]` as a document of its own, so that a value from the command line
 * goes through the parser that reads files. NULL when there is no memory. */
static char *value_document(const char *key, const char *value)
{
    size_t room = strlen(key) + 2 * strlen(value) + 64;
    char *text = malloc(room);
    if (!text)
        return NULL;
    if (*value == '[') {
        snprintf(text, room, "%s: %s\n", key, value);
        return text;
    }
    int used = snprintf(text, room, "%s: [\"", key);
    char *p = text + used;
    for (const char *v = value; *v; v++) {
        if (*v == '"' || *v == '\\')
            *p++ = '\\';
        *p++ = *v;
    }
    strcpy(p, "\", assumed, \"" SOURCE "\"]\n");
    return text;
}

static enum status set_value(struct device *d, const char *override, struct diag *dg)
{
    size_t length = strcspn(override, "=");
    struct target t = find_target(d, override, length);
    if (!t.field || override[length] != '=')
        return diag_set(dg, ST_USAGE, "%s %s: PATH=VALUE is expected", SOURCE, override);
    if (!t.member)
        return diag_set(dg, ST_MISSING, "%s %s: '%s' has no entry of that number", SOURCE, override,
                        d->origin);
    char *text = value_document(t.field->key, override + length + 1);
    if (!text)
        return diag_no_memory(dg);
    char name[256];
    snprintf(name, sizeof name, "%s %.*s", SOURCE, (int)length, override);
    struct yaml_doc *doc = NULL;
    struct yaml_field row[2] = {*t.field, {.key = NULL}};
    row[0].offset = 0;
    enum status st = yaml_open_text(&doc, name, text, strlen(text), dg);
    if (st == ST_OK)
        st = yaml_read(doc, yaml_root(doc), row, t.member, &d->arena, dg);
    yaml_close(doc);
    free(text);
    return st;
}

/* `beside` was measured at the bandwidth `before`: at `after` the same share of it is reached. */
static void scale_measured(struct value *beside, const struct value *beside_before,
                           const struct value *before, const struct value *after)
{
    if (!beside->given || !before->given || before->amount == after->amount ||
        beside->amount != beside_before->amount)
        return;
    beside->amount = fixed_mul_div(beside->amount, after->amount, before->amount);
    beside->kind = KIND_DERIVED;
    beside->source = "scaled with the bandwidth that --set gave";
}

/* A peak beside a measured rate changes nothing, unless there was one to scale from. */
static enum status scale_memory(struct memory *m, const struct memory *before, const char *path,
                                struct diag *dg)
{
    bool alone = m->bandwidth.given && !before->bandwidth.given && before->measured_bandwidth.given;
    char text[QUANTITY_TEXT_MAX];
    if (alone && m->measured_bandwidth.amount == before->measured_bandwidth.amount)
        return diag_set(dg, ST_USAGE,
                        SOURCE " %s.bandwidth: the device states no peak, only what was measured, "
                               "%s: set %s.measured_bandwidth",
                        path, quantity_print(text, before->measured_bandwidth.amount, DIM_RATE),
                        path);
    scale_measured(&m->measured_bandwidth, &before->measured_bandwidth, &before->bandwidth,
                   &m->bandwidth);
    return ST_OK;
}

enum status device_override_values(struct device *d, const struct yaml_doc *doc,
                                   const char *const *overrides, size_t count, struct diag *dg)
{
    if (count == 0)
        return ST_OK;
    const struct memory dram = d->dram;
    struct storage *storage = arena_alloc(&d->arena, (d->storage_count + 1) * sizeof *storage);
    struct compute *compute = arena_alloc(&d->arena, (d->compute_count + 1) * sizeof *compute);
    if (!storage || !compute)
        return diag_no_memory(dg);
    if (d->storage_count)
        memcpy(storage, d->storage, d->storage_count * sizeof *storage);
    if (d->compute_count)
        memcpy(compute, d->compute, d->compute_count * sizeof *compute);
    for (size_t i = 0; i < count; i++) {
        if (!device_override_is_value(overrides[i]))
            continue;
        enum status st = set_value(d, overrides[i], dg);
        if (st != ST_OK)
            return st;
    }
    enum status st = scale_memory(&d->dram, &dram, "dram", dg);
    for (size_t i = 0; i < d->storage_count; i++)
        scale_measured(&d->storage[i].hot_bandwidth, &storage[i].hot_bandwidth,
                       &storage[i].bandwidth, &d->storage[i].bandwidth);
    for (size_t i = 0; st == ST_OK && i < d->compute_count; i++) {
        char path[48];
        snprintf(path, sizeof path, "compute.%zu.memory", i);
        st = scale_memory(&d->compute[i].memory, &compute[i].memory, path, dg);
    }
    return st == ST_OK ? device_check_limits(d, doc, dg) : st;
}
