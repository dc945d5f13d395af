/* sim_files.c -- see sim_files.h. */
#include "cli/sim_files.h"

#include "base/json.h"
#include "base/outfile.h"
#include "cli/policy_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *sim_prefetch_label(const struct sim_inputs *in)
{
    return prefetch_label(in->setup.prefetch, in->setup.prefetch_timed);
}

static void write_token(void *self, const struct pipeline_token *t)
{
    FILE *f = outfile_stream(self);
    fprintf(f,
            "%" PRIu64 ",%.9f,%.9f,%.9f,%.9f,%.9f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
            ",%" PRIu64 "\n",
            t->index, (double)t->start_ns / 1e9, (double)(t->end_ns - t->start_ns) / 1e9,
            (double)t->compute_ns / 1e9, (double)t->io_ns / 1e9, (double)t->stall_ns / 1e9,
            t->produced, t->read_bytes, t->lookups, t->hits, t->late_hits);
}

static void write_layer(void *self, const struct pipeline_layer *l)
{
    fprintf(outfile_stream(self),
            "%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
            "\n",
            l->layer, l->lookups, l->hits, l->late_hits, l->prefetches, l->prefetch_used,
            l->prefetch_wasted, l->pollution);
}

static void write_resource(void *self, const struct pipeline_resource *x)
{
    fprintf(outfile_stream(self), "%s,%.9f,%.9f,%.9f,%" PRIu64 ",%" PRIu64 "\n", x->name,
            (double)x->busy_ns / 1e9, (double)(x->span_ns - x->busy_ns) / 1e9,
            x->span_ns ? (double)x->busy_ns / (double)x->span_ns : 0.0, x->bytes, x->operations);
}

/* The optional files, in one table: opened before the run, committed after it, gone if it fails. */
enum side { SIDE_TOKENS, SIDE_LAYERS, SIDE_RESOURCES, SIDES };
static const struct {
    const char *option, *header;
} sides[SIDES] = {
    [SIDE_TOKENS] = {"tokens-out",
                     "token,start_s,wall_s,compute_s,io_s,stall_s,produced,read_bytes,lookups,"
                     "hits,late_hits\n"},
    [SIDE_LAYERS] = {"layers-out",
                     "layer,lookups,hits,late_hits,prefetches,prefetch_used,prefetch_wasted,"
                     "pollution\n"},
    [SIDE_RESOURCES] = {"resources-out",
                        "resource,busy_s,idle_s,utilisation_ratio,bytes,operations\n"},
};

static enum status open_sides(struct outfile **file, const struct args *a, struct diag *dg)
{
    for (int i = 0; i < SIDES; i++) {
        if (!args_given(a, sides[i].option))
            continue;
        for (int j = 0; j < i; j++)
            if (args_given(a, sides[j].option) &&
                strcmp(args_text(a, sides[i].option), args_text(a, sides[j].option)) == 0)
                return diag_set(dg, ST_USAGE, "--%s and --%s write the same file: %s",
                                sides[j].option, sides[i].option, args_text(a, sides[i].option));
        enum status st = outfile_open(&file[i], args_text(a, sides[i].option), dg);
        if (st != ST_OK)
            return st;
        fputs(sides[i].header, outfile_stream(file[i]));
    }
    return ST_OK;
}

static enum status close_sides(struct outfile **file, enum status st, struct diag *dg)
{
    for (int i = 0; i < SIDES; i++) {
        if (file[i] && st == ST_OK)
            st = outfile_commit(file[i], dg);
        else
            outfile_abandon(file[i]);
    }
    return st;
}

enum status sim_run_with_files(struct forecast *out, struct sim_inputs *in, const struct args *a,
                               struct diag *dg)
{
    struct outfile *file[SIDES] = {NULL};
    struct pipeline_setup *s = &in->setup;
    enum status st = open_sides(file, a, dg);
    s->token = file[SIDE_TOKENS] ? write_token : NULL;
    s->layer = file[SIDE_LAYERS] ? write_layer : NULL;
    s->resource = file[SIDE_RESOURCES] ? write_resource : NULL;
    s->token_self = file[SIDE_TOKENS];
    s->layer_self = file[SIDE_LAYERS];
    s->resource_self = file[SIDE_RESOURCES];
    if (st == ST_OK)
        st = forecast_run(out, s, args_count(a, "draws"), dg);
    return close_sides(file, st, dg);
}

static void write_value(void *self, const char *path, struct value *v)
{
    FILE *f = self;
    char text[QUANTITY_TEXT_MAX];
    if (!v->given)
        return;
    fputs(",\n  ", f);
    json_write_text(f, path);
    fputs(": [", f);
    json_write_text(f, quantity_print(text, v->amount, v->dim));
    fprintf(f, ", \"%s\", ", value_kind_name(v->kind));
    json_write_text(f, v->source ? v->source : "");
    fputs("]", f);
}

static void write_choice(void *self, const char *key, const char *choice)
{
    fprintf(self, ",\n  \"%s\": \"%s\"", key, choice);
}

static uint64_t chosen(uint64_t option, const struct value *of_profile)
{
    return option || !of_profile->given ? option : of_profile->amount;
}

/* What the command line and the profile together make of the run. 0 in threads is the device's number, in
 * memory_bytes the capacity less the reserve, in prefetch_experts the number a token chooses. */
static void write_run(FILE *f, const struct sim_inputs *in, uint64_t cache_bytes)
{
    const struct pipeline_setup *s = &in->setup;
    const struct engine_profile *p = in->profile;
    int overlap = s->overlap >= 0 ? s->overlap : p->overlap;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"tokens", s->tokens},
                  {"prompt_tokens", s->prompt_tokens},
                  {"warmup", s->warmup},
                  {"requests", s->requests},
                  {"batch", s->batch},
                  {"draft", s->draft},
                  {"context", s->context},
                  {"cache_bytes", cache_bytes},
                  {"memory_bytes", s->memory_bytes},
                  {"lanes", chosen(s->lanes, &p->lanes)},
                  {"pieces", chosen(s->pieces, &p->pieces)},
                  {"threads", chosen(s->threads, &p->threads)},
                  {"state_bits", s->state_bits},
                  {"prefetch_distance", s->prefetch_distance},
                  {"prefetch_experts", s->prefetch_experts_max},
                  {"prefetch_budget_bytes", s->prefetch_bytes_max},
                  {"jitter_e3", s->jitter_e3},
                  {"given_compute_ns", s->given_compute_ns},
                  {"given_io_ns", s->given_io_ns},
                  {"applications", s->pressure_count}};
    fprintf(f, "\"run\": {\"overlap\": \"%s\", \"drives\": \"%s\", \"unit\": ",
            overlap == OVERLAP_EXPERT ? "expert" : "serial",
            s->drives == ARRAY_MIRRORED ? "mirrored" : "striped");
    json_write_text(f, s->unit ? s->unit : "");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        fprintf(f, ",\n  \"%s\": %" PRIu64, counts[i].name, counts[i].value);
    fprintf(f, ",\n  \"hit_ratio\": %.9f, \"acceptance\": %.9f}", (double)s->hit_ratio / 1e9,
            (double)s->acceptance / 1e9);
}

enum status sim_write_config(struct sim_inputs *in, const struct args *a, uint64_t cache_bytes,
                             struct diag *dg)
{
    struct outfile *file;
    const struct pipeline_setup *s = &in->setup;
    if (!args_given(a, "config-out"))
        return ST_OK;
    enum status st = outfile_open(&file, args_text(a, "config-out"), dg);
    if (st != ST_OK)
        return st;
    FILE *f = outfile_stream(file);
    fprintf(f, "{\"memwall\": \"" MEMWALL_VERSION "\",\n \"model\": ");
    json_write_text(f, s->model->name);
    fprintf(f, ", \"quant\": ");
    json_write_text(f, s->model->quant.name ? s->model->quant.name : "exact");
    fprintf(f,
            ", \"layers\": %zu, \"experts\": %" PRIu64 ", \"top_k\": %" PRIu64
            ", \"weight_bytes\": %" PRIu64 ",\n \"routing\": ",
            s->model->layer_count, model_experts(s->model), model_top_k(s->model),
            model_weight_bytes(s->model));
    json_write_text(f, s->trace ? args_text(a, "trace") : in->preset ? in->preset->name : "fixed");
    fprintf(f,
            ", \"policy\": \"%s\", \"scope\": \"%s\", \"evict\": \"%s\", \"prefetch\": \"%s\", "
            "\"seed\": %" PRIu64 ",\n ",
            s->policy->name, scope_names[s->scope], evict_names[s->evict], sim_prefetch_label(in),
            s->seed);
    write_run(f, in, cache_bytes);
    fprintf(f, ",\n \"device\": {\"name\": ");
    json_write_text(f, s->device->name);
    device_each_value(s->device, write_value, f);
    fprintf(f, "},\n \"profile\": {\"name\": ");
    json_write_text(f, in->profile->name);
    profile_each_choice(in->profile, write_choice, f);
    profile_each_value(in->profile, write_value, f);
    fprintf(f, "}}\n");
    return outfile_commit(file, dg);
}
