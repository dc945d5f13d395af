/* validate_diff.c -- `memwall validate diff`: a simulated timeline beside a measured one, by component. */
#include "cli/commands.h"
#include "cli/report.h"

#include "validate/timeline_diff.h"

static const struct option options[] = {
    {"from-pass", OPTION_COUNT, "N", "leave earlier passes out (1: all but the first)", "0", NULL,
     0, 1000000000, false},
    {0},
};

static const struct column columns[] = {
    {"operation", CELL_TEXT, 0, false},     {"places", CELL_COUNT, 0, false},
    {"only_first", CELL_COUNT, 0, true},    {"only_second", CELL_COUNT, 0, true},
    {"first_s", CELL_NUMBER, 6, false},     {"second_s", CELL_NUMBER, 6, false},
    {"signed_error", CELL_RATIO, 0, false}, {"error_median", CELL_RATIO, 0, false},
    {"worst_pass", CELL_COUNT, 0, false},   {"worst_layer", CELL_COUNT, 0, false},
    {"worst_s", CELL_NUMBER, 9, false},
};

static enum status run(struct args *a, struct diag *dg)
{
    struct diff_component c[DIFF_OPERATIONS];
    struct report *r;
    enum status st = timeline_diff(c, args_positional(a, 0), args_positional(a, 1),
                                   args_count(a, "from-pass"), dg);
    if (st == ST_OK)
        st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (int i = 0; i < DIFF_OPERATIONS; i++) {
        if (c[i].places == 0)
            continue;
        report_text(r, c[i].operation);
        report_count(r, c[i].places);
        report_count(r, c[i].only_first);
        report_count(r, c[i].only_second);
        report_number(r, c[i].first_s);
        report_number(r, c[i].second_s);
        report_ratio(r, c[i].signed_error);
        report_ratio(r, c[i].error_median);
        report_count(r, c[i].worst_pass);
        if (c[i].worst_layer == UINT64_MAX)
            report_empty(r);
        else
            report_count(r, c[i].worst_layer);
        report_number(r, c[i].worst_s);
    }
    return report_close(r, dg);
}

const struct command command_validate_diff = {
    .name = "validate diff",
    .summary = "two timelines by component: where a simulated and a measured run differ",
    .usage = "SIM.json ENGINE.json [--from-pass N]",
    .example = "memwall validate diff tests/data/timeline-simulated.json "
               "tests/data/timeline-measured.json --from-pass 1",
    .options = options,
    .positional_min = 2,
    .positional_max = 2,
    .no_set = true,
    .run = run,
};
