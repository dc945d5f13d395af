/* measure_kernels.c -- see measure_kernels.h. */
#include "validate/measure_kernels.h"

#include "base/pcg.h"
#include "base/stats.h"
#include "kernels/bench/read_roof.h"
#include "kernels/graph/expert_math.h"
#include "kernels/graph/record.h"
#include "kernels/store/store.h"

#include <gsl/gsl_fit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_BYTES  ((size_t)96 << 20) /* more than a last-level cache holds */
#define MEMORY_BYTES ((size_t)256 << 20)
#define GROUP_SIZES  4

/* ---- caches and memory ---- */

struct sweep {
    struct store *store; /* touched huge pages */
    size_t bytes;
};

static enum status sweep_new(struct sweep *s, size_t bytes, struct diag *dg)
{
    s->bytes = bytes;
    return store_new(&s->store, bytes, 4096, 1, dg);
}

static void sweep_share(void *context, size_t thread, size_t threads)
{
    const struct sweep *s = context;
    size_t begin, end;
    workers_share(s->bytes, READ_ROOF_STEP, thread, threads, &begin, &end);
    volatile uint64_t seen =
        read_roof_pass((const char *)store_arena(s->store) + begin, end - begin);
    (void)seen;
}

/* Median rate at which the first `bytes` of the buffer are read again. */
static enum status read_rate(double *rate_Bps, struct sweep *s, struct workers *w, size_t repeats,
                             struct diag *dg)
{
    double *rate = calloc(repeats, sizeof *rate);
    if (!rate)
        return diag_no_memory(dg);
    workers_run(w, sweep_share, s);
    for (size_t i = 0; i < repeats; i++) {
        uint64_t start = record_now_ns();
        workers_run(w, sweep_share, s);
        rate[i] = (double)s->bytes * 1e9 / (double)(record_now_ns() - start);
    }
    *rate_Bps = stats_median(rate, repeats);
    free(rate);
    return ST_OK;
}

enum status measure_memory(double *rate_Bps, struct workers *w, size_t repeats, struct diag *dg)
{
    struct sweep s = {0};
    enum status st = sweep_new(&s, MEMORY_BYTES, dg);
    if (st == ST_OK)
        st = read_rate(rate_Bps, &s, w, repeats, dg);
    store_free(s.store);
    return st;
}

enum status measure_cache(uint64_t *bytes, struct workers *w, size_t repeats, struct diag *dg)
{
    struct sweep s = {0};
    double memory = 0, rate = 0;
    enum status st = sweep_new(&s, MEMORY_BYTES, dg);
    if (st == ST_OK)
        st = read_rate(&memory, &s, w, repeats, dg);
    *bytes = 0;
    for (s.bytes = (size_t)2 << 20; st == ST_OK && s.bytes < MEMORY_BYTES; s.bytes *= 2) {
        st = read_rate(&rate, &s, w, repeats * 4, dg);
        if (st == ST_OK && rate > 1.3 * memory)
            *bytes = s.bytes;
    }
    store_free(s.store);
    return st;
}

struct peak {
    const struct compute_setup *c;
    uint64_t operations;
};

#define PEAK_ROUNDS ((size_t)2000000)

static void peak_share(void *context, size_t thread, size_t threads)
{
    struct peak *p = context;
    int32_t sink[16] = {0};
    (void)threads;
    uint64_t operations = p->c->isa->peak8(sink, PEAK_ROUNDS);
    if (thread == 0)
        p->operations = operations;
}

double measure_peak(const struct compute_setup *c)
{
    struct peak p = {c, 0};
    double best = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t start = record_now_ns();
        workers_run(c->workers, peak_share, &p);
        double ns = (double)(record_now_ns() - start);
        double rate = (double)p.operations * (double)workers_threads(c->workers) / ns * 1e9;
        best = rate > best ? rate : best;
    }
    return best;
}

static double spread_of(double *sample, size_t n, double median)
{
    return median > 0
               ? (stats_quantile(sample, n, 0.9) - stats_quantile(sample, n, 0.1)) / 2 / median
               : 0;
}

/* ---- experts ---- */

/* As many experts of one layer after another as fit, loaded once. */
struct loaded {
    struct expert_source source;
    struct loader_io *io;
    struct store *store;
    struct expert_math math;
    struct input in;
    struct matrix *part; /* PART_MAX an expert */
    uint32_t count, layer;
    struct sweep sweep;
};

static void loaded_free(struct loaded *l)
{
    loader_io_free(l->io);
    store_free(l->store);
    store_free(l->sweep.store);
    expert_source_close(&l->source);
    expert_math_free(&l->math);
    input_free(&l->in);
    free(l->part);
}

static enum status load_one(struct loaded *l, uint32_t slot, uint32_t layer, uint32_t expert,
                            struct diag *dg)
{
    struct load load = {.class_of = LOAD_DEMAND};
    struct weights w[PART_MAX];
    uint32_t ticket;
    if (!store_take(l->store, slot, l->source.room_bytes[layer]))
        return diag_no_memory(dg);
    expert_source_load(&l->source, layer, expert, &load);
    load.room = store_address(l->store, slot);
    load.room_bytes = store_slot_bytes(l->store, slot);
    enum status st = loader_io_submit(l->io, &load, &ticket, dg);
    if (st == ST_OK)
        st = loader_io_wait(l->io, ticket, NULL, dg);
    expert_source_matrices(&l->source, l->io, layer, expert, load.room, w);
    for (int part = 0; part < PART_MAX; part++)
        l->part[(size_t)slot * PART_MAX + (size_t)part] = (struct matrix){.weights = w[part]};
    return st;
}

static enum status open_loaded(struct loaded *l, const struct measure_kernels_setup *s,
                               struct diag *dg)
{
    const struct model *m = s->weights->model;
    struct loader_io_setup loader = {.backend = LOADER_URING, .depth = 8, .loads_max = 1};
    enum status st = expert_source_open(&l->source, s->weights, s->pack, dg);
    if (st == ST_OK)
        st = loader_io_new(&l->io, &loader, dg);
    if (st == ST_OK)
        st = expert_source_attach(&l->source, l->io, false, dg);
    if (st != ST_OK)
        return st;
    while (l->source.expert_bytes[l->layer] == 0)
        l->layer++;
    uint64_t bytes = l->source.expert_bytes[l->layer], room = l->source.room_bytes[l->layer];
    uint64_t all = model_experts_bytes(m) / bytes, fit = s->experts_bytes / bytes;
    l->count = (uint32_t)(fit < all ? fit : all);
    if (l->count < model_top_k(m))
        l->count = (uint32_t)model_top_k(m);
    l->part = calloc(l->count, PART_MAX * sizeof *l->part);
    st = l->part ? store_new(&l->store, l->count * room, loader_io_block_bytes(l->io), l->count, dg)
                 : diag_no_memory(dg);
    uint32_t layer = l->layer, expert = 0;
    for (uint32_t i = 0; st == ST_OK && i < l->count; i++) {
        /* Layers of other shapes are passed over, wrapping to the first where all are used up. */
        while (expert >= m->layers[layer].ffn.experts || l->source.expert_bytes[layer] != bytes) {
            layer = layer + 1 < m->layer_count ? layer + 1 : l->layer;
            expert = 0;
        }
        st = load_one(l, i, layer, expert++, dg);
    }
    return st;
}

static double run_group(struct loaded *l, const struct measure_kernels_setup *s, size_t n,
                        size_t tokens, struct pcg *chance)
{
    struct expert_job job[64];
    if (!s->cached)
        workers_run(s->compute.workers, sweep_share, &l->sweep);
    for (size_t i = 0; i < n; i++) {
        uint32_t slot = pcg_below(chance, l->count);
        job[i] = (struct expert_job){&l->part[(size_t)slot * PART_MAX],
                                     input_view(&l->in, 0, tokens, &s->compute), i * tokens};
    }
    uint64_t start = record_now_ns();
    expert_math_run(&l->math, job, n);
    return (double)(record_now_ns() - start);
}

static enum status prepare_math(struct loaded *l, const struct measure_kernels_setup *s,
                                size_t most, size_t tokens, struct diag *dg)
{
    const struct model *m = s->weights->model;
    struct pcg chance;
    pcg_stream(&chance, s->seed, "calibrate/state");
    enum status st =
        expert_math_new(&l->math, &s->compute, s->weights->recipe->activation, m->hidden,
                        m->layers[l->layer].ffn.expert_width, most * tokens, most, dg);
    if (st == ST_OK)
        st = input_new(&l->in, m->hidden, tokens, dg);
    if (st == ST_OK && !s->cached)
        st = sweep_new(&l->sweep, SWEEP_BYTES, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < tokens * m->hidden; i++)
        l->in.values[i] = (float)pcg_gauss_q16(&chance) / 65536.0f;
    input_ready(&l->in, 0, tokens, &s->compute);
    return ST_OK;
}

/* The line through the medians at 1 .. top_k experts. */
static void fit_line(struct kernel_line *out, const double *size, const double *ns, size_t n,
                     double bytes)
{
    double call, each, c00, c01, c11, sum;
    gsl_fit_linear(size, 1, ns, 1, n, &call, &each, &c00, &c01, &c11, &sum);
    if (call < 0) { /* no call takes less than nothing */
        call = 0;
        each = ns[n - 1] / size[n - 1];
    }
    out->call_ns = call;
    out->rate_Bps = bytes / each * 1e9;
}

enum status measure_expert_kernels(struct kernel_line *out, size_t tokens,
                                   const struct measure_kernels_setup *s, struct diag *dg)
{
    struct loaded l = {0};
    size_t top_k = model_top_k(s->weights->model), most = top_k < 64 ? top_k : 64;
    double *sample = calloc(GROUP_SIZES * s->repeats, sizeof *sample);
    double size[GROUP_SIZES], ns[GROUP_SIZES];
    struct pcg chance;
    pcg_stream(&chance, s->seed, "calibrate/experts");
    enum status st = sample ? open_loaded(&l, s, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = prepare_math(&l, s, most, tokens, dg);
    for (size_t g = 0; g < GROUP_SIZES; g++)
        size[g] = g == 0 ? 1 : fmax(size[g - 1], floor((double)(most * g) / (GROUP_SIZES - 1)));
    for (size_t r = 0; st == ST_OK && r < s->repeats; r++)
        for (size_t g = 0; g < GROUP_SIZES; g++)
            sample[g * s->repeats + r] = run_group(&l, s, (size_t)size[g], tokens, &chance);
    for (size_t g = 0; st == ST_OK && g < GROUP_SIZES; g++)
        ns[g] = stats_median(sample + g * s->repeats, s->repeats);
    if (st == ST_OK) {
        double bytes = (double)l.source.expert_bytes[l.layer];
        *out = (struct kernel_line){.format = l.part[PART_GATE].weights.format};
        fit_line(out, size, ns, GROUP_SIZES, bytes);
        out->spread =
            spread_of(sample + (GROUP_SIZES - 1) * s->repeats, s->repeats, ns[GROUP_SIZES - 1]);
    }
    loaded_free(&l);
    free(sample);
    return st;
}

/* ---- dense matrices ---- */

#define DENSE_MAX 4096

struct dense {
    const struct matrix *matrix[DENSE_MAX];
    size_t count, cols_max, rows_max;
};

static void add_matrix(struct dense *d, const struct matrix *m, const struct block_format *f)
{
    const struct weights *w = &m->weights;
    if (w->rows == 0 || w->format != f || w->layout != LAYOUT_PACKED || d->count == DENSE_MAX)
        return;
    d->matrix[d->count++] = m;
    d->cols_max = w->cols > d->cols_max ? w->cols : d->cols_max;
    d->rows_max = w->rows > d->rows_max ? w->rows : d->rows_max;
}

static void list_dense(struct dense *d, const struct graph_weights *w, const struct block_format *f)
{
    *d = (struct dense){0};
    for (size_t l = 0; l < w->model->layer_count; l++) {
        const struct layer_weights *x = &w->layers[l];
        const struct matrix *list[] = {&x->q,           &x->k,     &x->v,           &x->out,
                                       &x->q_a,         &x->q_b,   &x->kv_a,        &x->gate,
                                       &x->up,          &x->down,  &x->shared_gate, &x->shared_up,
                                       &x->shared_down, &x->router};
        for (size_t i = 0; i < sizeof list / sizeof *list; i++)
            add_matrix(d, list[i], f);
    }
    add_matrix(d, &w->head, f);
}

static enum status measure_format(struct kernel_line *out, const struct dense *d,
                                  const struct measure_kernels_setup *s, struct diag *dg)
{
    struct input in = {0};
    struct sweep sweep = {0};
    uint64_t bytes = 0;
    float *y = calloc(d->rows_max, sizeof *y);
    double *sample = calloc(s->repeats, sizeof *sample);
    enum status st = y && sample ? input_new(&in, d->cols_max, 1, dg) : diag_no_memory(dg);
    if (st == ST_OK && !s->cached)
        st = sweep_new(&sweep, SWEEP_BYTES, dg);
    for (size_t i = 0; i < d->count; i++)
        bytes += (uint64_t)d->matrix[i]->weights.rows *
                 block_row_bytes(d->matrix[i]->weights.format, d->matrix[i]->weights.cols);
    for (size_t r = 0; st == ST_OK && r < s->repeats; r++) {
        if (!s->cached)
            workers_run(s->compute.workers, sweep_share, &sweep);
        uint64_t start = record_now_ns();
        for (size_t i = 0; i < d->count; i++) {
            in.cols = d->matrix[i]->weights.cols;
            product_run(&s->compute, d->matrix[i], &in, 1, y);
        }
        sample[r] = (double)(record_now_ns() - start);
    }
    if (st == ST_OK) {
        double ns = stats_median(sample, s->repeats);
        *out = (struct kernel_line){.format = d->matrix[0]->weights.format,
                                    .rate_Bps = (double)bytes / ns * 1e9,
                                    .spread = spread_of(sample, s->repeats, ns)};
    }
    input_free(&in);
    store_free(sweep.store);
    free(y);
    free(sample);
    return st;
}

enum status measure_dense_kernels(struct kernel_line *out, size_t *count,
                                  const struct measure_kernels_setup *s, struct diag *dg)
{
    struct dense *d = malloc(sizeof *d);
    enum status st = d ? ST_OK : diag_no_memory(dg);
    *count = 0;
    for (int f = 0; st == ST_OK && f < FORMAT_COUNT; f++) {
        list_dense(d, s->weights, block_format((enum format_id)f));
        if (d->count > 0)
            st = measure_format(&out[(*count)++], d, s, dg);
    }
    free(d);
    return st;
}
