/* sim.c -- `memwall sim`: tokens as events, on time. One row: the rate with its interval, where the time
 * went, and the hashes that prove that decisions and events repeat. */
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/policy_options.h"
#include "cli/report.h"
#include "cli/scenario.h"
#include "cli/sim_files.h"

#include "base/progress.h"
#include "sim/pipeline/energy.h"
#include "sim/pipeline/forecast.h"
#include "sim/trace/preset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const drive_names[] = {"striped", "mirrored", NULL}; /* enum array_layout */
static const char *const overlap_names[] = {"serial", "expert", NULL};

static const struct option options[] = {
    {"model", OPTION_TEXT, "M", "model: catalogue name, .yaml, .gguf or config.json", NULL, NULL, 0,
     0, true},
    SCENARIO_OPTIONS,
    {"profile", OPTION_TEXT, "F", "engine profile: memwall, generic, bigmoeonedge, ... or .yaml",
     "generic", NULL, 0, 0, false},
    {"trace", OPTION_TEXT, "FILE", "recorded routing", NULL, NULL, 0, 0, false},
    {"routing", OPTION_TEXT, "PRESET",
     "made-up routing: a preset, or fixed:H (hit ratio H); default: the model's", NULL, NULL, 0, 0,
     false},
    {"policy", OPTION_TEXT, "P", "cache policy (the profile's)", NULL, NULL, 0, 0, false},
    {"cache", OPTION_SIZE, "SIZE", "expert cache (all that fits)", NULL, NULL, 0, 0, false},
    {"dram", OPTION_SIZE, "SIZE", "memory the run may use (capacity less reserve)", NULL, NULL, 1,
     0, false},
    {"scope", OPTION_CHOICE, "global|layer", "one cache, or an equal share a layer (the profile's)",
     NULL, scope_names, 0, 0, false},
    {"evict", OPTION_CHOICE, "before|after", "when room is made (the profile's)", NULL, evict_names,
     0, 0, false},
    PREFETCH_OPTIONS,
    PREFETCH_WHEN_OPTION,
    {"prefetch-recall", OPTION_TEXT, "H",
     "of --prefetch oracle: this share of its guesses is true, the others are random", NULL, NULL,
     0, 0, false},
    {"overlap", OPTION_CHOICE, "serial|expert", "what waits for what (the profile's)", NULL,
     overlap_names, 0, 0, false},
    {"drives", OPTION_CHOICE, "striped|mirrored",
     "several drives: a read is shared among them, or each has all bytes and the idlest reads",
     "striped", drive_names, 0, 0, false},
    {"threads", OPTION_COUNT, "N",
     "compute threads, a kernel's weight against reads where they share the DRAM (the profile's)",
     NULL, NULL, 1, 4096, false},
    {"tokens", OPTION_COUNT, "N", "decode tokens at most", "64", NULL, 1, 10000000, false},
    {"prompt", OPTION_COUNT, "N", "prompt tokens of made-up routing", "32", NULL, 0, 10000000,
     false},
    {"warmup", OPTION_COUNT, "N", "decode tokens that are run first and not counted", "0", NULL, 0,
     10000000, false},
    {"requests", OPTION_COUNT, "N", "requests of made-up routing, one after another", "1", NULL, 1,
     100000, false},
    {"batch", OPTION_COUNT, "N", "sequences that decode together", "1", NULL, 1, 1024, false},
    {"draft", OPTION_COUNT, "N", "tokens a draft proposes for each sequence", "0", NULL, 0, 64,
     false},
    {"acceptance", OPTION_TEXT, "H", "share of drafted tokens that are accepted", "0.6", NULL, 0, 0,
     false},
    {"context", OPTION_COUNT, "N", "tokens of state that exist before", "0", NULL, 0, 100000000,
     false},
    {"given-compute", OPTION_TEXT, "TIME", "compute time of one token, measured elsewhere: 0.123s",
     NULL, NULL, 0, 0, false},
    {"given-io", OPTION_TEXT, "TIME",
     "flash time of all experts of one token, measured elsewhere; hits shorten it", NULL, NULL, 0,
     0, false},
    {"jitter", OPTION_COUNT, "N", "standard deviation of the read latency, in parts per 1000", "0",
     NULL, 0, 1000, false},
    {"draws", OPTION_COUNT, "N", "draws of the inputs behind the interval; 0: none", "12", NULL, 0,
     1000, false},
    {"timeline", OPTION_TEXT, "FILE", "a Chrome trace of the run, for ui.perfetto.dev", NULL, NULL,
     0, 0, false},
    {"pressure", OPTION_TEXT, "SIZE@TIME[,..]", "applications that open while it runs: 2GiB@5s",
     NULL, NULL, 0, 0, false},
    {"layers-out", OPTION_TEXT, "FILE",
     "a CSV row a layer: hits, late hits, prefetches used and wasted", NULL, NULL, 0, 0, false},
    {"resources-out", OPTION_TEXT, "FILE", "a CSV row a resource: busy, idle, bytes, operations",
     NULL, NULL, 0, 0, false},
    {"config-out", OPTION_TEXT, "FILE",
     "the resolved configuration: every value with its kind and source", NULL, NULL, 0, 0, false},
    {"tokens-out", OPTION_TEXT, "FILE", "a CSV row a decode token", NULL, NULL, 0, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"model", CELL_TEXT, 0, true},
    {"device", CELL_TEXT, 0, true},
    {"profile", CELL_TEXT, 0, true},
    {"policy", CELL_TEXT, 0, false},
    {"prefetch", CELL_TEXT, 0, false},
    {"cache_bytes", CELL_COUNT, 0, false},
    {"tokens", CELL_COUNT, 0, false},
    {"decode_tok_per_s", CELL_NUMBER, 6, false},
    {"ttft_s", CELL_NUMBER, 6, true},
    {"token_s_p50", CELL_NUMBER, 9, true},
    {"token_s_p99", CELL_NUMBER, 9, true},
    {"hit_ratio", CELL_RATIO, 0, false},
    {"flash_bytes_per_token", CELL_COUNT, 0, false},
    {"compute_s_per_token", CELL_NUMBER, 9, true},
    {"io_s_per_token", CELL_NUMBER, 9, true},
    {"stall_s_per_token", CELL_NUMBER, 9, true},
    {"energy_j_per_token", CELL_NUMBER, 6, true},
    {"peak_bytes", CELL_COUNT, 0, true},
    {"bound", CELL_TEXT, 0, false},
    {"fingerprint", CELL_TEXT, 0, true},
    {"decode_tok_per_s_low", CELL_NUMBER, 6, false},
    {"decode_tok_per_s_high", CELL_NUMBER, 6, false},
    {"late_hits", CELL_COUNT, 0, true},
    {"command_hash", CELL_TEXT, 0, true},
    {"assumed", CELL_TEXT, 0, true},
    {"context", CELL_COUNT, 0, false},
    {"prompt_tokens", CELL_COUNT, 0, false},
};

static void sim_inputs_free(struct sim_inputs *in)
{
    scenario_free(&in->scenario);
    profile_free(in->profile);
    if (!in->trace_kept)
        trace_free(in->trace);
    preset_free(in->preset);
    timeline_free(in->timeline);
    free(in->pressure);
}

#define GIVEN_TIME_MAX UINT64_C(86400000000000) /* a day for one token */

static enum status read_time(uint64_t *ns, const struct args *a, const char *option,
                             struct diag *dg)
{
    struct diag why;
    *ns = 0;
    if (!args_given(a, option))
        return ST_OK;
    if (quantity_parse(ns, DIM_TIME, args_text(a, option), QUANTITY_UNIT_REQUIRED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--%s: %s", option, why.text);
    if (*ns == 0 || *ns > GIVEN_TIME_MAX)
        return diag_set(dg, ST_USAGE, "--%s: above 0 and at most a day is expected, not '%s'",
                        option, args_text(a, option));
    return ST_OK;
}

static enum status read_ratio(uint64_t *ratio, const char *option, const char *text,
                              struct diag *dg)
{
    struct diag why;
    if (quantity_parse(ratio, DIM_RATIO, text, QUANTITY_BARE_ALLOWED, &why) != ST_OK ||
        *ratio > RATIO_ONE)
        return diag_set(dg, ST_USAGE, "--%s: a ratio from 0 to 1, not '%s'", option, text);
    return ST_OK;
}

/* 0 would be a predictor that is never right: nobody asks for it, and in the setup it means all are. */
static enum status read_recall(struct pipeline_setup *s, const char *text, struct diag *dg)
{
    enum status st = read_ratio(&s->prefetch_recall, "prefetch-recall", text, dg);
    if (st == ST_OK && s->prefetch_recall == 0)
        return diag_set(dg, ST_USAGE, "--prefetch-recall: above 0, not '%s'", text);
    if (st == ST_OK && (!s->prefetch || !s->prefetch->needs_future))
        return diag_set(dg, ST_USAGE, "--prefetch-recall needs --prefetch oracle");
    return st;
}

static enum status load_routing(struct sim_inputs *in, const struct args *a, struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX];
    if (args_given(a, "trace") && args_given(a, "routing"))
        return diag_set(dg, ST_USAGE, "--trace and --routing exclude each other");
    if (args_given(a, "trace"))
        return captured_trace(&in->trace, &in->trace_kept, a, dg);
    const char *name = args_text(a, "routing");
    if (name && strncmp(name, "fixed:", 6) == 0)
        return read_ratio(&in->setup.hit_ratio, "routing fixed:H", name + 6, dg);
    if (!name)
        name = in->scenario.model->router;
    if (!name) {
        name = PRESET_CUSTOMARY;
        in->routing_unknown = true;
        note(a, "%s names no routing preset: taken as %s; --routing and --trace say otherwise",
             in->scenario.model->name, name);
    }
    return preset_load(&in->preset, name, catalogue_dir(folder, sizeof folder, "sim/trace/presets"),
                       NULL, 0, dg);
}

static enum status choose_policy(struct sim_inputs *in, struct args *a, struct diag *dg)
{
    struct policy_list list;
    if (!args_given(a, "policy")) {
        in->setup.policy = cache_policy_find(in->profile->policy);
        return in->setup.policy ? ST_OK
                                : diag_set(dg, ST_MISSING, "%s: policy '%s' does not exist",
                                           in->profile->origin, in->profile->policy);
    }
    enum status st = policy_list_read(&list, a, dg);
    if (st == ST_OK && list.count != 1)
        return diag_set(dg, ST_USAGE, "--policy: one policy a run");
    if (st == ST_OK)
        in->setup.policy = list.policy[0];
    return st;
}

static enum status read_decisions(struct sim_inputs *in, struct args *a, struct diag *dg)
{
    struct pipeline_setup *s = &in->setup;
    enum status st = choose_policy(in, a, dg);
    if (st == ST_OK)
        st = prefetch_options_read(a, &s->prefetch, &s->prefetch_distance, &s->prefetch_experts_max,
                                   &s->prefetch_bytes_max, dg);
    if (st == ST_OK && !args_given(a, "prefetch")) {
        s->prefetch = prefetch_policy_find(in->profile->prefetch);
        s->prefetch_distance = (uint32_t)in->profile->prefetch_distance.amount;
        s->prefetch_experts_max = (uint32_t)in->profile->prefetch_experts.amount;
    }
    s->scope = (enum scope)(args_given(a, "scope") ? args_count(a, "scope")
                                                   : (uint64_t)in->profile->scope);
    s->evict = (enum evict_when)(args_given(a, "evict") ? args_count(a, "evict")
                                                        : (uint64_t)in->profile->evict);
    return st;
}

static uint64_t given_or_zero(const struct args *a, const char *option)
{
    return args_given(a, option) ? args_count(a, option) : 0;
}

/* The profile, with what options say about it: they are short for edits of its keys. */
static enum status load_profile(struct sim_inputs *in, const struct args *a, struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX], copies[32];
    const char **edit = calloc(in->scenario.profile_count + 2, sizeof *edit);
    size_t count = in->scenario.profile_count;
    if (!edit)
        return diag_no_memory(dg);
    if (count)
        memcpy(edit, in->scenario.profile, count * sizeof *edit);
    snprintf(copies, sizeof copies, "copies=%" PRIu64, args_count(a, "copies"));
    if (args_given(a, "copies"))
        edit[count++] = copies;
    if (args_given(a, "dense"))
        edit[count++] = args_count(a, "dense") == 1 ? "dense=streamed" : "dense=resident";
    enum status st = profile_load(&in->profile, args_text(a, "profile"),
                                  catalogue_dir(folder, sizeof folder, "sim/pipeline/profiles"),
                                  edit, count, dg);
    free(edit);
    return st;
}

/* What is taken and then has no effect. */
static void say_what_is_idle(const struct sim_inputs *in, const struct args *a)
{
    static const char *const made_up[] = {"prompt", "requests", "top-k"};
    for (size_t i = 0; in->trace && i < sizeof made_up / sizeof *made_up; i++)
        if (args_given(a, made_up[i]))
            note(a, "--%s has no effect: the trace says what is run", made_up[i]);
    if (args_given(a, "cache") && in->setup.policy->keeps_nothing)
        note(a, "--cache has no effect: policy %s keeps no expert; --policy lru or another does",
             in->setup.policy->name);
    if (args_given(a, "acceptance") && args_count(a, "draft") == 0)
        note(a, "--acceptance has no effect: --draft says how many tokens are drafted");
    const struct prefetch_policy *ahead = in->setup.prefetch;
    if (args_given(a, "prefetch") && ahead && !in->trace && !in->preset)
        note(a, "--prefetch has no effect: a fixed hit ratio names no expert");
    if (ahead && ahead->from_outside && !ahead->needs_future && in->trace &&
        in->trace->guess_count == 0)
        note(a, "prefetch %s has no effect: the trace has no predictions (rows of kind p)",
             ahead->name);
}

/* Where the machine does not let the profile have its way. */
static void say_what_differs(const struct sim_inputs *in, const struct args *a)
{
    const struct device *d = in->scenario.device;
    bool gpu = false, efficient = false;
    for (size_t i = 0; i < d->compute_count; i++) {
        gpu |= strcmp(d->compute[i].name, "cpu") != 0;
        efficient |= d->compute[i].efficiency.given;
    }
    if (in->profile->site == SITE_GPU && !gpu && !args_given(a, "unit"))
        note(a, "profile %s computes on a GPU, %s has none: its %s computes", in->profile->name,
             d->name, d->compute_count ? d->compute[0].name : "unit");
    for (size_t i = 0; i < in->scenario.profile_count; i++)
        if (strncmp(in->scenario.profile[i], "kernel_efficiency=", 18) == 0 && efficient)
            note(a,
                 "%s states what its kernels reach (efficiency): kernel_efficiency matters only "
                 "where memory is slower than that",
                 d->name);
}

static enum status load_inputs(struct sim_inputs *in, struct args *a, struct diag *dg)
{
    struct pipeline_setup *s = &in->setup;
    if (args_count(a, "draws") == 1)
        return diag_set(dg, ST_USAGE, "--draws: one draw spans no interval; 0 is none, 2 or more");
    enum status st = scenario_load_model(&in->scenario, a, args_text(a, "model"), dg);
    if (st == ST_OK)
        st = load_profile(in, a, dg);
    if (st == ST_OK)
        st = load_routing(in, a, dg);
    if (st == ST_OK)
        st = read_decisions(in, a, dg);
    if (st == ST_OK)
        st = read_time(&s->given_compute_ns, a, "given-compute", dg);
    if (st == ST_OK)
        st = read_time(&s->given_io_ns, a, "given-io", dg);
    if (st == ST_OK)
        st = read_ratio(&s->acceptance, "acceptance", args_text(a, "acceptance"), dg);
    if (st == ST_OK && args_given(a, "prefetch-recall"))
        st = read_recall(s, args_text(a, "prefetch-recall"), dg);
    if (st == ST_OK && args_given(a, "pressure"))
        st = pressure_parse(&in->pressure, &s->pressure_count, args_text(a, "pressure"), dg);
    if (st == ST_OK && args_given(a, "timeline"))
        st = timeline_new(&in->timeline, TIMELINE_CAPACITY_USUAL, dg);
    s->pressure = in->pressure;
    s->timeline = in->timeline;
    s->prefetch_timed = args_count(a, "prefetch-when") == 1;
    if (st == ST_OK)
        say_what_is_idle(in, a);
    if (st == ST_OK)
        say_what_differs(in, a);
    s->drives = (enum array_layout)args_count(a, "drives");
    s->warmup = args_count(a, "warmup");
    s->requests = args_count(a, "requests");
    s->batch = (uint32_t)args_count(a, "batch");
    s->draft = (uint32_t)args_count(a, "draft");
    s->model = in->scenario.model;
    s->device = in->scenario.device;
    s->profile = in->profile;
    s->unit = args_text(a, "unit");
    s->trace = in->trace;
    s->params = in->preset ? &in->preset->params : NULL;
    s->prompt_tokens = in->trace ? 0 : args_count(a, "prompt");
    s->tokens = args_count(a, "tokens");
    s->context = args_count(a, "context");
    s->cache_bytes = given_or_zero(a, "cache");
    s->cache_given = args_given(a, "cache");
    s->memory_bytes = given_or_zero(a, "dram");
    s->lanes = given_or_zero(a, "lanes");
    s->pieces = given_or_zero(a, "pieces");
    s->threads = given_or_zero(a, "threads");
    s->overlap = args_given(a, "overlap") ? (int)args_count(a, "overlap") : -1;
    s->state_bits = in->scenario.state_bits;
    s->seed = args_count(a, "seed");
    s->jitter_e3 = (uint32_t)args_count(a, "jitter");
    return st;
}

/* ---- the row ---- */

static double per_token(uint64_t sum, uint64_t tokens, double unit)
{
    return tokens ? (double)sum / (double)tokens / unit : 0.0 / 0.0;
}

static void add_row(struct report *r, const struct sim_inputs *in, const struct forecast *f)
{
    const struct pipeline_result *x = &f->result;
    char hash[2][20];
    snprintf(hash[0], sizeof hash[0], "%016" PRIx64, x->fingerprint);
    snprintf(hash[1], sizeof hash[1], "%016" PRIx64, x->counts.command_hash);
    report_text(r, in->scenario.model->name);
    report_text(r, in->scenario.device->name);
    report_text(r, in->profile->name);
    report_text(r, in->setup.policy->name);
    report_text(r, sim_prefetch_label(in));
    report_count(r, x->cache_bytes);
    report_count(r, x->tokens);
    report_number(r, (double)forecast_rate(x) / 1e6);
    report_number(r, (double)(x->prefill_ns + x->first_token_ns) / 1e9);
    report_number(r, (double)x->token_ns_p50 / 1e9);
    report_number(r, (double)x->token_ns_p99 / 1e9);
    report_ratio(r, x->lookups ? (double)x->hits / (double)x->lookups : 0.0 / 0.0);
    report_count(r, x->tokens ? x->flash_bytes / x->tokens : 0);
    report_number(r, per_token(x->compute_ns, x->tokens, 1e9));
    report_number(r, per_token(x->io_ns, x->tokens, 1e9));
    report_number(r, per_token(x->stall_ns, x->tokens, 1e9));
    report_number(r, x->energy_nJ ? per_token(x->energy_nJ, x->tokens, 1e9) : 0.0 / 0.0);
    report_count(r, x->peak_bytes);
    report_text(r, x->bound);
    report_text(r, hash[0]);
    report_number(r, f->low ? (double)f->low / 1e6 : 0.0 / 0.0);
    report_number(r, f->high ? (double)f->high / 1e6 : 0.0 / 0.0);
    report_count(r, x->late_hits);
    report_text(r, hash[1]);
    char assumed[sizeof f->assumed + 16];
    snprintf(assumed, sizeof assumed, "%s%s%s", f->assumed,
             *f->assumed && in->routing_unknown ? " " : "", in->routing_unknown ? "routing" : "");
    report_text(r, assumed);
    report_count(r, in->setup.context);
    if (in->trace)
        report_empty(r);
    else
        report_count(r, in->setup.prompt_tokens);
}

static void say_what_energy_lacks(const struct sim_inputs *in, struct args *a,
                                  const struct pipeline_result *x)
{
    char lacks[ENERGY_MISSING_MAX];
    if (x->energy_nJ && x->energy_missing)
        note(a, "energy counts nothing for what %s does not state: %s", in->scenario.device->name,
             energy_missing_text(lacks, x->energy_missing));
}

static enum status sim_command(struct args *a, struct diag *dg)
{
    struct sim_inputs in = {.setup = {.overlap = -1}};
    struct forecast f;
    struct report *r = NULL;
    enum status st = load_inputs(&in, a, dg);
    if (st == ST_OK)
        st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st == ST_OK)
        st = sim_run_with_files(&f, &in, a, dg);
    if (st == ST_OK)
        st = sim_write_config(&in, a, f.result.cache_bytes, dg);
    if (st == ST_OK && in.timeline)
        st = timeline_save(in.timeline, args_text(a, "timeline"), dg);
    if (st == ST_OK) {
        if (f.result.cut)
            note(a, "prefill chunks that did not fit the cache were cut into smaller ones");
        if (f.result.tokens == 0 && in.setup.warmup)
            note(a, "no decode token was counted: the warm-up of %" PRIu64 " took all there are",
                 in.setup.warmup);
        else if (f.result.tokens < in.setup.tokens)
            note(a, "the trace has %" PRIu64 " decode tokens, fewer than asked for",
                 f.result.tokens);
        say_what_energy_lacks(&in, a, &f.result);
        add_row(r, &in, &f);
        st = report_close(r, dg);
    } else {
        report_abandon(r);
    }
    sim_inputs_free(&in);
    return st;
}

const struct command command_sim = {
    .name = "sim",
    .summary = "tokens as events: the rate, where the time goes, what is late and what is wasted",
    .usage = "--model M --device D [--profile F] [--trace FILE | --routing PRESET] [--cache SIZE] "
             "[--tokens N]",
    .example = "memwall sim --model qwen3-30b-a3b --quant q4_k_m --device oneplus-15r --profile "
               "bigmoeonedge "
               "--cache 4GiB --tokens 32",
    .options = options,
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .run = sim_command,
};
