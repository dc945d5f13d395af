/* synth_tensors.c -- see synth_tensors.h: the list of tensors. Formats come from the mix as in models/shape.c, so that
 * the bytes are those that the model is said to have. */
#include "kernels/synth/synth_tensors.h"

#include <stdio.h>

#define BIAS_FAN_IN 2500 /* biases, sinks: a standard deviation of 0.02 */

struct lister {
    const struct model *m;
    const struct synth_architecture *a;
    synth_tensor_fn *fn;
    void *self;
    size_t layer;
    enum status status; /* of the first call that failed */
    struct diag *dg;
};

static void emit(struct lister *s, const struct synth_tensor *t)
{
    if (s->status == ST_OK)
        s->status = s->fn(s->self, t, s->dg);
}

static struct synth_tensor named(const struct lister *s, const char *name)
{
    struct synth_tensor t = {.extent = {1, 1, 1}};
    snprintf(t.name, sizeof t.name, "blk.%zu.%s", s->layer, name);
    return t;
}

static const struct quant_format *vector_format(const struct lister *s)
{
    return s->m->quant.group[GROUP_OTHER];
}

static void vector(struct lister *s, const char *name, uint64_t count, enum synth_fill fill)
{
    struct synth_tensor t = named(s, name);
    t.format = vector_format(s);
    t.dims = 1;
    t.extent[0] = count;
    t.fill = fill;
    t.fan_in = BIAS_FAN_IN;
    emit(s, &t);
}

/* `count` matrices of rows x cols in one tensor, if count > 0; else one in a tensor of two dimensions. */
static void matrices(struct lister *s, const char *name, enum tensor_group group,
                     enum quant_part part, uint64_t rows, uint64_t cols, uint64_t count)
{
    struct synth_tensor t = named(s, name);
    t.format = quant_fit(
        quant_mix_format(&s->m->quant, (int)group, part, s->layer, s->m->layer_count), cols);
    t.dims = count ? 3 : 2;
    t.extent[0] = cols;
    t.extent[1] = rows;
    t.extent[2] = count ? count : 1;
    t.fill = SYNTH_WEIGHTS;
    t.fan_in = cols;
    emit(s, &t);
}

static void attention_matrix(struct lister *s, const char *name, enum quant_part part,
                             uint64_t rows, uint64_t cols)
{
    matrices(s, name, GROUP_ATTENTION, part, rows, cols, 0);
}

static void list_gqa(struct lister *s, const struct attention *a)
{
    uint64_t hidden = s->m->hidden, value_dim = a->v_head_dim ? a->v_head_dim : a->head_dim;
    uint64_t q = a->heads * a->head_dim, k = a->kv_heads * a->head_dim;
    uint64_t v = a->kv_heads * value_dim;
    attention_matrix(s, "attn_q.weight", QUANT_QUERY, q, hidden);
    attention_matrix(s, "attn_k.weight", QUANT_KEY, k, hidden);
    attention_matrix(s, "attn_v.weight", QUANT_VALUE, v, hidden);
    attention_matrix(s, "attn_output.weight", QUANT_ATTENTION_OUT, hidden, a->heads * value_dim);
    if (a->qkv_bias) {
        vector(s, "attn_q.bias", q, SYNTH_WEIGHTS);
        vector(s, "attn_k.bias", k, SYNTH_WEIGHTS);
        vector(s, "attn_v.bias", v, SYNTH_WEIGHTS);
    }
    if (a->qk_norm) {
        vector(s, "attn_q_norm.weight", s->a->qk_norm_wide ? q : a->head_dim, SYNTH_ONES);
        vector(s, "attn_k_norm.weight", s->a->qk_norm_wide ? k : a->head_dim, SYNTH_ONES);
    }
}

static void list_mla(struct lister *s, const struct attention *a)
{
    uint64_t hidden = s->m->hidden, queries = a->heads * (a->nope_head_dim + a->rope_head_dim);
    if (a->q_lora_rank) {
        attention_matrix(s, "attn_q_a.weight", QUANT_QUERY, a->q_lora_rank, hidden);
        vector(s, "attn_q_a_norm.weight", a->q_lora_rank, SYNTH_ONES);
        attention_matrix(s, "attn_q_b.weight", QUANT_QUERY, queries, a->q_lora_rank);
    } else {
        attention_matrix(s, "attn_q.weight", QUANT_QUERY, queries, hidden);
    }
    attention_matrix(s, "attn_kv_a_mqa.weight", QUANT_ANY, a->kv_lora_rank + a->rope_head_dim,
                     hidden);
    vector(s, "attn_kv_a_norm.weight", a->kv_lora_rank, SYNTH_ONES);
    attention_matrix(s, "attn_kv_b.weight", QUANT_ANY,
                     a->heads * (a->nope_head_dim + a->v_head_dim), a->kv_lora_rank);
    attention_matrix(s, "attn_output.weight", QUANT_ATTENTION_OUT, hidden,
                     a->heads * a->v_head_dim);
}

/* gate, up and down of a feed-forward part; `kind` stands behind their names: "", "_exps", "_shexp". */
static void list_three(struct lister *s, const char *kind, enum tensor_group group, uint64_t width,
                       uint64_t count)
{
    static const char *const parts[] = {"gate", "up", "down"};
    for (int part = QUANT_GATE; part <= QUANT_DOWN; part++) {
        char name[40];
        bool down = part == QUANT_DOWN;
        snprintf(name, sizeof name, "ffn_%s%s.weight", parts[part], kind);
        matrices(s, name, group, (enum quant_part)part, down ? s->m->hidden : width,
                 down ? width : s->m->hidden, count);
    }
}

/* One row an expert. */
static void expert_bias(struct lister *s, const char *name, uint64_t width, uint64_t experts)
{
    struct synth_tensor t = named(s, name);
    t.format = vector_format(s);
    t.dims = 2;
    t.extent[0] = width;
    t.extent[1] = experts;
    t.fill = SYNTH_WEIGHTS;
    t.fan_in = BIAS_FAN_IN;
    emit(s, &t);
}

static void list_experts(struct lister *s, const struct ffn *f)
{
    matrices(s, "ffn_gate_inp.weight", GROUP_ROUTER, QUANT_ANY, f->experts, s->m->hidden, 0);
    list_three(s, "_exps", GROUP_EXPERT, f->expert_width, f->experts);
    if (f->router_bias)
        vector(s, s->a->router_bias, f->experts, SYNTH_WEIGHTS);
    if (f->expert_bias) {
        expert_bias(s, "ffn_gate_exps.bias", f->expert_width, f->experts);
        expert_bias(s, "ffn_up_exps.bias", f->expert_width, f->experts);
        expert_bias(s, "ffn_down_exps.bias", s->m->hidden, f->experts);
    }
    if (f->shared_width)
        list_three(s, "_shexp", GROUP_SHARED_EXPERT, f->shared_width, 0);
    if (f->shared_gate) {
        struct synth_tensor t = named(s, "ffn_gate_inp_shexp.weight");
        t.format = vector_format(s);
        t.dims = 1;
        t.extent[0] = t.fan_in = s->m->hidden;
        t.fill = SYNTH_WEIGHTS;
        emit(s, &t);
    }
}

static void list_layer(struct lister *s)
{
    const struct layer *l = &s->m->layers[s->layer];
    vector(s, "attn_norm.weight", s->m->hidden, SYNTH_ONES);
    if (l->attention.family == ATTENTION_MLA)
        list_mla(s, &l->attention);
    else
        list_gqa(s, &l->attention);
    if (l->attention.output_bias)
        vector(s, "attn_output.bias", s->m->hidden, SYNTH_WEIGHTS);
    if (l->attention.sinks)
        vector(s, "attn_sinks.weight", l->attention.heads, SYNTH_WEIGHTS);
    vector(s, s->a->ffn_norm, s->m->hidden, SYNTH_ONES);
    if (l->ffn.experts)
        list_experts(s, &l->ffn);
    else
        list_three(s, "", GROUP_DENSE_FFN, l->ffn.dense_width, 0);
}

/* Embedding, last norm, head. */
static void list_ends(struct lister *s)
{
    const struct model *m = s->m;
    struct synth_tensor t = {.name = "token_embd.weight",
                             .dims = 2,
                             .extent = {m->hidden, m->vocab, 1},
                             .fill = SYNTH_WEIGHTS,
                             .fan_in = m->hidden};
    int group = m->tied_embeddings ? GROUP_HEAD : GROUP_EMBEDDING;
    t.format =
        quant_fit(quant_mix_format(&m->quant, group, QUANT_ANY, 0, m->layer_count), m->hidden);
    emit(s, &t);
    struct synth_tensor norm = {.name = "output_norm.weight",
                                .format = vector_format(s),
                                .dims = 1,
                                .extent = {m->hidden, 1, 1},
                                .fill = SYNTH_ONES};
    emit(s, &norm);
    if (m->tied_embeddings)
        return;
    snprintf(t.name, sizeof t.name, "output.weight");
    t.format =
        quant_fit(quant_mix_format(&m->quant, GROUP_HEAD, QUANT_ANY, 0, m->layer_count), m->hidden);
    emit(s, &t);
}

enum status synth_tensors(const struct model *m, const struct synth_architecture *a,
                          synth_tensor_fn *fn, void *self, struct diag *dg)
{
    struct lister s = {.m = m, .a = a, .fn = fn, .self = self, .dg = dg};
    list_ends(&s);
    for (s.layer = 0; s.layer < m->layer_count; s.layer++)
        list_layer(&s);
    return s.status;
}
