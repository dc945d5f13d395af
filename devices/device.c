/* device.c -- loading a description: the file, the parts it names, the overrides on top.
 *
 * Order: overrides of texts and choices (which part, which model) edit the document; the
 * document is read and checked as a whole; each storage entry is its part first and its own keys
 * over that; overrides of values go into the finished struct. So `--set
 * storage.0.bandwidth=15GB/s` means the same whether the file or a part gave the bandwidth, or
 * neither. */
#include "devices/device.h"

#include "base/fixed.h"
#include "devices/device_catalogue.h"
#include "devices/device_override.h"
#include "devices/device_schema.h"

#include <stdlib.h>
#include <string.h>

struct loader {
    struct device_reading r;
    const char *catalogue;
    struct diag *dg;
};

static enum status open_description(struct yaml_doc **doc, const char **path, const char *name,
                                    const char *beside, struct loader *l)
{
    enum status st = device_path(path, name, l->catalogue, beside, &l->r.d.arena, l->dg);
    return st != ST_OK ? st : yaml_open(doc, *path, l->dg);
}

static enum status read_part(struct storage *out, const char *part, const char *beside,
                             struct loader *l);

static bool is_override(const struct yaml_doc *doc, yaml_node map, const char *key)
{
    yaml_node node = yaml_find(doc, map, key);
    return node && yaml_is_override(doc, node);
}

/* The drive of a file was swapped for another on the command line: nothing that the file says of its own
 * drive holds for the new one. What stays is the machine's slot, and what the command line says. */
static void swap_part(struct storage *s, const struct storage *own, const struct yaml_doc *doc,
                      yaml_node item)
{
    if (!s->link_bandwidth.given)
        s->link_bandwidth = own->link_bandwidth;
    if (is_override(doc, item, "name"))
        s->name = own->name;
    if (is_override(doc, item, "model"))
        s->model = own->model;
    s->part = own->part;
}

/* A part first and the entry's own keys over it, unless the part comes from the command line. There a
 * relative path begins at the current folder, in a file at the file's own. */
static enum status read_entry(struct storage *s, const struct yaml_doc *doc, yaml_node item,
                              bool parts_allowed, struct loader *l)
{
    struct storage own = {0};
    yaml_node part = yaml_kind(doc, item) == YAML_MAP ? yaml_find(doc, item, "part") : 0;
    if (part && !parts_allowed)
        return yaml_error(doc, part, l->dg, "part: a part may not name another part");
    if (part && !yaml_text(doc, part))
        return yaml_error(doc, part, l->dg, "part: the name of a description is expected");
    bool swapped = part && yaml_is_override(doc, part);
    enum status st = ST_OK;
    if (part)
        st = read_part(s, yaml_text(doc, part), swapped ? NULL : yaml_name(doc), l);
    if (st == ST_OK)
        st = yaml_read(doc, item, storage_fields, swapped ? &own : s, &l->r.d.arena, l->dg);
    if (st == ST_OK && swapped)
        swap_part(s, &own, doc, item);
    return st;
}

/* The storage list of `doc` into r.d.storage. A file that is a part itself (beside == NULL) may not
 * name another. */
static enum status read_storage(const struct yaml_doc *doc, bool parts_allowed, struct loader *l)
{
    struct device *d = &l->r.d;
    yaml_node list = l->r.storage;
    if (!list)
        return ST_OK;
    if (yaml_kind(doc, list) != YAML_LIST || yaml_count(doc, list) == 0)
        return yaml_error(doc, list, l->dg, "storage: a list of entries is expected");
    d->storage_count = yaml_count(doc, list);
    d->storage = arena_alloc(&d->arena, d->storage_count * sizeof *d->storage);
    if (!d->storage)
        return diag_no_memory(l->dg);
    for (size_t i = 0; i < d->storage_count; i++) {
        enum status st = read_entry(&d->storage[i], doc, yaml_item(doc, list, i), parts_allowed, l);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status read_document(const struct yaml_doc *doc, bool parts_allowed, struct loader *l)
{
    struct device *d = &l->r.d;
    enum status st = yaml_read(doc, yaml_root(doc), device_fields, &l->r, &d->arena, l->dg);
    if (st != ST_OK)
        return st;
    d->compute = l->r.compute.items;
    d->compute_count = l->r.compute.count;
    st = read_storage(doc, parts_allowed, l);
    return st != ST_OK ? st : device_check(d, doc, l->dg);
}

static enum status read_part(struct storage *out, const char *part, const char *beside,
                             struct loader *l)
{
    struct loader own = {.catalogue = l->catalogue, .dg = l->dg};
    struct yaml_doc *doc = NULL;
    const char *path;
    own.r.d.arena = l->r.d.arena; /* lent, so that the part's texts live as long as the device */
    enum status st = open_description(&doc, &path, part, beside, &own);
    if (st == ST_OK)
        st = read_document(doc, false, &own);
    bool fit = own.r.d.class_of == DEVICE_STORAGE || own.r.d.class_of == DEVICE_MEMORY;
    if (st == ST_OK && (!fit || own.r.d.storage_count != 1))
        st = yaml_error(doc, yaml_root(doc), l->dg,
                        "'%s' is of class %s with %zu storage entries, a part is of class %s or %s "
                        "with one",
                        part, device_class_name(own.r.d.class_of), own.r.d.storage_count,
                        device_class_name(DEVICE_STORAGE), device_class_name(DEVICE_MEMORY));
    if (st == ST_OK)
        *out = own.r.d.storage[0];
    yaml_close(doc);
    l->r.d.arena = own.r.d.arena;
    return st;
}

static enum status load(struct loader *l, const char *name, const char *const *overrides,
                        size_t override_count)
{
    struct device *d = &l->r.d;
    struct yaml_doc *doc = NULL;
    enum status st = open_description(&doc, &d->origin, name, NULL, l);
    for (size_t i = 0; i < override_count && st == ST_OK; i++)
        if (!device_override_is_value(overrides[i]))
            st = device_override_document(doc, overrides[i], l->dg);
    if (st == ST_OK)
        st = read_document(doc, true, l);
    if (st == ST_OK)
        st = device_override_values(d, doc, overrides, override_count, l->dg);
    yaml_close(doc);
    if (st != ST_OK)
        return st;
    d->name = device_stem(d->origin, &d->arena);
    return d->name ? ST_OK : diag_no_memory(l->dg);
}

enum status device_load(struct device **out, const char *device, const char *catalogue,
                        const char *const *overrides, size_t override_count, struct diag *dg)
{
    struct loader l = {.catalogue = catalogue, .dg = dg};
    struct device *d = malloc(sizeof *d);
    if (!d)
        return diag_no_memory(dg);
    enum status st = load(&l, device, overrides, override_count);
    *d = l.r.d;
    if (st != ST_OK) {
        device_free(d);
        return st;
    }
    *out = d;
    return ST_OK;
}

void device_free(struct device *d)
{
    if (!d)
        return;
    arena_free(&d->arena);
    free(d);
}

struct value device_dram_rate(const struct device *d)
{
    if (d->dram.measured_bandwidth.given || !d->dram.bandwidth.given)
        return d->dram.measured_bandwidth;
    struct value v = d->dram.bandwidth;
    v.amount = fixed_mul_div(v.amount, 4, 5);
    v.source = "0.8 of the peak of the data sheet";
    v.kind = KIND_DERIVED;
    v.spread_given = false;
    return v;
}
