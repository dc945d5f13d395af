/* shape.c -- see shape.h. */
#include "models/shape.h"

#include "base/fixed.h"

#include <string.h>

#define PARAMS_MAX UINT64_C(1000000000000000)

struct lister {
    tensor_fn *fn;
    void *self;
    uint64_t hidden;
};

static void matrix(const struct lister *s, enum tensor_group group, int part, uint64_t rows,
                   uint64_t cols)
{
    s->fn(s->self, &(struct tensor){group, part, rows, cols, 1, false});
}

/* Kept in the format of norms whatever the mix: too small or too narrow to be quantised. */
static void vector(const struct lister *s, enum tensor_group group, uint64_t rows, uint64_t cols)
{
    s->fn(s->self, &(struct tensor){group, QUANT_ANY, rows, cols, 1, true});
}

static uint64_t value_dim(const struct attention *a)
{
    return a->v_head_dim ? a->v_head_dim : a->head_dim;
}

static void list_gqa(const struct lister *s, const struct attention *a)
{
    uint64_t keys = a->kv_heads * a->head_dim;
    uint64_t values = a->keys_are_values ? 0 : a->kv_heads * value_dim(a);
    uint64_t queries = a->heads * a->head_dim, outputs = a->heads * value_dim(a);
    uint64_t gates = a->output_gate ? outputs : 0;
    matrix(s, GROUP_ATTENTION, QUANT_QUERY, queries + gates, s->hidden);
    matrix(s, GROUP_ATTENTION, QUANT_KEY, keys, s->hidden);
    if (values)
        matrix(s, GROUP_ATTENTION, QUANT_VALUE, values, s->hidden);
    matrix(s, GROUP_ATTENTION, QUANT_ATTENTION_OUT, s->hidden, outputs);
    if (a->qkv_bias)
        vector(s, GROUP_OTHER, 1, queries + keys + values);
    if (a->qk_norm)
        vector(s, GROUP_OTHER, 1, 2 * a->head_dim);
}

/* DeepSeek sparse attention: queries from the low-rank latent, one key, one weight a head. */
static void list_indexer(const struct lister *s, const struct attention *a)
{
    if (a->index_heads == 0 || a->index_borrowed)
        return;
    uint64_t query_input = a->q_lora_rank ? a->q_lora_rank : s->hidden;
    matrix(s, GROUP_INDEXER, QUANT_ANY, a->index_heads * a->index_dim, query_input);
    matrix(s, GROUP_INDEXER, QUANT_ANY, a->index_heads, s->hidden);
    if (a->family != ATTENTION_COMPRESSED)
        matrix(s, GROUP_INDEXER, QUANT_ANY, a->index_dim, s->hidden);
    else if (!a->borrows_cache)
        matrix(s, GROUP_INDEXER, QUANT_ANY, 2 * a->index_dim, s->hidden); /* its own compressor */
}

static void list_low_rank_query(const struct lister *s, const struct attention *a, uint64_t width)
{
    if (a->q_lora_rank == 0) {
        matrix(s, GROUP_ATTENTION, QUANT_QUERY, width, s->hidden);
        return;
    }
    matrix(s, GROUP_ATTENTION, QUANT_QUERY, a->q_lora_rank, s->hidden);
    matrix(s, GROUP_ATTENTION, QUANT_QUERY, width, a->q_lora_rank);
    vector(s, GROUP_OTHER, 1, a->q_lora_rank);
}

static void list_mla(const struct lister *s, const struct attention *a)
{
    uint64_t outputs = a->heads * a->v_head_dim;
    list_low_rank_query(s, a, a->heads * (a->nope_head_dim + a->rope_head_dim));
    matrix(s, GROUP_ATTENTION, QUANT_ANY, a->kv_lora_rank + a->rope_head_dim, s->hidden);
    matrix(s, GROUP_ATTENTION, QUANT_ANY, a->heads * a->nope_head_dim + outputs, a->kv_lora_rank);
    matrix(s, GROUP_ATTENTION, QUANT_ATTENTION_OUT, s->hidden, outputs);
    if (a->output_gate)
        matrix(s, GROUP_ATTENTION, QUANT_ANY, outputs, s->hidden);
    vector(s, GROUP_OTHER, 1, a->kv_lora_rank);
}

/* DeepSeek-V4: one shared latent a token, output through low-rank groups of heads, and a compressor
 * (value and weight projection) in the layers that own a compressed cache. */
static void list_compressed(const struct lister *s, const struct attention *a)
{
    uint64_t outputs = a->heads * a->head_dim;
    list_low_rank_query(s, a, outputs);
    matrix(s, GROUP_ATTENTION, QUANT_ANY, a->head_dim, s->hidden);
    struct tensor out = {.group = GROUP_ATTENTION,
                         .part = QUANT_ATTENTION_OUT,
                         .rows = a->o_lora_rank,
                         .cols = outputs / a->o_groups,
                         .count = a->o_groups};
    s->fn(s->self, &out);
    matrix(s, GROUP_ATTENTION, QUANT_ATTENTION_OUT, s->hidden, a->o_groups * a->o_lora_rank);
    if (a->compress_ratio && !a->borrows_cache)
        matrix(s, GROUP_ATTENTION, QUANT_ANY, 2 * a->head_dim, s->hidden);
    vector(s, GROUP_OTHER, 1, a->head_dim);
}

static void list_linear(const struct lister *s, const struct attention *a)
{
    uint64_t keys = a->linear_key_heads * a->linear_key_dim;
    uint64_t values = a->linear_value_heads * a->linear_value_dim;
    uint64_t rates = a->linear_value_heads * (a->linear_kind == LINEAR_DELTA_NET ? 2 : 1);
    bool gate_in_projection = a->linear_kind != LINEAR_KDA;
    matrix(s, GROUP_ATTENTION, QUANT_QKV, 2 * keys + values + (gate_in_projection ? values : 0),
           s->hidden);
    matrix(s, GROUP_ATTENTION, QUANT_ANY, rates, s->hidden);
    if (a->linear_kind == LINEAR_KDA) {
        uint64_t rank = a->linear_gate_rank;
        matrix(s, GROUP_ATTENTION, QUANT_ANY, a->linear_key_dim, s->hidden); /* decay */
        matrix(s, GROUP_ATTENTION, QUANT_ANY, keys, a->linear_key_dim);
        if (rank)
            matrix(s, GROUP_ATTENTION, QUANT_ANY, rank, s->hidden);
        matrix(s, GROUP_ATTENTION, QUANT_ANY, values, rank ? rank : s->hidden);
    }
    matrix(s, GROUP_ATTENTION, QUANT_ATTENTION_OUT, s->hidden, values);
    vector(s, GROUP_ATTENTION, 2 * keys + values, a->conv_kernel);
    vector(s, GROUP_OTHER, 1, 2 * a->linear_value_heads + a->linear_value_dim);
}

static void list_conv(const struct lister *s, const struct attention *a)
{
    matrix(s, GROUP_ATTENTION, QUANT_QKV, 3 * a->conv_channels, s->hidden);
    matrix(s, GROUP_ATTENTION, QUANT_ATTENTION_OUT, s->hidden, a->conv_channels);
    vector(s, GROUP_ATTENTION, a->conv_channels, a->conv_kernel);
}

static void list_ffn_matrices(const struct lister *s, enum tensor_group group, uint64_t matrices,
                              uint64_t width, uint64_t io_width, uint64_t count)
{
    struct tensor t = {.group = group, .rows = width, .cols = io_width, .count = count};
    for (uint64_t i = 0; i + 1 < matrices; i++) {
        t.part = i == 0 && matrices > 2 ? QUANT_GATE : QUANT_UP;
        s->fn(s->self, &t);
    }
    t.part = QUANT_DOWN;
    t.rows = io_width;
    t.cols = width;
    s->fn(s->self, &t);
}

static void list_ffn(const struct lister *s, const struct ffn *f)
{
    if (f->dense_width)
        list_ffn_matrices(s, GROUP_DENSE_FFN, f->matrices, f->dense_width, s->hidden, 1);
    if (f->experts == 0)
        return;
    matrix(s, GROUP_ROUTER, QUANT_ANY, f->experts, s->hidden);
    if (f->expert_io_width != s->hidden) {
        matrix(s, GROUP_DENSE_FFN, QUANT_ANY, f->expert_io_width, s->hidden);
        matrix(s, GROUP_DENSE_FFN, QUANT_ANY, s->hidden, f->expert_io_width);
    }
    if (f->shared_width)
        list_ffn_matrices(s, GROUP_SHARED_EXPERT, f->matrices, f->shared_width, s->hidden, 1);
    list_ffn_matrices(s, GROUP_EXPERT, f->matrices, f->expert_width, f->expert_io_width,
                      f->experts);
    if (f->shared_gate)
        vector(s, GROUP_OTHER, 1, s->hidden);
    if (f->router_bias)
        vector(s, GROUP_OTHER, 1, f->experts);
}

static void list_attention(const struct lister *s, const struct attention *a)
{
    switch (a->family) {
    case ATTENTION_NONE:
        return;
    case ATTENTION_GQA:
        list_gqa(s, a);
        break;
    case ATTENTION_MLA:
        list_mla(s, a);
        break;
    case ATTENTION_COMPRESSED:
        list_compressed(s, a);
        break;
    case ATTENTION_LINEAR:
        list_linear(s, a);
        break;
    case ATTENTION_CONV:
        list_conv(s, a);
        break;
    }
    list_indexer(s, a);
    if (a->output_bias)
        vector(s, GROUP_OTHER, 1, s->hidden);
    if (a->sinks)
        vector(s, GROUP_OTHER, 1, a->heads);
}

void shape_layer(const struct layer *l, uint64_t hidden, tensor_fn *fn, void *self)
{
    struct lister s = {fn, self, hidden};
    list_attention(&s, &l->attention);
    list_ffn(&s, &l->ffn);
    vector(&s, GROUP_OTHER, 2, hidden); /* the norms before attention and before the FFN */
}

/* One expert's biases, an output's width each: gate and up, then down. */
static uint64_t expert_bias_params(const struct ffn *f)
{
    return f->expert_bias ? (f->matrices - 1) * f->expert_width + f->expert_io_width : 0;
}

struct filler {
    const struct quant_mix *mix;
    struct layer *layer;
    size_t index, layer_count;
};

static void add_tensor(void *self, const struct tensor *t)
{
    struct filler *f = self;
    enum tensor_group format = t->vector ? GROUP_OTHER : t->group;
    uint64_t params = fixed_mul(t->rows, t->cols);
    uint64_t bytes =
        quant_mix_bytes(f->mix, (int)format, t->part, f->index, f->layer_count, t->rows, t->cols);
    struct layer *l = f->layer;
    l->params[t->group] = fixed_add(l->params[t->group], fixed_mul(params, t->count));
    l->weight_bytes[t->group] = fixed_add(l->weight_bytes[t->group], fixed_mul(bytes, t->count));
    if (t->group == GROUP_EXPERT) {
        l->expert_params = fixed_add(l->expert_params, params);
        l->expert_bytes = fixed_add(l->expert_bytes, bytes);
    }
}

static void fill_layer(struct model *m, size_t i)
{
    struct layer *l = &m->layers[i];
    memset(l->params, 0, sizeof l->params);
    memset(l->weight_bytes, 0, sizeof l->weight_bytes);
    l->expert_params = l->expert_bytes = 0;
    struct filler f = {&m->quant, l, i, m->layer_count};
    shape_layer(l, m->hidden, add_tensor, &f);
    l->expert_bias_params = expert_bias_params(&l->ffn);
    l->expert_bias_bytes = quant_mix_bytes(&m->quant, GROUP_OTHER, QUANT_ANY, i, m->layer_count, 1,
                                           l->expert_bias_params);
    l->params[GROUP_OTHER] =
        fixed_add(l->params[GROUP_OTHER], fixed_mul(l->expert_bias_params, l->ffn.experts));
    l->weight_bytes[GROUP_OTHER] =
        fixed_add(l->weight_bytes[GROUP_OTHER], fixed_mul(l->expert_bias_bytes, l->ffn.experts));
}

static uint64_t end_bytes(const struct model *m, enum tensor_group group, uint64_t rows,
                          uint64_t cols)
{
    return quant_mix_bytes(&m->quant, (int)group, QUANT_ANY, 0, m->layer_count, rows, cols);
}

enum status shape_fill(struct model *m, struct diag *dg)
{
    uint64_t params = 0, bytes = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        fill_layer(m, i);
        for (int g = 0; g < GROUP_MAX; g++) {
            params = fixed_add(params, m->layers[i].params[g]);
            bytes = fixed_add(bytes, m->layers[i].weight_bytes[g]);
        }
    }
    enum tensor_group embedding = m->tied_embeddings ? GROUP_HEAD : GROUP_EMBEDDING;
    m->params_embedding = fixed_mul(fixed_add(m->vocab, m->positions), m->hidden);
    m->bytes_embedding = end_bytes(m, embedding, fixed_add(m->vocab, m->positions), m->hidden);
    m->params_head = m->tied_embeddings ? 0 : fixed_mul(m->vocab, m->hidden);
    m->bytes_head = m->tied_embeddings ? 0 : end_bytes(m, GROUP_HEAD, m->vocab, m->hidden);
    m->params_final = m->hidden;
    m->bytes_final = end_bytes(m, GROUP_OTHER, 1, m->hidden);
    params = fixed_add(params, fixed_add(m->params_embedding, m->params_head));
    bytes = fixed_add(bytes, fixed_add(m->bytes_embedding, m->bytes_head));
    if (params > PARAMS_MAX || bytes > 10 * PARAMS_MAX)
        return diag_set(dg, ST_RANGE, "%s: shapes give more than 10^15 parameters or 10^16 bytes",
                        m->origin);
    return ST_OK;
}
