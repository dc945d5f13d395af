/* gguf_import.c -- see gguf_import.h. */
#include "models/gguf_import.h"

#include "base/nearest.h"

#include <inttypes.h>
#include <stdio.h>

/* Window patterns: set_swa_pattern calls of llama.cpp's model loaders. */
static const struct gguf_architecture architectures[] = {
    {.name = "llama"},
    {.name = "llama4", .window_period = 4, .window = 8192},
    {.name = "mistral3"},
    {.name = "mistral4"},
    {.name = "qwen2"},
    {.name = "qwen2moe"},
    {.name = "qwen3"},
    {.name = "qwen3moe"},
    {.name = "qwen3next"},
    {.name = "qwen35"},
    {.name = "qwen35moe"},
    {.name = "gpt-oss", .window_period = 2, .window_needed = true},
    {.name = "deepseek"},
    {.name = "deepseek2"},
    {.name = "deepseek32"},
    {.name = "deepseek4", .window_needed = true},
    {.name = "kimi-linear"},
    {.name = "kimi-k3"},
    {.name = "glm4"},
    {.name = "glm4moe"},
    {.name = "glm-dsa"},
    {.name = "minimax-m2"},
    {.name = "gemma"},
    {.name = "gemma2", .window_period = 2, .window_needed = true},
    {.name = "gemma3", .window_period = 6, .window_needed = true},
    {.name = "gemma4", .window_period = 6, .window_needed = true},
    {.name = "olmo"},
    {.name = "olmo2", .window_period = 4},
    {.name = "olmoe"},
    {.name = "phi2"},
    {.name = "phi3"},
    {.name = "phimoe"},
    {.name = "granite"},
    {.name = "granitemoe"},
    {.name = "granitehybrid"},
    {.name = "nemotron_h"},
    {.name = "nemotron_h_moe"},
    {.name = "lfm2"},
    {.name = "lfm2moe"},
    {.name = "bailingmoe"},
    {.name = "bailingmoe2"},
    {.name = "ernie4_5"},
    {.name = "ernie4_5-moe"},
    {.name = "hunyuan-dense"},
    {.name = "hunyuan-moe"},
    {.name = "dots1"},
    {.name = "grok"},
    {.name = "dbrx"},
    {.name = "command-r"},
    {.name = "cohere2", .window_period = 4, .window_needed = true},
    {.name = "exaone4", .window_period = 4},
    {.name = "exaone-moe", .window_period = 4, .window_needed = true},
    {.name = "smallthinker", .window_period = 4, .global_first = true, .window_needed = true},
    {.name = "afmoe", .window_period = 4, .window_needed = true},
    {.name = "mimo2", .window_needed = true},
    {.name = "step35", .window_needed = true},
    {.name = "seed_oss"},
    {.name = "smollm3"},
    {.name = "starcoder2"},
    {.name = "internlm2"},
    {.name = "stablelm"},
    {.name = "falcon"},
};
#define ARCHITECTURES (sizeof architectures / sizeof *architectures)

const struct gguf_architecture *gguf_architecture_find(struct gguf_text name)
{
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (gguf_text_is(name, architectures[i].name))
            return &architectures[i];
    return NULL;
}

const char *gguf_architecture_nearest(const char *name)
{
    const char *names[ARCHITECTURES];
    for (size_t i = 0; i < ARCHITECTURES; i++)
        names[i] = architectures[i].name;
    return nearest_name(name, names, ARCHITECTURES);
}

const char *gguf_full_key(char text[GGUF_KEY_MAX], const struct gguf_import *c, const char *key)
{
    snprintf(text, GGUF_KEY_MAX, "%s.%s", c->architecture->name, key);
    return text;
}

enum status gguf_key_error(const struct gguf_import *c, const char *key, const char *what)
{
    char text[GGUF_KEY_MAX];
    return diag_set(c->dg, ST_PARSE, "%s: metadata key '%s' %s", gguf_file_path(c->g, 0),
                    gguf_full_key(text, c, key), what);
}

bool gguf_read(const struct gguf_import *c, const char *key, uint64_t max, uint64_t *out,
               enum status *s)
{
    char text[GGUF_KEY_MAX];
    uint64_t value;
    if (*s || !gguf_has(c->g, gguf_full_key(text, c, key)))
        return false;
    if (!gguf_u64(c->g, text, &value))
        *s = gguf_key_error(c, key, "must be a whole number");
    else if (value > max)
        *s = gguf_key_error(c, key, "is larger than any model's");
    else
        *out = value;
    return *s == ST_OK;
}

enum status gguf_need(const struct gguf_import *c, const char *key, uint64_t max, uint64_t *out)
{
    enum status s = ST_OK;
    if (!gguf_read(c, key, max, out, &s) && !s)
        return gguf_key_error(c, key, "is missing");
    return s;
}

/* A number that may be one for all layers or one each. */
bool gguf_read_layer(const struct gguf_import *c, const char *key, size_t i, uint64_t *out,
                     enum status *s)
{
    char text[GGUF_KEY_MAX];
    struct gguf_array array;
    uint64_t value;
    if (*s)
        return false;
    if (!gguf_get_array(c->g, gguf_full_key(text, c, key), &array))
        return gguf_read(c, key, GGUF_SHAPE_MAX, out, s);
    if (!gguf_array_u64(&array, i, &value) || value > GGUF_SHAPE_MAX) {
        *s = gguf_key_error(c, key, "must have a whole number for each layer");
        return false;
    }
    *out = value;
    return true;
}

enum status gguf_need_layer(const struct gguf_import *c, const char *key, size_t i, uint64_t *out)
{
    enum status s = ST_OK;
    if (!gguf_read_layer(c, key, i, out, &s) && !s)
        return gguf_key_error(c, key, "is missing");
    return s;
}

const struct gguf_tensor *gguf_layer_tensor(const struct gguf_import *c, size_t i, const char *name)
{
    char text[GGUF_KEY_MAX];
    snprintf(text, sizeof text, "blk.%zu.%s", i, name);
    return gguf_tensor_find(c->g, text);
}

bool gguf_layer_has(const struct gguf_import *c, size_t i, const char *name)
{
    return gguf_layer_tensor(c, i, name) != NULL;
}

/* The tensor, if it is there, must have so many columns and rows (0: any). */
enum status gguf_check_extents(const struct gguf_import *c, size_t i, const char *name,
                               uint64_t cols, uint64_t rows)
{
    const struct gguf_tensor *t = gguf_layer_tensor(c, i, name);
    if (!t || ((!cols || t->extent[0] == cols) && (!rows || t->extent[1] == rows)))
        return ST_OK;
    return diag_set(c->dg, ST_PARSE,
                    "%s: blk.%zu.%s is %" PRIu64 " x %" PRIu64
                    ", which contradicts the metadata: %" PRIu64 " x %" PRIu64 " was expected",
                    gguf_file_path(c->g, 0), i, name, t->extent[1], t->extent[0],
                    rows ? rows : t->extent[1], cols ? cols : t->extent[0]);
}
