/* hf_quant.c -- see hf_quant.h. */
#include "models/hf_quant.h"

#include "models/desc_model.h"

#include <string.h>

/* One row a kind of checkpoint. The dtype is what stays unquantised. `bits`, `block` and `scheme` are
 * matched where they are set. */
static const struct checkpoint {
    const char *method;   /* quantization_config.quant_method */
    const char *scheme;   /* quant_algo (ModelOpt) or format (compressed-tensors) */
    uint64_t bits, block; /* block: weight_block_size[0], group_size */
    const char *format;
    bool experts_only;
} checkpoints[] = {
    {"fp8", NULL, 0, 128, "fp8-128x128", false},
    {"fp8", NULL, 0, 32, "fp8-32x32", false},
    {"mxfp4", NULL, 0, 0, "mxfp4", true},
    {"compressed-tensors", "mxfp4-pack-quantized", 4, 32, "mxfp4", false},
    {"compressed-tensors", "nvfp4-pack-quantized", 4, 16, "nvfp4", false},
    {"compressed-tensors", "pack-quantized", 4, 32, "int4-g32", false},
    {"compressed-tensors", "pack-quantized", 4, 128, "gptq4-g128", false},
    {"modelopt", "NVFP4", 0, 0, "nvfp4", false},
    {"gptq", NULL, 4, 128, "gptq4-g128", false},
    {"awq", NULL, 4, 128, "awq4-g128", false},
};

/* What a name in the list of unquantised modules says about a tensor group. */
static const struct {
    enum tensor_group group;
    const char *word;
} module_words[] = {
    {GROUP_ATTENTION, "attn"},
    {GROUP_INDEXER, "indexer"},
    {GROUP_SHARED_EXPERT, "shared_expert"},
    {GROUP_DENSE_FFN, "mlp\\.(gate|up"},
    {GROUP_DENSE_FFN, "mlp.(gate|up"},
};

static const enum tensor_group quantised_groups[] = {
    GROUP_ATTENTION, GROUP_INDEXER, GROUP_DENSE_FFN, GROUP_SHARED_EXPERT, GROUP_EXPERT};

static const char *standard_format(struct hf *h)
{
    const char *dtype = hf_text(h, "dtype");
    if (!dtype)
        dtype = hf_text(h, "torch_dtype");
    const json_node *outer = json_get(h->root, "dtype");
    if (!dtype && (outer || (outer = json_get(h->root, "torch_dtype"))))
        dtype = json_text(outer);
    if (!dtype || strcmp(dtype, "bfloat16") == 0)
        return "bf16";
    if (strcmp(dtype, "float16") == 0)
        return "f16";
    if (strcmp(dtype, "float32") == 0)
        return "f32";
    hf_fail(h, ST_UNSUPPORTED, "'dtype': unknown '%s'", dtype);
    return "bf16";
}

static uint64_t node_number(const json_node *node)
{
    uint64_t value = 0;
    if (node && json_is_array(node))
        node = json_at(node, 0);
    return node && json_u64(node, &value) ? value : 0;
}

/* compressed-tensors keeps bits and group size below config_groups.group_0.weights. */
static const json_node *weights_node(const json_node *config)
{
    const json_node *groups = json_get(config, "config_groups");
    const char *first = groups ? json_key_at(groups, 0) : NULL;
    const json_node *group = first ? json_get(groups, first) : NULL;
    const json_node *weights = group ? json_get(group, "weights") : NULL;
    return weights ? weights : config;
}

static const struct checkpoint *find_checkpoint(struct hf *h, const json_node *config)
{
    const json_node *weights = weights_node(config);
    const char *method = json_text(json_get(config, "quant_method"));
    const char *scheme = json_text(json_get(config, "format"));
    if (!scheme)
        scheme = json_text(json_get(config, "quant_algo"));
    uint64_t bits = node_number(json_get(weights, "num_bits"));
    if (!bits)
        bits = node_number(json_get(config, "bits"));
    uint64_t block = node_number(json_get(config, "weight_block_size"));
    if (!block)
        block = node_number(json_get(weights, "group_size"));
    for (size_t i = 0; i < sizeof checkpoints / sizeof *checkpoints; i++) {
        const struct checkpoint *c = &checkpoints[i];
        if (method && strcmp(c->method, method) == 0 &&
            (!c->scheme || (scheme && strcmp(c->scheme, scheme) == 0)) &&
            (!c->bits || c->bits == bits) && (!c->block || c->block == block))
            return c;
    }
    hf_fail(h, ST_UNSUPPORTED,
            "'quantization_config': no format for quant_method '%s', format '%s', %llu bits, block "
            "%llu",
            method ? method : "", scheme ? scheme : "", (unsigned long long)bits,
            (unsigned long long)block);
    return NULL;
}

/* Groups that the checkpoint leaves unquantised, as far as its list of modules names whole groups. */
static void drop_unquantised(const json_node *config, const char *format[GROUP_MAX])
{
    static const char *const lists[] = {"ignore", "modules_to_not_convert", "ignored_layers"};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const json_node *list = json_get(config, lists[k]);
        if (!list || !json_is_array(list))
            continue;
        for (size_t i = 0; i < json_count(list); i++) {
            const char *name = json_text(json_at(list, i));
            for (size_t w = 0; name && w < sizeof module_words / sizeof *module_words; w++)
                if (strncmp(name, "re:", 3) == 0 && strstr(name, module_words[w].word))
                    format[module_words[w].group] = NULL;
        }
    }
}

void hf_read_formats(struct hf *h)
{
    const char *format[GROUP_MAX] = {NULL};
    const char *standard = standard_format(h);
    const json_node *config = json_get(h->text, "quantization_config");
    if (!config)
        config = json_get(h->root, "quantization_config");
    const struct checkpoint *c = config ? find_checkpoint(h, config) : NULL;
    if (c) {
        for (size_t i = 0; i < sizeof quantised_groups / sizeof *quantised_groups; i++)
            if (!c->experts_only || quantised_groups[i] == GROUP_EXPERT)
                format[quantised_groups[i]] = c->format;
        drop_unquantised(config, format);
    }
    const char *expert = hf_text(h, "expert_dtype");
    if (expert && strcmp(expert, "fp4") == 0)
        format[GROUP_EXPERT] = "mxfp4";
    else if (expert)
        hf_fail(h, ST_UNSUPPORTED, "'expert_dtype': unknown '%s'", expert);
    if (h->status == ST_OK)
        h->status = desc_model_formats(h->m, standard, format, h->dg);
}
