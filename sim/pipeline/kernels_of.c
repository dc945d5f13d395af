/* kernels_of.c -- the kernels of a pass in operations and bytes; all figures come from models/work.h. */
#include "sim/pipeline/run_state.h"

#include "models/work.h"
#include "sim/pipeline/kernels_measured.h"

static uint64_t fixed_ops(const struct work *w)
{
    return work_ops_total(w) - w->ops[GROUP_EXPERT] - w->ops[GROUP_SHARED_EXPERT];
}

static uint64_t fixed_bytes(const struct work *w)
{
    return work_weight_bytes_total(w) - w->weight_bytes[GROUP_EXPERT] -
           w->weight_bytes[GROUP_SHARED_EXPERT];
}

/* The weights of `w` by group, those of the two kernels that a layer's dense part is made of. */
static void measure_fixed(const struct run *r, const struct work *w, bool split,
                          struct layer_kernels *out)
{
    uint64_t fixed[GROUP_MAX], shared[GROUP_MAX] = {0};
    for (int g = 0; g < GROUP_MAX; g++)
        fixed[g] = g == GROUP_EXPERT || g == GROUP_OTHER ? 0 : w->weight_bytes[g];
    if (split) {
        shared[GROUP_SHARED_EXPERT] = fixed[GROUP_SHARED_EXPERT];
        fixed[GROUP_SHARED_EXPERT] = 0;
    }
    kernels_measure(r, &out->fixed, fixed, r->pass.tokens,
                    w->state_read_bytes + w->state_write_bytes + w->weight_bytes[GROUP_OTHER]);
    kernels_measure(r, &out->shared, shared, r->pass.tokens, 0);
}

void kernels_of_layer(const struct run *r, uint32_t layer, struct layer_kernels *out)
{
    struct work w;
    const struct ffn *f = &r->model->layers[layer].ffn;
    uint64_t overhead = r->profile->layer_overhead.given ? r->profile->layer_overhead.amount : 0;
    bool split = r->overlap != OVERLAP_SERIAL || r->profile->overlap_shared_expert;
    work_layer(&w, r->model, layer, r->pass.tokens, r->position, f->experts > 0,
               r->setup.state_bits);
    *out = (struct layer_kernels){0};
    uint64_t users = r->pass.phase == PHASE_DECODE && r->setup.batch ? r->setup.batch : 1;
    if (users > 1) { /* each reads and extends a state of its own */
        struct work one;
        work_layer(&one, r->model, layer, 1 + r->setup.draft, r->position, f->experts > 0,
                   r->setup.state_bits);
        w.state_read_bytes = users * one.state_read_bytes;
        w.state_write_bytes = users * one.state_write_bytes;
        w.attention_ops = users * one.attention_ops;
    }
    out->trunk_bytes = work_weight_bytes_total(&w) - w.weight_bytes[GROUP_EXPERT];
    out->fixed =
        (struct kernel){.operation = TIMELINE_FIXED,
                        .ops = fixed_ops(&w),
                        .bytes = fixed_bytes(&w) + w.state_read_bytes + w.state_write_bytes,
                        .calls = 1,
                        .rows_e3 = 1000 * r->pass.tokens,
                        .fixed_ns = overhead};
    out->shared = (struct kernel){.operation = TIMELINE_SHARED,
                                  .ops = w.ops[GROUP_SHARED_EXPERT],
                                  .bytes = w.weight_bytes[GROUP_SHARED_EXPERT],
                                  .calls = w.ops[GROUP_SHARED_EXPERT] > 0,
                                  .rows_e3 = out->fixed.rows_e3};
    if (!split) {
        out->fixed.ops += out->shared.ops;
        out->fixed.bytes += out->shared.bytes;
        out->shared = (struct kernel){0};
    }
    measure_fixed(r, &w, split, out);
    if (f->experts == 0 || r->expert_bytes[layer] == 0)
        return;
    out->expert_bytes = r->expert_bytes[layer];
    out->expert_ops = 2 * r->model->layers[layer].expert_params;
}

struct kernel kernels_experts(const struct run *r, const struct choice *c, uint32_t count)
{
    struct kernel k = {.operation = TIMELINE_EXPERT, .calls = 1};
    uint64_t expand =
        r->profile->expand_experts ? 16 * r->model->layers[r->layer].expert_params / 8 : 0;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows += c[i].tokens;
        k.ops += c[i].tokens * r->kernels.expert_ops;
        k.bytes += r->kernels.expert_bytes + 2 * expand;
    }
    k.rows_e3 = count ? 1000 * rows / count : 0;
    uint64_t bytes[GROUP_MAX] = {[GROUP_EXPERT] = expand ? 0 : k.bytes};
    kernels_measure(r, &k, bytes, count ? (rows + count - 1) / count : 1, 0);
    return k;
}

struct kernel kernels_head(const struct run *r)
{
    struct work w;
    uint64_t rows = r->pass.phase == PHASE_DECODE ? r->pass.tokens : 1;
    work_ends(&w, r->model, r->pass.tokens, rows);
    struct kernel k = {
        .operation = TIMELINE_HEAD,
        .ops = work_ops_total(&w),
        .bytes = work_weight_bytes_total(&w),
        .calls = 1,
        .rows_e3 = 1000 * rows,
        .fixed_ns = r->profile->token_overhead.given ? r->profile->token_overhead.amount : 0};
    uint64_t head[GROUP_MAX] = {[GROUP_HEAD] = w.weight_bytes[GROUP_HEAD]};
    kernels_measure(r, &k, head, rows, 0);
    return k;
}
