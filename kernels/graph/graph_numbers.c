/* graph_numbers.c -- see graph_numbers.h. Keys are those of llama.cpp, "ARCH." before each. */
#include "kernels/graph/graph_numbers.h"

#include "kernels/graph/router.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define EXPERTS_MAX 65536u /* ids have 16 bits */

struct keys {
    const struct graph_weights *w;
    struct diag *dg;
    char text[128];
};

static const char *full(struct keys *k, const char *key)
{
    snprintf(k->text, sizeof k->text, "%s.%s", k->w->recipe->architecture, key);
    return k->text;
}

static enum status wrong(struct keys *k, const char *key, const char *what)
{
    return diag_set(k->dg, ST_PARSE, "%s: metadata key '%s' %s", gguf_file_path(k->w->file, 0),
                    full(k, key), what);
}

/* The value if it is there and within low..high; `fallback` if it is absent. */
static enum status number(struct keys *k, double *out, const char *key, double fallback, double low,
                          double high)
{
    *out = fallback;
    if (!gguf_has(k->w->file, full(k, key)))
        return ST_OK;
    if (!gguf_double(k->w->file, full(k, key), out) || !(*out >= low && *out <= high))
        return wrong(k, key, "is out of range");
    return ST_OK;
}

/* Keys that would change what is computed, and that no supported architecture's recipe has: a value other than the
 * one that does nothing is refused, not overlooked. */
static enum status refuse_unknown(struct keys *k)
{
    static const struct {
        const char *key;
        double nothing[2];
    } rows[] = {
        {"attention.scale", {0, 0}},          {"attention.clamp_kqv", {0, 0}},
        {"attn_logit_softcapping", {0, 0}},   {"final_logit_softcapping", {0, 0}},
        {"router_logit_softcapping", {0, 0}}, {"logit_scale", {0, 1}},
        {"embedding_scale", {0, 1}},          {"residual_scale", {0, 1}},
        {"attention.max_alibi_bias", {0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value;
        if (!gguf_has(k->w->file, full(k, rows[i].key)))
            continue;
        if (!gguf_double(k->w->file, full(k, rows[i].key), &value) ||
            (value != rows[i].nothing[0] && value != rows[i].nothing[1]))
            return diag_set(k->dg, ST_UNSUPPORTED,
                            "%s: metadata key '%s' changes what is computed, and this "
                            "architecture's recipe does not know how",
                            gguf_file_path(k->w->file, 0), full(k, rows[i].key));
    }
    return ST_OK;
}

/* A window narrower than the context, where the importer made none of it. */
static enum status refuse_window(struct keys *k)
{
    const struct model *m = k->w->model;
    double window;
    enum status st = number(k, &window, "attention.sliding_window", 0, 0, 1e15);
    if (st != ST_OK || window < 1 || (m->max_context && window >= (double)m->max_context))
        return st;
    for (size_t l = 0; l < m->layer_count; l++)
        if (m->layers[l].attention.window)
            return ST_OK;
    return diag_set(k->dg, ST_UNSUPPORTED,
                    "%s: metadata key '%s' is %.0f: this architecture's recipe has no windows",
                    gguf_file_path(k->w->file, 0), full(k, "attention.sliding_window"), window);
}

/* As llama.cpp has it: a factor without a type is linear, and in old files its key is rope.scale_linear. */
static enum status read_scaling(struct keys *k, struct graph_numbers *n)
{
    struct gguf_text type = {"linear", 6};
    double factor, original, fast, slow;
    gguf_get_text(k->w->file, full(k, "rope.scaling.type"), &type);
    bool yarn = gguf_text_is(type, "yarn"), linear = gguf_text_is(type, "linear");
    if (!yarn && !linear && !gguf_text_is(type, "none"))
        return diag_set(k->dg, ST_UNSUPPORTED, "%s: rotary scaling '%.*s' is none of yarn, linear",
                        gguf_file_path(k->w->file, 0), (int)(type.length < 40 ? type.length : 40),
                        type.data);
    enum status st = number(k, &factor, "rope.scale_linear", 1, 1e-3, 1e6);
    if (st == ST_OK)
        st = number(k, &factor, "rope.scaling.factor", factor, 1e-3, 1e6);
    if (st == ST_OK)
        st = number(k, &original, "rope.scaling.original_context_length", 0, 1, 1e9);
    if (st == ST_OK)
        st = number(k, &fast, "rope.scaling.yarn_beta_fast", 32, 1e-6, 1e6);
    if (st == ST_OK)
        st = number(k, &slow, "rope.scaling.yarn_beta_slow", 1, 1e-6, 1e6);
    if (st == ST_OK && yarn && original < 1)
        st = wrong(k, "rope.scaling.original_context_length", "is missing");
    if (st == ST_OK && (yarn || linear)) {
        n->rope.factor = factor;
        n->rope.original = yarn ? (uint64_t)original : 0;
        n->rope.beta_fast = fast;
        n->rope.beta_slow = slow;
        n->rope.unrounded = k->w->recipe->yarn_unrounded;
    }
    return st;
}

/* DeepSeek-V2 (arXiv 2405.04434, its published modelling code): YaRN's magnitude moves from the rotated
 * elements to the scores: (1 + multiplier * ln(factor))^2, multiplier = 0.1 * mscale_all_dim. */
static enum status read_magnitude(struct keys *k, struct graph_numbers *n)
{
    double multiplier, attention;
    enum status st = number(k, &multiplier, "rope.scaling.yarn_log_multiplier", 0, 0, 10);
    if (st == ST_OK)
        st = number(k, &attention, "rope.scaling.attn_factor", 1, 1e-3, 1e3);
    if (st != ST_OK)
        return st;
    n->attention_scale = 1;
    n->rope_magnitude = rope_magnitude(&n->rope) * (float)attention;
    if (k->w->recipe->latent && n->rope.original) {
        double m = attention * (1 + multiplier * log(n->rope.factor));
        n->rope_magnitude = 1;
        n->attention_scale = (float)(m * m);
    }
    return ST_OK;
}

static enum status read_rope(struct keys *k, struct graph_numbers *n)
{
    const struct attention *a = &k->w->model->layers[0].attention;
    double dims, usual = (double)(k->w->recipe->latent ? a->rope_head_dim : a->head_dim);
    enum status st = number(k, &n->rope.base, "rope.freq_base", 10000, 1, 1e12);
    if (st == ST_OK)
        st = number(k, &dims, "rope.dimension_count", usual, 2, usual);
    if (st != ST_OK)
        return st;
    n->rope_dims = (size_t)dims;
    n->rope.factor = 1;
    if (n->rope_dims % 2)
        return wrong(k, "rope.dimension_count", "must be even");
    st = read_scaling(k, n);
    return st == ST_OK ? read_magnitude(k, n) : st;
}

static enum status read_gating(struct keys *k, struct graph_numbers *n)
{
    double form, scale, groups, used;
    const struct recipe *r = k->w->recipe;
    enum status st = number(k, &form, "expert_gating_func", r->gating, 1, 3);
    if (st == ST_OK)
        st = number(k, &scale, "expert_weights_scale", 1, 0, 1e6);
    if (st == ST_OK)
        st = number(k, &groups, "expert_group_count", 1, 0, 65535);
    if (st == ST_OK)
        st = number(k, &used, "expert_group_used_count", groups, 0, groups);
    if (st != ST_OK)
        return st;
    n->gating = (enum gating)form;
    n->weights_scale = scale > 0 ? (float)scale : 1;
    n->groups = groups >= 1 ? (uint32_t)groups : 1;
    n->groups_used = used >= 1 ? (uint32_t)used : n->groups;
    if (n->groups > ROUTER_CHOICE_MAX)
        return wrong(k, "expert_group_count", "is above the 256 that the router takes");
    n->normalised = r->normalised;
    gguf_flag(k->w->file, full(k, "expert_weights_norm"), &n->normalised);
    for (size_t l = 0; l < k->w->model->layer_count; l++) {
        const struct ffn *f = &k->w->model->layers[l].ffn;
        if (f->experts % n->groups)
            return wrong(k, "expert_group_count", "must divide the number of experts");
        if (f->experts / n->groups * n->groups_used < f->top_k)
            return wrong(k, "expert_group_used_count", "leaves fewer experts than are chosen");
    }
    return ST_OK;
}

/* What the importer of models allows, and the graph's buffers and ids do not. */
static enum status check_experts(const struct keys *k, size_t layer)
{
    const struct model *m = k->w->model;
    const struct ffn *f = &m->layers[layer].ffn;
    const char *path = gguf_file_path(k->w->file, 0);
    if (f->experts > EXPERTS_MAX || f->top_k > ROUTER_CHOICE_MAX)
        return diag_set(k->dg, ST_UNSUPPORTED,
                        "%s: layer %zu takes %" PRIu64 " of %" PRIu64
                        " experts: expected at most %u of %u",
                        path, layer, f->top_k, f->experts, ROUTER_CHOICE_MAX, EXPERTS_MAX);
    if (f->dense_width)
        return diag_set(k->dg, ST_UNSUPPORTED,
                        "%s: layer %zu has routed experts and a dense feed-forward", path, layer);
    if (f->matrices != PART_MAX)
        return diag_set(k->dg, ST_PARSE, "%s: tensor 'blk.%zu.ffn_gate_exps.weight' is missing",
                        path, layer);
    if (f->expert_io_width != m->hidden)
        return diag_set(k->dg, ST_PARSE,
                        "%s: experts of layer %zu take %" PRIu64 " numbers in, expected %" PRIu64,
                        path, layer, f->expert_io_width, m->hidden);
    return ST_OK;
}

/* Heads have no length without the tensor that it is learnt from, so this comes before all that is measured by it. */
static enum status check_families(struct keys *k)
{
    bool latent = k->w->recipe->latent;
    for (size_t l = 0; l < k->w->model->layer_count; l++)
        if (k->w->model->layers[l].attention.family != (latent ? ATTENTION_MLA : ATTENTION_GQA))
            return diag_set(k->dg, ST_PARSE, "%s: tensor 'blk.%zu.%s' is missing",
                            gguf_file_path(k->w->file, 0), l,
                            latent ? "attn_kv_a_mqa.weight" : "attn_q.weight");
    return ST_OK;
}

static enum status check_layers(struct keys *k, const struct graph_numbers *n)
{
    enum status st = ST_OK;
    for (size_t l = 0; st == ST_OK && l < k->w->model->layer_count; l++) {
        const struct layer *layer = &k->w->model->layers[l];
        bool latent = k->w->recipe->latent;
        if (!latent && n->rope_dims > layer->attention.head_dim)
            st = wrong(k, "rope.dimension_count", "is above the length of a head");
        if (st == ST_OK && layer->ffn.experts)
            st = check_experts(k, l);
    }
    return st;
}

enum status graph_numbers_read(struct graph_weights *w, struct diag *dg)
{
    struct keys k = {.w = w, .dg = dg};
    struct graph_numbers *n = &w->numbers;
    double epsilon;
    if (!gguf_has(w->file, full(&k, "attention.layer_norm_rms_epsilon")))
        return wrong(&k, "attention.layer_norm_rms_epsilon", "is missing");
    enum status st = number(&k, &epsilon, "attention.layer_norm_rms_epsilon", 0, 0, 1);
    n->epsilon = (float)epsilon;
    if (st == ST_OK)
        st = check_families(&k);
    if (st == ST_OK)
        st = refuse_unknown(&k);
    if (st == ST_OK)
        st = refuse_window(&k);
    if (st == ST_OK)
        st = read_rope(&k, n);
    if (st == ST_OK)
        st = read_gating(&k, n);
    return st == ST_OK ? check_layers(&k, n) : st;
}
