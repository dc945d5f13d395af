/* device_check.c -- what a table of keys cannot say about a device: limits of single values,
 * what each class must have, and pairs of values that contradict each other. Complaints name the
 * line of the key if the file has it, else of the map it belongs to. */
#include "devices/device_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The node that PATH leads to, or the deepest one on the way that exists. */
static yaml_node node_at(const struct yaml_doc *doc, const char *path)
{
    yaml_node node = yaml_root(doc);
    for (const char *p = path; *p;) {
        size_t length = strcspn(p, ".");
        char key[96];
        snprintf(key, sizeof key, "%.*s", (int)length, p);
        yaml_node next = 0;
        if (yaml_kind(doc, node) == YAML_MAP)
            next = yaml_find(doc, node, key);
        else if (yaml_kind(doc, node) == YAML_LIST &&
                 strtoul(key, NULL, 10) < yaml_count(doc, node))
            next = yaml_item(doc, node, strtoul(key, NULL, 10));
        if (!next)
            break;
        node = next;
        p += length + (p[length] == '.');
    }
    return node;
}

static enum status check_row(void *self, const char *path, const struct yaml_field *field,
                             struct value *v, struct diag *dg)
{
    const struct yaml_doc *doc = self;
    if (!v->given || (v->amount >= field->min && v->amount <= field->max))
        return ST_OK;
    char got[QUANTITY_TEXT_MAX], least[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];
    yaml_error(doc, node_at(doc, path), dg, "%s is %s, must be %s to %s", path,
               quantity_print(got, v->amount, field->dim),
               quantity_print(least, field->min, field->dim),
               quantity_print(most, field->max, field->dim));
    return dg->status = ST_RANGE;
}

enum status device_check_limits(struct device *d, const struct yaml_doc *doc, struct diag *dg)
{
    /* The rows are read-only here; the walk takes a plain pointer because others write through
     * it. */
    return device_each_row(d, check_row, (void *)doc, dg);
}

struct check {
    const struct yaml_doc *doc;
    struct diag *dg;
};

/* `small` may not exceed `factor` times `large`. Absent values contradict nothing. */
static enum status at_most(const struct check *c, const char *prefix, const char *small_key,
                           const struct value *small, const char *large_key,
                           const struct value *large, uint64_t factor)
{
    if (!small->given || !large->given ||
        (unsigned __int128)large->amount * factor >= small->amount)
        return ST_OK;
    char path[160], a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], times[32] = "";
    snprintf(path, sizeof path, "%s%s", prefix, small_key);
    if (factor > 1)
        snprintf(times, sizeof times, "%ju times ", (uintmax_t)factor);
    yaml_error(c->doc, node_at(c->doc, path), c->dg, "%s is %s, above %s%s%s (%s)", path,
               quantity_print(a, small->amount, small->dim), times, prefix, large_key,
               quantity_print(b, large->amount, large->dim));
    return c->dg->status = ST_RANGE;
}

static enum status need(const struct check *c, const char *where, const char *what, bool present)
{
    if (present)
        return ST_OK;
    return yaml_error(c->doc, node_at(c->doc, where), c->dg, "%s: %s is required", where, what);
}

static enum status check_memory(const struct check *c, const char *prefix, const struct memory *m)
{
    enum status st = at_most(c, prefix, "measured_bandwidth", &m->measured_bandwidth, "bandwidth",
                             &m->bandwidth, 1);
    if (st == ST_OK)
        st = at_most(c, prefix, "thread_bandwidth", &m->thread_bandwidth, "bandwidth",
                     &m->bandwidth, 1);
    if (st == ST_OK)
        st = at_most(c, prefix, "thread_bandwidth", &m->thread_bandwidth, "measured_bandwidth",
                     &m->measured_bandwidth, 1);
    return st;
}

/* A lane may be faster than the device (the fit of a UFS phone says 2800 against 2250 MiB/s),
 * but ten times as fast is a slip of a unit. */
#define LANE_FACTOR 10

static enum status check_storage(const struct check *c, const char *prefix, const struct storage *s)
{
    char where[64];
    snprintf(where, sizeof where, "%.*s", (int)strlen(prefix) - 1, prefix);
    enum status st = need(c, where, "name", s->name != NULL);
    if (st == ST_OK && s->model == STORAGE_CURVE)
        st = need(c, where, "bandwidth (model curve)", s->bandwidth.given);
    if (st == ST_OK && s->model == STORAGE_NAND)
        st = need(c, where,
                  "channels, dies_per_channel, planes, page_bytes, read_time and bus_bandwidth "
                  "(model nand)",
                  s->channels.given && s->dies_per_channel.given && s->planes.given &&
                      s->page_bytes.given && s->read_time.given && s->bus_bandwidth.given);
    if (st == ST_OK)
        st = at_most(c, prefix, "hot_bandwidth", &s->hot_bandwidth, "bandwidth", &s->bandwidth, 1);
    if (st == ST_OK)
        st = at_most(c, prefix, "lane_bandwidth", &s->lane_bandwidth, "bandwidth", &s->bandwidth,
                     LANE_FACTOR);
    return st;
}

static enum status check_compute(const struct check *c, size_t i, const struct compute *u)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "compute.%zu.memory.", i);
    enum status st = check_memory(c, prefix, &u->memory);
    if (st == ST_OK && u->memory.capacity.given)
        st = need(c, prefix, "bandwidth or measured_bandwidth",
                  u->memory.bandwidth.given || u->memory.measured_bandwidth.given);
    return st;
}

static enum status check_class(const struct check *c, const struct device *d)
{
    bool has_rate = d->dram.bandwidth.given || d->dram.measured_bandwidth.given;
    switch (d->class_of) {
    case DEVICE_STORAGE:
        return need(c, "storage", "exactly one entry (class storage)", d->storage_count == 1);
    case DEVICE_MEMORY:
        return need(c, "dram", "its bandwidth, or a storage entry (class memory)",
                    has_rate || d->storage_count > 0);
    default: {
        enum status st = need(c, "dram", "capacity", d->dram.capacity.given);
        return st != ST_OK ? st : need(c, "dram", "bandwidth or measured_bandwidth", has_rate);
    }
    }
}

enum status device_check(struct device *d, const struct yaml_doc *doc, struct diag *dg)
{
    const struct check c = {doc, dg};
    enum status st = device_check_limits(d, doc, dg);
    if (st == ST_OK)
        st = check_class(&c, d);
    if (st == ST_OK)
        st = check_memory(&c, "dram.", &d->dram);
    if (st == ST_OK)
        st = at_most(&c, "", "reserve", &d->reserve, "dram.capacity", &d->dram.capacity, 1);
    if (st == ST_OK)
        st = at_most(&c, "", "idle_power", &d->idle_power, "load_power", &d->load_power, 1);
    if (st == ST_OK)
        st = at_most(&c, "", "throttle_start", &d->throttle_start, "throttle_full",
                     &d->throttle_full, 1);
    for (size_t i = 0; i < d->storage_count && st == ST_OK; i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "storage.%zu.", i);
        st = check_storage(&c, prefix, &d->storage[i]);
    }
    for (size_t i = 0; i < d->compute_count && st == ST_OK; i++)
        st = check_compute(&c, i, &d->compute[i]);
    return st;
}
