/* tensor_table.c -- see tensor_table.h. */
#include "kernels/graph/tensor_table.h"

#include <stdio.h>
#include <string.h>

/* A length that a tensor's extent must have. */
enum length {
    LENGTH_ONE,
    LENGTH_HIDDEN,
    LENGTH_VOCAB,
    LENGTH_ROPE_PAIRS,
    LENGTH_QUERIES, /* heads * head */
    LENGTH_KEYS,    /* kv heads * head */
    LENGTH_VALUES,
    LENGTH_ATTENDED, /* heads * value head */
    LENGTH_Q_NORM,
    LENGTH_K_NORM,
    LENGTH_HEADS,
    LENGTH_Q_RANK,
    LENGTH_KV_RANK,
    LENGTH_LATENT,   /* kv rank + rotated part */
    LENGTH_EXPANDED, /* heads * (unrotated part + value head) */
    LENGTH_UNROTATED,
    LENGTH_KEY_EXPANSION,   /* heads * kv rank */
    LENGTH_VALUE_EXPANSION, /* heads * value head */
    LENGTH_EXPERTS,
    LENGTH_EXPERT_WIDTHS, /* experts * width */
    LENGTH_EXPERT_OUTS,   /* experts * hidden */
    LENGTH_DENSE,
    LENGTH_SHARED
};

struct row {
    const char *name;
    enum tensor_kind kind;
    size_t offset;
    enum length rows, cols;
};

#define AT(member) offsetof(struct layer_weights, member)
#define VECTOR(n, member, length)                                                                  \
    {                                                                                              \
        n, TENSOR_VECTOR, AT(member), LENGTH_ONE, LENGTH_##length                                  \
    }
#define BIAS(n, member, length)                                                                    \
    {                                                                                              \
        n, TENSOR_BIAS, AT(member), LENGTH_ONE, LENGTH_##length                                    \
    }
#define MATRIX(n, member, rows, cols)                                                              \
    {                                                                                              \
        n, TENSOR_MATRIX, AT(member), LENGTH_##rows, LENGTH_##cols                                 \
    }
#define EXPERTS(n)                                                                                 \
    {                                                                                              \
        n, TENSOR_EXPERTS, 0, LENGTH_ONE, LENGTH_ONE                                               \
    }

static const struct row layer_rows[] = {
    VECTOR("attn_norm.weight", attn_norm, HIDDEN),
    VECTOR("attn_q_norm.weight", q_norm, Q_NORM),
    VECTOR("attn_k_norm.weight", k_norm, K_NORM),
    VECTOR("attn_q_a_norm.weight", q_a_norm, Q_RANK),
    VECTOR("attn_kv_a_norm.weight", kv_a_norm, KV_RANK),
    VECTOR("attn_sinks.weight", sinks, HEADS),
    VECTOR("attn_sinks", sinks, HEADS),
    VECTOR("exp_probs_b.bias", select_bias, EXPERTS),
    VECTOR("exp_probs_b", select_bias, EXPERTS),
    VECTOR("ffn_gate_exps.bias", gate_bias, EXPERT_WIDTHS),
    VECTOR("ffn_up_exps.bias", up_bias, EXPERT_WIDTHS),
    VECTOR("ffn_down_exps.bias", down_bias, EXPERT_OUTS),
    MATRIX("attn_k.weight", k, KEYS, HIDDEN),
    MATRIX("attn_v.weight", v, VALUES, HIDDEN),
    MATRIX("attn_output.weight", out, HIDDEN, ATTENDED),
    MATRIX("attn_q.weight", q, QUERIES, HIDDEN),
    MATRIX("attn_q_a.weight", q_a, Q_RANK, HIDDEN),
    MATRIX("attn_q_b.weight", q_b, QUERIES, Q_RANK),
    MATRIX("attn_kv_a_mqa.weight", kv_a, LATENT, HIDDEN),
    MATRIX("attn_kv_b.weight", kv_b, EXPANDED, KV_RANK),
    MATRIX("attn_k_b.weight", k_b, KEY_EXPANSION, UNROTATED),
    MATRIX("attn_v_b.weight", v_b, VALUE_EXPANSION, KV_RANK),
    MATRIX("ffn_gate_inp.weight", router, EXPERTS, HIDDEN),
    MATRIX("ffn_gate.weight", gate, DENSE, HIDDEN),
    MATRIX("ffn_up.weight", up, DENSE, HIDDEN),
    MATRIX("ffn_down.weight", down, HIDDEN, DENSE),
    MATRIX("ffn_gate_shexp.weight", shared_gate, SHARED, HIDDEN),
    MATRIX("ffn_up_shexp.weight", shared_up, SHARED, HIDDEN),
    MATRIX("ffn_down_shexp.weight", shared_down, HIDDEN, SHARED),
    MATRIX("ffn_gate_inp_shexp.weight", shared_router, ONE, HIDDEN),
    BIAS("attn_q.bias", q, QUERIES),
    BIAS("attn_k.bias", k, KEYS),
    BIAS("attn_v.bias", v, VALUES),
    BIAS("attn_output.bias", out, HIDDEN),
    BIAS("ffn_gate_inp.bias", router, EXPERTS),
    EXPERTS("ffn_gate_exps.weight"),
    EXPERTS("ffn_up_exps.weight"),
    EXPERTS("ffn_gate_up_exps.weight"),
    EXPERTS("ffn_down_exps.weight"),
};

#define GLOBAL_AT(member) offsetof(struct graph_weights, member)
static const struct row global_rows[] = {
    {"token_embd.weight", TENSOR_ROWS, GLOBAL_AT(embedding), LENGTH_VOCAB, LENGTH_HIDDEN},
    {"output.weight", TENSOR_MATRIX, GLOBAL_AT(head), LENGTH_VOCAB, LENGTH_HIDDEN},
    {"output_norm.weight", TENSOR_VECTOR, GLOBAL_AT(final_norm), LENGTH_ONE, LENGTH_HIDDEN},
    {"rope_freqs.weight", TENSOR_VECTOR, GLOBAL_AT(numbers.rope.divisors), LENGTH_ONE,
     LENGTH_ROPE_PAIRS},
};

static uint64_t length_of(const struct graph_weights *w, size_t layer_idx, enum length length)
{
    const struct model *m = w->model;
    const struct layer *l = &m->layers[layer_idx == SIZE_MAX ? 0 : layer_idx];
    const struct attention *a = &l->attention;
    const struct ffn *f = &l->ffn;
    uint64_t head = w->recipe->latent ? a->nope_head_dim + a->rope_head_dim : a->head_dim;
    bool all_heads = w->recipe->qk_norm == NORM_ALL;
    switch (length) {
    case LENGTH_ONE:
        return 1;
    case LENGTH_HIDDEN:
        return m->hidden;
    case LENGTH_VOCAB:
        return m->vocab;
    case LENGTH_ROPE_PAIRS:
        return w->numbers.rope_dims / 2;
    case LENGTH_QUERIES:
        return a->heads * head;
    case LENGTH_KEYS:
        return a->kv_heads * a->head_dim;
    case LENGTH_VALUES:
        return a->kv_heads * a->v_head_dim;
    case LENGTH_ATTENDED:
        return a->heads * a->v_head_dim;
    case LENGTH_Q_NORM:
        return all_heads ? a->heads * a->head_dim : a->head_dim;
    case LENGTH_K_NORM:
        return all_heads ? a->kv_heads * a->head_dim : a->head_dim;
    case LENGTH_HEADS:
        return a->heads;
    case LENGTH_Q_RANK:
        return a->q_lora_rank;
    case LENGTH_KV_RANK:
        return a->kv_lora_rank;
    case LENGTH_LATENT:
        return a->kv_lora_rank + a->rope_head_dim;
    case LENGTH_EXPANDED:
        return a->heads * (a->nope_head_dim + a->v_head_dim);
    case LENGTH_UNROTATED:
        return a->nope_head_dim;
    case LENGTH_KEY_EXPANSION:
        return a->heads * a->kv_lora_rank;
    case LENGTH_VALUE_EXPANSION:
        return a->heads * a->v_head_dim;
    case LENGTH_EXPERTS:
        return f->experts;
    case LENGTH_EXPERT_WIDTHS:
        return f->experts * f->expert_width;
    case LENGTH_EXPERT_OUTS:
        return f->experts * m->hidden;
    case LENGTH_DENSE:
        return f->dense_width;
    case LENGTH_SHARED:
        return f->shared_width;
    }
    return 0;
}

/* Tensors that exist only with another choice of the recipe's. */
static bool belongs(const struct graph_weights *w, size_t offset)
{
    if (offset == AT(q_norm) || offset == AT(k_norm))
        return w->recipe->qk_norm != NORM_NONE;
    if (offset == AT(kv_a) || offset == AT(kv_b) || offset == AT(q_a) || offset == AT(q_b) ||
        offset == AT(k_b) || offset == AT(v_b))
        return w->recipe->latent;
    if (offset == AT(k) || offset == AT(v))
        return !w->recipe->latent;
    return true;
}

void tensor_name_split(struct gguf_text *name, size_t *layer_idx)
{
    char text[32];
    unsigned number;
    int used = 0;
    size_t n = name->length < sizeof text - 1 ? name->length : sizeof text - 1;
    memcpy(text, name->data, n);
    text[n] = 0;
    *layer_idx = SIZE_MAX;
    if (sscanf(text, "blk.%9u.%n", &number, &used) == 1 && used > 0) {
        *layer_idx = number;
        name->data += used;
        name->length -= (size_t)used;
    }
}

bool tensor_place_find(struct tensor_place *out, const struct graph_weights *w, size_t layer_idx,
                       struct gguf_text name)
{
    bool global = layer_idx == SIZE_MAX;
    const struct row *rows = global ? global_rows : layer_rows;
    size_t count = global ? sizeof global_rows / sizeof *rows : sizeof layer_rows / sizeof *rows;
    static const struct row ffn_norm = VECTOR("", ffn_norm, HIDDEN);
    const struct row *found = NULL;
    if (!global && gguf_text_is(name, w->recipe->ffn_norm))
        found = &ffn_norm;
    for (size_t i = 0; i < count && !found; i++)
        if (gguf_text_is(name, rows[i].name))
            found = &rows[i];
    if (!found || (!global && !belongs(w, found->offset) && found->kind != TENSOR_EXPERTS))
        return false;
    *out = (struct tensor_place){found->name, found->kind, found->offset,
                                 length_of(w, layer_idx, found->rows),
                                 length_of(w, layer_idx, found->cols)};
    return true;
}

static bool has_matrix(const struct matrix *m)
{
    return m->weights.rows > 0;
}

static const char *missing_attention(const struct graph_weights *w, const struct layer_weights *l)
{
    if (!has_matrix(&l->q) && !has_matrix(&l->q_b))
        return l->q_a_norm ? "attn_q_b.weight" : "attn_q.weight";
    if (!has_matrix(&l->out))
        return "attn_output.weight";
    if (w->recipe->qk_norm != NORM_NONE && (!l->q_norm || !l->k_norm))
        return l->q_norm ? "attn_k_norm.weight" : "attn_q_norm.weight";
    if (!w->recipe->latent)
        return has_matrix(&l->k) ? has_matrix(&l->v) ? NULL : "attn_v.weight" : "attn_k.weight";
    if (has_matrix(&l->q_b) && (!has_matrix(&l->q_a) || !l->q_a_norm))
        return l->q_a_norm ? "attn_q_a.weight" : "attn_q_a_norm.weight";
    if (!has_matrix(&l->kv_a) || !l->kv_a_norm)
        return l->kv_a_norm ? "attn_kv_a_mqa.weight" : "attn_kv_a_norm.weight";
    bool split = has_matrix(&l->k_b) && has_matrix(&l->v_b);
    return has_matrix(&l->kv_b) || split ? NULL : "attn_kv_b.weight";
}

/* What only some architectures have, and a bias that only some layers have. */
static const char *missing_extra(const struct graph_weights *w, const struct layer_weights *l,
                                 const struct ffn *f)
{
    const struct layer_weights *first = &w->layers[0];
    unsigned must = w->recipe->must, routed = f->experts ? must : 0;
    bool select = w->recipe->latent && w->numbers.gating == GATING_SIGMOID;
    const struct {
        bool needed, there;
        const char *name;
    } list[] = {
        {must & MUST_QKV_BIAS || first->q.bias, l->q.bias, "attn_q.bias"},
        {must & MUST_QKV_BIAS || first->k.bias, l->k.bias, "attn_k.bias"},
        {must & MUST_QKV_BIAS || first->v.bias, l->v.bias, "attn_v.bias"},
        {must & MUST_OUTPUT_BIAS || first->out.bias, l->out.bias, "attn_output.bias"},
        {must & MUST_SINKS, l->sinks, "attn_sinks.weight"},
        {routed & MUST_ROUTER_BIAS, l->router.bias, "ffn_gate_inp.bias"},
        {routed & MUST_EXPERT_BIAS, l->gate_bias, "ffn_gate_exps.bias"},
        {routed & MUST_EXPERT_BIAS, l->up_bias, "ffn_up_exps.bias"},
        {routed & MUST_EXPERT_BIAS, l->down_bias, "ffn_down_exps.bias"},
        {routed & MUST_SHARED, has_matrix(&l->shared_down), "ffn_down_shexp.weight"},
        {routed & MUST_SHARED, has_matrix(&l->shared_router), "ffn_gate_inp_shexp.weight"},
        /* DeepSeek-V3 (arXiv 2412.19437, section 2.1.2): where experts are sigmoids, a bias has its say in the choice. */
        {select && f->experts, l->select_bias, "exp_probs_b.bias"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].needed && !list[i].there)
            return list[i].name;
    return NULL;
}

const char *tensor_missing(const struct graph_weights *w, size_t layer_idx)
{
    const struct layer_weights *l = &w->layers[layer_idx];
    const struct ffn *f = &w->model->layers[layer_idx].ffn;
    const char *missing = missing_attention(w, l);
    if (missing)
        return missing;
    if (!l->attn_norm || !l->ffn_norm)
        return l->attn_norm ? w->recipe->ffn_norm : "attn_norm.weight";
    if (f->experts && !has_matrix(&l->router))
        return "ffn_gate_inp.weight";
    if (!f->experts && !has_matrix(&l->gate))
        return "ffn_gate.weight";
    if (!f->experts && !(has_matrix(&l->up) && has_matrix(&l->down)))
        return has_matrix(&l->up) ? "ffn_down.weight" : "ffn_up.weight";
    if (f->shared_width && !(has_matrix(&l->shared_gate) && has_matrix(&l->shared_up)))
        return has_matrix(&l->shared_up) ? "ffn_gate_shexp.weight" : "ffn_up_shexp.weight";
    return missing_extra(w, l,
                         f); /* a layer has a shared expert because its down matrix is there */
}
