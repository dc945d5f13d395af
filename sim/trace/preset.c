/* preset.c -- see preset.h. One table describes the parameters: it is the reader's list of keys, their
 * limits, and the map from a value to the member of struct generate_params. */
#include "sim/trace/preset.h"

#include "base/nearest.h"
#include "base/yaml.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX    ".yaml"
#define RATIO_ONE UINT64_C(1000000000)

/* What a file says, before it is checked as a whole. */
struct preset_file {
    struct value values[PRESET_VALUES];
    const char *title, *source;
    struct preset_setting setting;
    struct yaml_list targets;
};

static const struct yaml_field setting_fields[] = {
    {.key = "layers",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct preset_setting, layers),
     .required = true,
     .min = 1,
     .max = TRACE_LAYERS_MAX},
    {.key = "experts",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct preset_setting, experts),
     .required = true,
     .min = 1,
     .max = TRACE_EXPERTS_MAX},
    {.key = "top_k",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct preset_setting, top_k),
     .required = true,
     .min = 1,
     .max = GENERATE_TOP_K_MAX},
    {.key = "turns",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct preset_setting, turns),
     .required = true,
     .min = 1,
     .max = 1000000},
    {.key = "prompt",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct preset_setting, prompt),
     .required = true,
     .max = 1000000},
    {.key = "tokens",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct preset_setting, tokens),
     .required = true,
     .max = 1000000},
    {.key = "expert_bytes",
     .type = YAML_TYPE_QUANTITY,
     .dim = DIM_SIZE,
     .offset = offsetof(struct preset_setting, expert_bytes)},
    {0}};

static const struct yaml_field target_fields[] = {
    {.key = "measure",
     .type = YAML_TYPE_TEXT,
     .offset = offsetof(struct preset_target, measure),
     .required = true},
    {.key = "value",
     .type = YAML_TYPE_VALUE,
     .dim = DIM_RATIO,
     .offset = offsetof(struct preset_target, value),
     .required = true},
    {.key = "tolerance",
     .type = YAML_TYPE_QUANTITY,
     .dim = DIM_RATIO,
     .offset = offsetof(struct preset_target, tolerance),
     .required = true},
    {0}};

#define PARAMETER(index, name, dimension_, low, high, text)                                        \
    [index] = {.key = (name),                                                                      \
               .type = YAML_TYPE_VALUE,                                                            \
               .offset = offsetof(struct preset_file, values) + (index) * sizeof(struct value),    \
               .dim = (dimension_),                                                                \
               .min = (low),                                                                       \
               .max = (high),                                                                      \
               .help = (text)}
#define SHARE(index, name, text) PARAMETER(index, name, DIM_RATIO, 0, RATIO_ONE, text)

/* The parameters, in the order of enum preset_value, then the rest. */
static const struct yaml_field fields[] = {
    PARAMETER(PRESET_ROUTER_SEED, "router_seed", DIM_COUNT, 0, 0, "which router, among equals"),
    PARAMETER(PRESET_DIMENSION, "dimension", DIM_COUNT, 0, GENERATE_DIMENSION_MAX,
              "numbers in a token's state; 0: independent uniform choices"),
    SHARE(PRESET_CONTEXT_SHARE, "context_share", "variance due to what was said just before"),
    SHARE(PRESET_SEQUENCE_SHARE, "sequence_share", "variance due to what the turn is about"),
    SHARE(PRESET_DOMAIN_SHARE, "domain_share", "variance due to the domain of the passage"),
    SHARE(PRESET_TOKEN_SHARE, "token_share", "variance due to the token itself"),
    SHARE(PRESET_LAYER_SHARE, "layer_share", "variance that is fresh in every layer"),
    PARAMETER(PRESET_CONTEXT_MEMORY, "context_memory", DIM_RATIO, 0, RATIO_ONE - 1,
              "correlation of the context with itself one token later"),
    PARAMETER(PRESET_DOMAINS, "domains", DIM_COUNT, 1, 4096, "domains the text moves among"),
    PARAMETER(PRESET_DOMAIN_SWITCH, "domain_switch", DIM_RATIO, 0, RATIO_ONE,
              "probability that a token leaves its domain"),
    PARAMETER(PRESET_TOKEN_CLASSES, "token_classes", DIM_COUNT, 1, 65536, "kinds of token"),
    PARAMETER(PRESET_TOKEN_EXPONENT, "token_exponent", DIM_RATIO, 0, 4 * RATIO_ONE,
              "Zipf exponent of their frequencies"),
    PARAMETER(PRESET_LAYER_MEMORY, "layer_memory", DIM_RATIO, 0, RATIO_ONE,
              "cosine of the angle between the states of neighbouring layers"),
    PARAMETER(PRESET_EXPERT_SPREAD, "expert_spread", DIM_RATIO, 0, 8 * RATIO_ONE,
              "deviation of the experts' biases, in deviations of a logit"),
    PARAMETER(PRESET_SHARPNESS, "sharpness", DIM_RATIO, 0, 64 * RATIO_ONE,
              "how far the weights of the chosen differ"),
    {.key = "title",
     .type = YAML_TYPE_TEXT,
     .offset = offsetof(struct preset_file, title),
     .required = true},
    {.key = "source",
     .type = YAML_TYPE_TEXT,
     .offset = offsetof(struct preset_file, source),
     .required = true},
    {.key = "setting",
     .type = YAML_TYPE_MAP,
     .offset = offsetof(struct preset_file, setting),
     .required = true,
     .fields = setting_fields},
    {.key = "targets",
     .type = YAML_TYPE_LIST,
     .offset = offsetof(struct preset_file, targets),
     .required = true,
     .fields = target_fields,
     .item_bytes = sizeof(struct preset_target)},
    {0}};

#define MEMBER(name) offsetof(struct generate_params, name)
static const size_t param_offset[PRESET_VALUES] = {
    [PRESET_ROUTER_SEED] = MEMBER(router_seed),
    [PRESET_DIMENSION] = MEMBER(dimension),
    [PRESET_CONTEXT_SHARE] = MEMBER(context_share),
    [PRESET_SEQUENCE_SHARE] = MEMBER(sequence_share),
    [PRESET_DOMAIN_SHARE] = MEMBER(domain_share),
    [PRESET_TOKEN_SHARE] = MEMBER(token_share),
    [PRESET_LAYER_SHARE] = MEMBER(layer_share),
    [PRESET_CONTEXT_MEMORY] = MEMBER(context_memory),
    [PRESET_DOMAINS] = MEMBER(domains),
    [PRESET_DOMAIN_SWITCH] = MEMBER(domain_switch),
    [PRESET_TOKEN_CLASSES] = MEMBER(token_classes),
    [PRESET_TOKEN_EXPONENT] = MEMBER(token_exponent),
    [PRESET_LAYER_MEMORY] = MEMBER(layer_memory),
    [PRESET_EXPERT_SPREAD] = MEMBER(expert_spread),
    [PRESET_SHARPNESS] = MEMBER(sharpness),
};

const char *preset_value_key(enum preset_value v)
{
    return fields[v].key;
}

/* ---- reading ---- */

/* A state needs all of its parameters, no state needs none. */
static enum status check_given(const struct yaml_doc *doc, const struct preset_file *f,
                               struct diag *dg)
{
    const struct value *dimension = &f->values[PRESET_DIMENSION];
    for (size_t i = 0; i < PRESET_VALUES; i++) {
        bool wanted = i <= PRESET_DIMENSION || dimension->amount > 0;
        if (wanted && !f->values[i].given)
            return yaml_error(doc, yaml_root(doc), dg, "key '%s' is missing", fields[i].key);
        if (!wanted && f->values[i].given)
            return yaml_error(doc, yaml_find(doc, yaml_root(doc), fields[i].key), dg,
                              "'%s' means nothing with dimension 0", fields[i].key);
    }
    return ST_OK;
}

static enum status read_document(const struct yaml_doc *doc, struct preset *p, struct diag *dg)
{
    struct preset_file f = {0};
    enum status st = yaml_read(doc, yaml_root(doc), fields, &f, &p->arena, dg);
    if (st == ST_OK)
        st = check_given(doc, &f, dg);
    if (st != ST_OK)
        return st;
    memcpy(p->values, f.values, sizeof p->values);
    for (size_t i = 0; i < PRESET_VALUES; i++)
        memcpy((char *)&p->params + param_offset[i], &p->values[i].amount, sizeof(uint64_t));
    p->title = f.title;
    p->source = f.source;
    p->setting = f.setting;
    p->targets = f.targets.items;
    p->target_count = f.targets.count;
    struct diag why;
    st = generate_check(&p->params, &why);
    return st == ST_OK ? ST_OK : diag_set(dg, st, "%s: %s", yaml_name(doc), why.text);
}

static enum status load_path(struct preset **out, const char *path, const char *const *overrides,
                             size_t override_count, struct diag *dg)
{
    struct yaml_doc *doc = NULL;
    struct preset *p = calloc(1, sizeof *p);
    if (!p)
        return diag_no_memory(dg);
    const char *slash = strrchr(path, '/');
    char *name = arena_text(&p->arena, slash ? slash + 1 : path);
    p->origin = arena_text(&p->arena, path);
    enum status st = name && p->origin ? yaml_open(&doc, path, dg) : diag_no_memory(dg);
    for (size_t i = 0; i < override_count && st == ST_OK; i++) {
        const char *equals = strchr(overrides[i], '=');
        char *key = equals ? strndup(overrides[i], (size_t)(equals - overrides[i])) : NULL;
        if (!equals)
            st = diag_set(dg, ST_USAGE, "--set %s: expected PATH=VALUE", overrides[i]);
        else
            st = key ? yaml_set(doc, key, equals + 1, dg) : diag_no_memory(dg);
        free(key);
    }
    if (st == ST_OK) {
        name[strlen(name) - strlen(SUFFIX)] = 0;
        p->name = name;
        st = read_document(doc, p, dg);
    }
    yaml_close(doc);
    if (st == ST_OK)
        *out = p;
    else
        preset_free(p);
    return st;
}

static bool ends_with_suffix(const char *text)
{
    size_t n = strlen(text), s = strlen(SUFFIX);
    return n > s && !strcmp(text + n - s, SUFFIX);
}

/* The reason names the nearest preset there is. */
static enum status no_such_preset(const char *name, const char *catalogue, struct diag *dg)
{
    DIR *dir = opendir(catalogue);
    if (!dir)
        return diag_errno(dg, catalogue, "cannot list the routing presets");
    struct arena arena = {0};
    const char *names[256];
    size_t count = 0;
    for (const struct dirent *e; count < 256 && (e = readdir(dir));)
        if (ends_with_suffix(e->d_name)) {
            char *text = arena_text(&arena, e->d_name);
            if (!text)
                break;
            text[strlen(text) - strlen(SUFFIX)] = 0;
            names[count++] = text;
        }
    closedir(dir);
    const char *near = nearest_name(name, names, count);
    enum status st = diag_set(dg, ST_MISSING, "no routing preset '%s' in %s%s%s%s", name, catalogue,
                              near ? "; nearest is '" : "", near ? near : "", near ? "'" : "");
    arena_free(&arena);
    return st;
}

enum status preset_load(struct preset **out, const char *preset, const char *catalogue,
                        const char *const *overrides, size_t override_count, struct diag *dg)
{
    *out = NULL;
    if (ends_with_suffix(preset))
        return load_path(out, preset, overrides, override_count, dg);
    char path[4096];
    if (!catalogue || strchr(preset, '/') ||
        snprintf(path, sizeof path, "%s/%s" SUFFIX, catalogue, preset) >= (int)sizeof path)
        return diag_set(dg, ST_MISSING, "'%s': expected a preset's name or a path ending in %s",
                        preset, SUFFIX);
    if (access(path, F_OK) != 0)
        return no_such_preset(preset, catalogue, dg);
    return load_path(out, path, overrides, override_count, dg);
}

void preset_free(struct preset *p)
{
    if (!p)
        return;
    arena_free(&p->arena);
    free(p);
}
