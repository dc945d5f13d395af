/* validate_measured.c -- `memwall validate measured`: the engine run here, and what a calibration of this machine alone says
 * of the same runs. CSV and JSON are the cells; the table puts the score first and the worst cell on top. */
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/scratch.h"

#include "validate/campaign.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CELLS_MAX 256

static const struct option options[] = {
    {"model", OPTION_TEXT, "FILE.gguf", "the model (the bundled one)", NULL, NULL, 1, 0, false},
    {"pack", OPTION_TEXT, "FILE", "its packed experts, for cells that read them", NULL, NULL, 1, 0,
     false},
    {"route", OPTION_TEXT, "TRACE", "force this recorded routing", NULL, NULL, 1, 0, false},
    {"quick", OPTION_FLAG, NULL, "ten cells in less than 45 seconds", NULL, NULL, 0, 0, false},
    {"repeats", OPTION_COUNT, "N", "engine runs of each cell, in turn (5; quick: 3)", NULL, NULL, 1,
     16, false},
    {"tokens", OPTION_COUNT, "N", "decoded tokens of a run (48; quick: 32)", NULL, NULL, 4, 100000,
     false},
    {"draws", OPTION_COUNT, "N", "draws of the inputs behind low and high", "12", NULL, 0, 1000,
     false},
    {0},
};

static const struct column columns[] = {
    {"cell", CELL_COUNT, 0, false},
    {"policy", CELL_TEXT, 0, false},
    {"prefetch", CELL_TEXT, 0, false},
    {"cache_bytes", CELL_COUNT, 0, false},
    {"overlap", CELL_TEXT, 0, true},
    {"lanes", CELL_COUNT, 0, true},
    {"threads", CELL_COUNT, 0, true},
    {"rate_limit_Bps", CELL_COUNT, 0, true},
    {"quant", CELL_TEXT, 0, true},
    {"packed", CELL_TEXT, 0, true},
    {"equality_tier", CELL_TEXT, 0, false},
    {"hits_measured", CELL_COUNT, 0, true},
    {"hits_simulated", CELL_COUNT, 0, true},
    {"read_bytes_measured", CELL_COUNT, 0, true},
    {"read_bytes_simulated", CELL_COUNT, 0, true},
    {"command_hash_measured", CELL_TEXT, 0, true},
    {"command_hash_simulated", CELL_TEXT, 0, true},
    {"late_measured", CELL_COUNT, 0, true},
    {"late_simulated", CELL_COUNT, 0, true},
    {"prefetch_issued_measured", CELL_COUNT, 0, true},
    {"prefetch_issued_simulated", CELL_COUNT, 0, true},
    {"prefetch_wasted_measured", CELL_COUNT, 0, true},
    {"prefetch_wasted_simulated", CELL_COUNT, 0, true},
    {"s_per_token_measured", CELL_NUMBER, 9, false},
    {"spread_ratio", CELL_RATIO, 0, false},
    {"s_per_token_simulated", CELL_NUMBER, 9, false},
    {"signed_error", CELL_RATIO, 0, false},
    {"add_latency_ns", CELL_COUNT, 0, true},
    {"low_s", CELL_NUMBER, 9, true},
    {"high_s", CELL_NUMBER, 9, true},
    {"stall_s_measured", CELL_NUMBER, 9, true},
    {"stall_s_simulated", CELL_NUMBER, 9, true},
    {"repeats", CELL_COUNT, 0, true},
    {"admitted", CELL_COUNT, 0, false},
};

static void add_hash(struct report *r, uint64_t hash)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    report_text(r, text);
}

static void add_row(struct report *r, size_t i, const struct measured_cell *c, const char *quant)
{
    const struct decide_counts *m = &c->measured, *s = &c->simulated;
    report_count(r, i);
    report_text(r, c->policy->name);
    report_text(r, c->prefetch ? c->prefetch->name : "none");
    report_count(r, c->cache_bytes);
    report_text(r, c->overlap ? "expert" : "serial");
    report_count(r, c->lanes);
    report_count(r, c->threads);
    report_count(r, c->limit_rate_Bps);
    report_text(r, quant);
    report_text(r, c->packed ? "yes" : "no");
    report_text(r, c->equal ? "E1" : "differs");
    report_count(r, m->hits);
    report_count(r, s->hits);
    report_count(r, m->demand_bytes + m->prefetch_bytes);
    report_count(r, s->demand_bytes + s->prefetch_bytes);
    add_hash(r, m->command_hash);
    add_hash(r, s->command_hash);
    report_count(r, c->late_measured);
    report_count(r, c->late_simulated);
    report_count(r, m->prefetches);
    report_count(r, s->prefetches);
    report_count(r, m->prefetch_wasted);
    report_count(r, s->prefetch_wasted);
    report_number(r, c->s_per_token);
    report_ratio(r, c->spread_ratio);
    report_number(r, c->s_simulated);
    report_ratio(r, measured_cell_error(c));
    report_count(r, c->add_latency_ns);
    report_number(r, c->low_s);
    report_number(r, c->high_s);
    report_number(r, c->stall_s);
    report_number(r, c->stall_s_simulated);
    report_count(r, c->repeats);
    report_count(r, c->admitted);
}

/* A figure, or a dash where there is none. */
static const char *figure(char text[16], const char *format, double x)
{
    if (isnan(x))
        return strcpy(text, "-");
    snprintf(text, 16, "%.*f%s", format[0] - '0', x, format + 1);
    return text;
}

static void print_score(const struct measured_cell *cell, size_t count, bool admitted)
{
    struct measured_score s;
    char a[16], b[16], c[16];
    measured_score_of(&s, cell, count, admitted);
    printf("%s: %zu cells   seconds per token off by %s (median), %s (95th percentile)\n",
           admitted ? "admitted" : "all     ", s.cells, figure(a, "1 %", 100 * s.error_median),
           figure(b, "1 %", 100 * s.error_p95));
    printf("          decisions equal (E1) in %zu of %zu   within [low .. high] %s   ratios of "
           "slower flash off by %s (median of %zu)\n",
           s.equal_cells, s.ordered_cells, figure(a, "0 %", 100 * s.coverage),
           figure(b, "1 %", 100 * s.ratio_error_median), s.interventions);
    printf("          order of policies tau %s   sign of prefetch right in %zu of %zu\n",
           figure(c, "2", s.tau), s.prefetch_signs_right, s.prefetch_signs);
}

/* Why so few cells count. */
static void say_admission(const struct measured_cell *cell, size_t count)
{
    size_t none = 0;
    for (size_t i = 0; i < count; i++)
        none += cell[i].admitted == 0;
    if (none)
        say("%zu of %zu cells have no admitted run: memory or disk was more than 5 %% away from "
            "the "
            "calibration just before or after each, or the hypervisor took time; a quiet machine "
            "admits more",
            none, count);
}

struct placed {
    const struct measured_cell *cell;
    size_t at;
};

static int worst_first(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    double ex = fabs(measured_cell_error(x->cell)), ey = fabs(measured_cell_error(y->cell));
    if (ex != ey)
        return ex > ey ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static enum status print(const struct args *a, const struct measured_cell *cell, size_t count,
                         const char *quant, struct diag *dg)
{
    struct placed order[CELLS_MAX];
    struct report *r;
    bool table = strcmp(args_text(a, "format"), "table") == 0;
    for (size_t i = 0; i < count; i++)
        order[i] = (struct placed){&cell[i], i};
    say_admission(cell, count);
    if (table) {
        print_score(cell, count, true);
        print_score(cell, count, false);
        putchar('\n');
        qsort(order, count, sizeof *order, worst_first);
    }
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < count; i++)
        add_row(r, order[i].at, order[i].cell, quant);
    return report_close(r, dg);
}

static void show(void *self, const char *step, size_t done, size_t all)
{
    (void)self;
    if (isatty(2))
        fprintf(stderr, "\r\033[K%s %zu of %zu", step, done, all);
    if (isatty(2) && done + 1 >= all)
        fputs("\r\033[K", stderr);
}

static size_t given_or(const struct args *a, const char *option, size_t otherwise)
{
    return args_given(a, option) ? args_count(a, option) : otherwise;
}

static enum status run(struct args *a, struct diag *dg)
{
    char folder[SCRATCH_PATH_MAX], model[CATALOGUE_PATH_MAX], profiles[CATALOGUE_PATH_MAX];
    bool quick = args_flag(a, "quick");
    struct measured_cell *cell = calloc(CELLS_MAX, sizeof *cell);
    struct graph_weights *w = NULL;
    struct measured_setup s = {
        .model = args_given(a, "model") ? args_text(a, "model") : catalogue_bundled_model(model),
        .pack = args_text(a, "pack"),
        .route = args_text(a, "route"),
        .isa = "auto",
        .profiles = catalogue_dir(profiles, sizeof profiles, "sim/pipeline/profiles"),
        .folder = folder,
        .prompt = 4,
        .tokens = given_or(a, "tokens", quick ? 32 : 48),
        .repeats = given_or(a, "repeats", quick ? 3 : 5),
        .draws = args_count(a, "draws"),
        .seed = args_count(a, "seed"),
        .quick = quick,
        .progress = show,
    };
    if (!cell)
        return diag_no_memory(dg);
    enum status st = scratch_open(folder, "measured", dg);
    if (st != ST_OK) {
        free(cell);
        return st;
    }
    st = graph_weights_load(&w, s.model, NULL, NULL, dg);
    if (st == ST_OK && s.pack && quick)
        st = diag_set(dg, ST_USAGE, "--pack has no effect with --quick, whose cells read the GGUF");
    size_t count = st == ST_OK ? measured_cells(cell, CELLS_MAX, w->model, &s) : 0;
    if (st == ST_OK)
        st = measured_run(cell, count, &s, NULL, dg);
    if (st == ST_OK)
        st = print(a, cell, count, w->model->quant.name, dg);
    graph_weights_free(w);
    scratch_close(folder);
    free(cell);
    return st;
}

const struct command command_validate_measured = {
    .name = "validate measured",
    .summary = "the engine run on this machine, and simulated from a calibration alone",
    .usage = "[--quick] [--model FILE.gguf] [--pack FILE] [--route TRACE]",
    .example = "memwall validate measured --quick",
    .options = options,
    .no_set = true,
    .run = run,
};
