/* hf_config.c -- see hf_config.h: what all families share, and the choice of the family. */
#include "models/hf_config.h"

#include "models/desc_model.h"
#include "models/hf_families.h"
#include "models/hf_quant.h"
#include "models/model_schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct hf_family *find_family(const char *model_type)
{
    for (const struct hf_family *f = hf_families; model_type && f->model_type; f++)
        if (strcmp(f->model_type, model_type) == 0)
            return f;
    return NULL;
}

/* The outer model_type, or that of the text part where the outer one is only a wrapper. */
static const struct hf_family *choose_family(struct hf *h)
{
    const char *outer = json_text(json_get(h->root, "model_type"));
    const char *inner = json_text(json_get(h->text, "model_type"));
    h->model_type = outer ? outer : inner;
    if (!h->model_type) {
        h->model_type = "none";
        hf_fail(h, ST_MISSING, "missing field 'model_type'");
        return NULL;
    }
    const struct hf_family *f = find_family(outer);
    if (!f)
        f = find_family(inner);
    if (!f)
        h->status =
            diag_set(h->dg, ST_UNSUPPORTED, "%s: unknown model_type '%s'", h->path, h->model_type);
    return f;
}

/* "…/ORG--NAME.json" is NAME, "…/NAME/config.json" too. */
static const char *title_from_path(struct arena *arena, const char *path)
{
    char *copy = arena_text(arena, path);
    if (!copy)
        return NULL;
    char *slash = strrchr(copy, '/');
    char *base = slash ? slash + 1 : copy;
    if (strcmp(base, "config.json") == 0 && slash && slash > copy) {
        *slash = 0;
        slash = strrchr(copy, '/');
        base = slash ? slash + 1 : copy;
    } else {
        base[strlen(base) - strlen(".json")] = 0;
    }
    char *organisation = strstr(base, "--");
    return organisation && organisation[2] ? organisation + 2 : base;
}

static const char *slug(struct arena *arena, const char *title)
{
    char *name = arena_text(arena, title);
    for (char *c = name; c && *c; c++)
        *c = isspace((unsigned char)*c) ? '-' : (char)tolower((unsigned char)*c);
    return name;
}

static enum status name_model(struct hf *h)
{
    struct model *m = h->m;
    m->title = title_from_path(&m->arena, h->path);
    m->name = m->title ? slug(&m->arena, m->title) : NULL;
    m->origin = arena_text(&m->arena, h->path);
    m->source = m->origin;
    m->grade = "A";
    return m->name && m->origin ? ST_OK : diag_no_memory(h->dg);
}

static void read_sizes(struct hf *h, bool tied)
{
    struct model *m = h->m;
    m->hidden = hf_need(h, "hidden_size", NULL);
    m->vocab = hf_need(h, "vocab_size", NULL);
    m->max_context = hf_count(h, "max_position_embeddings", hf_count(h, "model_max_length", 0));
    const json_node *flag = json_get(h->root, "tie_word_embeddings");
    if (flag && !json_flag(flag, &tied))
        hf_fail(h, ST_PARSE, "'tie_word_embeddings': expected true or false");
    m->tied_embeddings = hf_flag(h, "tie_word_embeddings", tied);
    uint64_t layers = hf_need(h, "num_hidden_layers", NULL);
    if (h->status == ST_OK && (layers == 0 || layers > LAYERS_MAX))
        hf_fail(h, ST_RANGE, "'num_hidden_layers': %llu, expected 1 to %d",
                (unsigned long long)layers, LAYERS_MAX);
    if (h->status != ST_OK)
        return;
    m->layers = arena_alloc(&m->arena, layers * sizeof *m->layers);
    if (!m->layers)
        h->status = diag_no_memory(h->dg);
    else
        m->layer_count = layers;
}

static enum status read_config(struct hf *h)
{
    const json_node *inner = json_get(h->root, "text_config");
    h->text = inner && json_is_object(inner) ? inner : h->root;
    if (!json_is_object(h->root))
        return diag_set(h->dg, ST_PARSE, "%s: expected an object", h->path);
    const struct hf_family *family = choose_family(h);
    if (!family)
        return h->status;
    enum status st = name_model(h);
    if (st != ST_OK)
        return st;
    read_sizes(h, family->tied);
    if (h->status == ST_OK)
        family->read(h);
    if (h->status == ST_OK)
        hf_read_formats(h);
    return h->status != ST_OK ? h->status : desc_model_complete(h->m, h->dg);
}

enum status hf_config_load(struct model **out, const char *path, struct diag *dg)
{
    struct json_doc *doc;
    enum status st = json_open(&doc, path, dg);
    if (st != ST_OK)
        return st;
    struct hf h = {.m = calloc(1, sizeof *h.m), .path = path, .root = json_root(doc), .dg = dg};
    st = h.m ? read_config(&h) : diag_no_memory(dg);
    json_close(doc);
    if (st != ST_OK) {
        model_free(h.m);
        return st;
    }
    *out = h.m;
    return ST_OK;
}
