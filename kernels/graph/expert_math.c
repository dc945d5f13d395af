/* expert_math.c -- see expert_math.h. */
#include "kernels/graph/expert_math.h"

#include <assert.h>
#include <stdlib.h>

/* Rows below which gating is not worth a fork. */
#define FEW_ROWS 8

enum status expert_math_new(struct expert_math *m, const struct compute_setup *c,
                            enum expert_activation activation, size_t hidden, size_t width_max,
                            size_t rows_max, size_t jobs_max, struct diag *dg)
{
    *m = (struct expert_math){
        .compute = c, .activation = activation, .hidden = hidden, .jobs_max = jobs_max};
    m->product = calloc(jobs_max, 2 * sizeof *m->product);
    m->gate = calloc(rows_max * width_max, sizeof *m->gate);
    m->up = calloc(rows_max * width_max, sizeof *m->up);
    m->row = calloc(rows_max * hidden, sizeof *m->row);
    if (!m->product || !m->gate || !m->up || !m->row)
        return diag_no_memory(dg);
    return input_new(&m->mid, width_max, rows_max, dg);
}

size_t expert_math_bytes(size_t hidden, size_t width_max, size_t rows_max)
{
    return rows_max * (2 * width_max + hidden) * sizeof(float) + input_bytes(width_max, rows_max);
}

void expert_math_free(struct expert_math *m)
{
    input_free(&m->mid);
    free(m->product);
    free(m->gate);
    free(m->up);
    free(m->row);
    *m = (struct expert_math){0};
}

struct gating_rows {
    struct expert_math *m;
    size_t width, first;
};

static void gate_rows(void *context, size_t begin, size_t end, size_t thread)
{
    const struct gating_rows *g = context;
    struct expert_math *m = g->m;
    const struct isa *isa = m->compute->isa;
    (void)thread;
    for (size_t r = g->first + begin; r < g->first + end; r++) {
        float *y = m->mid.values + r * g->width;
        const float *gate = m->gate + r * g->width, *up = m->up + r * g->width;
        if (m->activation == ACTIVATION_SWIGLU_CLAMPED)
            isa->swiglu_clamped(y, gate, up, g->width, CLAMPED_ALPHA, CLAMPED_LIMIT);
        else
            isa->swiglu(y, gate, up, g->width);
    }
}

static void gate_job(struct expert_math *m, const struct expert_job *job, size_t width)
{
    struct gating_rows g = {m, width, job->first};
    if (job->in.tokens < FEW_ROWS)
        gate_rows(&g, 0, job->in.tokens, 0);
    else
        workers_each(m->compute->workers, gate_rows, &g, job->in.tokens, 1);
    input_ready(&m->mid, job->first, job->in.tokens, m->compute);
}

void expert_math_run(struct expert_math *m, const struct expert_job *job, size_t n)
{
    assert(n <= m->jobs_max);
    if (n == 0)
        return;
    size_t width = job[0].part[PART_GATE].weights.rows;
    m->mid.cols = width; /* layers may differ; the buffer is for the widest */
    for (size_t i = 0; i < n; i++) {
        const struct matrix *part = job[i].part;
        m->product[2 * i] =
            (struct product){&part[PART_GATE], job[i].in, m->gate + job[i].first * width, width};
        m->product[2 * i + 1] =
            (struct product){&part[PART_UP], job[i].in, m->up + job[i].first * width, width};
    }
    products_run(m->compute, m->product, 2 * n);
    for (size_t i = 0; i < n; i++)
        gate_job(m, &job[i], width);
    for (size_t i = 0; i < n; i++)
        m->product[i] =
            (struct product){&job[i].part[PART_DOWN],
                             input_view(&m->mid, job[i].first, job[i].in.tokens, m->compute),
                             m->row + job[i].first * m->hidden, m->hidden};
    products_run(m->compute, m->product, n);
}
