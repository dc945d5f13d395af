/* compare.c -- `memwall compare`: two devices, two models or two result files side by side: what differs, by what factor, and
 * what it costs in tokens a second. */
#include "cli/compare.h"

#include "cli/commands.h"

#include "devices/device.h"
#include "models/state.h"
#include "sim/plan/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option options[] = {
    {"model", OPTION_TEXT, "M", "what the devices are asked to run", "qwen3-30b-a3b", NULL, 1, 0,
     false},
    {"device", OPTION_TEXT, "D", "what the models are asked to run on", "oneplus-15r", NULL, 1, 0,
     false},
    {"quant", OPTION_TEXT, "Q", "format of the weights (as published)", "q4_k_m", NULL, 1, 0,
     false},
    {"all", OPTION_FLAG, NULL, "figures that are equal, too", NULL, NULL, 0, 0, false},
    {0},
};

static const struct column columns[] = {{"figure", CELL_TEXT, 0, false},
                                        {"first", CELL_TEXT, 0, false},
                                        {"second", CELL_TEXT, 0, false},
                                        {"ratio", CELL_NUMBER, 4, false}};

/* ---- rows ---- */

void compare_number(struct comparison *c, const char *what, const char *a, const char *b, double x,
                    double y)
{
    if (!c->all && a && b && strcmp(a, b) == 0)
        return;
    report_text(c->report, what);
    report_text(c->report, a ? a : "-");
    report_text(c->report, b ? b : "-");
    if (a && b && x > 0 && y > 0)
        report_number(c->report, y / x);
    else
        report_empty(c->report);
}

void compare_text(struct comparison *c, const char *what, const char *a, const char *b)
{
    compare_number(c, what, a, b, 0, 0);
}

void compare_quantity(struct comparison *c, const char *what, enum dimension dim, uint64_t a,
                      uint64_t b)
{
    char x[QUANTITY_TEXT_MAX], y[QUANTITY_TEXT_MAX];
    if (c->all || a != b)
        compare_number(c, what, quantity_round(x, a, dim), quantity_round(y, b, dim), (double)a,
                       (double)b);
}

/* ---- what it costs ---- */

/* The plan of both; a pair that cannot be planned says why and gets no row. */
static void compare_plans(struct comparison *c, const struct model *const m[2],
                          const struct device *const d[2])
{
    struct plan *plan[2] = {NULL, NULL};
    char folder[CATALOGUE_PATH_MAX];
    struct plan_request request = {
        .place =
            {.context = 4096, .state_bits = STATE_BITS_F16, .lanes = 4, .pieces = 3, .chunk = 512},
        .lanes = 4,
        .pieces = 3,
        .presets = catalogue_dir(folder, sizeof folder, "sim/trace/presets"),
        .prompt = 512,
        .seed = 1};
    for (int i = 0; i < 2; i++) {
        struct diag dg;
        if (plan_new(&plan[i], m[i], d[i], &request, &dg) != ST_OK)
            say("no plan of %s on %s: %s", m[i]->name, d[i]->name, dg.text);
    }
    if (plan[0] && plan[1]) {
        compare_quantity(c, "decode_tok_per_s", DIM_TOKEN_RATE,
                         UINT64_C(1000000000000000) / plan[0]->token_ns.mid,
                         UINT64_C(1000000000000000) / plan[1]->token_ns.mid);
        compare_quantity(c, "ttft_s", DIM_TIME, plan[0]->first_ns.mid, plan[1]->first_ns.mid);
        compare_quantity(c, "cache_bytes", DIM_SIZE, plan[0]->place.cache, plan[1]->place.cache);
    }
    plan_free(plan[0]);
    plan_free(plan[1]);
}

/* ---- devices ---- */

struct figures {
    struct comparison *c;
    struct device *other;
    bool second; /* only what the first has not */
};

struct wanted {
    const char *path;
    const struct value *found;
};

static void match(void *self, const char *path, struct value *v)
{
    struct wanted *w = self;
    if (strcmp(w->path, path) == 0)
        w->found = v;
}

static const char *print_value(char text[QUANTITY_TEXT_MAX + 16], const struct value *v)
{
    char amount[QUANTITY_TEXT_MAX];
    if (!v)
        return NULL;
    snprintf(text, QUANTITY_TEXT_MAX + 16, "%s %s", quantity_print(amount, v->amount, v->dim),
             value_kind_name(v->kind));
    return text;
}

static void compare_value(void *self, const char *path, struct value *v)
{
    struct figures *f = self;
    char x[QUANTITY_TEXT_MAX + 16], y[QUANTITY_TEXT_MAX + 16];
    struct wanted w = {path, NULL};
    device_each_value(f->other, match, &w);
    if (f->second && w.found)
        return;
    const struct value *a = f->second ? NULL : v, *b = f->second ? v : w.found;
    compare_number(f->c, path, print_value(x, a), print_value(y, b), a ? (double)a->amount : 0,
                   b ? (double)b->amount : 0);
}

static enum status compare_devices(struct comparison *c, struct device *d[2], const struct args *a,
                                   struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX];
    struct model *m;
    struct figures first = {c, d[1], false}, second = {c, d[0], true};
    enum status st = model_load(&m, args_text(a, "model"),
                                catalogue_dir(folder, sizeof folder, "models/desc"), NULL, 0, dg);
    if (st != ST_OK)
        return st;
    if (!m->bytes_exact)
        st = model_requantise(m, args_text(a, "quant"), dg);
    if (st == ST_OK) {
        compare_text(c, "title", d[0]->title, d[1]->title);
        device_each_value(d[0], compare_value, &first);
        device_each_value(d[1], compare_value, &second);
        compare_plans(c, (const struct model *const[]){m, m},
                      (const struct device *const[]){d[0], d[1]});
    }
    model_free(m);
    return st;
}

/* ---- models ---- */

static enum status compare_models(struct comparison *c, struct model *m[2], const struct args *a,
                                  struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX];
    struct device *d;
    enum status st = device_load(&d, args_text(a, "device"),
                                 catalogue_dir(folder, sizeof folder, "devices/desc"), NULL, 0, dg);
    for (int i = 0; i < 2 && st == ST_OK; i++)
        if (!m[i]->bytes_exact)
            st = model_requantise(m[i], args_text(a, "quant"), dg);
    if (st != ST_OK)
        return st;
    compare_text(c, "title", m[0]->title, m[1]->title);
    compare_quantity(c, "layers", DIM_COUNT, m[0]->layer_count, m[1]->layer_count);
    compare_quantity(c, "moe_layers", DIM_COUNT, model_moe_layers(m[0]), model_moe_layers(m[1]));
    compare_quantity(c, "hidden", DIM_COUNT, m[0]->hidden, m[1]->hidden);
    compare_quantity(c, "experts", DIM_COUNT, model_experts(m[0]), model_experts(m[1]));
    compare_quantity(c, "top_k", DIM_COUNT, model_top_k(m[0]), model_top_k(m[1]));
    compare_quantity(c, "params_total", DIM_COUNT, model_params_total(m[0]),
                     model_params_total(m[1]));
    compare_quantity(c, "params_active", DIM_COUNT, model_params_active(m[0]),
                     model_params_active(m[1]));
    compare_quantity(c, "weight_bytes", DIM_SIZE, model_weight_bytes(m[0]),
                     model_weight_bytes(m[1]));
    compare_quantity(c, "expert_bytes", DIM_SIZE, model_expert_bytes_max(m[0]),
                     model_expert_bytes_max(m[1]));
    compare_quantity(c, "token_cycle_bytes", DIM_SIZE, model_token_cycle_bytes(m[0]),
                     model_token_cycle_bytes(m[1]));
    compare_quantity(c, "state_bytes_4096", DIM_SIZE, state_bytes(m[0], 4096, STATE_BITS_F16),
                     state_bytes(m[1], 4096, STATE_BITS_F16));
    compare_plans(c, (const struct model *const[]){m[0], m[1]},
                  (const struct device *const[]){d, d});
    device_free(d);
    return ST_OK;
}

/* ---- which of them ---- */

static bool is_csv(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".csv") == 0;
}

/* Devices first, then models: names of the two catalogues do not meet. */
static enum status compare_things(struct comparison *c, struct args *a, struct diag *dg)
{
    char folder[2][CATALOGUE_PATH_MAX];
    const char *devices = catalogue_dir(folder[0], sizeof folder[0], "devices/desc");
    const char *models = catalogue_dir(folder[1], sizeof folder[1], "models/desc");
    struct device *d[2] = {NULL, NULL};
    struct model *m[2] = {NULL, NULL};
    struct diag no_device, no_model;
    enum status st = ST_OK;
    for (size_t i = 0; i < 2 && st == ST_OK; i++) {
        const char *name = args_positional(a, i);
        if (device_load(&d[i], name, devices, NULL, 0, &no_device) == ST_OK)
            continue;
        d[i] = NULL;
        if (model_load(&m[i], name, models, NULL, 0, &no_model) == ST_OK)
            continue;
        m[i] = NULL;
        st = diag_set(dg, ST_MISSING,
                      "neither a device (%s) nor a model (%s) nor a result file (.csv)",
                      no_device.text, no_model.text);
    }
    if (st == ST_OK && d[0] && d[1])
        st = compare_devices(c, d, a, dg);
    else if (st == ST_OK && m[0] && m[1])
        st = compare_models(c, m, a, dg);
    else if (st == ST_OK)
        st = diag_set(dg, ST_MISFIT,
                      "two devices, two models or two result files are compared, "
                      "not a device with a model");
    for (int i = 0; i < 2; i++) {
        device_free(d[i]);
        model_free(m[i]);
    }
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    struct comparison c = {.all = args_flag(a, "all")};
    const char *x = args_positional(a, 0), *y = args_positional(a, 1);
    enum status st = report_open(&c.report, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    st = is_csv(x) && is_csv(y) ? compare_results(&c, x, y, dg) : compare_things(&c, a, dg);
    if (st == ST_OK)
        return report_close(c.report, dg);
    report_abandon(c.report);
    return st;
}

const struct command command_compare = {
    .name = "compare",
    .summary = "two devices, models or result files: what differs and what it costs",
    .usage = "A B [--model M] [--device D]",
    .example = "memwall compare mac-mini-m4-pro-24gb macbook-air-m4-32gb",
    .options = options,
    .positional_min = 2,
    .positional_max = 2,
    .no_set = true,
    .run = run,
};
