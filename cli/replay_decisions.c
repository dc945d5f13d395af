/* replay_decisions.c -- see replay_decisions.h. */
#include "cli/replay_decisions.h"

#include "cli/policy_options.h"
#include "cli/report.h"
#include "sim/policy/decision_log.h"

#include <inttypes.h>
#include <stdio.h>

static const struct column columns[] = {
    {"policy", CELL_TEXT, 0, false},        {"scope", CELL_TEXT, 0, true},
    {"evict", CELL_TEXT, 0, true},          {"prefetch", CELL_TEXT, 0, false},
    {"cache_bytes", CELL_COUNT, 0, false},  {"calls", CELL_COUNT, 0, true},
    {"lookups", CELL_COUNT, 0, false},      {"hits", CELL_COUNT, 0, false},
    {"misses", CELL_COUNT, 0, false},       {"prefetches", CELL_COUNT, 0, false},
    {"prefetch_used", CELL_COUNT, 0, true}, {"prefetch_wasted", CELL_COUNT, 0, true},
    {"evictions", CELL_COUNT, 0, true},     {"read_bytes", CELL_COUNT, 0, true},
    {"command_hash", CELL_TEXT, 0, false},  {"equal", CELL_TEXT, 0, false},
};

static void add_row(struct report *r, const struct decision_log_result *x)
{
    const struct decide_counts *c = &x->counts;
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, c->command_hash);
    report_text(r, x->policy->name);
    report_text(r, scope_names[x->scope]);
    report_text(r, evict_names[x->evict]);
    report_text(r, prefetch_label(x->prefetch, x->timed));
    report_count(r, x->cache_bytes);
    report_count(r, x->calls);
    report_count(r, c->lookups);
    report_count(r, c->hits);
    report_count(r, c->misses);
    report_count(r, c->prefetches);
    report_count(r, c->prefetch_used);
    report_count(r, c->prefetch_wasted);
    report_count(r, c->evictions);
    report_count(r, c->demand_bytes + c->prefetch_bytes);
    report_text(r, hash);
    report_text(r, x->equal ? "yes" : "no");
}

enum status replay_decisions(struct args *a, const char *path, struct diag *dg)
{
    static const char *const unused[] = {"trace",
                                         "policy",
                                         "cache",
                                         "scope",
                                         "evict",
                                         "prefetch",
                                         "prefetch-distance",
                                         "prefetch-experts",
                                         "prefetch-budget",
                                         "pin-from"};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (args_given(a, unused[i]))
            return diag_set(dg, ST_USAGE, "--%s: the decision log says it all", unused[i]);
    struct decision_log_result x;
    struct report *r;
    enum status st = decision_log_replay(path, &x, dg);
    if (st == ST_OK)
        st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    report_single(r);
    add_row(r, &x);
    st = report_close(r, dg);
    return st == ST_OK && !x.equal ? diag_set(dg, ST_MISFIT, "%s", x.difference.text) : st;
}
