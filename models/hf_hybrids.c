/* hf_hybrids.c -- families whose layers differ in kind: linear or full attention, windows or all,
 * compressed caches. Which layer is what comes from the config's lists, or the family's rule. */
#include "models/hf_families.h"

#include <string.h>

/* Qwen3-Next and Qwen3.5: three gated delta nets, then one gated attention. */
void hf_read_gated_delta(struct hf *h)
{
    struct attention full = hf_grouped_query(h);
    full.output_gate = hf_flag(h, "attn_output_gate", true);
    full.qk_norm = true;
    struct attention linear = {.family = ATTENTION_LINEAR, .linear_kind = LINEAR_DELTA_NET};
    linear.linear_key_heads = hf_need(h, "linear_num_key_heads", NULL);
    linear.linear_value_heads = hf_need(h, "linear_num_value_heads", NULL);
    linear.linear_key_dim = hf_need(h, "linear_key_head_dim", NULL);
    linear.linear_value_dim = hf_need(h, "linear_value_head_dim", NULL);
    linear.conv_kernel = hf_need(h, "linear_conv_kernel_dim", NULL);
    bool typed = hf_has(h, "layer_types");
    uint64_t interval = typed ? 0 : hf_need(h, "full_attention_interval", NULL);
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool is_full = interval && (i + 1) % interval == 0;
        if (typed)
            is_full = hf_layer_type_is(h, i, "full_attention", "full_attention linear_attention");
        h->m->layers[i].attention = is_full ? full : linear;
    }
    if (hf_has(h, "num_experts"))
        hf_qwen_experts(h, true);
    else
        hf_all_ffn(h, hf_dense(h, "intermediate_size"));
}

static void read_kimi_ffn(struct hf *h)
{
    struct ffn experts = {0};
    uint64_t first = hf_count(h, "first_k_dense_replace", 0);
    uint64_t step = hf_count(h, "moe_layer_freq", 1);
    hf_set_experts(h, &experts, "num_experts", "num_experts_per_token", "moe_intermediate_size");
    experts.expert_io_width = hf_count(h, "routed_expert_hidden_size", h->m->hidden);
    experts.router_bias = true;
    hf_set_shared(&experts, hf_count(h, "num_shared_experts", 0), experts.expert_width);
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool dense = i < first || step == 0 || i % step != 0;
        h->m->layers[i].ffn = dense ? hf_dense(h, "intermediate_size") : experts;
    }
}

/* Kimi-Linear and Kimi-K3. linear_attn_config counts layers from 1. */
void hf_read_kimi_linear(struct hf *h)
{
    struct attention full = hf_latent(h);
    full.output_gate = hf_flag(h, "mla_use_output_gate", false);
    const json_node *before = hf_enter(h, "linear_attn_config");
    struct attention kda = {.family = ATTENTION_LINEAR, .linear_kind = LINEAR_KDA};
    kda.linear_key_heads = kda.linear_value_heads = hf_need(h, "num_heads", NULL);
    kda.linear_key_dim = kda.linear_value_dim = hf_need(h, "head_dim", NULL);
    kda.conv_kernel = hf_need(h, "short_conv_kernel_size", NULL);
    bool full_rank = hf_flag(h, "use_full_rank_gate", false);
    kda.linear_gate_rank = full_rank ? 0 : kda.linear_value_dim;
    for (size_t i = 0; i < h->m->layer_count && h->status == ST_OK; i++) {
        bool is_full = hf_list_has(h, "full_attn_layers", i + 1);
        if (!is_full && !hf_list_has(h, "kda_layers", i + 1))
            hf_fail(h, ST_MISSING, "layer %zu is neither in 'kda_layers' nor in 'full_attn_layers'",
                    i + 1);
        h->m->layers[i].attention = is_full ? full : kda;
    }
    hf_leave(h, before);
    read_kimi_ffn(h);
}

/* Full-attention layers of Gemma-4 have other heads, and one projection for keys and values. */
static struct attention gemma_global(struct hf *h, struct attention a)
{
    a.head_dim = hf_count(h, "global_head_dim", a.head_dim);
    a.keys_are_values = hf_flag(h, "attention_k_eq_v", false);
    if (a.keys_are_values)
        a.kv_heads = hf_count(h, "num_global_key_value_heads", a.kv_heads);
    a.window = 0;
    return a;
}

static struct ffn gemma_ffn(struct hf *h)
{
    struct ffn f = hf_dense(h, "intermediate_size");
    if (!hf_flag(h, "enable_moe_block", false))
        return f;
    uint64_t beside = f.dense_width; /* a dense FFN that runs beside the experts */
    f.dense_width = 0;
    hf_set_experts(h, &f, "num_experts", "top_k_experts", "moe_intermediate_size");
    hf_set_shared(&f, 1, beside);
    return f;
}

void hf_read_gemma(struct hf *h)
{
    if (hf_count(h, "hidden_size_per_layer_input", 0))
        hf_fail(h, ST_UNSUPPORTED, "'hidden_size_per_layer_input': per-layer embeddings");
    struct attention local = hf_grouped_query(h);
    local.qk_norm = strcmp(h->model_type, "gemma2") != 0;
    local.window = hf_need(h, "sliding_window", NULL);
    struct attention global = gemma_global(h, local);
    bool typed = hf_has(h, "layer_types");
    bool alternates = strcmp(h->model_type, "gemma2") == 0;
    uint64_t pattern = hf_count(h, "sliding_window_pattern", alternates ? 2 : 6);
    uint64_t borrowing = hf_count(h, "num_kv_shared_layers", 0);
    bool wide = hf_flag(h, "use_double_wide_mlp", false);
    struct ffn f = gemma_ffn(h);
    for (size_t i = 0; i < h->m->layer_count; i++) {
        struct layer *l = &h->m->layers[i];
        bool is_global = pattern && (i + 1) % pattern == 0;
        if (typed)
            is_global =
                hf_layer_type_is(h, i, "full_attention", "full_attention sliding_attention");
        l->attention = is_global ? global : local;
        l->attention.borrows_cache = i + borrowing >= h->m->layer_count;
        l->ffn = f;
        if (wide && l->attention.borrows_cache)
            l->ffn.dense_width *= 2;
    }
}

/* Llama-4: chunked attention but for every fourth layer; experts in every `step`-th. */
void hf_read_llama4(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    struct ffn experts = {0};
    uint64_t chunk = hf_need(h, "attention_chunk_size", NULL);
    uint64_t interval = hf_count(h, "no_rope_layer_interval", 4);
    uint64_t step = hf_count(h, "interleave_moe_layer_step", 1);
    bool listed = hf_has(h, "moe_layers");
    size_t n = h->m->layer_count;
    const json_node *rope = json_get(h->text, "no_rope_layers"); /* 1: rotary and chunked */
    hf_set_experts(h, &experts, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    hf_set_shared(&experts, 1, experts.expert_width);
    for (size_t i = 0; i < n; i++) {
        bool global = interval && (i + 1) % interval == 0;
        if (rope && json_count(rope))
            global = hf_each(h, "no_rope_layers", i, n) == 0;
        bool moe = listed ? hf_list_has(h, "moe_layers", i) : step && (i + 1) % step == 0;
        a.window = global ? 0 : chunk;
        h->m->layers[i].attention = a;
        h->m->layers[i].ffn = moe ? experts : hf_dense(h, "intermediate_size_mlp");
    }
}

static struct attention compressed_attention(struct hf *h)
{
    struct attention a = {.family = ATTENTION_COMPRESSED, .sinks = true};
    a.heads = hf_need(h, "num_attention_heads", NULL);
    a.head_dim = hf_need(h, "head_dim", NULL);
    a.rope_head_dim = hf_need(h, "qk_rope_head_dim", NULL);
    a.q_lora_rank = hf_need(h, "q_lora_rank", NULL);
    a.o_lora_rank = hf_need(h, "o_lora_rank", NULL);
    a.o_groups = hf_need(h, "o_groups", NULL);
    a.window = hf_need(h, "sliding_window", NULL);
    return a;
}

/* DeepSeek-V4: compress_ratios holds 0 (window alone), 4 (indexed) or 128 (read whole) for each layer.
 * V4.1 adds lists of the layers that own caches and indexers; the others read the one before. */
void hf_read_deepseek_v4(struct hf *h)
{
    struct attention a = compressed_attention(h);
    struct ffn experts = {0};
    size_t n = h->m->layer_count;
    bool lists = hf_has(h, "kv_source_layer_ids");
    uint64_t index_heads = hf_need(h, "index_n_heads", NULL);
    uint64_t index_dim = hf_need(h, "index_head_dim", NULL);
    uint64_t top_k = hf_need(h, "index_topk", NULL);
    hf_set_experts(h, &experts, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size");
    hf_set_shared(&experts, hf_count(h, "n_shared_experts", 0), experts.expert_width);
    experts.router_bias = true;
    hf_all_ffn(h, experts);
    for (size_t i = 0; i < n; i++) {
        a.compress_ratio = hf_each(h, "compress_ratios", i, n);
        bool indexed = lists ? a.compress_ratio > 0 : a.compress_ratio == 4;
        a.index_heads = indexed ? index_heads : 0;
        a.index_dim = indexed ? index_dim : 0;
        a.index_top_k = indexed ? top_k : 0;
        a.index_untotalled = lists && indexed;
        a.borrows_cache = lists && indexed && !hf_list_has(h, "kv_source_layer_ids", i);
        a.index_borrowed = lists && indexed && !hf_list_has(h, "index_source_layer_ids", i);
        h->m->layers[i].attention = a;
    }
}

static uint64_t lfm2_dense_width(struct hf *h)
{
    uint64_t width = hf_need(h, "intermediate_size", "block_ff_dim");
    uint64_t step = hf_count(h, "block_multiple_of", 256);
    if (!hf_flag(h, "block_auto_adjust_ff_dim", false) || step == 0 || width > UINT32_MAX)
        return width;
    width = 2 * width / 3;
    return (width + step - 1) / step * step;
}

/* LFM2: short convolutions, with attention in between. */
void hf_read_lfm2(struct hf *h)
{
    struct attention full = hf_grouped_query(h);
    full.qk_norm = true;
    struct attention conv = {.family = ATTENTION_CONV, .conv_channels = h->m->hidden};
    conv.conv_kernel = hf_need(h, "conv_L_cache", NULL);
    bool typed = hf_has(h, "layer_types");
    if (!typed && !hf_has(h, "full_attn_idxs"))
        hf_fail(h, ST_MISSING, "missing field 'layer_types'");
    struct ffn dense = {.matrices = 3, .dense_width = lfm2_dense_width(h)}, experts = dense;
    uint64_t first = 0;
    if (hf_has(h, "num_experts")) {
        experts.dense_width = 0;
        first = hf_count(h, "num_dense_layers", 0);
        hf_set_experts(h, &experts, "num_experts", "num_experts_per_tok", "moe_intermediate_size");
        experts.router_bias = hf_flag(h, "use_expert_bias", false);
    }
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool is_full = typed ? hf_layer_type_is(h, i, "full_attention", "full_attention conv")
                             : hf_list_has(h, "full_attn_idxs", i);
        h->m->layers[i].attention = is_full ? full : conv;
        h->m->layers[i].ffn = i < first ? dense : experts;
    }
}

/* Granite-4: Mamba-2 layers with attention in between, and a shared expert in all. */
void hf_read_granite_hybrid(struct hf *h)
{
    struct attention full = hf_grouped_query(h);
    struct attention mamba = {.family = ATTENTION_LINEAR, .linear_kind = LINEAR_MAMBA};
    mamba.linear_key_heads = hf_need(h, "mamba_n_groups", NULL);
    mamba.linear_value_heads = hf_need(h, "mamba_n_heads", NULL);
    mamba.linear_key_dim = hf_need(h, "mamba_d_state", NULL);
    mamba.linear_value_dim = hf_need(h, "mamba_d_head", NULL);
    mamba.conv_kernel = hf_need(h, "mamba_d_conv", NULL);
    uint64_t shared = hf_need(h, "shared_intermediate_size", NULL);
    struct ffn f = {.matrices = 3, .dense_width = shared};
    if (hf_count(h, "num_local_experts", 0)) {
        f.dense_width = 0;
        hf_set_experts(h, &f, "num_local_experts", "num_experts_per_tok", "intermediate_size");
        hf_set_shared(&f, 1, shared);
    }
    hf_all_ffn(h, f);
    if (!hf_has(h, "layer_types"))
        hf_fail(h, ST_MISSING, "missing field 'layer_types'");
    for (size_t i = 0; i < h->m->layer_count; i++)
        h->m->layers[i].attention =
            hf_layer_type_is(h, i, "attention", "attention mamba") ? full : mamba;
}

/* MiniMax-M3: block-sparse attention, whose index keys no public source counts, so only the choice of
 * positions is modelled. */
void hf_read_minimax_m3(struct hf *h)
{
    size_t n = h->m->layer_count;
    struct attention a = hf_grouped_query(h);
    a.qk_norm = hf_flag(h, "use_qk_norm", false);
    a.output_gate = hf_flag(h, "attention_output_gate", false);
    struct ffn experts = {0};
    hf_set_experts(h, &experts, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    hf_set_shared(&experts, hf_count(h, "n_shared_experts", 0),
                  hf_count(h, "shared_intermediate_size", experts.expert_width));
    experts.router_bias = hf_flag(h, "use_routing_bias", false);
    for (size_t i = 0; i < n; i++) {
        h->m->layers[i].attention = a;
        h->m->layers[i].ffn =
            hf_each(h, "moe_layer_freq", i, n) ? experts : hf_dense(h, "dense_intermediate_size");
    }
    const json_node *before = hf_enter(h, "sparse_attention_config");
    uint64_t chosen = hf_need(h, "sparse_topk_blocks", NULL);
    uint64_t block = hf_need(h, "sparse_block_size", NULL);
    if (chosen > UINT16_MAX || block > UINT16_MAX)
        hf_fail(h, ST_RANGE, "'sparse_topk_blocks' or 'sparse_block_size' is out of range");
    for (size_t i = 0; i < n && h->status == ST_OK; i++)
        if (hf_each(h, "sparse_attention_freq", i, n))
            h->m->layers[i].attention.index_top_k = chosen * block;
    hf_leave(h, before);
}
