/* plan.c -- `memwall plan`: the answer on one screen, as a row, or turned round (--want). */
#include "cli/commands.h"
#include "cli/plan_print.h"
#include "cli/report.h"
#include "cli/scenario.h"

#include <stdio.h>
#include <string.h>

#define RUNS 3 /* measured runs on the screen */

static const char *const profiles[] = {"serial", "overlap", NULL};

static const struct option options[] = {
    SCENARIO_OPTIONS,
    {"context", OPTION_COUNT, "N", "tokens of state while decoding", "4096", NULL, 0, 0, false},
    {"prompt", OPTION_COUNT, "N", "tokens before the first answer", "512", NULL, 0, 1048576, false},
    {"dram", OPTION_SIZE, "SIZE", "memory the run may use (capacity less what the system keeps)",
     NULL, NULL, 1, 0, false},
    {"cache", OPTION_SIZE, "SIZE", "expert cache (all that is left)", NULL, NULL, 0, 0, false},
    {"profile", OPTION_CHOICE, "serial|overlap", "what of a layer runs beside its reads", "serial",
     profiles, 0, 0, false},
    {"preset", OPTION_TEXT, "P",
     "routing preset, or uniform (the model's own; if unknown, what public routers span)", NULL,
     NULL, 0, 0, false},
    {"want", OPTION_TEXT, "RATE", "the least of each resource for this rate, as 5tok/s", NULL, NULL,
     0, 0, false},
    {"explain", OPTION_FLAG, NULL, "formulas, inputs and their sources (CSV and JSON: the inputs)",
     NULL, NULL, 0, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static void request_from(struct plan_request *r, const struct args *a, const struct scenario *s,
                         const char *presets)
{
    *r = (struct plan_request){
        .place = {.memory = args_count(a, "dram"),
                  .cache = args_count(a, "cache"),
                  .cache_given = args_given(a, "cache"),
                  .context = args_count(a, "context"),
                  .state_bits = s->state_bits,
                  .lanes = args_count(a, "lanes"),
                  .pieces = args_count(a, "pieces"),
                  .chunk = args_count(a, "prompt"),
                  .stream_dense = args_count(a, "dense") == 1},
        .profile = args_count(a, "profile") ? PROFILE_OVERLAP : PROFILE_SERIAL,
        .lanes = args_count(a, "lanes"),
        .pieces = args_count(a, "pieces"),
        .copies = args_count(a, "copies"),
        .presets = presets,
        .preset = args_text(a, "preset"),
        .unit = args_text(a, "unit"),
        .prompt = args_count(a, "prompt"),
        .seed = args_count(a, "seed"),
    };
}

/* ---- as a row ------------------------------------------------------------------------------ */

#define FIXED_COLUMNS 27
/* clang-format off */
#define FIXED_COLUMNS_TABLE \
    {"model", CELL_TEXT, 0, false}, \
    {"device", CELL_TEXT, 0, false}, \
    {"quant", CELL_TEXT, 0, false}, \
    {"profile", CELL_TEXT, 0, false}, \
    {"fits", CELL_COUNT, 0, false}, \
    {"decode_tok_per_s", CELL_NUMBER, 6, false}, \
    {"decode_tok_per_s_low", CELL_NUMBER, 6, false}, \
    {"decode_tok_per_s_high", CELL_NUMBER, 6, false}, \
    {"ttft_s", CELL_NUMBER, 6, false}, \
    {"ttft_s_low", CELL_NUMBER, 6, false}, \
    {"ttft_s_high", CELL_NUMBER, 6, false}, \
    {"bound", CELL_TEXT, 0, false}, \
    {"hit_ratio", CELL_RATIO, 0, false}, \
    {"flash_bytes_per_token", CELL_COUNT, 0, false}, \
    {"expert_bytes_per_token", CELL_COUNT, 0, false}, \
    {"weight_bytes", CELL_COUNT, 0, false}, \
    {"dense_bytes", CELL_COUNT, 0, false}, \
    {"cache_bytes", CELL_COUNT, 0, false}, \
    {"state_bytes", CELL_COUNT, 0, false}, \
    {"buffer_bytes", CELL_COUNT, 0, false}, \
    {"given_bytes", CELL_COUNT, 0, false}, \
    {"minimum_bytes", CELL_COUNT, 0, false}, \
    {"routing", CELL_TEXT, 0, false}, \
    {"assumed", CELL_TEXT, 0, false}, \
    {"context", CELL_COUNT, 0, false}, \
    {"prompt_tokens", CELL_COUNT, 0, false}, \
    {"unit", CELL_TEXT, 0, false}
/* clang-format on */
static const struct column fixed_columns[FIXED_COLUMNS] = {FIXED_COLUMNS_TABLE};

static double rate_of(uint64_t ns)
{
    return ns ? 1e9 / (double)ns : 0;
}

static void put_row(struct report *r, const struct plan *p)
{
    char assumed[512];
    const struct model *m = p->model;
    plan_assumed(assumed, sizeof assumed, p);
    report_text(r, m->name);
    report_text(r, p->device->name);
    report_text(r, m->quant.name ? m->quant.name : "");
    report_text(r, profiles[p->request.profile]);
    report_count(r, !plan_streams(p));
    report_number(r, rate_of(p->token_ns.mid));
    report_number(r, rate_of(p->token_ns.high));
    report_number(r, rate_of(p->token_ns.low));
    report_number(r, (double)p->first_ns.mid / 1e9);
    report_number(r, (double)p->first_ns.low / 1e9);
    report_number(r, (double)p->first_ns.high / 1e9);
    report_text(r, plan_binds(p));
    report_ratio(r, (double)p->hit_ratio / 1e9);
    report_count(r, p->tally.flash_bytes);
    report_count(r, p->tally.expert_bytes);
    report_count(r, p->place.weights);
    report_count(r, p->place.dense_resident);
    report_count(r, p->place.cache);
    report_count(r, p->place.state);
    report_count(r, p->place.buffers);
    report_count(r, p->place.given);
    report_count(r, p->place.minimum);
    report_text(r, plan_routing_unknown(p) ? "unknown" : p->route->preset);
    report_text(r, assumed);
    report_count(r, p->request.place.context);
    report_count(r, p->request.prompt);
    report_text(r, p->site->name);
}

/* The row of an experiment has a column for every question, whether it was asked or not. */
#define CAPTURED_FACTORS 9
static const struct column captured_columns[FIXED_COLUMNS + CAPTURED_FACTORS] = {
    FIXED_COLUMNS_TABLE,
    {"factor_flash_2x", CELL_NUMBER, 6, false},
    {"factor_cache_2x", CELL_NUMBER, 6, false},
    {"factor_perfect_prefetch", CELL_NUMBER, 6, false},
    {"factor_overlap", CELL_NUMBER, 6, false},
    {"factor_compute_2x", CELL_NUMBER, 6, false},
    {"factor_dram_2x", CELL_NUMBER, 6, false},
    {"factor_link_2x", CELL_NUMBER, 6, false},
    {"factor_packed", CELL_NUMBER, 6, false},
    {"factor_fewer_bits", CELL_NUMBER, 6, false},
};

static const struct what_if *answer_to(const struct plan *p, const char *factor)
{
    const char *key = factor + strlen("factor_");
    bool bits = strcmp(key, "fewer_bits") == 0; /* its key says how many: bits_3 */
    for (size_t i = 0; i < p->what_if_count; i++)
        if (strcmp(p->what_if[i].key, key) == 0 ||
            (bits && strncmp(p->what_if[i].key, "bits_", strlen("bits_")) == 0))
            return &p->what_if[i];
    return NULL;
}

static enum status capture_row(const struct plan *p, const struct args *a, struct diag *dg)
{
    struct report *r;
    enum status st = report_open(&r, a, captured_columns, FIXED_COLUMNS + CAPTURED_FACTORS, dg);
    if (st != ST_OK)
        return st;
    put_row(r, p);
    for (size_t i = FIXED_COLUMNS; i < FIXED_COLUMNS + CAPTURED_FACTORS; i++) {
        const struct what_if *w = answer_to(p, captured_columns[i].name);
        report_number(r, w ? (double)w->factor.mid / 1e9 : 0.0 / 0.0);
    }
    return report_close(r, dg);
}

static enum status print_row(const struct plan *p, const struct args *a, struct diag *dg)
{
    struct column columns[FIXED_COLUMNS + PLAN_WHAT_IF_MAX];
    char names[PLAN_WHAT_IF_MAX][48];
    struct report *r;
    memcpy(columns, fixed_columns, sizeof fixed_columns);
    for (size_t i = 0; i < p->what_if_count; i++) {
        snprintf(names[i], sizeof names[i], "factor_%s", p->what_if[i].key);
        columns[FIXED_COLUMNS + i] = (struct column){names[i], CELL_NUMBER, 6, false};
    }
    enum status st = report_open(&r, a, columns, FIXED_COLUMNS + p->what_if_count, dg);
    if (st != ST_OK)
        return st;
    report_single(r);
    put_row(r, p);
    for (size_t i = 0; i < p->what_if_count; i++)
        report_number(r, (double)p->what_if[i].factor.mid / 1e9);
    return report_close(r, dg);
}

/* ---- turned round -------------------------------------------------------------------------- */

static const struct column want_columns[] = {
    {"resource", CELL_TEXT, 0, false},
    {"now", CELL_COUNT, 0, false},
    {"need", CELL_COUNT, 0, false},
    {"unit", CELL_TEXT, 0, false},
    {"need_low", CELL_COUNT, 0, false},
    {"need_high", CELL_COUNT, 0, false},
    {"most_tok_per_s", CELL_NUMBER, 6, false},
};

static const char *unit_of(enum dimension dim)
{
    return dim == DIM_SIZE ? "B" : dim == DIM_RATE ? "B/s" : "OP/s";
}

static void put_need(struct report *r, uint64_t need)
{
    if (need == UINT64_MAX)
        report_empty(r);
    else
        report_count(r, need);
}

static enum status print_want_rows(const struct answer answers[WISH_COUNT], const struct args *a,
                                   struct diag *dg)
{
    struct report *r;
    enum status st =
        report_open(&r, a, want_columns, sizeof want_columns / sizeof *want_columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < WISH_COUNT; i++) {
        const struct answer *w = &answers[i];
        if (!w->best_ns)
            continue;
        report_text(r, w->name);
        report_count(r, w->now);
        put_need(r, w->need);
        report_text(r, unit_of(w->dim));
        put_need(r, w->need_low);
        put_need(r, w->need_high);
        report_number(r, w->best_ns == UINT64_MAX ? 0.0 : rate_of(w->best_ns));
    }
    return report_close(r, dg);
}

static enum status print_want(const struct plan_page *page, const struct args *a, struct diag *dg)
{
    struct answer answers[WISH_COUNT];
    struct together together;
    uint64_t ns;
    enum status st = scenario_token_time(&ns, "want", args_text(a, "want"), dg);
    if (st != ST_OK)
        return st;
    plan_want(answers, page->plan, ns);
    if (args_count(a, "format") != 0)
        return print_want_rows(answers, a, dg);
    plan_want_together(&together, page->plan, ns);
    plan_print_want(page, args_text(a, "want"), answers, &together);
    return flush_stdout(dg);
}

/* ---- inputs as rows ------------------------------------------------------------------------ */

static const struct column input_columns[] = {
    {"path", CELL_TEXT, 0, false},    {"amount", CELL_COUNT, 0, false},
    {"unit", CELL_TEXT, 0, false},    {"kind", CELL_TEXT, 0, false},
    {"spread", CELL_RATIO, 0, false}, {"source", CELL_TEXT, 0, false},
};

static void put_input(struct report *r, const char *path, const struct value *v)
{
    static const char *const units[] = {
        [DIM_COUNT] = "1",       [DIM_SIZE] = "B",       [DIM_RATE] = "B/s",  [DIM_TIME] = "ns",
        [DIM_FREQUENCY] = "1/s", [DIM_COMPUTE] = "OP/s", [DIM_RATIO] = "1e-9"};
    report_text(r, path);
    report_count(r, v->amount);
    report_text(r, units[v->dim]);
    report_text(r, value_kind_name(v->kind));
    report_ratio(r, (double)value_spread(v) / 1e9);
    report_text(r, v->source ? v->source : "");
}

static enum status print_inputs(const struct plan *p, const struct args *a, struct diag *dg)
{
    struct report *r;
    enum status st =
        report_open(&r, a, input_columns, sizeof input_columns / sizeof *input_columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < INPUT_COUNT; i++)
        if (p->machine.input[i].value.given)
            put_input(r, p->machine.input[i].path, &p->machine.input[i].value);
    put_input(r, "routing/misses", &p->misses);
    put_input(r, "residual", &p->residual);
    return report_close(r, dg);
}

/* ---- on one screen ------------------------------------------------------------------------- */

#define CANDIDATES 12

static bool within_twice(uint64_t a, uint64_t b)
{
    return a / 2 <= b && b / 2 <= a;
}

/* Another model on this device tells something only if it is as large and reads as much a token. */
static enum status is_similar(bool *similar, const struct model *m, const char *other,
                              struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX];
    struct model *o;
    enum status st =
        model_load(&o, other, catalogue_dir(folder, sizeof folder, "models/desc"), NULL, 0, dg);
    if (st != ST_OK)
        return st;
    *similar = within_twice(model_params_total(o), model_params_total(m)) &&
               within_twice(model_params_active(o), model_params_active(m));
    model_free(o);
    return ST_OK;
}

static enum status find_runs(struct measured_run runs[CANDIDATES], size_t *count,
                             const struct plan *p, struct diag *dg)
{
    struct measured_query q = {.model = p->model->name,
                               .device = p->device->name,
                               .cache = p->place.cache,
                               .top_k = model_top_k(p->model),
                               .serial = p->request.profile == PROFILE_SERIAL};
    char folder[CATALOGUE_PATH_MAX], path[CATALOGUE_PATH_MAX + 32];
    size_t found, kept = 0;
    snprintf(path, sizeof path, "%s/measured.csv",
             catalogue_dir(folder, sizeof folder, "sim/plan"));
    enum status st = measured_nearest(runs, CANDIDATES, &found, path, &q, dg);
    for (size_t i = 0; i < found && kept < RUNS && st == ST_OK; i++) {
        bool similar = true;
        if (runs[i].likeness == LIKE_DEVICE)
            st = is_similar(&similar, p->model, runs[i].model, dg);
        if (similar)
            runs[kept++] = runs[i];
    }
    *count = kept;
    return st;
}

static enum status print_screen(struct plan_page *page, const struct args *a, struct diag *dg)
{
    struct measured_run runs[CANDIDATES];
    enum status st = find_runs(runs, &page->run_count, page->plan, dg);
    if (st != ST_OK)
        return st;
    page->run = runs;
    plan_print_screen(page);
    if (args_flag(a, "explain"))
        plan_print_explain(page);
    return flush_stdout(dg);
}

static enum status print_plan(const struct plan *p, const struct args *a, const struct scenario *s,
                              struct diag *dg)
{
    struct plan_page page = {.plan = p, .changed_top_k = s->changed_top_k};
    page.override = args_list(a, "set", &page.override_count);
    if (args_text(a, "want"))
        return print_want(&page, a, dg);
    if (args_capture(a))
        return capture_row(p, a, dg);
    if (args_count(a, "format") == 0)
        return print_screen(&page, a, dg);
    return args_flag(a, "explain") ? print_inputs(p, a, dg) : print_row(p, a, dg);
}

static enum status run(struct args *a, struct diag *dg)
{
    char presets[CATALOGUE_PATH_MAX];
    struct scenario s;
    struct plan_request r;
    struct plan *p = NULL;
    enum status st = scenario_load(&s, a, dg);
    if (st != ST_OK)
        return st;
    catalogue_dir(presets, sizeof presets, "sim/trace/presets");
    request_from(&r, a, &s, presets);
    st = plan_new(&p, s.model, s.device, &r, dg);
    if (st == ST_OK)
        st = print_plan(p, a, &s, dg);
    plan_free(p);
    scenario_free(&s);
    return st;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "does it fit, how fast, what binds, what would help: the answer on one screen",
    .usage = "MODEL --device D [--quant Q] [--context N] [--dram SIZE] [--want RATE] [--explain]",
    .example = "memwall plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .columns = captured_columns,
    .column_count = FIXED_COLUMNS + CAPTURED_FACTORS,
    .run = run,
};
