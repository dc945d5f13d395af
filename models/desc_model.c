/* desc_model.c -- see desc_model.h: a document becomes groups, groups are spread over the layers. */
#include "models/desc_model.h"

#include "models/layer_set.h"
#include "models/model_schema.h"

#include <stdlib.h>
#include <string.h>

struct desc_loader {
    struct model *m;
    struct model_reading reading;
    const struct yaml_doc *doc;
    struct diag *dg;
};

static enum status override(struct yaml_doc *doc, const char *text, struct diag *dg)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return diag_set(dg, ST_USAGE, "--set %s: expected PATH=VALUE", text);
    char *path = strndup(text, (size_t)(equals - text));
    if (!path)
        return diag_no_memory(dg);
    enum status st = yaml_set(doc, path, equals + 1, dg);
    free(path);
    return st;
}

/* Puts the diag's reason behind the file and line of `node`. */
static enum status at_node(const struct desc_loader *l, yaml_node node)
{
    struct diag reason = *l->dg;
    yaml_error(l->doc, node, l->dg, "%.900s", reason.text);
    return l->dg->status = reason.status;
}

/* The layers of group `node`, none of which an earlier group may have named. */
static enum status claim_layers(const struct desc_loader *l, yaml_node node, const char *text,
                                bool *mine, bool *taken)
{
    enum status st = layer_set_parse(mine, l->reading.layers, text, taken, l->dg);
    if (st != ST_OK)
        return at_node(l, node);
    for (size_t i = 0; i < l->reading.layers; i++) {
        if (mine[i] && taken[i])
            return yaml_error(l->doc, node, l->dg, "layer %zu is in two groups", i);
        taken[i] = taken[i] || mine[i];
    }
    return ST_OK;
}

static enum status check_keys(const struct desc_loader *l, yaml_node node,
                              const struct attention_group *g)
{
    enum attention_family family = g->shape.family;
    for (const struct yaml_field *f = model_attention_fields; f->key; f++) {
        yaml_node key = yaml_find(l->doc, node, f->key);
        if (key && !model_key_allowed(f->key, family))
            return yaml_error(l->doc, key, l->dg, "'%s' does not apply to family %s", f->key,
                              model_family_name(family));
        if (!key && model_key_required(f->key, family))
            return yaml_error(l->doc, node, l->dg, "family %s needs '%s'",
                              model_family_name(family), f->key);
    }
    return ST_OK;
}

static enum status spread_attention(const struct desc_loader *l, yaml_node node, size_t index,
                                    bool *mine, bool *taken)
{
    const struct attention_group *groups = l->reading.attention.items;
    const struct attention_group *g = &groups[index];
    enum status st = check_keys(l, node, g);
    if (st == ST_OK)
        st = claim_layers(l, node, g->layers, mine, taken);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < l->reading.layers; i++)
        if (mine[i])
            l->m->layers[i].attention = g->shape;
    return ST_OK;
}

static enum status spread_ffn(const struct desc_loader *l, yaml_node node, size_t index, bool *mine,
                              bool *taken)
{
    const struct ffn_group *groups = l->reading.ffn.items;
    struct ffn shape = groups[index].shape;
    if (shape.experts && shape.expert_io_width == 0)
        shape.expert_io_width = l->reading.hidden;
    enum status st = claim_layers(l, node, groups[index].layers, mine, taken);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < l->reading.layers; i++)
        if (mine[i])
            l->m->layers[i].ffn = shape;
    return ST_OK;
}

typedef enum status spread_fn(const struct desc_loader *l, yaml_node node, size_t index, bool *mine,
                              bool *taken);

static enum status spread(const struct desc_loader *l, const char *key, size_t group_count,
                          spread_fn *fn)
{
    size_t count = l->reading.layers;
    yaml_node list = yaml_find(l->doc, yaml_root(l->doc), key);
    bool *mine = calloc(2 * count, sizeof *mine);
    if (!mine)
        return diag_no_memory(l->dg);
    bool *taken = mine + count;
    enum status st = ST_OK;
    for (size_t i = 0; i < group_count && st == ST_OK; i++)
        st = fn(l, yaml_item(l->doc, list, i), i, mine, taken);
    for (size_t i = 0; i < count && st == ST_OK; i++)
        if (!taken[i])
            st = yaml_error(l->doc, list, l->dg, "layer %zu is in no group of '%s'", i, key);
    free(mine);
    return st;
}

enum status desc_model_formats(struct model *m, const char *standard,
                               const char *const format[GROUP_MAX], struct diag *dg)
{
    enum status st = ST_OK;
    m->native = (struct quant_mix){0};
    for (int g = 0; g < GROUP_MAX && st == ST_OK; g++)
        st = quant_mix_set(&m->native, g, format[g] ? format[g] : standard, dg);
    m->native.name = "native";
    return st;
}

enum status desc_model_complete(struct model *m, struct diag *dg)
{
    enum status st = model_check(m, dg);
    return st != ST_OK ? st : model_requantise(m, "native", dg);
}

/* The file's name without folder and ending. */
static char *stem(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = arena_text(arena, slash ? slash + 1 : path);
    char *dot = name ? strrchr(name, '.') : NULL;
    if (dot)
        *dot = 0;
    return name;
}

static enum status build(struct desc_loader *l)
{
    const struct model_reading *r = &l->reading;
    struct model *m = l->m;
    m->name = stem(&m->arena, yaml_name(l->doc));
    m->origin = arena_text(&m->arena, yaml_name(l->doc));
    m->title = r->title;
    m->source = r->source;
    m->note = r->note;
    m->router = r->router;
    m->grade = model_grades[r->grade];
    m->hidden = r->hidden;
    m->vocab = r->vocab;
    m->positions = r->positions;
    m->max_context = r->max_context;
    m->tied_embeddings = r->tied_embeddings;
    m->layer_count = r->layers;
    m->layers = arena_alloc(&m->arena, r->layers * sizeof *m->layers);
    if (!m->name || !m->origin || !m->layers)
        return diag_no_memory(l->dg);
    enum status st = spread(l, "attention", r->attention.count, spread_attention);
    if (st == ST_OK)
        st = spread(l, "ffn", r->ffn.count, spread_ffn);
    if (st != ST_OK)
        return st;
    yaml_node formats = yaml_find(l->doc, yaml_root(l->doc), "formats");
    st = desc_model_formats(m, r->format_default, r->format, l->dg);
    return st != ST_OK ? at_node(l, formats) : desc_model_complete(m, l->dg);
}

enum status desc_model_load(struct model **out, const char *path, const char *const *overrides,
                            size_t override_count, struct diag *dg)
{
    struct yaml_doc *doc = NULL;
    enum status st = yaml_open(&doc, path, dg);
    for (size_t i = 0; i < override_count && st == ST_OK; i++)
        st = override(doc, overrides[i], dg);
    if (st != ST_OK) {
        yaml_close(doc);
        return st;
    }
    struct desc_loader l = {.m = calloc(1, sizeof *l.m), .doc = doc, .dg = dg};
    if (!l.m) {
        yaml_close(doc);
        return diag_no_memory(dg);
    }
    st = yaml_read(doc, yaml_root(doc), model_fields, &l.reading, &l.m->arena, dg);
    if (st == ST_OK)
        st = build(&l);
    yaml_close(doc);
    if (st != ST_OK) {
        model_free(l.m);
        return st;
    }
    *out = l.m;
    return ST_OK;
}
