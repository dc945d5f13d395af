/* trace_mrc.c -- `memwall trace mrc`: hit ratio against cache size. LRU for every size from one pass over
 * the trace (Mattson), Belady as the bound above it at the sizes that are printed. */
#include "cli/commands.h"
#include "cli/policy_options.h"
#include "cli/report.h"

#include "base/progress.h"
#include "sim/replay/mattson.h"
#include "sim/replay/replay_run.h"

static const struct option options[] = {
    {"scope", OPTION_CHOICE, "global|layer", "one cache, or an equal number of slots a layer",
     "global", scope_names, 0, 0, false},
    {"points", OPTION_COUNT, "N", "sizes to print, evenly spaced in ratio; 0: every size", "24",
     NULL, 0, 1000000, false},
    {"no-belady", OPTION_FLAG, NULL, "LRU only (Belady is replayed once a size)", NULL, NULL, 0, 0,
     false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"policy", CELL_TEXT, 0, false},      {"scope", CELL_TEXT, 0, false},
    {"slots", CELL_COUNT, 0, false},      {"cache_bytes", CELL_COUNT, 0, false},
    {"lookups", CELL_COUNT, 0, true},     {"hits", CELL_COUNT, 0, true},
    {"hit_ratio", CELL_RATIO, 0, false},  {"decode_lookups", CELL_COUNT, 0, true},
    {"decode_hits", CELL_COUNT, 0, true}, {"decode_hit_ratio", CELL_RATIO, 0, false},
    {"exact", CELL_TEXT, 0, true},
};

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0 / 0.0;
}

struct point {
    const char *policy;
    uint64_t slots, cache_bytes, lookups, hits, decode_lookups, decode_hits;
    bool exact;
};

static void add_point(struct report *r, enum scope scope, const struct point *p)
{
    report_text(r, p->policy);
    report_text(r, scope_names[scope]);
    report_count(r, p->slots);
    report_count(r, p->cache_bytes);
    report_count(r, p->lookups);
    report_count(r, p->hits);
    report_ratio(r, ratio(p->hits, p->lookups));
    report_count(r, p->decode_lookups);
    report_count(r, p->decode_hits);
    report_ratio(r, ratio(p->decode_hits, p->decode_lookups));
    report_text(r, p->exact ? "yes" : "no");
}

/* The next size to print: all of them, or about `points` in equal ratios, always ending at the last. */
static size_t next_slots(size_t slots, size_t most, uint64_t points)
{
    if (points == 0 || slots + 1 >= most)
        return slots + 1;
    /* A factor of 1 + f over `points` steps from 1 to most: f is found by integers, so that the sizes are
     * the same everywhere. */
    uint64_t bits = 0;
    for (size_t m = most; m > 1; m >>= 1)
        bits++;
    size_t step = (size_t)(slots * bits * 7 / (points * 10));
    size_t next = slots + (step ? step : 1);
    return next < most ? next : most;
}

static enum status add_belady(struct report *r, const struct trace *t, const struct point *lru,
                              enum scope scope, struct diag *dg)
{
    struct replay_result x;
    struct replay_setup s = {.policy = cache_policy_find("belady"),
                             .scope = scope,
                             .evict = EVICT_AFTER,
                             .budget_bytes = lru->cache_bytes};
    enum status st = replay_run(&x, t, &s, dg);
    if (st != ST_OK)
        return st;
    struct point p = *lru;
    p.policy = "belady";
    p.hits = x.counts.hits;
    p.decode_hits = x.decode_hits;
    add_point(r, scope, &p);
    return ST_OK;
}

static enum status print_curve(struct args *a, const struct trace *t, const struct mattson *m,
                               struct diag *dg)
{
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    struct progress progress;
    progress_start(&progress, "sizes", m->slots);
    for (size_t c = 1; st == ST_OK && c <= m->slots;
         c = next_slots(c, m->slots, args_count(a, "points"))) {
        struct point p = {"lru",
                          c,
                          c * m->slot_bytes,
                          m->lookups,
                          m->hits[c],
                          m->decode_lookups,
                          m->decode_hits[c],
                          m->exact};
        add_point(r, m->scope, &p);
        if (!args_flag(a, "no-belady"))
            st = add_belady(r, t, &p, m->scope, dg);
        progress_add(&progress, c - progress.done);
    }
    progress_end(&progress);
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

static enum status trace_mrc(struct args *a, struct diag *dg)
{
    struct trace *t;
    struct mattson m;
    enum status st = trace_load(&t, args_positional(a, 0), dg);
    if (st != ST_OK)
        return st;
    st = mattson_run(&m, t, (enum scope)args_count(a, "scope"), dg);
    if (st == ST_OK) {
        if (!m.exact)
            say("experts differ in size: a slot stands for the mean expert, replay gives exact "
                "figures");
        st = print_curve(a, t, &m, dg);
        mattson_free(&m);
    }
    trace_free(t);
    return st;
}

const struct command command_trace_mrc = {
    .name = "trace mrc",
    .summary = "miss-ratio curve: LRU at every size in one pass, Belady above it",
    .usage = "TRACE [--scope global|layer] [--points N]",
    .example = "memwall trace mrc tests/data/demo.trace.csv --scope layer",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .no_set = true,
    .run = trace_mrc,
};
