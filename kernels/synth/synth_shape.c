/* synth_shape.c -- see synth_shape.h: the table, and whether a model fits one of its rows. Tensors: the model loaders of
 * llama.cpp; bases and epsilons: the config.json of Qwen3-30B-A3B, Mixtral-8x7B, Qwen1.5-MoE, gpt-oss, DeepSeek-V2,
 * OLMoE. */
#include "kernels/synth/synth_shape.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GQA(arch) .name = arch, .family = ATTENTION_GQA, .ffn_norm = "ffn_norm.weight"

static const struct synth_architecture architectures[] = {
    {GQA("olmoe"), .only_called = "olmoe", .qk_norm = true, .qk_norm_wide = true,
     .rope_base = 10000, .epsilon = 1e-5f},
    {GQA("qwen3moe"), .qk_norm = true, .rope_base = 1e6f, .epsilon = 1e-6f},
    {GQA("llama"), .dense_only = true, .rope_base = 1e6f, .epsilon = 1e-5f},
    {GQA("qwen2moe"), .qkv_bias = true, .shared = true, .shared_gate = true, .rope_base = 1e6f,
     .epsilon = 1e-6f},
    {.name = "gpt-oss",
     .family = ATTENTION_GQA,
     .ffn_norm = "post_attention_norm.weight",
     .router_bias = "ffn_gate_inp.bias",
     .router_bias_must = true,
     .qkv_bias = true,
     .output_bias = true,
     .sinks = true,
     .expert_bias = true,
     .window_period = 2,
     .rope_base = 150000,
     .epsilon = 1e-5f},
    {.name = "deepseek2",
     .family = ATTENTION_MLA,
     .ffn_norm = "ffn_norm.weight",
     .router_bias = "exp_probs_b.bias",
     .shared = true,
     .dense_first = true,
     .rope_base = 10000,
     .epsilon = 1e-6f},
};
#define COUNT (sizeof architectures / sizeof architectures[0])

size_t synth_architecture_count(void)
{
    return COUNT;
}

const struct synth_architecture *synth_architecture_at(size_t i)
{
    return &architectures[i];
}

/* The first of a list of conditions that is true is what does not fit. */
struct misfit {
    bool is;
    const char *what;
};

static const char *first_misfit(const struct misfit *m, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (m[i].is)
            return m[i].what;
    return NULL;
}

static const char *attention_misfit(const struct synth_architecture *r, const struct model *m,
                                    size_t i)
{
    const struct attention *a = &m->layers[i].attention, *first = &m->layers[0].attention;
    bool windowed = r->window_period && i % r->window_period < r->window_period - 1;
    const struct misfit checks[] = {
        {a->family != r->family, "another family of attention"},
        {a->keys_are_values, "keys that are values"},
        {a->output_gate, "a gate behind its attention"},
        {a->borrows_cache, "another layer's keys"},
        {a->index_heads != 0, "an indexer"},
        {a->o_lora_rank != 0, "a low-rank output"},
        {a->qk_norm != r->qk_norm,
         r->qk_norm ? "no norms of queries and keys" : "norms of queries and keys"},
        {a->qkv_bias != r->qkv_bias, r->qkv_bias ? "no biases of queries" : "biases of queries"},
        {a->output_bias != r->output_bias, "another form of attention output"},
        {a->sinks != r->sinks, r->sinks ? "no attention sinks" : "attention sinks"},
        {(a->window != 0) != windowed, windowed ? "no attention window" : "an attention window"},
        {a->heads != first->heads || a->kv_heads != first->kv_heads ||
             a->head_dim != first->head_dim || a->v_head_dim != first->v_head_dim ||
             a->q_lora_rank != first->q_lora_rank || a->kv_lora_rank != first->kv_lora_rank ||
             a->nope_head_dim != first->nope_head_dim || a->rope_head_dim != first->rope_head_dim,
         "heads other than layer 0's"}};
    return first_misfit(checks, sizeof checks / sizeof checks[0]);
}

static const char *expert_misfit(const struct synth_architecture *r, const struct model *m,
                                 const struct ffn *f)
{
    const struct ffn *last = &m->layers[m->layer_count - 1].ffn;
    bool bias_allowed = r->router_bias && !r->router_bias_must;
    const struct misfit checks[] = {
        {f->dense_width != 0, "a dense part beside its experts"},
        {f->expert_io_width != m->hidden, "experts of a latent width"},
        {f->shared_gate != r->shared_gate,
         r->shared_gate ? "no gate of the shared expert" : "a gate of the shared expert"},
        {f->shared_width && !r->shared, "a shared expert"},
        {r->shared_gate && f->shared_width == 0, "no shared expert"},
        {f->router_bias != r->router_bias_must && !bias_allowed,
         f->router_bias ? "a router with a bias" : "a router without bias"},
        {f->expert_bias != r->expert_bias,
         f->expert_bias ? "experts with biases" : "experts without biases"},
        {f->experts != last->experts || f->top_k != last->top_k ||
             f->expert_width != last->expert_width || f->shared_width != last->shared_width ||
             f->shared_experts != last->shared_experts || f->router_bias != last->router_bias,
         "experts other than the last layer's"}};
    return first_misfit(checks, sizeof checks / sizeof checks[0]);
}

static const char *ffn_misfit(const struct synth_architecture *r, const struct model *m, size_t i)
{
    const struct ffn *f = &m->layers[i].ffn;
    bool any_experts = model_experts(m) != 0;
    if (f->matrices != 3)
        return "a feed-forward part without gate";
    if (f->experts)
        return expert_misfit(r, m, f);
    if (!any_experts)
        return r->dense_only ? NULL : "no experts";
    if (!r->dense_first || (i > 0 && m->layers[i - 1].ffn.experts))
        return "no experts";
    return f->dense_width != m->layers[0].ffn.dense_width ? "another width than layer 0" : NULL;
}

const char *synth_misfit(char text[SYNTH_REASON_MAX], const struct synth_architecture *a,
                         const struct model *m)
{
    for (size_t i = 0; i < m->layer_count; i++) {
        const char *what = attention_misfit(a, m, i);
        if (!what)
            what = ffn_misfit(a, m, i);
        if (what) {
            snprintf(text, SYNTH_REASON_MAX, "layer %zu has %s", i, what);
            return text;
        }
    }
    return m->positions ? "it has a table of positions" : NULL;
}

enum status synth_architecture_named(const struct synth_architecture **out, const char *name,
                                     struct diag *dg)
{
    char known[256] = "";
    for (size_t i = 0; i < COUNT; i++) {
        if (!strcmp(architectures[i].name, name)) {
            *out = &architectures[i];
            return ST_OK;
        }
        text_list(known, sizeof known, ", ", "%s", architectures[i].name);
    }
    return diag_set(dg, ST_MISSING, "no architecture '%s' can be made up: there are %s", name,
                    known);
}

/* Without a fit, the reason of the row that the model resembles most: the last one of its attention. */
enum status synth_architecture_pick(const struct synth_architecture **out, const struct model *m,
                                    const char *name, struct diag *dg)
{
    char text[SYNTH_REASON_MAX];
    const struct synth_architecture *like = NULL;
    enum status st = name ? synth_architecture_named(&like, name, dg) : ST_OK;
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < COUNT && !name; i++) {
        const struct synth_architecture *a = &architectures[i];
        if (a->only_called && !strstr(m->name, a->only_called))
            continue;
        if (!synth_misfit(text, a, m)) {
            *out = a;
            return ST_OK;
        }
        const struct attention *first = &m->layers[0].attention;
        if (!like || (a->family == first->family && a->qk_norm == first->qk_norm))
            like = a;
    }
    *out = like;
    const char *why = synth_misfit(text, like, m);
    return why ? diag_set(dg, ST_UNSUPPORTED, "%s cannot be written as %s: %s", m->name, like->name,
                          why)
               : ST_OK;
}
