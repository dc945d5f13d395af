/* hf_families.h -- one row a model_type: how its config.json becomes layers. */
#ifndef MODELS_HF_FAMILIES_H
#define MODELS_HF_FAMILIES_H

#include "models/hf_reader.h"

struct hf_family {
    const char *model_type;
    bool tied;                  /* tie_word_embeddings where the config leaves it out */
    void (*read)(struct hf *h); /* fills attention and ffn of all layers */
};

extern const struct hf_family hf_families[]; /* ends with a NULL model_type */

/* Pieces that several families share, for one layer or all of them. */
struct attention hf_grouped_query(struct hf *h); /* heads, kv heads, head size, bias */
struct attention hf_latent(struct hf *h);        /* MLA of the DeepSeek kind, with its indexer */
struct ffn hf_dense(struct hf *h, const char *width_key);
void hf_set_experts(struct hf *h, struct ffn *f, const char *experts_key, const char *top_k_key,
                    const char *width_key);
void hf_set_shared(struct ffn *f, uint64_t experts, uint64_t width_each);
void hf_qwen_experts(struct hf *h, bool shared); /* dense where the config says so */
void hf_all_attention(struct hf *h, struct attention a);
void hf_all_ffn(struct hf *h, struct ffn f);

/* Families whose layers differ in kind (hf_hybrids.c). */
void hf_read_gated_delta(struct hf *h); /* Qwen3-Next, Qwen3.5 */
void hf_read_kimi_linear(struct hf *h);
void hf_read_gemma(struct hf *h);
void hf_read_llama4(struct hf *h);
void hf_read_deepseek_v4(struct hf *h);
void hf_read_lfm2(struct hf *h);
void hf_read_granite_hybrid(struct hf *h);
void hf_read_minimax_m3(struct hf *h);

#endif
