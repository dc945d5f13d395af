/* gguf_ffn.c -- see gguf_ffn.h. */
#include "models/gguf_ffn.h"

#include <inttypes.h>

/* Puts one stacked tensor's slice of expert 0 into the layer; `share` of `shares` equal runs of rows. */
static void add_slice(struct layer *l, enum expert_part part, const struct gguf_tensor *t,
                      uint64_t share, uint64_t shares)
{
    uint64_t stride = t->bytes / t->extent[2], bytes = stride / shares;
    l->extent[part] = (struct expert_extent){.offset = t->offset + share * bytes,
                                             .stride_bytes = stride,
                                             .bytes = bytes,
                                             .file = t->file,
                                             .type = (uint32_t)t->format->gguf_type};
    l->expert_bytes += bytes;
    l->expert_params += t->extent[0] * (t->extent[1] / shares);
}

static enum status check_experts(const struct gguf_import *c, size_t i, const char *name,
                                 uint64_t cols, uint64_t rows)
{
    const struct gguf_tensor *t = gguf_layer_tensor(c, i, name);
    uint64_t experts = c->m->layers[i].ffn.experts;
    if (t && (t->extent[2] != experts || t->extent[3] != 1))
        return diag_set(c->dg, ST_PARSE, "%s: blk.%zu.%s must hold %" PRIu64 " experts",
                        gguf_file_path(c->g, 0), i, name, experts);
    return gguf_check_extents(c, i, name, cols, rows);
}

static void add_expert_bias(const struct gguf_import *c, size_t i, const char *name)
{
    struct layer *l = &c->m->layers[i];
    const struct gguf_tensor *t = gguf_layer_tensor(c, i, name);
    if (!t || t->weights % l->ffn.experts)
        return;
    l->expert_bias_params += t->weights / l->ffn.experts;
    l->expert_bias_bytes += t->bytes / l->ffn.experts;
    l->ffn.expert_bias = true;
}

static enum status fill_slices(const struct gguf_import *c, size_t i)
{
    struct layer *l = &c->m->layers[i];
    uint64_t io = l->ffn.expert_io_width, width = l->ffn.expert_width;
    const struct gguf_tensor *gate = gguf_layer_tensor(c, i, "ffn_gate_exps.weight");
    const struct gguf_tensor *up = gguf_layer_tensor(c, i, "ffn_up_exps.weight");
    const struct gguf_tensor *both = gguf_layer_tensor(c, i, "ffn_gate_up_exps.weight");
    enum status s = check_experts(c, i, "ffn_down_exps.weight", width, io);
    if (!s)
        s = check_experts(c, i, "ffn_gate_exps.weight", io, width);
    if (!s)
        s = check_experts(c, i, "ffn_up_exps.weight", io, width);
    if (!s)
        s = check_experts(c, i, "ffn_gate_up_exps.weight", io, 2 * width);
    if (s)
        return s;
    if (both ? gate || up : !up)
        return diag_set(c->dg, ST_PARSE,
                        "%s: layer %zu must have either ffn_up_exps or ffn_gate_up_exps",
                        gguf_file_path(c->g, 0), i);
    if (gate)
        add_slice(l, PART_GATE, gate, 0, 1);
    if (up)
        add_slice(l, PART_UP, up, 0, 1);
    if (both) {
        add_slice(l, PART_GATE, both, 0, 2);
        add_slice(l, PART_UP, both, 1, 2);
    }
    add_slice(l, PART_DOWN, gguf_layer_tensor(c, i, "ffn_down_exps.weight"), 0, 1);
    l->ffn.matrices = gate || both ? 3 : 2;
    return ST_OK;
}

static enum status fill_experts(const struct gguf_import *c, size_t i)
{
    struct layer *l = &c->m->layers[i];
    struct ffn *f = &l->ffn;
    const struct gguf_tensor *down = gguf_layer_tensor(c, i, "ffn_down_exps.weight");
    uint64_t claimed = 0;
    f->experts = down->extent[2];
    f->expert_width = down->extent[0];
    f->expert_io_width = down->extent[1];
    enum status s = gguf_need_layer(c, "expert_count", i, &claimed);
    if (!s && claimed != f->experts)
        s = gguf_key_error(c, "expert_count", "contradicts the tensors of experts");
    if (!s)
        s = gguf_need_layer(c, "expert_used_count", i, &f->top_k);
    if (!s && (f->top_k == 0 || f->top_k > f->experts))
        s = gguf_key_error(c, "expert_used_count", "must be from 1 to the number of experts");
    if (!s)
        s = gguf_check_extents(c, i, "ffn_gate_inp.weight", 0, f->experts);
    if (!s)
        s = fill_slices(c, i);
    f->router_bias = gguf_layer_has(c, i, "exp_probs_b.bias") ||
                     gguf_layer_has(c, i, "exp_probs_b") ||
                     gguf_layer_has(c, i, "ffn_gate_inp.bias");
    add_expert_bias(c, i, "ffn_gate_exps.bias");
    add_expert_bias(c, i, "ffn_up_exps.bias");
    add_expert_bias(c, i, "ffn_gate_up_exps.bias");
    add_expert_bias(c, i, "ffn_down_exps.bias");
    return s;
}

enum status gguf_ffn_fill(const struct gguf_import *c, size_t i)
{
    struct ffn *f = &c->m->layers[i].ffn;
    enum status s = ST_OK;
    const struct gguf_tensor *down = gguf_layer_tensor(c, i, "ffn_down.weight");
    const struct gguf_tensor *up = gguf_layer_tensor(c, i, "ffn_up.weight");
    const struct gguf_tensor *shared = gguf_layer_tensor(c, i, "ffn_down_shexp.weight");
    if (down) {
        f->dense_width = down->extent[0];
        bool fused = up && up->extent[1] == 2 * f->dense_width;
        f->matrices = gguf_layer_has(c, i, "ffn_gate.weight") || fused ? 3 : 2;
    }
    if (gguf_layer_has(c, i, "ffn_down.0.weight") || gguf_layer_has(c, i, "ffn_gate.0.weight"))
        return diag_set(c->dg, ST_UNSUPPORTED,
                        "%s: layer %zu has a tensor for each expert, as before April 2024: convert "
                        "the model again",
                        gguf_file_path(c->g, 0), i);
    if (gguf_layer_has(c, i, "ffn_down_exps.weight"))
        s = fill_experts(c, i);
    if (shared && !s) {
        f->shared_width = shared->extent[0];
        f->shared_experts = 1;
        gguf_read(c, "expert_shared_count", GGUF_SHAPE_MAX, &f->shared_experts, &s);
        f->shared_gate = gguf_layer_has(c, i, "ffn_gate_inp_shexp.weight");
    }
    return s;
}
