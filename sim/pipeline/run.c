/* run.c -- drives a run pass by pass. */
#include "sim/pipeline/run_state.h"

#include <assert.h>

/* ---- the measured time of a token's kernels, shared out ---- */

/* Closed-form time of one decode token's kernels at the starting context: what given_ns is shared by. */
static uint64_t kernels_ns(struct run *r)
{
    uint64_t sum = 0;
    r->pass.tokens = 1;
    for (r->layer = 0; r->layer < r->model->layer_count; r->layer++) {
        kernels_of_layer(r, r->layer, &r->kernels);
        struct kernel experts = {.ops = r->top_k * r->kernels.expert_ops,
                                 .bytes = r->top_k * r->kernels.expert_bytes,
                                 .calls = r->kernels.expert_bytes > 0};
        sum += unit_estimate_ns(r->unit, &r->kernels.fixed) +
               unit_estimate_ns(r->unit, &r->kernels.shared) +
               unit_estimate_ns(r->expert_unit, &experts);
    }
    struct kernel head = kernels_head(r);
    return sum + unit_estimate_ns(r->unit, &head);
}

static void share_given(struct run *r)
{
    uint64_t sum = kernels_ns(r);
    unit_share(r->unit, sum);
    unit_share(r->expert_unit, sum);
}

static void next_pass(struct run *r)
{
    if (!routing_next(r->routing, &r->pass)) {
        r->over = true;
        accounts_end(r);
        return;
    }
    if (r->pass.new_turn)
        r->position = r->setup.context;
    loader_mark_pass(r->loader, r->pass_count);
    accounts_begin_pass(r);
    layer_begin_pass(r);
}

void run_pass_over(struct run *r)
{
    uint64_t now = evq_now_ns(r->q);
    environment_end_pass(r);
    if (r->pass.phase == PHASE_DECODE)
        accounts_add_token(r, now);
    else
        r->result->prefill_ns += now - r->pass_start_ns;
    r->position += r->pass.produced / (r->setup.batch ? r->setup.batch : 1);
    r->pass_count++;
    next_pass(r);
}

enum status pipeline_run(struct pipeline_result *out, const struct pipeline_setup *s,
                         struct diag *dg)
{
    struct run r = {.setup = *s, .model = s->model, .profile = s->profile, .result = out};
    *out = (struct pipeline_result){0};
    r.position = s->context;
    enum status st = run_start(&r, dg);
    if (st == ST_OK) {
        if (s->given_compute_ns)
            share_given(&r);
        next_pass(&r);
        while (evq_step(r.q))
            ;
        if (r.failure == ST_MISFIT)
            st = diag_set(dg, ST_MISFIT,
                          "prefetches pile up faster than the drive reads: lower the prefetch "
                          "budget");
        else if (r.lacking)
            st = environment_refuse(&r, dg);
        else if (r.failure != ST_OK)
            st = diag_no_memory(dg);
        else if (!r.over)
            st =
                diag_set(dg, ST_RANGE,
                         "the run comes to no end: a rate of the device is too low to move a byte");
    }
    if (st == ST_OK)
        accounts_finish(&r);
    run_stop(&r);
    return st;
}
