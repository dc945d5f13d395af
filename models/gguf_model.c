/* gguf_model.c -- see gguf_model.h: the model as a whole, and the sums over its tensors. */
#include "models/gguf_model.h"

#include "models/gguf_attention.h"
#include "models/gguf_ffn.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMATS_MAX 64

/* A tensor's name without "blk.N."; *layer is N, or SIZE_MAX if it belongs to no layer. */
static struct gguf_text split_name(struct gguf_text name, size_t *layer)
{
    *layer = SIZE_MAX;
    if (name.length < 6 || memcmp(name.data, "blk.", 4))
        return name;
    size_t i = 4, number = 0;
    while (i < name.length && isdigit((unsigned char)name.data[i]) && number < SIZE_MAX / 100)
        number = 10 * number + (size_t)(name.data[i++] - '0');
    if (i == 4 || i + 1 >= name.length || name.data[i] != '.')
        return name;
    *layer = number;
    return (struct gguf_text){name.data + i + 1, name.length - i - 1};
}

static bool starts_with(struct gguf_text t, const char *prefix)
{
    size_t n = strlen(prefix);
    return t.length >= n && !memcmp(t.data, prefix, n);
}

static bool ends_with(struct gguf_text t, const char *suffix)
{
    size_t n = strlen(suffix);
    return t.length >= n && !memcmp(t.data + t.length - n, suffix, n);
}

static bool is_vector(const struct gguf_tensor *t)
{
    for (int d = 0; d < GGUF_DIMS_MAX; d++)
        if (t->extent[d] == t->weights)
            return true;
    return false;
}

enum tensor_group gguf_model_group(const struct gguf_tensor *t, struct gguf_text name)
{
    static const struct {
        const char *prefix;
        enum tensor_group group;
    } rules[] = {
        {"ffn_gate_inp_shexp", GROUP_OTHER},
        {"ffn_gate_inp", GROUP_ROUTER},
        {"ffn_gate_exps", GROUP_EXPERT},
        {"ffn_up_exps", GROUP_EXPERT},
        {"ffn_down_exps", GROUP_EXPERT},
        {"ffn_gate_up_exps", GROUP_EXPERT},
        {"ffn_gate_shexp", GROUP_SHARED_EXPERT},
        {"ffn_up_shexp", GROUP_SHARED_EXPERT},
        {"ffn_down_shexp", GROUP_SHARED_EXPERT},
        {"ffn_gate_up_shexp", GROUP_SHARED_EXPERT},
        {"ffn_gate_tid2eid", GROUP_OTHER},
        {"ffn_", GROUP_DENSE_FFN},
        {"attn_", GROUP_ATTENTION},
        {"ssm_", GROUP_ATTENTION},
        {"shortconv.", GROUP_ATTENTION},
        {"time_mix_", GROUP_ATTENTION},
    };
    if (starts_with(name, "indexer")) /* indexer.proj, indexer_compressor_kv ... */
        return GROUP_INDEXER;
    if (!ends_with(name, ".weight"))
        return GROUP_OTHER;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (starts_with(name, rules[i].prefix))
            return is_vector(t) && rules[i].group != GROUP_EXPERT ? GROUP_OTHER : rules[i].group;
    return GROUP_OTHER;
}

/* Bytes by group and format, to name the mix afterwards. */
struct census {
    uint64_t bytes[GROUP_MAX][FORMATS_MAX];
};

static size_t format_idx(const struct quant_format *f)
{
    size_t i = 0;
    while (quant_at(i) != f)
        i++;
    assert(i < FORMATS_MAX);
    return i;
}

static enum tensor_group add_end_tensor(struct model *m, const struct gguf_tensor *t)
{
    if (starts_with(t->name, "token_embd.") || starts_with(t->name, "position_embd.") ||
        starts_with(t->name, "per_layer_token_embd.")) {
        m->params_embedding += t->weights;
        m->bytes_embedding += t->bytes;
        return GROUP_EMBEDDING;
    }
    if (gguf_text_is(t->name, "output.weight")) {
        m->params_head += t->weights;
        m->bytes_head += t->bytes;
        return GROUP_HEAD;
    }
    m->params_final += t->weights;
    m->bytes_final += t->bytes;
    return GROUP_OTHER;
}

static enum status add_tensors(struct gguf_import *c, struct census *census)
{
    for (size_t i = 0; i < gguf_tensor_count(c->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(c->g, i);
        size_t layer;
        struct gguf_text name = split_name(t->name, &layer);
        if (layer != SIZE_MAX && layer >= c->block_count)
            return diag_set(c->dg, ST_PARSE, "%s: tensor '%.*s' is beyond block_count, %zu",
                            gguf_file_path(c->g, t->file), (int)t->name.length, t->name.data,
                            c->block_count);
        enum tensor_group group;
        if (layer == SIZE_MAX) {
            group = add_end_tensor(c->m, t);
        } else if (layer >= c->m->layer_count || starts_with(name, "nextn.")) {
            continue;
        } else {
            group = gguf_model_group(t, name);
            c->m->layers[layer].params[group] += t->weights;
            c->m->layers[layer].weight_bytes[group] += t->bytes;
        }
        census->bytes[group][format_idx(t->format)] += t->bytes;
    }
    return ST_OK;
}

/* Names of general.file_type, the enum llama_ftype of llama.cpp. */
const char *gguf_model_file_type(uint64_t type)
{
    static const char *const names[] = {
        [0] = "f32",      [1] = "f16",      [2] = "q4_0",      [3] = "q4_1",    [7] = "q8_0",
        [8] = "q5_0",     [9] = "q5_1",     [10] = "q2_k",     [11] = "q3_k_s", [12] = "q3_k_m",
        [13] = "q3_k_l",  [14] = "q4_k_s",  [15] = "q4_k_m",   [16] = "q5_k_s", [17] = "q5_k_m",
        [18] = "q6_k",    [19] = "iq2_xxs", [20] = "iq2_xs",   [21] = "q2_k_s", [22] = "iq3_xs",
        [23] = "iq3_xxs", [24] = "iq1_s",   [25] = "iq4_nl",   [26] = "iq3_s",  [27] = "iq3_m",
        [28] = "iq2_s",   [29] = "iq2_m",   [30] = "iq4_xs",   [31] = "iq1_m",  [32] = "bf16",
        [36] = "tq1_0",   [37] = "tq2_0",   [38] = "mxfp4_moe"};
    return type < sizeof names / sizeof *names ? names[type] : NULL;
}

static void name_mix(const struct gguf_import *c, const struct census *census)
{
    struct quant_mix *mix = &c->m->quant;
    size_t matrix_formats = 0;
    uint64_t most_of_all = 0;
    const char *widest = "f32";
    for (size_t f = 0; f < quant_count(); f++) {
        uint64_t bytes = 0;
        for (int g = 0; g < GROUP_MAX; g++) {
            if (g != GROUP_ROUTER && g != GROUP_OTHER)
                bytes += census->bytes[g][f];
            uint64_t most = mix->group[g] ? census->bytes[g][format_idx(mix->group[g])] : 0;
            if (census->bytes[g][f] > most)
                mix->group[g] = quant_at(f);
        }
        matrix_formats += bytes > 0;
        if (bytes > most_of_all) {
            most_of_all = bytes;
            widest = quant_at(f)->name;
        }
    }
    uint64_t type = UINT64_MAX;
    gguf_u64(c->g, "general.file_type", &type);
    const char *declared = gguf_model_file_type(type);
    mix->name = declared ? declared : matrix_formats > 1 ? "mixed" : widest;
    if (!mix->group[GROUP_HEAD])
        mix->group[GROUP_HEAD] = mix->group[GROUP_EMBEDDING];
    for (int g = 0; g < GROUP_MAX; g++)
        if (!mix->group[g])
            mix->group[g] = quant_find("f32");
    mix->plain_groups = (1u << GROUP_MAX) - 1;
    c->m->native = *mix;
}

/* The file's name without folder, ".gguf" and "-00001-of-00003". */
static char *stem_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *stem = arena_text(arena, slash ? slash + 1 : path);
    if (!stem)
        return NULL;
    size_t n = strlen(stem);
    if (n > 5 && !strcmp(stem + n - 5, ".gguf"))
        stem[n -= 5] = 0;
    unsigned part, parts;
    int used = 0;
    if (n > 15 && sscanf(stem + n - 15, "-%5u-of-%5u%n", &part, &parts, &used) == 2 && used == 15)
        stem[n - 15] = 0;
    return stem;
}

static enum status name_model(struct gguf_import *c)
{
    struct model *m = c->m;
    struct gguf_text title;
    const char *path = gguf_file_path(c->g, 0);
    char *slug = stem_of(&m->arena, path);
    m->origin = arena_text(&m->arena, path);
    m->source = "GGUF header";
    m->grade = "A";
    char *name = NULL;
    if (gguf_get_text(c->g, "general.name", &title) && title.length > 0 && title.length < 4096)
        name = arena_alloc(&m->arena, title.length + 1);
    else if (slug)
        title = (struct gguf_text){slug, strlen(slug)}, name = arena_text(&m->arena, slug);
    if (!slug || !name || !m->origin)
        return diag_no_memory(c->dg);
    for (size_t i = 0; i < title.length; i++)
        name[i] = iscntrl((unsigned char)title.data[i]) ? ' ' : title.data[i];
    for (char *p = slug; *p; p++)
        *p = isalnum((unsigned char)*p) || *p == '.' ? (char)tolower((unsigned char)*p) : '-';
    m->title = name;
    m->name = slug;
    return ST_OK;
}

static enum status find_architecture(struct gguf_import *c)
{
    struct gguf_text name;
    const char *path = gguf_file_path(c->g, 0);
    if (!gguf_get_text(c->g, "general.architecture", &name))
        return diag_set(c->dg, ST_PARSE, "%s: metadata key 'general.architecture' is missing",
                        path);
    c->architecture = gguf_architecture_find(name);
    if (c->architecture)
        return ST_OK;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(name.length < 60 ? name.length : 60), name.data);
    const char *near = gguf_architecture_nearest(text);
    return diag_set(c->dg, ST_UNSUPPORTED, "%s: architecture '%s' is not known%s%s%s", path, text,
                    near ? "; nearest is '" : "", near ? near : "", near ? "'" : "");
}

/* Layers, width, vocabulary and context. */
static enum status read_outline(struct gguf_import *c)
{
    struct model *m = c->m;
    uint64_t blocks = 0, predicted = 0;
    enum status s = gguf_need(c, "block_count", gguf_tensor_count(c->g), &blocks);
    gguf_read(c, "nextn_predict_layers", UINT32_MAX, &predicted, &s);
    if (!s)
        s = gguf_need(c, "embedding_length", UINT32_MAX, &m->hidden);
    if (!s)
        s = gguf_need(c, "context_length", UINT32_MAX, &m->max_context);
    if (s)
        return s;
    const struct gguf_tensor *embedding = gguf_tensor_find(c->g, "token_embd.weight");
    const struct gguf_tensor *positions = gguf_tensor_find(c->g, "position_embd.weight");
    const char *path = gguf_file_path(c->g, 0);
    if (!embedding)
        return diag_set(c->dg, ST_PARSE, "%s: tensor 'token_embd.weight' is missing", path);
    if (embedding->extent[0] != m->hidden)
        return diag_set(c->dg, ST_PARSE,
                        "%s: token_embd.weight has rows of %" PRIu64
                        ", embedding_length is %" PRIu64,
                        path, embedding->extent[0], m->hidden);
    if (predicted >= blocks)
        return diag_set(c->dg, ST_PARSE, "%s: block_count must be above nextn_predict_layers",
                        path);
    m->vocab = embedding->extent[1];
    m->positions = positions ? positions->extent[1] : 0;
    m->tied_embeddings = !gguf_tensor_find(c->g, "output.weight");
    c->block_count = (size_t)blocks;
    m->layer_count = (size_t)(blocks - predicted);
    m->layers = arena_alloc(&m->arena, m->layer_count * sizeof *m->layers);
    return m->layers ? ST_OK : diag_no_memory(c->dg);
}

static enum status fill_layers(struct gguf_import *c)
{
    enum status s = ST_OK;
    for (size_t i = 0; i < c->m->layer_count && !s; i++) {
        const struct layer *l = &c->m->layers[i];
        uint64_t params = 0;
        for (int g = 0; g < GROUP_MAX; g++)
            params += l->params[g];
        if (params == 0)
            return diag_set(c->dg, ST_PARSE, "%s: layer %zu of %zu has no tensors",
                            gguf_file_path(c->g, 0), i, c->m->layer_count);
        s = gguf_attention_fill(c, i);
        if (!s)
            s = gguf_ffn_fill(c, i);
    }
    return s;
}

static enum status import(struct gguf_import *c)
{
    struct census *census = calloc(1, sizeof *census);
    if (!census)
        return diag_no_memory(c->dg);
    enum status s = find_architecture(c);
    if (!s)
        s = read_outline(c);
    if (!s)
        s = add_tensors(c, census);
    if (!s)
        s = fill_layers(c);
    if (!s)
        s = name_model(c);
    if (!s)
        name_mix(c, census);
    free(census);
    c->m->bytes_exact = true;
    for (size_t i = 0; i < gguf_file_count(c->g); i++)
        c->m->file_bytes += gguf_file_bytes(c->g, i);
    return s;
}

enum status gguf_model_import(struct model **out, const struct gguf *g, struct diag *dg)
{
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return diag_no_memory(dg);
    struct gguf_import c = {.g = g, .m = m, .dg = dg};
    enum status s = import(&c);
    if (s)
        model_free(m);
    else
        *out = m;
    return s;
}

enum status gguf_model_load(struct model **out, const char *path, struct diag *dg)
{
    struct gguf *g;
    enum status s = gguf_open(&g, path, dg);
    if (s)
        return s;
    s = gguf_model_import(out, g, dg);
    gguf_close(g);
    return s;
}
