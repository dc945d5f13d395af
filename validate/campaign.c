/* campaign.c -- see campaign.h. */
#include "validate/campaign.h"

#include "base/stats.h"
#include "models/gguf_model.h"
#include "validate/sentinel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS_MAX 16
#define PATH_BYTES  4096

struct campaign {
    const struct measured_setup *setup;
    struct measured_cell *cell;
    size_t count;
    struct model *model;
    struct calibration calibration[2]; /* as the GGUF lies, and packed */
    bool calibrated[2];
    struct sentinel *sentinel;
    struct sentinel_reading reference;
    double (*wall)[REPEATS_MAX]; /* seconds a token, cell by cell */
    bool (*admitted)[REPEATS_MAX];
    struct diag *dg;
};

static void tell(const struct campaign *c, const char *step, size_t done, size_t all)
{
    if (c->setup->progress)
        c->setup->progress(c->setup->self, step, done, all);
}

static const char *file_of(const struct campaign *c, char path[PATH_BYTES], const char *name,
                           size_t i)
{
    snprintf(path, PATH_BYTES, "%s/%s-%zu", c->setup->folder, name, i);
    return path;
}

/* ---- the engine ---- */

static struct engine_setup engine_of(const struct campaign *c, const struct measured_cell *cell)
{
    const struct measured_setup *s = c->setup;
    return (struct engine_setup){
        .model = s->model,
        .pack = cell->packed ? s->pack : NULL,
        .route = s->route,
        .isa = s->isa,
        .threads = cell->threads,
        .context = s->prompt + s->tokens,
        .overlap = cell->overlap,
        .direct = true,
        .decide = {.policy = cell->policy,
                   .prefetch = cell->prefetch,
                   .budget_bytes = cell->cache_bytes,
                   .prefetch_distance = 1,
                   .seed = s->seed},
        .loader = {.depth = cell->lanes,
                   .limit_rate_Bps = cell->limit_rate_Bps,
                   .add_latency_ns = cell->add_latency_ns},
        .predict_distance = cell->prefetch && cell->prefetch->from_outside ? 1 : 0,
    };
}

struct outcome {
    uint64_t decode_ns, stall_ns;
    size_t tokens;
};

static void on_pass(void *self, const struct engine_pass *p)
{
    struct outcome *o = self;
    if (p->phase != PHASE_DECODE)
        return;
    o->decode_ns += p->wall_ns;
    o->stall_ns += p->io_wait_ns;
    o->tokens++;
}

static enum status run_tokens(const struct campaign *c, struct engine *e)
{
    const struct measured_setup *s = c->setup;
    size_t vocab = c->model->vocab;
    uint32_t prompt[256];
    float *logits = calloc(vocab, sizeof *logits);
    enum status st = logits ? ST_OK : diag_no_memory(c->dg);
    for (size_t i = 0; i < s->prompt; i++)
        prompt[i] = engine_made_up_token(i, vocab);
    if (st == ST_OK)
        st = engine_prompt(e, prompt, s->prompt, NULL, logits, c->dg);
    for (size_t i = s->prompt; st == ST_OK && i < s->prompt + s->tokens; i++)
        st = engine_step(e, engine_made_up_token(i, vocab), logits, c->dg);
    free(logits);
    return st;
}

/* One repeat of a cell. The first one keeps the routing and the counts. */
static enum status run_engine(struct campaign *c, size_t i, struct outcome *o, bool first)
{
    struct measured_cell *cell = &c->cell[i];
    struct engine_setup s = engine_of(c, cell);
    struct engine *e;
    char path[PATH_BYTES];
    *o = (struct outcome){0};
    s.on_pass = on_pass;
    s.on_pass_self = o;
    s.record_trace = first;
    enum status st = engine_open(&e, &s, c->dg);
    if (st != ST_OK)
        return st;
    st = run_tokens(c, e);
    if (st == ST_OK && first) {
        cell->measured = *experts_counts(engine_experts(e));
        cell->late_measured = engine_sums(e)->late_hits;
        st = engine_save_trace(e, file_of(c, path, "trace", i), c->dg);
    }
    engine_close(e);
    return st;
}

static enum status repeat_cell(struct campaign *c, size_t i, size_t round)
{
    struct sentinel_reading before, after;
    struct outcome o;
    enum status st = sentinel_read(c->sentinel, &before, c->dg);
    if (st == ST_OK)
        st = run_engine(c, i, &o, round == 0);
    if (st == ST_OK)
        st = sentinel_read(c->sentinel, &after, c->dg);
    if (st != ST_OK)
        return st;
    c->wall[i][round] = (double)o.decode_ns / 1e9 / (double)o.tokens;
    c->admitted[i][round] = sentinel_agrees(&before, &c->reference) &&
                            sentinel_agrees(&after, &c->reference) &&
                            after.stolen_ns == before.stolen_ns;
    struct measured_cell *cell = &c->cell[i];
    cell->stall_s += (double)o.stall_ns / 1e9 / (double)o.tokens / (double)c->setup->repeats;
    cell->repeats++;
    cell->admitted += c->admitted[i][round];
    return ST_OK;
}

/* Over the admitted repeats; over all of them where none was. */
static void summarise(struct campaign *c, size_t i)
{
    struct measured_cell *cell = &c->cell[i];
    double x[REPEATS_MAX];
    size_t n = 0;
    for (size_t r = 0; r < cell->repeats; r++)
        if (c->admitted[i][r] || cell->admitted == 0)
            x[n++] = c->wall[i][r];
    cell->s_per_token = stats_median(x, n);
    cell->spread_ratio =
        (stats_quantile(x, n, 0.9) - stats_quantile(x, n, 0.1)) / cell->s_per_token;
    cell->compute_s = cell->s_per_token > cell->stall_s ? cell->s_per_token - cell->stall_s : 0;
}

/* ---- calibration ---- */

static enum status calibrate_for(struct campaign *c, bool packed)
{
    struct measured_cell plain = {
        .policy = cache_policy_find("lru"), .lanes = 16, .packed = packed};
    size_t threads[CALIBRATION_THREADS], n = 0;
    for (size_t i = 0; i < c->count; i++) {
        bool known = c->cell[i].packed != packed;
        for (size_t t = 0; t < n; t++)
            known |= threads[t] == c->cell[i].threads;
        if (!known && n < CALIBRATION_THREADS)
            threads[n++] = c->cell[i].threads;
    }
    if (n == 0)
        return ST_OK;
    struct calibrate_setup s = {.engine = engine_of(c, &plain),
                                .threads = threads,
                                .thread_counts = n,
                                .quick = c->setup->quick,
                                .seed = c->setup->seed};
    s.engine.decide.budget_bytes = 0;
    tell(c, packed ? "calibrating, packed" : "calibrating", 0, 1);
    c->calibrated[packed] = true;
    return calibrate(&c->calibration[packed], &s, c->dg);
}

static enum status open_sentinel(struct campaign *c, struct graph_weights **w)
{
    enum status st = graph_weights_load(w, c->setup->model, NULL, NULL, c->dg);
    if (st != ST_OK)
        return st;
    struct measure_reads_setup s = {.weights = *w,
                                    .loader = {.depth = 16},
                                    .direct = true,
                                    .repeats = 1,
                                    .seed = c->setup->seed};
    st = sentinel_new(&c->sentinel, &s, c->dg);
    return st == ST_OK ? sentinel_read(c->sentinel, &c->reference, c->dg) : st;
}

/* ---- the simulator ---- */

static enum status load_description(struct campaign *c, const struct measured_cell *cell, size_t i,
                                    struct device **out)
{
    const struct calibration *k = &c->calibration[cell->packed];
    size_t t = 0;
    char path[PATH_BYTES], name[PATH_BYTES + 8], text[2][64];
    const char *edit[2];
    size_t edits = 0;
    while (t + 1 < k->thread_counts && k->by_threads[t].threads != cell->threads)
        t++;
    snprintf(name, sizeof name, "%s.yaml", file_of(c, path, "device", i));
    FILE *f = fopen(name, "w");
    if (!f)
        return diag_errno(c->dg, name, "cannot be written");
    calibration_write(f, k, t);
    if (fclose(f) != 0)
        return diag_errno(c->dg, name, "cannot be written");
    /* The limit is on whole blocks, as they go over the wire; the description counts payload. */
    const struct read_burst *one = &k->burst[0];
    uint64_t limit = one->device_bytes ? cell->limit_rate_Bps * one->bytes / one->device_bytes : 0;
    if (limit && (double)limit < k->station.bandwidth_Bps) {
        snprintf(text[edits], sizeof text[0], "storage.0.bandwidth=%" PRIu64 "B/s", limit);
        edit[edits] = text[edits];
        edits++;
    }
    if (cell->add_latency_ns) {
        snprintf(text[edits], sizeof text[0], "storage.0.latency=%" PRIu64 "ns",
                 (uint64_t)k->station.latency_ns + cell->add_latency_ns);
        edit[edits] = text[edits];
        edits++;
    }
    return device_load(out, name, NULL, edit, edits, c->dg);
}

static void keep_result(struct measured_cell *cell, const struct forecast *f)
{
    const struct pipeline_result *r = &f->result;
    double tokens = r->tokens ? (double)r->tokens : 1;
    cell->simulated = r->counts;
    cell->late_simulated = r->late_hits;
    cell->s_simulated = (double)r->decode_ns / 1e9 / tokens;
    cell->compute_s_simulated = (double)r->compute_ns / 1e9 / tokens;
    cell->stall_s_simulated = (double)r->stall_ns / 1e9 / tokens;
    cell->low_s = f->high ? 1e6 / (double)f->high : 0;
    cell->high_s = f->low ? 1e6 / (double)f->low : 0;
    const struct decide_counts *a = &cell->measured, *b = &cell->simulated;
    cell->equal = a->lookups == b->lookups && a->hits == b->hits && a->misses == b->misses &&
                  a->prefetches == b->prefetches && a->prefetch_wasted == b->prefetch_wasted &&
                  a->evictions == b->evictions && a->demand_bytes == b->demand_bytes &&
                  a->prefetch_bytes == b->prefetch_bytes && a->command_hash == b->command_hash;
}

static enum status simulate(struct campaign *c, size_t i)
{
    struct measured_cell *cell = &c->cell[i];
    struct device *device = NULL;
    struct engine_profile *profile = NULL;
    struct trace *trace = NULL;
    struct forecast f;
    char path[PATH_BYTES];
    enum status st = load_description(c, cell, i, &device);
    if (st == ST_OK)
        st = profile_load(&profile, "memwall", c->setup->profiles, NULL, 0, c->dg);
    if (st == ST_OK)
        st = trace_load(&trace, file_of(c, path, "trace", i), c->dg);
    if (st == ST_OK) {
        struct pipeline_setup s = {
            .model = c->model,
            .device = device,
            .profile = profile,
            .trace = trace,
            .tokens = c->setup->tokens,
            .policy = cell->policy,
            .prefetch = cell->prefetch,
            .cache_bytes = cell->cache_bytes,
            .cache_given = true,
            .prefetch_distance = 1,
            .lanes = cell->lanes,
            .pieces = cell->packed ? 1 : 3,
            .threads = cell->threads,
            .overlap = cell->overlap ? OVERLAP_READY : OVERLAP_SERIAL,
            .state_bits = 256,
            .seed = c->setup->seed,
        };
        st = forecast_run(&f, &s, c->setup->draws, c->dg);
    }
    if (st == ST_OK)
        keep_result(cell, &f);
    trace_free(trace);
    profile_free(profile);
    device_free(device);
    return st;
}

/* ---- all of it ---- */

static enum status run_all(struct campaign *c)
{
    enum status st = ST_OK;
    size_t repeats = c->setup->repeats < REPEATS_MAX ? c->setup->repeats : REPEATS_MAX;
    for (size_t r = 0; st == ST_OK && r < repeats; r++)
        for (size_t i = 0; st == ST_OK && i < c->count; i++) {
            tell(c, "engine runs", r * c->count + i, repeats * c->count);
            st = repeat_cell(c, i, r);
        }
    for (size_t i = 0; st == ST_OK && i < c->count; i++) {
        summarise(c, i);
        tell(c, "simulated runs", i, c->count);
        st = simulate(c, i);
    }
    return st;
}

enum status measured_run(struct measured_cell *cell, size_t count, const struct measured_setup *s,
                         struct calibration *calibration, struct diag *dg)
{
    struct campaign c = {.setup = s, .cell = cell, .count = count, .dg = dg};
    struct graph_weights *w = NULL;
    c.wall = calloc(count, sizeof *c.wall);
    c.admitted = calloc(count, sizeof *c.admitted);
    enum status st = c.wall && c.admitted ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        st = gguf_model_load(&c.model, s->model, dg);
    for (int packed = 0; st == ST_OK && packed < 2; packed++)
        st = calibrate_for(&c, packed);
    if (st == ST_OK)
        st = open_sentinel(&c, &w);
    if (st == ST_OK)
        st = run_all(&c);
    if (st == ST_OK && calibration)
        *calibration = c.calibration[!c.calibrated[0]];
    sentinel_free(c.sentinel);
    graph_weights_free(w);
    model_free(c.model);
    free(c.wall);
    free(c.admitted);
    return st;
}
