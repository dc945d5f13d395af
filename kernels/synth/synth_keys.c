/* synth_keys.c -- see synth_tensors.h: metadata. */
#include "kernels/synth/synth_tensors.h"

#include "models/gguf_model.h"

#include <stdio.h>
#include <string.h>

#define BYTE_TOKENS    256
#define TOKEN_NORMAL   1
#define TOKEN_UNUSED   5
#define GATING_SOFTMAX 1
#define GATING_SIGMOID 2
#define SIGMOID_SCALE  2.5f /* routed_scaling_factor of DeepSeek-V3's config.json */
#define QUANT_VERSION  2
#define FILE_TYPES     64

struct keys {
    struct gguf_write *w;
    const char *architecture;
    char text[96];
};

static const char *full(struct keys *k, const char *key)
{
    snprintf(k->text, sizeof k->text, "%s.%s", k->architecture, key);
    return k->text;
}

static void number(struct keys *k, const char *key, uint64_t value)
{
    gguf_write_u32(k->w, full(k, key), (uint32_t)value);
}

static void attention_keys(struct keys *k, const struct attention *a)
{
    bool latent = a->family == ATTENTION_MLA;
    uint64_t value_dim = a->v_head_dim ? a->v_head_dim : a->head_dim;
    number(k, "attention.head_count", a->heads);
    number(k, "attention.head_count_kv", latent ? a->heads : a->kv_heads);
    number(k, "attention.key_length", latent ? a->nope_head_dim + a->rope_head_dim : a->head_dim);
    number(k, "attention.value_length", value_dim);
    number(k, "rope.dimension_count", latent ? a->rope_head_dim : a->head_dim);
    if (latent)
        number(k, "attention.kv_lora_rank", a->kv_lora_rank);
    if (a->q_lora_rank)
        number(k, "attention.q_lora_rank", a->q_lora_rank);
    if (a->window)
        number(k, "attention.sliding_window", a->window);
}

static void expert_keys(struct keys *k, const struct model *m, const struct ffn *f)
{
    size_t dense = 0;
    while (dense < m->layer_count && m->layers[dense].ffn.experts == 0)
        dense++;
    number(k, "expert_count", f->experts);
    number(k, "expert_used_count", f->top_k);
    number(k, "expert_feed_forward_length", f->expert_width);
    if (f->shared_width && f->shared_gate)
        number(k, "expert_shared_feed_forward_length", f->shared_width);
    if (m->layers[0].attention.family != ATTENTION_MLA)
        return;
    number(k, "leading_dense_block_count", dense);
    number(k, "expert_shared_count", f->shared_experts);
    number(k, "expert_gating_func", f->router_bias ? GATING_SIGMOID : GATING_SOFTMAX);
    gguf_write_flag(k->w, full(k, "expert_weights_norm"), f->router_bias);
    gguf_write_f32(k->w, full(k, "expert_weights_scale"), f->router_bias ? SIGMOID_SCALE : 1);
}

/* GPT-2's bytes as characters: the printable ones of Latin-1 are themselves, the others follow from 256 on. Both
 * are two bytes of UTF-8 or one. */
static void byte_token(char text[3], unsigned byte, unsigned *next)
{
    bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    unsigned code = itself ? byte : (*next)++;
    if (code < 0x80)
        snprintf(text, 3, "%c", (int)code);
    else
        snprintf(text, 3, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 0x3f)));
}

static void vocabulary_keys(struct keys *k, uint64_t vocab)
{
    unsigned next = 256;
    gguf_write_text(k->w, "tokenizer.ggml.model", "gpt2");
    gguf_write_text(k->w, "tokenizer.ggml.pre", "gpt-2");
    gguf_write_array(k->w, "tokenizer.ggml.tokens", GGUF_TEXT, vocab);
    for (uint64_t i = 0; i < vocab; i++) {
        char text[32];
        if (i < BYTE_TOKENS)
            byte_token(text, (unsigned)i, &next);
        else
            snprintf(text, sizeof text, "[PAD%u]", (unsigned)i);
        gguf_write_text_item(k->w, text);
    }
    gguf_write_array(k->w, "tokenizer.ggml.token_type", GGUF_I32, vocab);
    for (uint64_t i = 0; i < vocab; i++)
        gguf_write_i32_item(k->w, i < BYTE_TOKENS ? TOKEN_NORMAL : TOKEN_UNUSED);
    /* llama.cpp asks for merges; this one joins two bytes that UTF-8 never has, into no token. */
    gguf_write_array(k->w, "tokenizer.ggml.merges", GGUF_TEXT, 1);
    gguf_write_text_item(k->w, "\xc3\xbf \xc3\xbf");
    gguf_write_u32(k->w, "tokenizer.ggml.bos_token_id", 0);
    gguf_write_u32(k->w, "tokenizer.ggml.eos_token_id", 0);
    gguf_write_flag(k->w, "tokenizer.ggml.add_bos_token", false);
}

/* Which mix it is, if llama.cpp has a number for it. */
static void file_type_key(struct keys *k, const struct model *m)
{
    for (uint32_t type = 0; type < FILE_TYPES; type++) {
        const char *name = gguf_model_file_type(type);
        if (name && !strcmp(name, m->quant.name))
            gguf_write_u32(k->w, "general.file_type", type);
    }
    gguf_write_u32(k->w, "general.quantization_version", QUANT_VERSION);
}

void synth_keys(struct gguf_write *w, const struct model *m, const struct synth_architecture *a,
                const char *name, bool vocabulary)
{
    struct keys k = {.w = w, .architecture = a->name};
    const struct ffn *last = &m->layers[m->layer_count - 1].ffn;
    uint64_t dense = m->layers[0].ffn.dense_width;
    gguf_write_text(w, "general.architecture", a->name);
    gguf_write_text(w, "general.name", name);
    file_type_key(&k, m);
    number(&k, "vocab_size", m->vocab);
    number(&k, "context_length", m->max_context);
    number(&k, "embedding_length", m->hidden);
    number(&k, "block_count", m->layer_count);
    number(&k, "feed_forward_length", dense ? dense : last->expert_width);
    attention_keys(&k, &m->layers[0].attention);
    gguf_write_f32(w, full(&k, "attention.layer_norm_rms_epsilon"), a->epsilon);
    gguf_write_f32(w, full(&k, "rope.freq_base"), a->rope_base);
    if (last->experts)
        expert_keys(&k, m, last);
    if (vocabulary)
        vocabulary_keys(&k, m->vocab);
    else
        gguf_write_text(w, "tokenizer.ggml.model", "no_vocab");
}
