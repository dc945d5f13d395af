/* work.c -- see work.h. Matrix products follow from the parameters of shape.c; what is added here is
 * attention over the context, the union of experts, and the two ends of the model. */
#include "models/work.h"

#include "models/state.h"

#include <assert.h>
#include <string.h>

typedef unsigned __int128 wide;

static uint64_t narrow(wide n)
{
    return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

/* Sum over the tokens of a pass of the positions each attends to, itself included, `limit` at most
 * (0: all). */
static wide attended_pairs(uint64_t context, uint64_t tokens, uint64_t limit)
{
    uint64_t growing = tokens; /* tokens that still see fewer than `limit` */
    if (limit)
        growing = limit <= context ? 0 : limit - context < tokens ? limit - context : tokens;
    wide sum = (wide)growing * context + (wide)growing * ((wide)growing + 1) / 2;
    return sum + (wide)(tokens - growing) * limit;
}

static wide index_ops(const struct attention *a, wide pairs)
{
    bool owned = a->index_heads > 0 && !a->index_borrowed;
    return owned ? 2 * (wide)a->index_heads * a->index_dim * pairs : 0;
}

/* Multi-head latent attention runs either in the latent (the up-projections folded into query and
 * output) or with keys and values expanded for all earlier tokens: whichever is less. */
static wide mla_ops(const struct attention *a, uint64_t context, uint64_t tokens)
{
    wide pairs = attended_pairs(context, tokens, a->index_top_k);
    wide in_latent = 2 * (wide)a->heads * (2 * a->kv_lora_rank + a->rope_head_dim) * pairs;
    wide expanded =
        2 * (wide)a->heads * (a->nope_head_dim + a->rope_head_dim + a->v_head_dim) * pairs;
    expanded += 2 * (wide)a->kv_lora_rank * a->heads * (a->nope_head_dim + a->v_head_dim) * context;
    return in_latent < expanded ? in_latent : expanded;
}

static wide compressed_ops(const struct attention *a, uint64_t context, uint64_t tokens)
{
    uint64_t ratio = a->compress_ratio;
    wide pairs = attended_pairs(context, tokens, a->window);
    wide scored = 0;
    if (ratio) {
        uint64_t reach = narrow((wide)a->index_top_k * ratio); /* 0: all */
        pairs += attended_pairs(context, tokens, reach) / ratio;
        scored = attended_pairs(context, tokens, 0) / ratio;
    }
    return 2 * (wide)a->heads * 2 * a->head_dim * pairs + index_ops(a, scored);
}

static uint64_t attention_ops(const struct attention *a, uint64_t context, uint64_t tokens)
{
    wide ops = 0;
    uint64_t values = a->v_head_dim ? a->v_head_dim : a->head_dim;
    uint64_t limit = a->window;
    switch (a->family) {
    case ATTENTION_NONE:
    case ATTENTION_CONV:
        break;
    case ATTENTION_GQA:
        if (a->index_top_k && (limit == 0 || a->index_top_k < limit))
            limit = a->index_top_k;
        ops = 2 * (wide)a->heads * (a->head_dim + values) * attended_pairs(context, tokens, limit);
        break;
    case ATTENTION_MLA:
        ops = mla_ops(a, context, tokens) + index_ops(a, attended_pairs(context, tokens, 0));
        break;
    case ATTENTION_COMPRESSED:
        ops = compressed_ops(a, context, tokens);
        break;
    case ATTENTION_LINEAR: /* what the state predicts, the rank-1 update, the read-out */
        ops = 6 * (wide)a->linear_value_heads * a->linear_key_dim * a->linear_value_dim * tokens;
        break;
    }
    return narrow(ops);
}

static void count_experts(struct work *out, const struct layer *l, uint64_t tokens,
                          uint64_t unique_experts)
{
    uint64_t experts = l->ffn.experts;
    assert(unique_experts <= experts);
    uint64_t uses = tokens * l->ffn.top_k;
    uint64_t biases = experts * l->expert_bias_params;
    out->ops[GROUP_EXPERT] = narrow(2 * (wide)uses * l->expert_params);
    out->weight_bytes[GROUP_EXPERT] = unique_experts * l->expert_bytes;
    wide vectors = (wide)tokens * (l->params[GROUP_OTHER] - biases);
    out->ops[GROUP_OTHER] = narrow(2 * (vectors + (wide)uses * l->expert_bias_params));
    out->weight_bytes[GROUP_OTHER] -= (experts - unique_experts) * l->expert_bias_bytes;
}

void work_layer(struct work *out, const struct model *m, size_t layer, uint64_t tokens,
                uint64_t context, uint64_t unique_experts, uint32_t state_bits)
{
    assert(layer < m->layer_count);
    const struct layer *l = &m->layers[layer];
    memset(out, 0, sizeof *out);
    if (tokens == 0)
        return;
    for (int g = 0; g < GROUP_MAX; g++) {
        out->ops[g] = narrow(2 * (wide)tokens * l->params[g]);
        out->weight_bytes[g] = l->weight_bytes[g];
    }
    count_experts(out, l, tokens, unique_experts);
    out->attention_ops = attention_ops(&l->attention, context, tokens);
    out->state_read_bytes = state_layer_pass_read_bytes(&l->attention, context, tokens, state_bits);
    out->state_write_bytes = state_layer_write_bytes(&l->attention, tokens, state_bits);
}

void work_ends(struct work *out, const struct model *m, uint64_t tokens, uint64_t logits)
{
    memset(out, 0, sizeof *out);
    uint64_t rows = m->vocab + m->positions;
    uint64_t rows_read = tokens * (m->positions ? 2 : 1);
    uint64_t embedding = narrow((wide)m->bytes_embedding * rows_read / rows);
    out->weight_bytes[GROUP_EMBEDDING] =
        embedding < m->bytes_embedding ? embedding : m->bytes_embedding;
    out->weight_bytes[GROUP_OTHER] = m->bytes_final;
    out->ops[GROUP_OTHER] = narrow(2 * (wide)tokens * m->params_final);
    if (logits == 0)
        return;
    out->ops[GROUP_HEAD] = narrow(2 * (wide)logits * m->vocab * m->hidden);
    out->weight_bytes[GROUP_HEAD] =
        m->tied_embeddings ? narrow((wide)m->bytes_embedding * m->vocab / rows) : m->bytes_head;
}

void work_add(struct work *sum, const struct work *w)
{
    for (int g = 0; g < GROUP_MAX; g++) {
        sum->ops[g] += w->ops[g];
        sum->weight_bytes[g] += w->weight_bytes[g];
    }
    sum->attention_ops += w->attention_ops;
    sum->state_read_bytes += w->state_read_bytes;
    sum->state_write_bytes += w->state_write_bytes;
}

uint64_t work_ops_total(const struct work *w)
{
    uint64_t sum = w->attention_ops;
    for (int g = 0; g < GROUP_MAX; g++)
        sum += w->ops[g];
    return sum;
}

uint64_t work_weight_bytes_total(const struct work *w)
{
    uint64_t sum = 0;
    for (int g = 0; g < GROUP_MAX; g++)
        sum += w->weight_bytes[g];
    return sum;
}

uint64_t work_unique_experts_e3(uint64_t experts, uint64_t top_k, uint64_t tokens)
{
    if (experts == 0)
        return 0;
    assert(top_k <= experts && experts < UINT64_C(1) << 32);
    const int point = 60; /* the chance that an expert is never chosen, in Q60 */
    const wide half = (wide)1 << (point - 1);
    wide base = ((wide)(experts - top_k) << point) / experts, never = (wide)1 << point;
    for (; tokens; tokens >>= 1) {
        if (tokens & 1)
            never = (never * base + half) >> point;
        base = (base * base + half) >> point;
    }
    wide chosen = ((wide)1 << point) - never;
    return (uint64_t)(((wide)experts * 1000 * chosen + half) >> point);
}
