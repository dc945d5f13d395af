/* model_list.c -- `memwall model list`: the catalogue. */
#include "cli/commands.h"
#include "cli/report.h"

#include "models/model.h"

static const struct option options[] = {
    {"quant", OPTION_TEXT, "Q", "weight format or mix", "native", NULL, 0, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"name", CELL_TEXT, 0, false},          {"title", CELL_TEXT, 0, true},
    {"params_total", CELL_COUNT, 0, false}, {"params_active", CELL_COUNT, 0, false},
    {"layers", CELL_COUNT, 0, false},       {"moe_layers", CELL_COUNT, 0, true},
    {"experts", CELL_COUNT, 0, false},      {"top_k", CELL_COUNT, 0, false},
    {"grade", CELL_TEXT, 0, false},         {"weight_bytes", CELL_COUNT, 0, false},
    {"expert_bytes", CELL_COUNT, 0, true},  {"token_cycle_bytes", CELL_COUNT, 0, true},
};

static void add_row(struct report *r, const struct model *m)
{
    report_text(r, m->name);
    report_text(r, m->title);
    report_count(r, model_params_total(m));
    report_count(r, model_params_active(m));
    report_count(r, m->layer_count);
    report_count(r, model_moe_layers(m));
    report_count(r, model_experts(m));
    report_count(r, model_top_k(m));
    report_text(r, m->grade);
    report_count(r, model_weight_bytes(m));
    report_count(r, model_expert_bytes_max(m));
    report_count(r, model_token_cycle_bytes(m));
}

static enum status add_model(struct report *r, const char *name, const char *folder,
                             const char *quant, struct diag *dg)
{
    struct model *m;
    enum status st = model_load(&m, name, folder, NULL, 0, dg);
    if (st != ST_OK)
        return st;
    st = model_requantise(m, quant, dg);
    if (st == ST_OK)
        add_row(r, m);
    model_free(m);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    char buffer[CATALOGUE_PATH_MAX];
    const char *folder = catalogue_dir(buffer, sizeof buffer, "models/desc");
    struct report *r = NULL;
    char **names;
    size_t count;
    enum status st = model_catalogue(&names, &count, folder, dg);
    if (st != ST_OK)
        return st;
    st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    for (size_t i = 0; i < count && st == ST_OK; i++)
        st = add_model(r, names[i], folder, args_text(a, "quant"), dg);
    model_catalogue_free(names, count);
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

const struct command command_model_list = {
    .name = "model list",
    .summary = "the models of the catalogue, with parameters and bytes",
    .usage = "[--quant Q]",
    .example = "memwall model list --quant q4_k_m",
    .options = options,
    .no_set = true,
    .positional_min = 0,
    .positional_max = 0,
    .run = run,
};
