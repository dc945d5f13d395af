/* hf_families.c -- families whose layers are alike but for a few dense ones, and the table of all. The
 * keys are those of each family's configuration class in transformers or in its own repository. */
#include "models/hf_families.h"

#include <string.h>

void hf_all_attention(struct hf *h, struct attention a)
{
    for (size_t i = 0; i < h->m->layer_count; i++)
        h->m->layers[i].attention = a;
}

void hf_all_ffn(struct hf *h, struct ffn f)
{
    for (size_t i = 0; i < h->m->layer_count; i++)
        h->m->layers[i].ffn = f;
}

struct attention hf_grouped_query(struct hf *h)
{
    struct attention a = {.family = ATTENTION_GQA};
    a.heads = hf_need(h, "num_attention_heads", NULL);
    a.kv_heads = hf_count(h, "num_key_value_heads", a.heads);
    a.head_dim = hf_count(h, "head_dim", a.heads ? h->m->hidden / a.heads : 0);
    a.qkv_bias = hf_flag(h, "attention_bias", false);
    return a;
}

struct ffn hf_dense(struct hf *h, const char *width_key)
{
    return (struct ffn){.matrices = 3, .dense_width = hf_need(h, width_key, NULL)};
}

void hf_set_experts(struct hf *h, struct ffn *f, const char *experts_key, const char *top_k_key,
                    const char *width_key)
{
    f->matrices = 3;
    f->experts = hf_need(h, experts_key, NULL);
    f->top_k = hf_need(h, top_k_key, NULL);
    f->expert_width = hf_need(h, width_key, NULL);
    f->expert_io_width = h->m->hidden;
}

void hf_set_shared(struct ffn *f, uint64_t experts, uint64_t width_each)
{
    if (width_each == 0 || experts == 0)
        return;
    f->shared_experts = experts;
    f->shared_width =
        experts > UINT32_MAX || width_each > UINT32_MAX ? UINT64_MAX : experts * width_each;
}

/* sliding_window on the layers that layer_types, or the family's older keys, say. */
static void set_windows(struct hf *h)
{
    uint64_t window = hf_count(h, "sliding_window", 0);
    bool typed = hf_has(h, "layer_types");
    uint64_t full_layers = hf_count(h, "max_window_layers", 0);
    bool used = hf_flag(h, "use_sliding_window", !hf_has(h, "max_window_layers"));
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool sliding = used && i >= full_layers;
        if (typed)
            sliding =
                hf_layer_type_is(h, i, "sliding_attention", "sliding_attention full_attention");
        if (sliding)
            h->m->layers[i].attention.window = window;
    }
}

static void read_dense(struct hf *h)
{
    hf_all_attention(h, hf_grouped_query(h));
    set_windows(h);
    hf_all_ffn(h, hf_dense(h, "intermediate_size"));
}

static void read_dense_qk_norm(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qk_norm = true;
    hf_all_attention(h, a);
    set_windows(h);
    hf_all_ffn(h, hf_dense(h, "intermediate_size"));
}

static void read_qwen2(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qkv_bias = true;
    hf_all_attention(h, a);
    set_windows(h);
    hf_all_ffn(h, hf_dense(h, "intermediate_size"));
}

static void read_opt(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qkv_bias = a.output_bias = hf_flag(h, "enable_bias", true);
    hf_all_attention(h, a);
    struct ffn f = hf_dense(h, "ffn_dim");
    f.matrices = 2;
    hf_all_ffn(h, f);
    h->m->positions = hf_need(h, "max_position_embeddings", NULL) + 2; /* OPT's offset */
}

/* Phi-2, Persimmon: plain feed-forward layers, biases everywhere. */
static void read_plain(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qkv_bias = a.output_bias = true;
    a.qk_norm = hf_flag(h, "qk_layernorm", false);
    hf_all_attention(h, a);
    struct ffn f = hf_dense(h, "intermediate_size");
    f.matrices = 2;
    hf_all_ffn(h, f);
}

static void read_falcon(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    if (hf_flag(h, "new_decoder_architecture", false))
        a.kv_heads = hf_need(h, "num_kv_heads", NULL);
    else if (hf_flag(h, "multi_query", true))
        a.kv_heads = 1;
    a.qkv_bias = hf_flag(h, "bias", false);
    hf_all_attention(h, a);
    hf_all_ffn(h, (struct ffn){.matrices = 2,
                               .dense_width = hf_count(h, "ffn_hidden_size", 4 * h->m->hidden)});
}

/* Mixtral, Phi-3.5-MoE, OLMoE, Granite: every layer has experts as wide as intermediate_size. */
static void read_mixtral(struct hf *h)
{
    struct ffn f = {0};
    hf_all_attention(h, hf_grouped_query(h));
    set_windows(h);
    hf_set_experts(h, &f, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    hf_set_shared(&f, 1, hf_count(h, "shared_intermediate_size", 0));
    hf_all_ffn(h, f);
}

static void read_phimoe(struct hf *h)
{
    struct ffn f = {0};
    struct attention a = hf_grouped_query(h);
    a.output_bias = a.qkv_bias;
    a.window = hf_count(h, "sliding_window", 0);
    if (a.window >= hf_count(h, "max_position_embeddings", 0))
        a.window = 0; /* Phi-3.5-MoE states a window as long as its context */
    hf_all_attention(h, a);
    hf_set_experts(h, &f, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    hf_all_ffn(h, f);
}

static void read_olmoe(struct hf *h)
{
    struct ffn f = {0};
    struct attention a = hf_grouped_query(h);
    a.qk_norm = true;
    hf_all_attention(h, a);
    hf_set_experts(h, &f, "num_experts", "num_experts_per_tok", "intermediate_size");
    hf_all_ffn(h, f);
}

static void read_minimax_m2(struct hf *h)
{
    struct ffn f = {0};
    struct attention a = hf_grouped_query(h);
    a.qk_norm = hf_flag(h, "use_qk_norm", false);
    hf_all_attention(h, a);
    hf_set_experts(h, &f, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    hf_set_shared(&f, 1, hf_count(h, "shared_intermediate_size", 0));
    f.router_bias = hf_flag(h, "use_routing_bias", false);
    hf_all_ffn(h, f);
}

static void read_gpt_oss(struct hf *h)
{
    struct ffn f = {0};
    struct attention a = hf_grouped_query(h);
    a.output_bias = a.qkv_bias;
    a.sinks = true;
    uint64_t window = hf_need(h, "sliding_window", NULL);
    bool typed = hf_has(h, "layer_types");
    hf_set_experts(h, &f, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    f.router_bias = f.expert_bias = true;
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool sliding = i % 2 == 0;
        if (typed)
            sliding =
                hf_layer_type_is(h, i, "sliding_attention", "sliding_attention full_attention");
        a.window = sliding ? window : 0;
        h->m->layers[i].attention = a;
    }
    hf_all_ffn(h, f);
}

/* Qwen2-MoE, Qwen3-MoE: dense where mlp_only_layers or decoder_sparse_step say so. */
void hf_qwen_experts(struct hf *h, bool shared)
{
    struct ffn experts = {0};
    uint64_t step = hf_count(h, "decoder_sparse_step", 1);
    hf_set_experts(h, &experts, "num_experts", "num_experts_per_tok", "moe_intermediate_size");
    if (shared) {
        hf_set_shared(&experts, 1, hf_need(h, "shared_expert_intermediate_size", NULL));
        experts.shared_gate = true;
    }
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool dense = step == 0 || (i + 1) % step != 0 || hf_list_has(h, "mlp_only_layers", i);
        h->m->layers[i].ffn = dense ? hf_dense(h, "intermediate_size") : experts;
    }
}

static void read_qwen2_moe(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qkv_bias = hf_flag(h, "qkv_bias", true);
    hf_all_attention(h, a);
    set_windows(h);
    hf_qwen_experts(h, true);
}

static void read_qwen3_moe(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qk_norm = true;
    hf_all_attention(h, a);
    set_windows(h);
    hf_qwen_experts(h, false);
}

struct attention hf_latent(struct hf *h)
{
    struct attention a = {.family = ATTENTION_MLA};
    a.heads = hf_need(h, "num_attention_heads", NULL);
    a.q_lora_rank = hf_count(h, "q_lora_rank", 0);
    a.kv_lora_rank = hf_need(h, "kv_lora_rank", NULL);
    a.nope_head_dim = hf_need(h, "qk_nope_head_dim", NULL);
    a.rope_head_dim = hf_need(h, "qk_rope_head_dim", NULL);
    a.v_head_dim = hf_need(h, "v_head_dim", NULL);
    if (hf_has(h, "index_n_heads")) {
        a.index_heads = hf_need(h, "index_n_heads", NULL);
        a.index_dim = hf_need(h, "index_head_dim", NULL);
        a.index_top_k = hf_need(h, "index_topk", NULL);
    }
    return a;
}

/* DeepSeek's feed-forward layout, and its many heirs': the first layers dense, shared experts as wide
 * as routed ones. */
static void read_deepseek_ffn(struct hf *h, const char *experts_key, const char *shared_key)
{
    struct ffn experts = {0};
    uint64_t first = hf_count(h, "first_k_dense_replace", 0);
    uint64_t step = hf_count(h, "moe_layer_freq", 1);
    hf_set_experts(h, &experts, experts_key, "num_experts_per_tok", "moe_intermediate_size");
    hf_set_shared(&experts, hf_count(h, shared_key, 0), experts.expert_width);
    const char *method = hf_text(h, "topk_method");
    experts.router_bias = (method && strcmp(method, "noaux_tc") == 0) ||
                          hf_flag(h, "moe_router_enable_expert_bias", false);
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool dense = i < first || step == 0 || i % step != 0;
        h->m->layers[i].ffn = dense ? hf_dense(h, "intermediate_size") : experts;
    }
}

static void read_deepseek(struct hf *h)
{
    hf_all_attention(h, hf_latent(h));
    read_deepseek_ffn(h, "n_routed_experts", "n_shared_experts");
}

/* GLM-5: in layers whose indexer_types say "shared" an earlier layer's indexer chooses. Published
 * totals leave the indexers out, unlike DeepSeek's. */
static void read_glm_dsa(struct hf *h)
{
    struct attention a = hf_latent(h);
    a.index_untotalled = a.index_heads > 0;
    const json_node *types = json_get(h->text, "indexer_types");
    for (size_t i = 0; i < h->m->layer_count; i++) {
        const char *type = types ? json_text(json_at(types, i)) : "full";
        if (!type)
            hf_fail(h, ST_PARSE, "'indexer_types': no text for layer %zu", i);
        a.index_borrowed = type && strcmp(type, "shared") == 0;
        h->m->layers[i].attention = a;
    }
    read_deepseek_ffn(h, "n_routed_experts", "n_shared_experts");
}

/* GLM-4.5, dots.llm1: grouped queries with DeepSeek's feed-forward layout. */
static void read_grouped_deepseek(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qk_norm = hf_flag(h, "use_qk_norm", strcmp(h->model_type, "dots1") == 0);
    hf_all_attention(h, a);
    read_deepseek_ffn(h, "n_routed_experts", "n_shared_experts");
}

static void read_bailing(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    a.qkv_bias = hf_flag(h, "use_qkv_bias", false);
    a.output_bias = hf_flag(h, "use_bias", false);
    a.qk_norm = hf_flag(h, "use_qk_norm", false);
    hf_all_attention(h, a);
    read_deepseek_ffn(h, "num_experts", "num_shared_experts");
}

static void read_ernie(struct hf *h)
{
    struct ffn experts = {0};
    uint64_t first = hf_count(h, "moe_layer_start_index", 0);
    uint64_t last = hf_count(h, "moe_layer_end_index", h->m->layer_count - 1);
    uint64_t step = hf_count(h, "moe_layer_interval", 1);
    struct attention a = hf_grouped_query(h);
    a.qkv_bias = a.output_bias = hf_flag(h, "use_bias", false);
    hf_all_attention(h, a);
    experts.matrices = 3;
    experts.experts = hf_need(h, "moe_num_experts", NULL);
    experts.top_k = hf_need(h, "moe_k", NULL);
    experts.expert_width = hf_each(h, "moe_intermediate_size", 0, 1);
    experts.expert_io_width = h->m->hidden;
    experts.router_bias = hf_flag(h, "moe_use_aux_free", true);
    hf_set_shared(&experts, hf_count(h, "moe_num_shared_experts", 0), experts.expert_width);
    for (size_t i = 0; i < h->m->layer_count; i++) {
        bool moe = step && (i + 1) % step == 0 && i >= first && i <= last;
        h->m->layers[i].ffn = moe ? experts : hf_dense(h, "intermediate_size");
    }
}

/* Hunyuan states expert figures as numbers or as one number a layer. */
static void read_hunyuan(struct hf *h)
{
    struct attention a = hf_grouped_query(h);
    size_t n = h->m->layer_count;
    a.qk_norm = hf_flag(h, "use_qk_norm", true);
    hf_all_attention(h, a);
    uint64_t experts = hf_each(h, "num_experts", 0, 1);
    const char *width_key =
        hf_has(h, "moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size";
    for (size_t i = 0; i < n; i++) {
        struct ffn f = {.matrices = 3, .experts = experts, .expert_io_width = h->m->hidden};
        f.top_k = hf_each(h, "moe_topk", i, n);
        f.expert_width = hf_each(h, width_key, i, n);
        uint64_t shared =
            hf_has(h, "num_shared_expert") ? hf_each(h, "num_shared_expert", i, n) : 0;
        hf_set_shared(&f, shared, hf_need(h, "intermediate_size", NULL));
        h->m->layers[i].ffn = f;
    }
}

const struct hf_family hf_families[] = {{"llama", false, read_dense},
                                        {"mistral", false, read_dense},
                                        {"ministral", false, read_dense},
                                        {"phi3", false, read_dense},
                                        {"granite", true, read_dense},
                                        {"smollm3", true, read_dense},
                                        {"seed_oss", false, read_dense},
                                        {"qwen2", false, read_qwen2},
                                        {"qwen2_5_vl", false, read_qwen2},
                                        {"qwen2_vl", false, read_qwen2},
                                        {"qwen3", false, read_dense_qk_norm},
                                        {"qwen3_vl", false, read_dense_qk_norm},
                                        {"qwen3_vl_text", false, read_dense_qk_norm},
                                        {"olmo2", false, read_dense_qk_norm},
                                        {"olmo3", false, read_dense_qk_norm},
                                        {"ernie4_5", true, read_dense},
                                        {"hunyuan_v1_dense", false, read_dense_qk_norm},
                                        {"phi", false, read_plain},
                                        {"persimmon", false, read_plain},
                                        {"opt", true, read_opt},
                                        {"falcon", true, read_falcon},
                                        {"mixtral", false, read_mixtral},
                                        {"granitemoe", true, read_mixtral},
                                        {"granitemoeshared", true, read_mixtral},
                                        {"granitemoehybrid", true, hf_read_granite_hybrid},
                                        {"phimoe", false, read_phimoe},
                                        {"olmoe", false, read_olmoe},
                                        {"flex_olmo", false, read_olmoe},
                                        {"minimax_m2", false, read_minimax_m2},
                                        {"minimax_m3", false, hf_read_minimax_m3},
                                        {"minimax_m3_vl", false, hf_read_minimax_m3},
                                        {"gpt_oss", false, read_gpt_oss},
                                        {"qwen2_moe", false, read_qwen2_moe},
                                        {"qwen3_moe", false, read_qwen3_moe},
                                        {"qwen3_vl_moe", false, read_qwen3_moe},
                                        {"qwen3_vl_moe_text", false, read_qwen3_moe},
                                        {"qwen3_next", false, hf_read_gated_delta},
                                        {"qwen3_5", false, hf_read_gated_delta},
                                        {"qwen3_5_text", false, hf_read_gated_delta},
                                        {"qwen3_5_moe", false, hf_read_gated_delta},
                                        {"qwen3_5_moe_text", false, hf_read_gated_delta},
                                        {"deepseek_v2", false, read_deepseek},
                                        {"deepseek_v3", false, read_deepseek},
                                        {"deepseek_v32", false, read_deepseek},
                                        {"deepseek_v4", false, hf_read_deepseek_v4},
                                        {"deepseek_v4_1", false, hf_read_deepseek_v4},
                                        {"kimi_k2", false, read_deepseek},
                                        {"kimi_k25", false, read_deepseek},
                                        {"kimi_linear", false, hf_read_kimi_linear},
                                        {"kimi_k3", false, hf_read_kimi_linear},
                                        {"glm4_moe_lite", false, read_deepseek},
                                        {"glm_moe_dsa", false, read_glm_dsa},
                                        {"glm4_moe", false, read_grouped_deepseek},
                                        {"dots1", false, read_grouped_deepseek},
                                        {"bailing_moe", false, read_bailing},
                                        {"bailing_moe_v2", false, read_bailing},
                                        {"ernie4_5_moe", true, read_ernie},
                                        {"hunyuan_v1_moe", true, read_hunyuan},
                                        {"lfm2", true, hf_read_lfm2},
                                        {"lfm2_moe", true, hf_read_lfm2},
                                        {"llama4", false, hf_read_llama4},
                                        {"llama4_text", false, hf_read_llama4},
                                        {"gemma2", true, hf_read_gemma},
                                        {"gemma3", true, hf_read_gemma},
                                        {"gemma3_text", true, hf_read_gemma},
                                        {"gemma4", true, hf_read_gemma},
                                        {"gemma4_text", true, hf_read_gemma},
                                        {NULL, false, NULL}};
