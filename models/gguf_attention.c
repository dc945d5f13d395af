/* gguf_attention.c -- see gguf_attention.h. */
#include "models/gguf_attention.h"

/* Whether the layer attends to a window only: an array of flags or a period in the metadata, else
 * the architecture's custom. */
static bool is_windowed(const struct gguf_import *c, size_t i)
{
    char text[GGUF_KEY_MAX];
    struct gguf_array array;
    uint64_t value, period = c->architecture->window_period;
    gguf_full_key(text, c, "attention.sliding_window_pattern");
    if (gguf_get_array(c->g, text, &array) && gguf_array_u64(&array, i, &value))
        return value != 0;
    if (gguf_u64(c->g, text, &value))
        period = value;
    if (period == 0)
        return false;
    return c->architecture->global_first ? i % period != 0 : i % period < period - 1;
}

static enum status read_window(const struct gguf_import *c, struct attention *a)
{
    enum status s = ST_OK;
    a->window = c->architecture->window;
    bool given = gguf_read(c, "attention.sliding_window", UINT32_MAX, &a->window, &s);
    if (!given && !s && c->architecture->window_needed)
        return gguf_key_error(c, "attention.sliding_window", "is missing");
    return s;
}

/* Length of a head's keys or values; windowed layers may have their own. */
static enum status read_head_length(const struct gguf_import *c, const struct attention *a,
                                    const char *key, const char *key_windowed, uint64_t *out)
{
    enum status s = ST_OK;
    bool found = a->window && gguf_read(c, key_windowed, GGUF_SHAPE_MAX, out, &s);
    if (!found && !s)
        found = gguf_read(c, key, GGUF_SHAPE_MAX, out, &s);
    if (found || s)
        return s;
    *out = c->m->hidden / a->heads;
    return c->m->hidden % a->heads ? gguf_key_error(c, key, "is missing") : ST_OK;
}

static enum status check_gqa(const struct gguf_import *c, size_t i, const struct attention *a)
{
    uint64_t hidden = c->m->hidden, queries = a->heads * a->head_dim;
    const struct gguf_tensor *q = gguf_layer_tensor(c, i, "attn_q.weight");
    bool fused_gate = q && q->extent[1] == 2 * queries;
    enum status s = gguf_check_extents(c, i, "attn_q.weight", hidden, fused_gate ? 0 : queries);
    if (!s)
        s = gguf_check_extents(c, i, "attn_k.weight", hidden, a->kv_heads * a->head_dim);
    if (!s)
        s = gguf_check_extents(c, i, "attn_v.weight", hidden, a->kv_heads * a->v_head_dim);
    if (!s)
        s = gguf_check_extents(c, i, "attn_output.weight", a->heads * a->v_head_dim, hidden);
    return s;
}

static enum status fill_heads(const struct gguf_import *c, size_t i, struct attention *a)
{
    enum status s = gguf_need_layer(c, "attention.head_count", i, &a->heads);
    a->kv_heads = a->heads;
    gguf_read_layer(c, "attention.head_count_kv", i, &a->kv_heads, &s);
    if (!s && (a->heads == 0 || a->kv_heads == 0 || a->heads % a->kv_heads))
        s = gguf_key_error(c, "attention.head_count",
                           "must be a multiple of head_count_kv above 0");
    return s;
}

static enum status fill_gqa(const struct gguf_import *c, size_t i, struct attention *a)
{
    a->family = ATTENTION_GQA;
    enum status s = fill_heads(c, i, a);
    if (!s && is_windowed(c, i))
        s = read_window(c, a);
    if (!s)
        s = read_head_length(c, a, "attention.key_length", "attention.key_length_swa",
                             &a->head_dim);
    if (!s)
        s = read_head_length(c, a, "attention.value_length", "attention.value_length_swa",
                             &a->v_head_dim);
    if (s)
        return s;
    const struct gguf_tensor *q = gguf_layer_tensor(c, i, "attn_q.weight");
    bool fused = gguf_layer_has(c, i, "attn_qkv.weight");
    uint64_t borrowers = 0;
    gguf_read(c, "attention.shared_kv_layers", c->m->layer_count, &borrowers, &s);
    a->borrows_cache =
        (!fused && !gguf_layer_has(c, i, "attn_k.weight")) || i >= c->m->layer_count - borrowers;
    a->keys_are_values =
        !fused && gguf_layer_has(c, i, "attn_k.weight") && !gguf_layer_has(c, i, "attn_v.weight");
    a->output_gate = gguf_layer_has(c, i, "attn_gate.weight") ||
                     (q && q->extent[1] == 2 * a->heads * a->head_dim);
    return s ? s : check_gqa(c, i, a);
}

/* A layer without index tensors borrows the choice of another one (latent attention) or has none
 * (compressed attention, whose other layers read all of their few entries). */
static enum status fill_indexer(const struct gguf_import *c, size_t i, struct attention *a)
{
    enum status s = ST_OK;
    bool owned = gguf_layer_has(c, i, "indexer.proj.weight") ||
                 gguf_layer_has(c, i, "indexer.attn_q_b.weight") ||
                 gguf_layer_has(c, i, "indexer.q_proj.weight");
    if (!owned && a->family == ATTENTION_COMPRESSED)
        return ST_OK;
    if (!gguf_read(c, "attention.indexer.head_count", GGUF_SHAPE_MAX, &a->index_heads, &s))
        return s;
    s = gguf_need(c, "attention.indexer.key_length", GGUF_SHAPE_MAX, &a->index_dim);
    if (!s)
        s = gguf_need(c, "attention.indexer.top_k", GGUF_SHAPE_MAX, &a->index_top_k);
    a->index_borrowed = !owned;
    return s;
}

/* Newer files give the latent's lengths as key_length and value_length, and those of a head, after
 * the latent is expanded, with the suffix _mla; older ones give the latter without suffix. */
static enum status fill_mla(const struct gguf_import *c, size_t i, struct attention *a)
{
    uint64_t key = 0;
    a->family = ATTENTION_MLA;
    enum status s = gguf_need_layer(c, "attention.head_count", i, &a->heads);
    if (!s)
        s = gguf_need(c, "attention.kv_lora_rank", GGUF_SHAPE_MAX, &a->kv_lora_rank);
    gguf_read(c, "attention.q_lora_rank", GGUF_SHAPE_MAX, &a->q_lora_rank, &s);
    if (!s)
        s = gguf_need(c, "rope.dimension_count", GGUF_SHAPE_MAX, &a->rope_head_dim);
    if (!s && !gguf_read(c, "attention.key_length_mla", GGUF_SHAPE_MAX, &key, &s) && !s)
        s = gguf_need(c, "attention.key_length", GGUF_SHAPE_MAX, &key);
    if (!s && !gguf_read(c, "attention.value_length_mla", GGUF_SHAPE_MAX, &a->v_head_dim, &s) && !s)
        s = gguf_need(c, "attention.value_length", GGUF_SHAPE_MAX, &a->v_head_dim);
    if (!s && key < a->rope_head_dim)
        s = gguf_key_error(c, "rope.dimension_count", "is larger than a head's key");
    if (!s && (a->heads == 0 || a->kv_lora_rank == 0))
        s = gguf_key_error(c, "attention.head_count", "and kv_lora_rank must be above 0");
    if (s)
        return s;
    a->nope_head_dim = key - a->rope_head_dim;
    a->output_gate = gguf_layer_has(c, i, "attn_gate.weight");
    if (!gguf_layer_has(c, i, "attn_q_a.weight"))
        a->q_lora_rank = 0;
    s = gguf_check_extents(c, i, "attn_kv_a_mqa.weight", c->m->hidden,
                           a->kv_lora_rank + a->rope_head_dim);
    if (!s)
        s = gguf_check_extents(c, i, "attn_output.weight", a->heads * a->v_head_dim, c->m->hidden);
    return s;
}

/* DeepSeek-V4: a shared latent, compressed by a ratio of the layer's own, beside a window. */
static enum status fill_compressed(const struct gguf_import *c, size_t i, struct attention *a)
{
    a->family = ATTENTION_COMPRESSED;
    enum status s = gguf_need_layer(c, "attention.head_count", i, &a->heads);
    a->kv_heads = 1;
    if (!s)
        s = gguf_need_layer(c, "attention.compress_ratios", i, &a->compress_ratio);
    if (!s)
        s = gguf_need(c, "attention.key_length", GGUF_SHAPE_MAX, &a->head_dim);
    if (!s)
        s = gguf_need(c, "attention.q_lora_rank", GGUF_SHAPE_MAX, &a->q_lora_rank);
    if (!s)
        s = gguf_need(c, "attention.output_lora_rank", GGUF_SHAPE_MAX, &a->o_lora_rank);
    if (!s)
        s = gguf_need(c, "attention.output_group_count", GGUF_SHAPE_MAX, &a->o_groups);
    if (!s)
        s = gguf_need(c, "rope.dimension_count", GGUF_SHAPE_MAX, &a->rope_head_dim);
    if (!s)
        s = read_window(c, a);
    if (!s && (a->heads == 0 || a->head_dim == 0 || a->o_groups == 0))
        s = gguf_key_error(c, "attention.head_count", "and the lengths beside it must be above 0");
    return s;
}

static enum status fill_kda(const struct gguf_import *c, size_t i, struct attention *a)
{
    const struct gguf_tensor *gate = gguf_layer_tensor(c, i, "ssm_g_a.weight");
    enum status s = gguf_need_layer(c, "attention.head_count", i, &a->linear_value_heads);
    if (!s)
        s = gguf_need(c, "kda.head_dim", GGUF_SHAPE_MAX, &a->linear_value_dim);
    a->linear_kind = LINEAR_KDA;
    a->linear_key_heads = a->linear_value_heads;
    a->linear_key_dim = a->linear_value_dim;
    a->linear_gate_rank = gate ? gate->extent[1] : 0;
    return s;
}

static enum status fill_linear(const struct gguf_import *c, size_t i, struct attention *a)
{
    uint64_t inner = 0;
    a->family = ATTENTION_LINEAR;
    enum status s = gguf_need(c, "ssm.conv_kernel", GGUF_SHAPE_MAX, &a->conv_kernel);
    if (s)
        return s;
    if (gguf_layer_has(c, i, "ssm_f_a.weight"))
        return fill_kda(c, i, a);
    a->linear_kind = gguf_layer_has(c, i, "ssm_in.weight") &&
                             !gguf_layer_has(c, i, "ssm_beta.weight") &&
                             !gguf_layer_has(c, i, "ssm_ba.weight")
                         ? LINEAR_MAMBA
                         : LINEAR_DELTA_NET;
    s = gguf_need(c, "ssm.state_size", GGUF_SHAPE_MAX, &a->linear_key_dim);
    if (!s)
        s = gguf_need(c, "ssm.group_count", GGUF_SHAPE_MAX, &a->linear_key_heads);
    if (!s)
        s = gguf_need(c, "ssm.time_step_rank", GGUF_SHAPE_MAX, &a->linear_value_heads);
    if (!s)
        s = gguf_need(c, "ssm.inner_size", GGUF_SHAPE_MAX, &inner);
    if (!s && (a->linear_value_heads == 0 || inner % a->linear_value_heads))
        s = gguf_key_error(c, "ssm.inner_size", "must be a multiple of time_step_rank");
    if (!s)
        a->linear_value_dim = inner / a->linear_value_heads;
    return s;
}

static enum status fill_conv(const struct gguf_import *c, size_t i, struct attention *a)
{
    a->family = ATTENTION_CONV;
    a->conv_channels = gguf_layer_tensor(c, i, "shortconv.conv.weight")->extent[1];
    return gguf_need(c, "shortconv.l_cache", GGUF_SHAPE_MAX, &a->conv_kernel);
}

enum status gguf_attention_fill(const struct gguf_import *c, size_t i)
{
    struct attention *a = &c->m->layers[i].attention;
    enum status s = ST_OK;
    char key[GGUF_KEY_MAX];
    bool compressed = gguf_has(c->g, gguf_full_key(key, c, "attention.compress_ratios"));
    if (gguf_layer_has(c, i, "ssm_conv1d.weight") || gguf_layer_has(c, i, "ssm_conv1d_q.weight"))
        s = fill_linear(c, i, a);
    else if (gguf_layer_has(c, i, "shortconv.conv.weight"))
        s = fill_conv(c, i, a);
    else if (gguf_layer_has(c, i, "attn_kv_a_mqa.weight"))
        s = fill_mla(c, i, a);
    else if (compressed && gguf_layer_has(c, i, "attn_q_a.weight"))
        s = fill_compressed(c, i, a);
    else if (gguf_layer_has(c, i, "attn_q.weight") || gguf_layer_has(c, i, "attn_qkv.weight"))
        s = fill_gqa(c, i, a);
    if (!s && (a->family == ATTENTION_MLA || a->family == ATTENTION_COMPRESSED))
        s = fill_indexer(c, i, a);
    a->qkv_bias = gguf_layer_has(c, i, "attn_q.bias") || gguf_layer_has(c, i, "attn_qkv.bias");
    a->output_bias = gguf_layer_has(c, i, "attn_output.bias");
    a->qk_norm = gguf_layer_has(c, i, "attn_q_norm.weight");
    a->sinks = gguf_layer_has(c, i, "attn_sinks.weight") || gguf_layer_has(c, i, "attn_sinks");
    return s;
}
