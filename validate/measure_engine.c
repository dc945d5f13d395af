/* measure_engine.c -- see measure_engine.h. */
#include "validate/measure_engine.h"

#include "base/stats.h"

#include <stdlib.h>

/* Means, since a run is a sum of tokens; strays of other programs are left out. */
#define TOKENS_CUT 0.1

enum part { DENSE, EXPERT, SHARED, HEAD, WALL, PARTS };

struct timing {
    double *sample[PARTS];
    size_t count, room;
    bool counting, resident;
    uint64_t reads, stalls;
};

static void on_pass(void *self, const struct engine_pass *p)
{
    struct timing *t = self;
    if (!t->counting || p->phase != PHASE_DECODE || (t->resident && p->counts.misses > 0) ||
        t->count == t->room)
        return;
    const uint64_t *ns = p->sums.operation_ns;
    uint64_t apart =
        ns[OPERATION_EXPERT] + ns[OPERATION_SHARED] + ns[OPERATION_HEAD] + ns[OPERATION_STALL];
    size_t i = t->count++;
    t->reads += p->sums.reads;
    t->stalls += p->sums.stalls;
    t->sample[DENSE][i] = (double)(p->wall_ns > apart ? p->wall_ns - apart : 0);
    t->sample[EXPERT][i] = (double)ns[OPERATION_EXPERT];
    t->sample[SHARED][i] = (double)ns[OPERATION_SHARED];
    t->sample[HEAD][i] = (double)ns[OPERATION_HEAD];
    t->sample[WALL][i] = (double)p->wall_ns;
}

static enum status run_twice(struct engine *e, struct timing *t, size_t tokens, struct diag *dg)
{
    size_t vocab = engine_weights(e)->model->vocab;
    float *logits = calloc(vocab, sizeof *logits);
    enum status st = logits ? ST_OK : diag_no_memory(dg);
    for (int round = 0; st == ST_OK && round < 2; round++) {
        t->counting = round == 1;
        if (round)
            graph_restart(engine_graph(e));
        for (size_t i = 0; st == ST_OK && i < tokens; i++)
            st = engine_step(e, engine_made_up_token(i, vocab), logits, dg);
    }
    free(logits);
    return st;
}

static void summarise(struct engine_costs *out, struct timing *t)
{
    *out = (struct engine_costs){.tokens = t->count};
    out->dense_ns = stats_trimmed_mean(t->sample[DENSE], t->count, TOKENS_CUT);
    out->expert_ns = stats_trimmed_mean(t->sample[EXPERT], t->count, TOKENS_CUT);
    out->shared_ns = stats_trimmed_mean(t->sample[SHARED], t->count, TOKENS_CUT);
    out->head_ns = stats_trimmed_mean(t->sample[HEAD], t->count, TOKENS_CUT);
    if (t->count > 0) {
        out->reads = (double)t->reads / (double)t->count;
        out->stalls = (double)t->stalls / (double)t->count;
    }
    double wall = stats_median(t->sample[WALL], t->count);
    if (wall > 0)
        out->spread = (stats_quantile(t->sample[WALL], t->count, 0.9) -
                       stats_quantile(t->sample[WALL], t->count, 0.1)) /
                      2 / wall;
}

enum status measure_engine(struct engine_costs *out, const struct engine_setup *s, size_t tokens,
                           enum engine_way way, struct diag *dg)
{
    bool resident = way != WAY_WAITING;
    struct timing t = {.room = tokens, .resident = resident};
    struct engine_setup own = *s;
    struct engine *e = NULL;
    enum status st = ST_OK;
    own.decide.prefetch = NULL;
    own.predict_distance = way == WAY_GUESSING;
    own.decide.policy = cache_policy_find(resident ? "lru" : "none");
    own.decide.budget_bytes = resident ? UINT64_MAX / 4 : 1;
    own.context = tokens;
    own.record_trace = own.record_timeline = false;
    own.on_pass = on_pass;
    own.on_pass_self = &t;
    for (int p = 0; p < PARTS; p++) {
        t.sample[p] = calloc(tokens, sizeof *t.sample[p]);
        if (!t.sample[p])
            st = diag_no_memory(dg);
    }
    if (st == ST_OK)
        st = engine_open(&e, &own, dg);
    if (st == ST_OK)
        st = run_twice(e, &t, tokens, dg);
    if (st == ST_OK && t.count < 3)
        st = diag_set(dg, ST_MISFIT,
                      "only %zu tokens of the run with everything resident waited for no read",
                      t.count);
    if (st == ST_OK)
        summarise(out, &t);
    engine_close(e);
    for (int p = 0; p < PARTS; p++)
        free(t.sample[p]);
    return st;
}
