/* engine_repair.c -- `memwall engine repair`: a low-rank correction of a model's quantisation
 * error, as an adapter. */
#include "cli/commands.h"
#include "cli/engine_passage.h"
#include "cli/outputs.h"
#include "cli/report.h"

#include "base/progress.h"
#include "kernels/heads/passage.h"
#include "kernels/heads/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {"f16", "f32", NULL};

static const struct option options[] = {
    {.name = "from",
     .type = OPTION_TEXT,
     .argument = "FULL.gguf",
     .help = "the same model in full precision",
     .min = 1,
     .required = true},
    {.name = "out",
     .type = OPTION_TEXT,
     .argument = "FILE",
     .help = "adapter to write",
     .min = 1,
     .required = true},
    {.name = "rank",
     .type = OPTION_COUNT,
     .argument = "R",
     .help = "rank of each matrix's correction",
     .fallback = "8",
     .min = 1,
     .max = LOW_RANK_MAX},
    {.name = "type",
     .type = OPTION_CHOICE,
     .argument = "f16|f32",
     .help = "numbers of the adapter",
     .fallback = "f16",
     .choices = type_names},
    {.name = "weighted",
     .type = OPTION_TEXT,
     .argument = "TEXT",
     .help = "weigh columns by their inputs while the base reads this text file",
     .min = 1},
    PASSAGE_OPTIONS,
    {0}};

static const struct column columns[] = {
    {"tensor", CELL_TEXT, 0, false},
    {"experts", CELL_COUNT, 0, false},
    {"rows", CELL_COUNT, 0, false},
    {"cols", CELL_COUNT, 0, false},
    {"rank", CELL_COUNT, 0, false},
    {"adapter_bytes", CELL_COUNT, 0, false},
    {"error_before_ratio", CELL_RATIO, 0, false},
    {"error_after_ratio", CELL_RATIO, 0, false},
    {"weighted_before_ratio", CELL_RATIO, 0, false},
    {"weighted_after_ratio", CELL_RATIO, 0, false},
};

struct repairs {
    struct report *report;
    struct repair_row all;
};

static void print_row(struct report *rep, const struct repair_row *row, bool one)
{
    report_text(rep, row->name);
    for (int i = 0; i < 4; i++)
        if (one)
            report_count(rep, (uint64_t[]){row->experts, row->rows, row->cols, row->rank}[i]);
        else
            report_empty(rep);
    report_count(rep, row->bytes);
    report_ratio(rep, repair_error_before(&row->error));
    report_ratio(rep, repair_error_after(&row->error));
    report_ratio(rep, repair_error_before(&row->weighted)); /* 0 / 0 without weights: empty */
    report_ratio(rep, repair_error_after(&row->weighted));
}

static void on_row(void *self, const struct repair_row *row)
{
    struct repairs *r = self;
    print_row(r->report, row, true);
    r->all.bytes += row->bytes;
    repair_error_add(&r->all.error, &row->error);
    repair_error_add(&r->all.weighted, &row->weighted);
}

static enum status repair(struct args *a, const struct engine *e, const struct moments *m,
                          struct diag *dg)
{
    struct repairs r = {.all = {.name = "all"}};
    struct progress bar = {.label = "weights"};
    struct repair_setup s = {.base = engine_weights(e),
                             .full = args_text(a, "from"),
                             .rank = args_count(a, "rank"),
                             .f32 = args_count(a, "type") == 1,
                             .moments = m,
                             .compute = engine_compute(e),
                             .row = on_row,
                             .row_self = &r,
                             .progress = passage_progress,
                             .progress_self = &bar};
    enum status st = report_open(&r.report, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    st = repair_write(&s, args_text(a, "out"), dg);
    progress_end(&bar);
    if (st != ST_OK) {
        report_abandon(r.report);
        return st;
    }
    print_row(r.report, &r.all, false);
    return report_close(r.report, dg);
}

/* The base reads the text, so that inputs are those that its own errors leave. */
static enum status read_passage(struct args *a, struct engine *e, struct moments *m, size_t window,
                                struct diag *dg)
{
    struct token_list tokens = {0};
    struct progress bar = {.label = "reading"};
    enum status st = passage_read(&tokens, a, args_positional(a, 0), args_text(a, "weighted"), dg);
    if (st == ST_OK)
        st = moments_begin(m, engine_weights(e), dg);
    if (st == ST_OK)
        st = passage_run(e, tokens.ids, tokens.count, window, passage_progress, &bar, dg);
    progress_end(&bar);
    if (st == ST_OK)
        say("columns are weighed by %zu tokens", tokens.count);
    token_list_free(&tokens);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    static const char *const written[] = {"out", NULL};
    static const char *const read[] = {"from", "weighted", NULL};
    struct engine_setup s;
    struct engine *e = NULL;
    struct moments *m = NULL;
    size_t window = 0;
    bool weighted = args_given(a, "weighted");
    passage_setup(&s, a, args_positional(a, 0));
    enum status st = outputs_check(a, written, read, dg);
    if (st == ST_OK)
        st = passage_window(&window, &s, a, dg);
    if (st == ST_OK && weighted)
        st = moments_new(&m, &s, dg);
    if (st == ST_OK)
        st = engine_open(&e, &s, dg);
    if (st == ST_OK && weighted)
        st = read_passage(a, e, m, window, dg);
    if (st == ST_OK)
        st = repair(a, e, m, dg);
    moments_free(m);
    engine_close(e);
    return st;
}

const struct command command_engine_repair = {
    .name = "engine repair",
    .summary = "a low-rank correction of a model's quantisation error, as an adapter",
    .usage = "BASE.gguf --from FULL.gguf --out FILE [--rank R] [--weighted TEXT]",
    .example = "memwall engine repair models/tiny/tiny-q4_0.gguf --from tiny-f16.gguf --rank 16 "
               "--out repair.gguf",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .no_set = true,
    .run = run,
};
