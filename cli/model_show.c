/* model_show.c -- `memwall model show`: one model, by tensor group, with experts and state. */
#include "cli/commands.h"
#include "cli/model_print.h"
#include "cli/report.h"

#include "models/model.h"
#include "models/state.h"

#include <stdlib.h>
#include <string.h>

static const struct option options[] = {
    {"quant", OPTION_TEXT, "Q", "weight format or mix: q4_k_m, mxfp4, mlx4-g64, ... (as published)",
     NULL, NULL, 0, 0, false},
    {"context", OPTION_COUNT, "N", "tokens of context", "4096", NULL, 0, UINT32_MAX, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"name", CELL_TEXT, 0, false},
    {"title", CELL_TEXT, 0, false},
    {"quant", CELL_TEXT, 0, false},
    {"layers", CELL_COUNT, 0, false},
    {"moe_layers", CELL_COUNT, 0, false},
    {"experts", CELL_COUNT, 0, false},
    {"top_k", CELL_COUNT, 0, false},
    {"expert_params", CELL_COUNT, 0, false},
    {"params_total", CELL_COUNT, 0, false},
    {"params_active", CELL_COUNT, 0, false},
    {"kv_bytes_per_token", CELL_COUNT, 0, false},
    {"state_bytes_fixed", CELL_COUNT, 0, false},
    {"weight_bytes", CELL_COUNT, 0, false},
    {"expert_bytes", CELL_COUNT, 0, false},
    {"experts_bytes", CELL_COUNT, 0, false},
    {"token_cycle_bytes", CELL_COUNT, 0, false},
    {"context", CELL_COUNT, 0, false},
    {"state_bytes", CELL_COUNT, 0, false},
    {"grade", CELL_TEXT, 0, false},
    {"source", CELL_TEXT, 0, false},
};

static uint64_t expert_params(const struct model *m)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].expert_params > most)
            most = m->layers[i].expert_params;
    return most;
}

static void text_or_empty(struct report *r, const char *text)
{
    if (text)
        report_text(r, text);
    else
        report_empty(r);
}

static enum status print_row(struct args *a, const struct model *m, struct diag *dg)
{
    struct report *r;
    uint64_t context = args_count(a, "context");
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    report_single(r);
    report_text(r, m->name);
    report_text(r, m->title);
    text_or_empty(r, m->quant.name);
    report_count(r, m->layer_count);
    report_count(r, model_moe_layers(m));
    report_count(r, model_experts(m));
    report_count(r, model_top_k(m));
    report_count(r, expert_params(m));
    report_count(r, model_params_total(m));
    report_count(r, model_params_active(m));
    report_count(r, (state_millibytes_per_token(m, STATE_BITS_F16) + 500) / 1000);
    report_count(r, state_fixed_bytes(m, STATE_BITS_F16));
    report_count(r, model_weight_bytes(m));
    report_count(r, model_expert_bytes_max(m));
    report_count(r, model_experts_bytes(m));
    report_count(r, model_token_cycle_bytes(m));
    report_count(r, context);
    report_count(r, state_bytes(m, context, STATE_BITS_F16));
    text_or_empty(r, m->grade);
    text_or_empty(r, m->source);
    return report_close(r, dg);
}

/* Overrides with or without the "model." that tells them from a device's. */
static enum status load(struct model **out, struct args *a, struct diag *dg)
{
    static const char prefix[] = "model.";
    char buffer[CATALOGUE_PATH_MAX];
    size_t count;
    const char *const *set = args_list(a, "set", &count);
    const char **paths = args_memory(a, (count + 1) * sizeof *paths);
    if (!paths)
        return diag_no_memory(dg);
    for (size_t i = 0; i < count; i++)
        paths[i] =
            strncmp(set[i], prefix, sizeof prefix - 1) == 0 ? set[i] + sizeof prefix - 1 : set[i];
    return model_load(out, args_positional(a, 0),
                      catalogue_dir(buffer, sizeof buffer, "models/desc"), paths, count, dg);
}

static enum status run(struct args *a, struct diag *dg)
{
    struct model *m;
    enum status st = load(&m, a, dg);
    if (st != ST_OK)
        return st;
    if (args_text(a, "quant"))
        st = model_requantise(m, args_text(a, "quant"), dg);
    bool table = args_count(a, "format") == 0;
    if (st == ST_OK && table) {
        model_print(m, args_count(a, "context"));
        st = flush_stdout(dg);
    } else if (st == ST_OK) {
        st = print_row(a, m, dg);
    }
    model_free(m);
    return st;
}

const struct command command_model_show = {
    .name = "model show",
    .summary = "one model: parameters and bytes by tensor group, experts, state",
    .usage = "MODEL [--quant Q] [--context N]",
    .example = "memwall model show kimi-k3 --quant native --context 8192",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .run = run,
};
