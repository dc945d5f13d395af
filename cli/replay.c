/* replay.c -- `memwall replay`: cache policies over a recorded trace, hits and bytes, no time. */
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/policy_options.h"
#include "cli/replay_decisions.h"
#include "cli/report.h"

#include "base/progress.h"
#include "sim/replay/feed.h"
#include "sim/replay/replay_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct option options[] = {
    {"trace", OPTION_TEXT, "FILE", "routing trace (memwall, route_trace v1, ESFT folder)", NULL,
     NULL, 0, 0, false},
    {"decisions", OPTION_TEXT, "FILE",
     "instead of a trace: a run's decision log, whose every command must come again", NULL, NULL, 0,
     0, false},
    {"policy", OPTION_TEXT, "P[,P]", "cache policies, or all; none " POLICY_NAMES, "lru", NULL, 0,
     0, false},
    {"cache", OPTION_TEXT, "SIZE[,SIZE]", "cache budgets", NULL, NULL, 0, 0, false},
    {"scope", OPTION_CHOICE, "global|layer", "one cache, or an equal share a layer", "global",
     scope_names, 0, 0, false},
    {"evict", OPTION_CHOICE, "before|after",
     "make room before a load, or shrink when the layer ends", "before", evict_names, 0, 0, false},
    PREFETCH_OPTIONS,
    {"pin-from", OPTION_TEXT, "FILE",
     "trace whose hottest experts policy pinned keeps (without it: those that came first)", NULL,
     NULL, 0, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"policy", CELL_TEXT, 0, false},
    {"scope", CELL_TEXT, 0, false},
    {"cache_bytes", CELL_COUNT, 0, false},
    {"lookups", CELL_COUNT, 0, false},
    {"hits", CELL_COUNT, 0, false},
    {"hit_ratio", CELL_RATIO, 0, false},
    {"decode_lookups", CELL_COUNT, 0, true},
    {"decode_hits", CELL_COUNT, 0, true},
    {"decode_hit_ratio", CELL_RATIO, 0, false},
    {"read_bytes", CELL_COUNT, 0, false},
    {"decode_read_bytes", CELL_COUNT, 0, true},
    {"evict", CELL_TEXT, 0, true},
    {"prefetch", CELL_TEXT, 0, true},
    {"prefetches", CELL_COUNT, 0, true},
    {"prefetch_used", CELL_COUNT, 0, true},
    {"prefetch_wasted", CELL_COUNT, 0, true},
    {"pollution", CELL_COUNT, 0, true},
    {"evictions", CELL_COUNT, 0, true},
    {"peak_bytes", CELL_COUNT, 0, true},
    {"command_hash", CELL_TEXT, 0, true},
};

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0 / 0.0;
}

static void add_row(struct report *r, const struct replay_setup *s, const struct replay_result *x)
{
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, x->counts.command_hash);
    report_text(r, s->policy->name);
    report_text(r, scope_names[s->scope]);
    report_count(r, s->budget_bytes);
    report_count(r, x->counts.lookups);
    report_count(r, x->counts.hits);
    report_ratio(r, ratio(x->counts.hits, x->counts.lookups));
    report_count(r, x->decode_lookups);
    report_count(r, x->decode_hits);
    report_ratio(r, ratio(x->decode_hits, x->decode_lookups));
    report_count(r, x->read_bytes);
    report_count(r, x->decode_read_bytes);
    report_text(r, evict_names[s->evict]);
    report_text(r, s->prefetch ? s->prefetch->name : "none");
    report_count(r, x->counts.prefetches);
    report_count(r, x->counts.prefetch_used);
    report_count(r, x->counts.prefetch_wasted);
    report_count(r, x->counts.pollution);
    report_count(r, x->counts.evictions);
    report_count(r, x->peak_bytes);
    report_text(r, hash);
}

/* The hot list of another trace of the same shape. */
static enum status load_rank(uint32_t **out, const char *path, const struct trace *t,
                             struct diag *dg)
{
    struct trace *hot;
    struct feed *f;
    enum status st = trace_load(&hot, path, dg);
    if (st != ST_OK)
        return st;
    if (hot->layers != t->layers || hot->experts != t->experts) {
        st = diag_set(dg, ST_MISFIT,
                      "%s: %u layers of %u experts expected as in the trace, not %u of %u", path,
                      t->layers, t->experts, hot->layers, hot->experts);
        trace_free(hot);
        return st;
    }
    uint32_t *rank = calloc((size_t)t->layers * t->experts, sizeof *rank);
    st = rank ? feed_new(&f, hot, UINT64_MAX, dg) : diag_no_memory(dg);
    if (st == ST_OK) {
        st = feed_rank(f, rank, dg);
        feed_free(f);
    }
    trace_free(hot);
    if (st != ST_OK) {
        free(rank);
        return st;
    }
    *out = rank;
    return ST_OK;
}

struct plan_of_runs {
    struct policy_list policies;
    struct size_list budgets;
    struct replay_setup setup;
};

static enum status run_all(struct report *r, const struct trace *t, struct plan_of_runs *p,
                           const struct args *a, struct diag *dg)
{
    struct progress progress;
    enum status st = ST_OK;
    bool cut = false;
    progress_start(&progress, "replay", p->policies.count * p->budgets.count);
    progress.visible &= !args_capture(a);
    for (size_t b = 0; st == ST_OK && b < p->budgets.count; b++)
        for (size_t i = 0; st == ST_OK && i < p->policies.count; i++) {
            struct replay_result result;
            p->setup.policy = p->policies.policy[i];
            p->setup.budget_bytes = p->budgets.size[b];
            st = replay_run(&result, t, &p->setup, dg);
            if (st != ST_OK)
                break;
            cut |= result.cut;
            add_row(r, &p->setup, &result);
            progress_add(&progress, 1);
        }
    progress_end(&progress);
    if (st == ST_OK && cut)
        note(a, "prefill chunks that did not fit a budget were cut into smaller ones");
    return st;
}

static enum status replay_trace(struct args *a, struct diag *dg)
{
    struct plan_of_runs p = {.setup = {.scope = (enum scope)args_count(a, "scope"),
                                       .evict = (enum evict_when)args_count(a, "evict"),
                                       .seed = args_count(a, "seed")}};
    enum status st = policy_list_read(&p.policies, a, dg);
    if (st == ST_OK)
        st = size_list_read(&p.budgets, a, "cache", dg);
    if (st == ST_OK)
        st = prefetch_options_read(a, &p.setup.prefetch, &p.setup.prefetch_distance,
                                   &p.setup.prefetch_experts_max, &p.setup.prefetch_bytes_max, dg);
    if (st != ST_OK)
        return st;
    struct trace *t;
    bool kept;
    st = captured_trace(&t, &kept, a, dg);
    if (st != ST_OK)
        return st;
    if (p.setup.prefetch_experts_max == 0)
        p.setup.prefetch_experts_max = t->top_k;
    uint32_t *rank = NULL;
    if (args_given(a, "pin-from"))
        st = load_rank(&rank, args_text(a, "pin-from"), t, dg);
    p.setup.rank = rank;
    struct report *r = NULL;
    if (st == ST_OK)
        st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st == ST_OK)
        st = run_all(r, t, &p, a, dg);
    if (st == ST_OK)
        st = report_close(r, dg);
    else
        report_abandon(r);
    free(rank);
    if (!kept)
        trace_free(t);
    return st;
}

static enum status replay_command(struct args *a, struct diag *dg)
{
    if (args_given(a, "decisions"))
        return replay_decisions(a, args_text(a, "decisions"), dg);
    if (!args_given(a, "trace"))
        return diag_set(dg, ST_USAGE, "--trace FILE is required");
    if (!args_given(a, "cache"))
        return diag_set(dg, ST_USAGE, "--cache SIZE[,SIZE] is required");
    return replay_trace(a, dg);
}

const struct command command_replay = {
    .name = "replay",
    .summary = "cache policies over a recorded trace: hits and bytes, no time",
    .usage = "--trace FILE --cache SIZE[,SIZE] [--policy P[,P]] [--scope global|layer], or "
             "--decisions FILE",
    .example = "memwall replay --trace tests/data/demo.trace.csv --policy lru,s3fifo,belady "
               "--cache 1GiB,4GiB",
    .options = options,
    .no_set = true,
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .run = replay_command,
};
