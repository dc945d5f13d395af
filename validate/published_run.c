#include "validate/published_run.h"

#include "base/fixed.h"
#include "models/state.h"
#include "sim/pipeline/forecast.h"
#include "sim/plan/placement.h"
#include "sim/roofline/estimate.h"

#include <float.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STRETCH = 4, THREADS_MAX = 64 };

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- rows against their models ---- */

/* No limit if the model cannot be loaded. */
static double experts_of(const char *model, const char *folder)
{
    struct diag ignored;
    struct model *m = NULL;
    bool loaded = model_load(&m, model, folder, NULL, 0, &ignored) == ST_OK;
    double experts = loaded ? (double)model_experts(m) : DBL_MAX;
    model_free(m);
    return experts;
}

enum status published_check_models(const struct published *p, const char *models, struct diag *dg)
{
    const char *last = "";
    double experts = DBL_MAX;
    for (size_t i = 0; i < p->count; i++) {
        const struct published_row *row = &p->rows[i];
        if (!*row->model || !row->top_k.given)
            continue;
        if (!is(row->model, last)) /* rows of one model mostly stand together */
            experts = experts_of(row->model, models);
        last = row->model;
        if (row->top_k.value > experts)
            return diag_set(dg, ST_PARSE, "%s:%zu: top_k: at most the %.0f experts of %s, not %g",
                            p->path, row->line, experts, row->model, row->top_k.value);
    }
    return ST_OK;
}

/* ---- what is run ---- */

/* Other figures than rates and times of decoding are run as blind only: their hits and seconds are not those
 * of a decode token. */
static bool runs_as(const struct published_row *row, enum published_class class_of)
{
    bool arithmetic = is(row->rule, "identity");
    bool decode = is(row->metric, "decode_rate") || is(row->metric, "io_s_per_token") ||
                  is(row->metric, "ms_per_layer");
    if (arithmetic)
        return class_of == PUBLISHED_HITS;
    if (class_of != PUBLISHED_BLIND && !decode)
        return false;
    return published_allows(row, class_of);
}

size_t published_run_count(const struct published *p, int only_class)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        for (int c = 0; c < PUBLISHED_CLASSES; c++)
            n += (only_class < 0 || only_class == c) &&
                 runs_as(&p->rows[i], (enum published_class)c);
    return n;
}

/* ---- one run's figure ---- */

static double per(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

static enum status figure_of(double *out, const struct published_row *row,
                             const struct pipeline_setup *s, const struct pipeline_result *x,
                             struct diag *dg)
{
    if (is(row->metric, "decode_rate"))
        *out = (double)forecast_rate(x) / 1e6;
    else if (is(row->metric, "ms_per_layer"))
        *out = per(x->decode_ns, x->tokens * model_moe_layers(s->model)) / 1e6;
    else if (is(row->metric, "io_s_per_token"))
        *out = per(x->io_ns, x->tokens) / 1e9;
    else if (is(row->metric, "hit_ratio"))
        *out = per(x->hits, x->lookups);
    else if (is(row->metric, "prefill_rate"))
        *out = per(s->prompt_tokens, x->prefill_ns) * 1e9;
    else if (is(row->metric, "ttft"))
        *out = (double)(x->prefill_ns + x->first_token_ns) / 1e9;
    else if (is(row->metric, "peak_bytes"))
        *out = (double)x->peak_bytes;
    else
        return diag_set(dg, ST_UNSUPPORTED, "no single run gives a %s", row->metric);
    return ST_OK;
}

/* The published cache did fit, so a refusal shows that the reserve assumed for the system is too large. */
static enum status run_in_memory(struct pipeline_result *x, struct published_run *r,
                                 struct diag *dg)
{
    struct pipeline_setup *s = &r->setup;
    enum status st = pipeline_run(x, s, dg);
    if (st != ST_MISFIT || !s->cache_given || s->memory_bytes)
        return st;
    s->memory_bytes = r->device->dram.capacity.amount;
    published_note(r, "the cache fits only without the system's reserve");
    return pipeline_run(x, s, dg);
}

/* The spread of a short stretch with the hit ratio that the run had, laid around the run's own figure. */
static enum status draw_interval(struct published_outcome *o, const struct published_run *r,
                                 const struct pipeline_result *x, uint64_t draws, struct diag *dg)
{
    struct pipeline_setup s = r->setup;
    struct forecast f;
    s.params = NULL;
    s.prefetch = NULL;
    if (r->setup.params)
        s.hit_ratio = x->lookups ? fixed_mul_div(x->hits, RATIO_ONE, x->lookups) : 0;
    s.warmup = s.prompt_tokens = 0;
    s.tokens = STRETCH;
    enum status st = forecast_run(&f, &s, draws, dg);
    double plain = st == ST_OK ? (double)forecast_rate(&f.result) : 0;
    if (plain <= 0 || f.low == 0)
        return st;
    double slow = (double)f.low / plain, fast = (double)f.high / plain;
    bool rate = is(o->row->metric, "decode_rate");
    o->low = o->predicted * (rate ? slow : 1 / fast);
    o->high = o->predicted * (rate ? fast : 1 / slow);
    return ST_OK;
}

/* ---- rows without experts, and arithmetic ---- */

/* A dense model: the closed form of one decode pass, as `memwall roofline` prints it at the rates that the
 * machine reaches, with what does not fit read again. */
static enum status run_dense(struct published_outcome *o, const struct published_run *r,
                             struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    struct machine m;
    struct machine_choice choice = {.cards = 1, .rates = RATES_REACHED, .eight_bit = true};
    struct placement place;
    struct workload load = {0};
    struct timing t = {0};
    struct workload_request ask = {.sequences = 1,
                                   .tokens = 1,
                                   .context = r->setup.context,
                                   .logits = 1,
                                   .state_bits = STATE_BITS_F16};
    struct placement_request where = {.memory = r->setup.memory_bytes,
                                      .context = r->setup.context + 1,
                                      .state_bits = STATE_BITS_F16,
                                      .lanes = p->lanes.amount,
                                      .pieces = 1,
                                      .chunk = 1,
                                      .stream_dense = true};
    enum status st = machine_init(&m, r->device, &choice, dg);
    if (st == ST_OK)
        st = placement_find(&place, r->model, r->device, &m, &where, dg);
    if (st == ST_OK)
        st = workload_init(&load, r->model, &ask, dg);
    if (st == ST_OK) {
        struct regime g = {.profile = PROFILE_SERIAL,
                           .hit_ratio = RATIO_ONE,
                           .lanes = p->lanes.amount,
                           .pieces = 1,
                           .copies = p->copies.amount,
                           .stream_trunk = place.stream_trunk,
                           .stream_bytes = place.stream_bytes};
        estimate_timing(&t, &load, &m, &g);
        o->predicted = t.total_ns ? 1e9 / (double)t.total_ns : 0;
        o->predicted_given = t.total_ns > 0;
        o->bound = t.flash_ns > t.memory_ns + t.compute_ns ? "flash" : "DRAM";
    }
    workload_free(&load);
    return st;
}

/* Bytes over a rate, by the rounding that the simulator uses. */
static enum status run_identity(struct published_outcome *o, const struct published_row *row,
                                struct diag *dg)
{
    if (!row->bytes_per_token.given || !row->flash_Bps.given)
        return diag_set(dg, ST_MISSING, "missing: %s",
                        row->flash_Bps.given ? "bytes_per_token" : "flash_Bps");
    o->predicted =
        (double)time_for((uint64_t)row->bytes_per_token.value, (uint64_t)row->flash_Bps.value) /
        1e9;
    o->predicted_given = true;
    o->bound = "flash";
    return ST_OK;
}

static enum status run_experts(struct published_outcome *o, struct published_run *r, uint64_t draws,
                               struct diag *dg)
{
    struct pipeline_result x;
    enum status st = run_in_memory(&x, r, dg);
    if (st == ST_OK)
        st = figure_of(&o->predicted, o->row, &r->setup, &x, dg);
    if (st != ST_OK)
        return st;
    o->predicted_given = o->predicted > 0 || is(o->row->metric, "hit_ratio");
    o->bound = x.bound;
    return draws > 0 ? draw_interval(o, r, &x, draws, dg) : ST_OK;
}

/* ---- judging ---- */

double published_error(double predicted, double low, double high)
{
    if (predicted >= low && predicted <= high)
        return 0;
    double near = predicted < low ? low : high;
    return near > 0 ? predicted / near - 1 : predicted; /* a published 0: points */
}

static void judge(struct published_outcome *o)
{
    const struct published_row *row = o->row;
    if (!o->predicted_given)
        return;
    double low = row->value_low.given ? row->value_low.value : row->value.value;
    double high = row->value_high.given ? row->value_high.value : row->value.value;
    o->signed_error = published_error(o->predicted, low, high);
    double size = o->signed_error < 0 ? -o->signed_error : o->signed_error;
    o->counted = is(row->rule, "des") && is(row->metric, "decode_rate");
    if (is(row->rule, "bound")) /* what was measured must not exceed what is possible */
        o->pass = row->value.value <= o->predicted * 1.01;
    else if (row->tolerance_percent.given)
        o->pass = size * 100 <= row->tolerance_percent.value;
}

static void run_row(struct published_outcome *o, const struct published_request *q)
{
    struct published_row masked = published_mask(o->row, o->class_of);
    struct published_run r = {0};
    struct diag dg;
    enum status st;
    if (is(masked.rule, "identity")) {
        st = run_identity(o, &masked, &dg);
    } else {
        st = published_assemble(&r, &masked, o->class_of, &q->folders, q->seed, &dg);
        if (st == ST_OK)
            st = model_moe_layers(r.model) > 0 ? run_experts(o, &r, q->draws, &dg)
                                               : run_dense(o, &r, &dg);
    }
    if (st != ST_OK)
        published_note(&r, "%s", dg.text);
    strcpy(o->note, r.note);
    published_run_free(&r);
    judge(o);
}

/* A trend is judged against the row before it of the same run (C20a, C20b): which of the two is faster. */
static bool same_run(const char *a, const char *b)
{
    size_t n = strlen(a);
    return n > 1 && n == strlen(b) && memcmp(a, b, n - 1) == 0 && a[n - 1] > '9';
}

static void judge_trends(struct published_outcome *o, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is(o[i].row->rule, "trend") || !o[i].predicted_given || o[i].row->value_low.given)
            continue;
        for (size_t j = i; j-- > 0;) {
            const struct published_outcome *before = &o[j];
            if (!same_run(o[i].row->id, before->row->id))
                continue;
            if (before->class_of != o[i].class_of || !before->predicted_given ||
                !is(before->row->metric, o[i].row->metric))
                continue;
            double published = o[i].row->value.value - before->row->value.value;
            double predicted = o[i].predicted - before->predicted;
            o[i].pass = published * predicted > 0;
            break;
        }
    }
}

/* ---- the crew ---- */

struct crew {
    pthread_mutex_t lock;
    const struct published_request *request;
    struct published_outcome *outcome;
    size_t count, next;
};

static void *work(void *self)
{
    struct crew *c = self;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        size_t i = c->next++;
        pthread_mutex_unlock(&c->lock);
        if (i >= c->count)
            return NULL;
        run_row(&c->outcome[i], c->request);
        if (!c->request->step)
            continue;
        pthread_mutex_lock(&c->lock);
        c->request->step(c->request->step_self);
        pthread_mutex_unlock(&c->lock);
    }
}

static void run_crew(struct crew *c)
{
    pthread_t thread[THREADS_MAX];
    uint32_t wanted = c->request->threads < THREADS_MAX ? c->request->threads : THREADS_MAX;
    uint32_t started = 0;
    pthread_mutex_init(&c->lock, NULL);
    while (started + 1 < wanted && pthread_create(&thread[started], NULL, work, c) == 0)
        started++;
    work(c); /* this thread is one of them */
    for (uint32_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&c->lock);
}

enum status published_run_all(struct published_outcome **out, size_t *count,
                              const struct published *p, const struct published_request *q,
                              struct diag *dg)
{
    size_t n = published_run_count(p, q->only_class), at = 0;
    struct published_outcome *o = calloc(n ? n : 1, sizeof *o);
    if (!o)
        return diag_no_memory(dg);
    for (size_t i = 0; i < p->count; i++)
        for (int c = 0; c < PUBLISHED_CLASSES; c++)
            if ((q->only_class < 0 || q->only_class == c) &&
                runs_as(&p->rows[i], (enum published_class)c))
                o[at++] = (struct published_outcome){.row = &p->rows[i],
                                                     .class_of = (enum published_class)c,
                                                     .bound = "",
                                                     .pass = -1};
    struct crew crew = {.request = q, .outcome = o, .count = n};
    run_crew(&crew);
    judge_trends(o, n);
    *out = o;
    *count = n;
    return ST_OK;
}
