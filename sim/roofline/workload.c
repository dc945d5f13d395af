#include "sim/roofline/workload.h"

#include "base/fixed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t fixed_weight_bytes(const struct work *w)
{
    return work_weight_bytes_total(w) - w->weight_bytes[GROUP_EXPERT];
}

/* One call a group of matrices that runs (the experts of a layer run as one group), one for the
 * attention over the state. */
static uint64_t calls_of(const struct work *w)
{
    uint64_t calls = w->attention_ops > 0;
    for (int g = 0; g < GROUP_MAX; g++)
        calls += w->ops[g] > 0;
    return calls;
}

/* Sequences share weights; each has a state of its own. */
static void multiply_state(struct work *w, uint64_t sequences, const struct work *one)
{
    w->attention_ops = one->attention_ops * sequences;
    w->state_read_bytes = one->state_read_bytes * sequences;
    w->state_write_bytes = one->state_write_bytes * sequences;
}

static uint64_t unique_e3_of(const struct workload_request *r, const struct ffn *f)
{
    uint64_t tokens = r->sequences * r->tokens;
    if (!f->experts)
        return 0;
    if (tokens == 1)
        return f->top_k * 1000;
    return r->distinct_e3 ? r->distinct_e3(r->distinct_self, f->experts, f->top_k, tokens)
                          : work_unique_experts_e3(f->experts, f->top_k, tokens);
}

static void describe_layer(struct layer_class *c, const struct model *m, size_t i,
                           const struct workload_request *r)
{
    const struct layer *layer = &m->layers[i];
    uint64_t tokens = r->sequences * r->tokens;
    *c = (struct layer_class){.layers = 1, .expert_size = layer->expert_bytes};
    c->unique_e3 = unique_e3_of(r, &layer->ffn);
    work_layer(&c->work, m, i, tokens, r->context, (c->unique_e3 + 999) / 1000, r->state_bits);
    if (r->sequences > 1) {
        struct work one;
        work_layer(&one, m, i, 1, r->context, layer->ffn.top_k, r->state_bits);
        multiply_state(&c->work, r->sequences, &one);
    }
    c->work.weight_bytes[GROUP_EXPERT] = fixed_mul_div(c->unique_e3, layer->expert_bytes, 1000);
    c->rows_e3 = 1000;
    if (c->unique_e3)
        c->rows_e3 = fixed_mul_div(tokens * layer->ffn.top_k, 1000000, c->unique_e3);
    c->expert_ops = c->work.ops[GROUP_EXPERT];
    c->expert_read_bytes = c->work.weight_bytes[GROUP_EXPERT];
    c->fixed_ops = work_ops_total(&c->work) - c->expert_ops;
    c->trunk_bytes = fixed_weight_bytes(&c->work);
    c->fixed_bytes = c->trunk_bytes + c->work.state_read_bytes + c->work.state_write_bytes;
    c->calls = calls_of(&c->work);
}

static bool alike(const struct layer_class *a, const struct layer_class *b)
{
    return a->unique_e3 == b->unique_e3 && a->expert_size == b->expert_size &&
           memcmp(&a->work, &b->work, sizeof a->work) == 0;
}

static void add_layer(struct workload *l, const struct layer_class *c)
{
    for (size_t i = 0; i < l->class_count; i++)
        if (alike(&l->classes[i], c)) {
            l->classes[i].layers++;
            return;
        }
    l->classes[l->class_count++] = *c;
}

enum status workload_init(struct workload *out, const struct model *m,
                          const struct workload_request *r, struct diag *dg)
{
    assert(r->sequences >= 1 && r->tokens >= 1 && (r->sequences == 1 || r->tokens == 1));
    *out = (struct workload){.tokens = r->sequences * r->tokens};
    out->classes = calloc(m->layer_count ? m->layer_count : 1, sizeof *out->classes);
    if (!out->classes)
        return diag_no_memory(dg);
    for (size_t i = 0; i < m->layer_count; i++) {
        struct layer_class c;
        describe_layer(&c, m, i, r);
        add_layer(out, &c);
        work_add(&out->total, &c.work);
    }
    work_ends(&out->ends, m, out->tokens, r->logits);
    work_add(&out->total, &out->ends);
    out->ends_ops = work_ops_total(&out->ends);
    out->ends_bytes = work_weight_bytes_total(&out->ends);
    return ST_OK;
}

void workload_free(struct workload *l)
{
    free(l->classes);
    *l = (struct workload){0};
}

static void scale_fixed(struct work *w, uint64_t factor)
{
    for (int g = 0; g < GROUP_MAX; g++)
        if (g != GROUP_EXPERT)
            w->weight_bytes[g] = fixed_mul_div(w->weight_bytes[g], factor, 1000000000);
}

void workload_scale_trunk(struct workload *l, uint64_t factor)
{
    scale_fixed(&l->total, factor);
    scale_fixed(&l->ends, factor);
    l->ends_bytes = work_weight_bytes_total(&l->ends);
    for (size_t i = 0; i < l->class_count; i++) {
        struct layer_class *c = &l->classes[i];
        uint64_t state = c->fixed_bytes - c->trunk_bytes;
        scale_fixed(&c->work, factor);
        c->trunk_bytes = fixed_weight_bytes(&c->work);
        c->fixed_bytes = c->trunk_bytes + state;
    }
}

void workload_scale_experts(struct workload *l, uint64_t factor)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->class_count; i++) {
        struct layer_class *c = &l->classes[i];
        c->expert_size = fixed_mul_div(c->expert_size, factor, 1000000000);
        c->expert_read_bytes = fixed_mul_div(c->expert_read_bytes, factor, 1000000000);
        c->work.weight_bytes[GROUP_EXPERT] = c->expert_read_bytes;
        sum += c->expert_read_bytes * c->layers;
    }
    l->total.weight_bytes[GROUP_EXPERT] = sum;
}

uint64_t workload_expert_bytes(const struct workload *l)
{
    return l->total.weight_bytes[GROUP_EXPERT];
}

uint64_t workload_trunk_bytes(const struct workload *l)
{
    return fixed_weight_bytes(&l->total);
}

uint64_t workload_ops(const struct workload *l)
{
    return work_ops_total(&l->total);
}

uint64_t workload_expert_ops(const struct workload *l)
{
    return l->total.ops[GROUP_EXPERT];
}
