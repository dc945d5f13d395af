/* synth_model.c -- models from figures, and in formats of GGUF; see synth_shape.h. */
#include "kernels/synth/synth_shape.h"

#include "kernels/formats/block_format.h"
#include "models/desc_model.h"
#include "models/shape.h"

#include <inttypes.h>
#include <stdlib.h>

#define CONTEXT_DEFAULT 4096
#define WINDOW_DEFAULT  128

static uint64_t given(uint64_t figure, uint64_t otherwise)
{
    return figure ? figure : otherwise;
}

static struct attention attention_of(const struct synth_architecture *r,
                                     const struct synth_figures *f, size_t layer)
{
    uint64_t head_dim = given(f->head_dim, f->hidden / f->heads);
    bool windowed = r->window_period && layer % r->window_period < r->window_period - 1;
    struct attention a = {.family = r->family,
                          .heads = f->heads,
                          .qk_norm = r->qk_norm,
                          .qkv_bias = r->qkv_bias,
                          .output_bias = r->output_bias,
                          .sinks = r->sinks,
                          .window = windowed ? given(f->window, WINDOW_DEFAULT) : 0};
    if (r->family == ATTENTION_MLA) {
        a.v_head_dim = a.nope_head_dim = head_dim;
        a.rope_head_dim = head_dim / 2;
        a.kv_lora_rank = 4 * head_dim;
    } else {
        a.kv_heads = given(f->kv_heads, f->heads);
        a.head_dim = head_dim;
    }
    return a;
}

static struct ffn ffn_of(const struct synth_architecture *r, const struct synth_figures *f)
{
    uint64_t shared = given(f->shared_width, r->shared_gate ? f->expert_width : 0);
    return (struct ffn){.matrices = 3,
                        .experts = f->experts,
                        .top_k = f->top_k,
                        .expert_width = f->expert_width,
                        .expert_io_width = f->hidden,
                        .shared_width = shared,
                        .shared_experts = shared != 0,
                        .shared_gate = r->shared_gate,
                        .router_bias = r->router_bias_must,
                        .expert_bias = r->expert_bias};
}

static enum status check_needed(const struct synth_figures *f, struct diag *dg)
{
    const struct {
        uint64_t figure;
        const char *name;
    } needed[] = {{f->layers, "layers"},
                  {f->hidden, "hidden"},
                  {f->heads, "heads"},
                  {f->vocab, "vocab"},
                  {f->experts, "experts"},
                  {f->top_k, "top-k"},
                  {f->expert_width, "expert-width"}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].figure == 0)
            return diag_set(dg, ST_USAGE, "without MODEL, --%s is needed", needed[i].name);
    if (f->head_dim == 0 && f->hidden % f->heads)
        return diag_set(dg, ST_USAGE, "--hidden is no multiple of --heads: --head-dim is needed");
    return ST_OK;
}

/* A head that no engine could turn: rotary positions are pairs of numbers. */
static enum status check_rotary(const struct model *m, struct diag *dg)
{
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct attention *a = &m->layers[i].attention;
        uint64_t turned = a->family == ATTENTION_MLA ? a->rope_head_dim : a->head_dim;
        if (turned % 2)
            return diag_set(dg, ST_RANGE,
                            "--head-dim: rotary positions turn pairs of numbers, and %" PRIu64
                            " of a head are odd",
                            turned);
    }
    return ST_OK;
}

/* What does not fit together now is the figures' fault and not the file's the model came from. */
static enum status complete(struct model *m, struct diag *dg)
{
    const char *origin = m->origin;
    m->origin = "the figures given";
    enum status st = desc_model_complete(m, dg);
    m->origin = origin;
    return st == ST_OK ? check_rotary(m, dg) : st;
}

enum status synth_model_new(struct model **out, const struct synth_architecture *r,
                            const struct synth_figures *f, struct diag *dg)
{
    static const char *const own_format[GROUP_MAX] = {NULL};
    enum status st = check_needed(f, dg);
    if (st != ST_OK)
        return st;
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return diag_no_memory(dg);
    m->name = m->title = r->name;
    m->origin = "the figures given";
    m->source = "figures given by hand";
    m->grade = "D";
    m->hidden = f->hidden;
    m->vocab = f->vocab;
    m->max_context = given(f->context, CONTEXT_DEFAULT);
    m->layer_count = (size_t)f->layers;
    m->layers = arena_alloc(&m->arena, m->layer_count * sizeof *m->layers);
    st = m->layers ? desc_model_formats(m, "bf16", own_format, dg) : diag_no_memory(dg);
    for (size_t i = 0; i < m->layer_count && st == ST_OK; i++) {
        m->layers[i].attention = attention_of(r, f, i);
        m->layers[i].ffn = ffn_of(r, f);
    }
    if (st == ST_OK)
        st = complete(m, dg);
    if (st == ST_OK)
        *out = m;
    else
        model_free(m);
    return st;
}

static void change_layer(struct layer *l, const struct synth_figures *f)
{
    struct attention *a = &l->attention;
    a->heads = given(f->heads, a->heads);
    if (a->window)
        a->window = given(f->window, a->window);
    if (a->family == ATTENTION_GQA) {
        a->kv_heads = given(f->kv_heads, a->kv_heads);
        a->head_dim = given(f->head_dim, a->head_dim);
    }
    if (l->ffn.experts == 0)
        return;
    l->ffn.experts = given(f->experts, l->ffn.experts);
    l->ffn.top_k = given(f->top_k, l->ffn.top_k);
    l->ffn.expert_width = given(f->expert_width, l->ffn.expert_width);
    if (l->ffn.shared_width)
        l->ffn.shared_width = given(f->shared_width, l->ffn.shared_width);
    if (f->hidden && l->ffn.expert_io_width)
        l->ffn.expert_io_width = f->hidden;
}

enum status synth_model_change(struct model *m, const struct synth_figures *f, struct diag *dg)
{
    if (f->layers > m->layer_count)
        return diag_set(dg, ST_RANGE, "%s has %zu layers, %" PRIu64 " were asked for", m->name,
                        m->layer_count, f->layers);
    m->layer_count = (size_t)given(f->layers, m->layer_count);
    m->hidden = given(f->hidden, m->hidden);
    m->vocab = given(f->vocab, m->vocab);
    m->max_context = given(f->context, m->max_context);
    for (size_t i = 0; i < m->layer_count; i++)
        change_layer(&m->layers[i], f);
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].ffn.top_k > m->layers[i].ffn.experts)
            return diag_set(dg, ST_RANGE,
                            "--top-k: a token uses %" PRIu64 " experts of %" PRIu64 " in layer %zu",
                            m->layers[i].ffn.top_k, m->layers[i].ffn.experts, i);
    return complete(m, dg);
}

static enum status check_formats(const struct model *m, struct diag *dg)
{
    for (int g = 0; g < GROUP_MAX; g++)
        if (m->quant.group[g]->gguf_type < 0)
            return diag_set(
                dg, ST_UNSUPPORTED,
                "%s: GGUF has no format %s: choose another with --quant (q4_k_m, mxfp4_moe)",
                m->name, m->quant.group[g]->label);
    return ST_OK;
}

enum status synth_model_quantise(struct model *m, const char *quant, struct diag *dg)
{
    enum status st = model_requantise(m, quant ? quant : "native", dg);
    if (st != ST_OK)
        return st;
    m->quant.group[GROUP_OTHER] = m->quant.group[GROUP_ROUTER] = quant_find("f32");
    st = check_formats(m, dg);
    return st == ST_OK ? shape_fill(m, dg) : st;
}
