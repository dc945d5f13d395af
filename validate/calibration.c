/* calibration.c -- see calibration.h. */
#include "validate/calibration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void tell(const struct calibrate_setup *s, const char *step)
{
    if (s->progress)
        s->progress(s->self, step);
}

/* ---- reads ---- */

static enum status calibrate_reads(struct calibration *out, const struct calibrate_setup *s,
                                   const struct graph_weights *w, struct diag *dg)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
    struct measure_reads_setup m = {.weights = w,
                                    .pack = s->engine.pack,
                                    .loader = s->engine.loader,
                                    .direct = s->engine.direct,
                                    .repeats = s->quick ? 80 : 400,
                                    .seed = s->seed};
    m.loader.loads_max = 0; /* filled in by who opens it */
    out->bursts = sizeof sizes / sizeof *sizes;
    for (size_t i = 0; i < out->bursts; i++)
        out->burst[i] = (struct read_burst){.experts = sizes[i]};
    tell(s, "bursts of reads");
    enum status st = measure_reads(out->burst, out->bursts, &out->costs, &m, dg);
    if (st != ST_OK)
        return st;
    tell(s, "fit of the drive");
    out->depth = s->engine.loader.depth;
    return station_fit(&out->station, out->fitted_ns, out->burst, out->bursts, out->costs.submit_ns,
                       out->costs.wake_ns, out->depth, dg);
}

/* ---- kernels and the engine ---- */

static const struct kernel_line *line_of(const struct calibration *c,
                                         const struct calibration_threads *t,
                                         const struct block_format *f)
{
    if (c->packed && t->expert.format == f)
        return &t->expert; /* one rate a format and layout: what the dense part differs is in its overhead */
    for (size_t i = 0; i < t->dense_count; i++)
        if (t->dense[i].format == f)
            return &t->dense[i];
    return NULL;
}

/* What the simulator will take for the dense weights of a layer, or of the head, by these rates. */
static double dense_ns(const struct calibration *c, const struct calibration_threads *t,
                       const struct model *m, const uint64_t weight_bytes[GROUP_MAX])
{
    double ns = 0;
    for (int g = 0; g < GROUP_MAX; g++) {
        const struct kernel_line *line =
            m->quant.group[g] ? line_of(c, t, block_format_find(m->quant.group[g]->name)) : NULL;
        if (g != GROUP_EXPERT && g != GROUP_OTHER && line)
            ns += (double)weight_bytes[g] / line->rate_Bps * 1e9;
    }
    return ns;
}

static double above(double x)
{
    return x > 0 ? x : 0;
}

/* Reads of one expert; the engine counts experts. */
static double pieces(const struct calibration *c)
{
    return (double)c->burst[0].reads / c->burst[0].experts;
}

/* Takes the bytes' time off what the engine took; the rest is overhead, and a group of experts' call is what makes the
 * engine's own time of experts come out. */
static void leave_overheads(struct calibration *c, struct calibration_threads *t,
                            const struct model *m)
{
    double dense = 0, experts = 0, shared = 0;
    size_t moe = 0;
    uint64_t head[GROUP_MAX] = {[GROUP_HEAD] = m->bytes_head ? m->bytes_head : m->bytes_embedding};
    for (size_t l = 0; l < m->layer_count; l++) {
        uint64_t bytes[GROUP_MAX];
        memcpy(bytes, m->layers[l].weight_bytes, sizeof bytes);
        uint64_t of_shared[GROUP_MAX] = {[GROUP_SHARED_EXPERT] = bytes[GROUP_SHARED_EXPERT]};
        bytes[GROUP_SHARED_EXPERT] = 0;
        dense += dense_ns(c, t, m, bytes);
        shared += dense_ns(c, t, m, of_shared);
        if (m->layers[l].ffn.experts == 0)
            continue;
        moe++;
        experts +=
            (double)(m->layers[l].ffn.top_k * m->layers[l].expert_bytes) / t->expert.rate_Bps * 1e9;
    }
    t->layer_overhead_ns =
        above(t->engine.dense_ns + t->engine.shared_ns - dense - shared) / (double)m->layer_count;
    t->token_overhead_ns = above(t->waiting.head_ns - dense_ns(c, t, m, head));
    size_t guesses = 0; /* of a token: layers whose next one has experts */
    for (size_t l = 0; l + 1 < m->layer_count; l++)
        guesses += m->layers[l].ffn.experts > 0 && m->layers[l + 1].ffn.experts > 0;
    if (guesses)
        t->predict_ns = above(t->guessing.dense_ns - t->engine.dense_ns) / (double)guesses;
    /* What kernels take longer after a wait, beside issuing reads. */
    const struct engine_costs *w = &t->waiting;
    double call = moe ? above(t->engine.expert_ns - experts) / (double)moe : 0;
    double groups = w->stalls - (double)moe; /* more than a resident run has */
    if (w->stalls > 0)
        t->resume_ns = above(w->expert_ns - t->engine.expert_ns - groups * call) / w->stalls;
    if (moe)
        t->resume_layer_ns =
            above(w->dense_ns + w->shared_ns - t->engine.dense_ns - t->engine.shared_ns -
                  w->reads * pieces(c) * c->costs.submit_ns) /
            (double)moe;
    t->expert.call_ns = call;
}

static enum status calibrate_threads(struct calibration *out, struct calibration_threads *t,
                                     const struct calibrate_setup *s, struct graph_weights *w,
                                     struct diag *dg)
{
    struct workers *workers = NULL;
    struct measure_kernels_setup k = {.weights = w,
                                      .pack = s->engine.pack,
                                      .repeats = s->quick ? 15 : 40,
                                      .experts_bytes = UINT64_C(512) << 20,
                                      .cached = out->cached,
                                      .seed = s->seed};
    struct engine_setup engine = s->engine;
    enum status st = isa_choose(&k.compute.isa, s->engine.isa, dg);
    if (st == ST_OK)
        st = workers_new(&workers, t->threads, dg);
    k.compute.workers = workers;
    k.compute.activations_f32 = s->engine.activations_f32;
    tell(s, "memory");
    if (st == ST_OK)
        st = measure_memory(&t->memory_Bps, workers, s->quick ? 9 : 25, dg);
    if (st == ST_OK)
        t->peak_ops = measure_peak(&k.compute);
    tell(s, "kernels");
    if (st == ST_OK)
        st = measure_expert_kernels(&t->expert, 1, &k, dg);
    if (st == ST_OK)
        st = measure_dense_kernels(t->dense, &t->dense_count, &k, dg);
    workers_free(workers);
    if (st != ST_OK)
        return st;
    tell(s, "a run with everything resident");
    engine.threads = t->threads;
    engine.overlap = true;
    engine.loader.limit_rate_Bps = engine.loader.add_latency_ns = 0;
    st = measure_engine(&t->engine, &engine, s->quick ? 80 : 100, WAY_RESIDENT, dg);
    if (st == ST_OK)
        st = measure_engine(&t->guessing, &engine, s->quick ? 80 : 100, WAY_GUESSING, dg);
    tell(s, "a run that keeps nothing");
    if (st == ST_OK)
        st = measure_engine(&t->waiting, &engine, s->quick ? 40 : 60, WAY_WAITING, dg);
    if (st == ST_OK)
        leave_overheads(out, t, w->model);
    return st;
}

static enum status calibrate_cache(struct calibration *out, const struct calibrate_setup *s,
                                   struct diag *dg)
{
    struct workers *w;
    tell(s, "the last-level cache");
    enum status st = workers_new(&w, s->threads[0], dg);
    if (st == ST_OK) {
        st = measure_cache(&out->cache_bytes, w, s->quick ? 5 : 15, dg);
        workers_free(w);
    }
    return st;
}

static uint64_t system_bytes(int pages)
{
    long n = sysconf(pages), page = sysconf(_SC_PAGESIZE);
    return n > 0 && page > 0 ? (uint64_t)n * (uint64_t)page : 0;
}

static void find_noise(struct calibration *c)
{
    for (size_t i = 0; i < c->bursts; i++) {
        double spread = (c->burst[i].high_ns - c->burst[i].low_ns) / 2 / c->burst[i].ns;
        c->noise = spread > c->noise ? spread : c->noise;
    }
    for (size_t i = 0; i < c->thread_counts; i++)
        if (c->by_threads[i].engine.spread > c->noise)
            c->noise = c->by_threads[i].engine.spread;
}

enum status calibrate(struct calibration *out, const struct calibrate_setup *s, struct diag *dg)
{
    struct graph_weights *w;
    *out = (struct calibration){.packed = s->engine.pack != NULL};
    enum status st = graph_weights_load(&w, s->engine.model, NULL, NULL, dg);
    if (st != ST_OK)
        return st;
    st = calibrate_cache(out, s, dg);
    out->memory_bytes = system_bytes(_SC_PHYS_PAGES);
    out->cached = w->dense_bytes + model_experts_bytes(w->model) <= out->cache_bytes;
    snprintf(out->model, sizeof out->model, "%s", w->model->name);
    if (st == ST_OK && model_experts(w->model) == 0)
        st = diag_set(dg, ST_MISFIT, "%s: the model has no routed experts to stream",
                      s->engine.model);
    if (st == ST_OK)
        st = calibrate_reads(out, s, w, dg);
    for (size_t i = 0; st == ST_OK && i < s->thread_counts && i < CALIBRATION_THREADS; i++) {
        out->by_threads[i].threads = s->threads[i];
        st = calibrate_threads(out, &out->by_threads[i], s, w, dg);
        out->thread_counts = i + 1;
    }
    graph_weights_free(w);
    if (st == ST_OK)
        find_noise(out);
    return st;
}
