/* model.c -- the life of a model: where MODEL is looked for, and the sums over its layers. */
#include "models/model.h"

#include "base/nearest.h"
#include "models/desc_model.h"
#include "models/gguf_model.h"
#include "models/hf_config.h"
#include "models/shape.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *tensor_group_name(enum tensor_group g)
{
    static const char *const names[GROUP_MAX] = {"embedding",     "head",   "attention",
                                                 "indexer",       "router", "dense_ffn",
                                                 "shared_expert", "expert", "other"};
    return names[g];
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcasecmp(text + n - k, end) == 0;
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum status model_catalogue(char ***names, size_t *count, const char *catalogue, struct diag *dg)
{
    *names = NULL;
    *count = 0;
    DIR *dir = opendir(catalogue);
    if (!dir)
        return diag_errno(dg, catalogue, "cannot list the model descriptions");
    enum status st = ST_OK;
    struct dirent *entry;
    while (st == ST_OK && (entry = readdir(dir))) {
        if (!ends_with(entry->d_name, ".yaml"))
            continue;
        char **more = realloc(*names, (*count + 1) * sizeof *more);
        if (more)
            *names = more;
        char *name = more ? strndup(entry->d_name, strlen(entry->d_name) - 5) : NULL;
        if (name)
            more[(*count)++] = name;
        else
            st = diag_no_memory(dg);
    }
    closedir(dir);
    if (st != ST_OK) {
        free_names(*names, *count);
        *names = NULL;
        *count = 0;
        return st;
    }
    if (*count)
        qsort(*names, *count, sizeof **names, by_name);
    return ST_OK;
}

void model_catalogue_free(char **names, size_t count)
{
    free_names(names, count);
}

static enum status no_such_model(const char *name, const char *catalogue, struct diag *dg)
{
    char **names;
    size_t count;
    enum status st = model_catalogue(&names, &count, catalogue, dg);
    if (st != ST_OK)
        return st;
    const char *near = nearest_name(name, (const char *const *)names, count);
    st = diag_set(dg, ST_MISSING, "no model '%s' in %s%s%s%s", name, catalogue,
                  near ? "; nearest is '" : "", near ? near : "", near ? "'" : "");
    free_names(names, count);
    return st;
}

static enum status load_named(struct model **out, const char *name, const char *catalogue,
                              const char *const *overrides, size_t override_count, struct diag *dg)
{
    if (!catalogue || strchr(name, '/'))
        return diag_set(dg, ST_MISSING,
                        "'%s': expected a path that ends in .yaml, .json or .gguf, or a name",
                        name);
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.yaml", catalogue, name) >= (int)sizeof path)
        return diag_set(dg, ST_MISSING, "model name is too long");
    if (access(path, F_OK) != 0)
        return no_such_model(name, catalogue, dg);
    return desc_model_load(out, path, overrides, override_count, dg);
}

enum status model_load(struct model **out, const char *model, const char *catalogue,
                       const char *const *overrides, size_t override_count, struct diag *dg)
{
    if (ends_with(model, ".yaml") || ends_with(model, ".yml"))
        return desc_model_load(out, model, overrides, override_count, dg);
    bool json = ends_with(model, ".json"), gguf = ends_with(model, ".gguf");
    if (!json && !gguf)
        return load_named(out, model, catalogue, overrides, override_count, dg);
    if (override_count)
        return diag_set(
            dg, ST_UNSUPPORTED,
            "%s: only a description can be overridden; 'memwall model import' makes one", model);
    return json ? hf_config_load(out, model, dg) : gguf_model_load(out, model, dg);
}

void model_free(struct model *m)
{
    if (!m)
        return;
    arena_free(&m->arena);
    free(m);
}

/* Tells the mix what its rules ask about the model. */
static void inform_mix(struct quant_mix *mix, const struct model *m)
{
    mix->experts = model_experts(m);
    mix->heads_per_kv = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct attention *a = &m->layers[i].attention;
        if (a->family == ATTENTION_GQA && a->heads / a->kv_heads > mix->heads_per_kv)
            mix->heads_per_kv = a->heads / a->kv_heads;
    }
}

static enum status refuse_exact(const struct model *m, const char *quant, struct diag *dg)
{
    if (!m->bytes_exact)
        return ST_OK;
    return diag_set(dg, ST_UNSUPPORTED,
                    "%s: a GGUF file is what it is; its bytes cannot be re-derived for '%s'",
                    m->origin, quant);
}

enum status model_requantise_experts(struct model *m, const char *format, struct diag *dg)
{
    const char *before = m->quant.name;
    enum status st = refuse_exact(m, format, dg);
    if (st == ST_OK)
        st = quant_mix_set(&m->quant, GROUP_EXPERT, format, dg);
    if (st != ST_OK)
        return st;
    const char *experts = m->quant.group[GROUP_EXPERT]->name;
    char *name = arena_alloc(&m->arena, strlen(before) + strlen(experts) + 16);
    if (!name)
        return diag_no_memory(dg);
    sprintf(name, "%s+%s-experts", before, experts);
    m->quant.name = name;
    return shape_fill(m, dg);
}

enum status model_requantise(struct model *m, const char *quant, struct diag *dg)
{
    enum status exact = refuse_exact(m, quant, dg);
    if (exact != ST_OK)
        return exact;
    struct quant_mix mix = m->native;
    if (strcasecmp(quant, "native") != 0) {
        enum status st = quant_mix_find(&mix, quant, dg);
        if (st != ST_OK)
            return st;
    }
    inform_mix(&mix, m);
    m->quant = mix;
    return shape_fill(m, dg);
}

static uint64_t layer_params(const struct layer *l)
{
    uint64_t sum = 0;
    for (int g = 0; g < GROUP_MAX; g++)
        if (g != GROUP_INDEXER || !l->attention.index_untotalled)
            sum += l->params[g];
    return sum;
}

uint64_t model_params_total(const struct model *m)
{
    uint64_t sum = m->params_embedding + m->params_head + m->params_final;
    for (size_t i = 0; i < m->layer_count; i++)
        sum += layer_params(&m->layers[i]);
    return sum;
}

uint64_t model_params_active(const struct model *m)
{
    uint64_t sum = m->tied_embeddings ? m->params_embedding : m->params_head;
    sum += m->params_final;
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct layer *l = &m->layers[i];
        uint64_t idle = l->ffn.experts - l->ffn.top_k;
        sum += layer_params(l) - idle * (l->expert_params + l->expert_bias_params);
    }
    return sum;
}

uint64_t model_weight_bytes(const struct model *m)
{
    uint64_t sum = m->bytes_embedding + m->bytes_head + m->bytes_final;
    for (size_t i = 0; i < m->layer_count; i++)
        for (int g = 0; g < GROUP_MAX; g++)
            sum += m->layers[i].weight_bytes[g];
    return sum;
}

uint64_t model_expert_bytes_max(const struct model *m)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].expert_bytes > most)
            most = m->layers[i].expert_bytes;
    return most;
}

uint64_t model_experts_bytes(const struct model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        sum += m->layers[i].weight_bytes[GROUP_EXPERT];
    return sum;
}

uint64_t model_token_cycle_bytes(const struct model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        sum += m->layers[i].ffn.top_k * m->layers[i].expert_bytes;
    return sum;
}

uint64_t model_moe_layers(const struct model *m)
{
    uint64_t count = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        count += m->layers[i].ffn.experts > 0;
    return count;
}

uint64_t model_experts(const struct model *m)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].ffn.experts > most)
            most = m->layers[i].ffn.experts;
    return most;
}

uint64_t model_top_k(const struct model *m)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].ffn.top_k > most)
            most = m->layers[i].ffn.top_k;
    return most;
}
