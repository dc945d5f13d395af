/* engine_run.c -- `memwall engine run`: a prompt in, text out, with experts streamed from disk. Text goes to
 * standard output as it comes, figures to standard error; with --format csv or json the figures are the
 * result, and the tokens stand in them. */
#include "cli/commands.h"
#include "cli/engine_options.h"
#include "cli/engine_run_text.h"
#include "cli/outputs.h"
#include "cli/report.h"

#include "base/outfile.h"
#include "base/progress.h"
#include "base/stats.h"
#include "kernels/graph/forced_route.h"
#include "kernels/graph/sampler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option options[] = {
    {"prompt", OPTION_TEXT, "TEXT", "text to go on from", NULL, NULL, 0, 0, false},
    {"prompt-file", OPTION_TEXT, "FILE", "a file with the text", NULL, NULL, 0, 0, false},
    {"tokens", OPTION_TEXT, "ID[,ID]", "the prompt as token ids", NULL, NULL, 0, 0, false},
    {"generate", OPTION_COUNT, "N", "tokens to generate (64; with --route, those of the trace)",
     NULL, NULL, 0, 100000000, false},
    ENGINE_OPTIONS,
    PREFETCH_OPTIONS,
    PREFETCH_WHEN_OPTION,
    {"temperature", OPTION_TEXT, "T", "0: always the likeliest token", "0", NULL, 0, 0, false},
    {"top-p", OPTION_TEXT, "P", "draw from the likeliest tokens that hold this share", "1", NULL, 0,
     0, false},
    {"sample-k", OPTION_COUNT, "K", "draw from the K likeliest tokens; 0: all", "0", NULL, 0,
     100000000, false},
    {"ignore-eos", OPTION_FLAG, NULL, "go on after an end of text", NULL, NULL, 0, 0, false},
    {"adapter", OPTION_TEXT, "FILE[,FILE]", "low-rank adapters (GGUF LoRA) on the model", NULL,
     NULL, 1, 0, false},
    {"heads", OPTION_TEXT, "FILE", "trained heads for --prefetch heads (MODEL.heads)", NULL, NULL,
     1, 0, false},
    {"route", OPTION_TEXT, "TRACE", "force this recorded routing", NULL, NULL, 0, 0, false},
    {"trace-out", OPTION_TEXT, "FILE", "routing trace of the run", NULL, NULL, 0, 0, false},
    {"decisions-out", OPTION_TEXT, "FILE",
     "log of cache and prefetch decisions, for memwall replay --decisions", NULL, NULL, 0, 0,
     false},
    {"tokens-out", OPTION_TEXT, "FILE", "a CSV row a pass: time, reads, hits, memory", NULL, NULL,
     0, 0, false},
    {"logits-out", OPTION_TEXT, "FILE",
     "float32 logits, little-endian, a row for each prompt position", NULL, NULL, 0, 0, false},
    {"timeline", OPTION_TEXT, "FILE", "a Chrome trace of the run, for ui.perfetto.dev", NULL, NULL,
     0, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"model", CELL_TEXT, 0, false},
    {"policy", CELL_TEXT, 0, false},
    {"prefetch", CELL_TEXT, 0, false},
    {"cache_bytes", CELL_COUNT, 0, false},
    {"prompt_tokens", CELL_COUNT, 0, false},
    {"tokens", CELL_COUNT, 0, false},
    {"decode_tok_per_s", CELL_NUMBER, 6, false},
    {"ttft_s", CELL_NUMBER, 6, false},
    {"token_s_p50", CELL_NUMBER, 9, false},
    {"token_s_p99", CELL_NUMBER, 9, false},
    {"lookups", CELL_COUNT, 0, false},
    {"hits", CELL_COUNT, 0, false},
    {"misses", CELL_COUNT, 0, false},
    {"hit_ratio", CELL_RATIO, 0, false},
    {"decode_lookups", CELL_COUNT, 0, false},
    {"decode_hits", CELL_COUNT, 0, false},
    {"decode_hit_ratio", CELL_RATIO, 0, false},
    {"late_hits", CELL_COUNT, 0, false},
    {"prefetches", CELL_COUNT, 0, false},
    {"prefetch_used", CELL_COUNT, 0, false},
    {"prefetch_wasted", CELL_COUNT, 0, false},
    {"evictions", CELL_COUNT, 0, false},
    {"read_bytes", CELL_COUNT, 0, false},
    {"device_bytes", CELL_COUNT, 0, false},
    {"compute_s_per_token", CELL_NUMBER, 9, false},
    {"io_wait_s_per_token", CELL_NUMBER, 9, false},
    {"dense_bytes", CELL_COUNT, 0, false},
    {"arena_bytes", CELL_COUNT, 0, false},
    {"state_bytes", CELL_COUNT, 0, false},
    {"peak_rss_bytes", CELL_COUNT, 0, false},
    {"command_hash", CELL_TEXT, 0, false},
    {"io", CELL_TEXT, 0, false},
    {"isa", CELL_TEXT, 0, false},
    {"threads", CELL_COUNT, 0, false},
    {"token_ids", CELL_TEXT, 0, false},
    {"prefetch_wasted_bytes", CELL_COUNT, 0, false},
};

struct run {
    struct args *a;
    struct engine *engine;
    struct engine_text text;
    struct sampler *sampler;
    struct outfile *passes;
    struct progress loading, computing;
    uint64_t loaded_bytes;
    struct token_list prompt, generated;
    size_t generate, decoded;
    double *token_s; /* decode passes */
    uint64_t prompt_ns, decode_compute_ns, decode_wait_ns;
    uint64_t decode_ns, decode_lookups, decode_hits;
    bool report; /* figures are the result, not the text */
};

/* ---- what is recorded ---- */

static void write_pass(FILE *f, const struct engine_pass *p)
{
    fprintf(f,
            "%" PRIu64 ",%s,%zu,%" PRIu32 ",%.9f,%.9f,%.9f,%.9f,%" PRIu64 ",%" PRIu64 ",%" PRIu64
            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.9f,%" PRIu64 "\n",
            p->pass, p->phase == PHASE_DECODE ? "decode" : "prefill", p->tokens, p->first_token,
            (double)p->start_ns / 1e9, (double)p->wall_ns / 1e9, (double)p->compute_ns / 1e9,
            (double)p->io_wait_ns / 1e9, p->counts.demand_bytes + p->counts.prefetch_bytes,
            p->sums.device_bytes, p->sums.reads, p->counts.lookups, p->counts.hits,
            p->counts.misses, p->sums.late_hits, p->counts.prefetches, p->counts.prefetch_used,
            p->counts.prefetch_wasted, p->host.major_faults, p->host.rss_bytes,
            p->host.page_cache_bytes, (double)p->host.stolen_ns / 1e9,
            p->counts.prefetch_wasted_bytes);
}

static void on_pass(void *self, const struct engine_pass *p)
{
    struct run *r = self;
    if (r->computing.label)
        progress_add(&r->computing, p->tokens);
    if (r->passes)
        write_pass(outfile_stream(r->passes), p);
    if (p->phase == PHASE_PREFILL) {
        r->prompt_ns += p->wall_ns;
        return;
    }
    r->token_s[r->decoded++] = (double)p->wall_ns / 1e9;
    r->decode_ns += p->wall_ns;
    r->decode_lookups += p->counts.lookups;
    r->decode_hits += p->counts.hits;
    r->decode_compute_ns += p->compute_ns;
    r->decode_wait_ns += p->io_wait_ns;
}

static void on_load(void *self, uint64_t done, uint64_t all)
{
    struct run *r = self;
    if (r->loaded_bytes == 0)
        progress_start(&r->loading, "dense weights", all);
    progress_add(&r->loading, done - r->loaded_bytes);
    r->loaded_bytes = done;
}

static enum status open_passes(struct run *r, struct diag *dg)
{
    if (!args_given(r->a, "tokens-out"))
        return ST_OK;
    enum status st = outfile_open(&r->passes, args_text(r->a, "tokens-out"), dg);
    if (st == ST_OK)
        fputs("pass,phase,tokens,token,start_s,wall_s,compute_s,io_wait_s,read_bytes,device_bytes,"
              "reads,lookups,hits,misses,late_hits,prefetches,prefetch_used,prefetch_wasted,"
              "major_faults,rss_bytes,page_cache_bytes,stolen_s,prefetch_wasted_bytes\n",
              outfile_stream(r->passes));
    return st;
}

static enum status save_logits(const struct run *r, const float *logits, struct diag *dg)
{
    struct outfile *f;
    size_t vocab = engine_weights(r->engine)->model->vocab;
    enum status st = outfile_open(&f, args_text(r->a, "logits-out"), dg);
    if (st != ST_OK)
        return st;
    size_t count = r->prompt.count * vocab;
    if (fwrite(logits, sizeof *logits, count, outfile_stream(f)) < count) {
        st = diag_errno(dg, args_text(r->a, "logits-out"), "cannot be written");
        outfile_abandon(f);
        return st;
    }
    return outfile_commit(f, dg);
}

static enum status save_records(struct run *r, struct diag *dg)
{
    enum status st = ST_OK;
    if (args_given(r->a, "trace-out"))
        st = engine_save_trace(r->engine, args_text(r->a, "trace-out"), dg);
    if (st == ST_OK)
        st = engine_save_decisions(r->engine, dg);
    if (st == ST_OK && args_given(r->a, "timeline"))
        st = engine_save_timeline(r->engine, args_text(r->a, "timeline"), dg);
    if (st == ST_OK && r->passes) {
        st = outfile_commit(r->passes, dg);
        r->passes = NULL;
    }
    return st;
}

/* ---- the run ---- */

static enum status read_number(double *out, const struct args *a, const char *option, double most,
                               struct diag *dg)
{
    char *end;
    const char *text = args_text(a, option);
    *out = strtod(text, &end);
    if (*text == 0 || *end || !(*out >= 0 && *out <= most))
        return diag_set(dg, ST_USAGE, "--%s: a number from 0 to %g is expected, not '%s'", option,
                        most, text);
    return ST_OK;
}

static enum status open_sampler(struct run *r, struct diag *dg)
{
    struct sampler_options o = {.seed = args_count(r->a, "seed"),
                                .top_k = args_count(r->a, "sample-k")};
    enum status st = read_number(&o.temperature, r->a, "temperature", 1000, dg);
    if (st == ST_OK)
        st = read_number(&o.top_p, r->a, "top-p", 1, dg);
    return st == ST_OK ? sampler_new(&r->sampler, &o, engine_weights(r->engine)->model->vocab, dg)
                       : st;
}

/* How many tokens the run will have, so that the state is as large as needed. */
static enum status plan_tokens(struct run *r, struct engine_setup *s, struct diag *dg)
{
    const char *path = args_positional(r->a, 0);
    enum status st = engine_text_open(&r->text, path, dg);
    if (st == ST_OK)
        st = engine_text_prompt(&r->prompt, &r->text, r->a, dg);
    r->generate = args_given(r->a, "generate") ? args_count(r->a, "generate") : 64;
    bool traced = r->prompt.count == 0 && !args_given(r->a, "generate");
    s->run_prompt = r->prompt.count;
    s->run_generate = traced ? ENGINE_AS_TRACED : r->generate;
    size_t need = r->prompt.count + r->generate;
    if (s->context == 0 && !s->route)
        s->context = need > 0 ? need : 1;
    return st;
}

/* With forced routing and no prompt, as many made-up tokens as the trace has. */
static enum status follow_route(struct run *r, struct diag *dg)
{
    const struct forced_route *route = engine_route(r->engine);
    if (!route || r->prompt.count > 0)
        return ST_OK;
    size_t n, generate;
    forced_route_run(route, &n, &generate);
    r->prompt.ids = calloc(n, sizeof *r->prompt.ids);
    if (!r->prompt.ids)
        return diag_no_memory(dg);
    r->prompt.count = r->prompt.room = n;
    size_t vocab = engine_weights(r->engine)->model->vocab;
    for (size_t i = 0; i < n; i++)
        r->prompt.ids[i] = engine_made_up_token(i, vocab);
    if (!args_given(r->a, "generate"))
        r->generate = generate;
    return ST_OK;
}

static bool ends(const struct run *r, uint32_t token)
{
    return !args_flag(r->a, "ignore-eos") && !engine_route(r->engine) &&
           engine_text_ends(&r->text, token);
}

/* A run whose text nobody reads any more ends. */
static enum status show_token(struct run *r, uint32_t token, struct diag *dg)
{
    return r->report ? ST_OK : engine_text_print(&r->text, token, r->generated.count == 1, dg);
}

/* Before anything else is said, also of a run that failed: what stderr gets then begins a line. */
static void end_text(const struct run *r)
{
    if (r->report || r->generated.count == 0)
        return;
    putchar('\n');
    fflush(stdout); /* a failure stays in the stream, for flush_stdout */
}

/* Not where the text itself comes out on the terminal. */
static void show_progress(struct run *r, const char *label, uint64_t tokens)
{
    progress_end(&r->computing);
    r->computing.label = NULL;
    if (label)
        progress_start(&r->computing, label, tokens);
}

static enum status generate(struct run *r, float *logits, struct diag *dg)
{
    size_t vocab = engine_weights(r->engine)->model->vocab;
    enum status st = ST_OK;
    bool hidden = r->report || !isatty(STDOUT_FILENO);
    show_progress(r, hidden ? "tokens" : NULL, r->generate);
    while (st == ST_OK && r->generated.count < r->generate) {
        uint32_t token;
        st = sampler_pick(r->sampler, &token, logits, vocab, dg);
        if (st != ST_OK || ends(r, token))
            return st;
        r->generated.ids[r->generated.count++] = token;
        st = show_token(r, token, dg);
        if (st == ST_OK && r->generated.count < r->generate)
            st = engine_step(r->engine, token, logits, dg);
    }
    return st;
}

/* The prompt, then token after token. The logits of the whole prompt are kept only where they are asked for. */
static enum status run_tokens(struct run *r, struct diag *dg)
{
    size_t vocab = engine_weights(r->engine)->model->vocab;
    bool all = args_given(r->a, "logits-out");
    float *logits = calloc((all ? r->prompt.count : 1) * vocab, sizeof *logits);
    r->token_s = calloc(r->generate + 1, sizeof *r->token_s);
    r->generated.ids = calloc(r->generate + 1, sizeof *r->generated.ids);
    enum status st = logits && r->token_s && r->generated.ids ? ST_OK : diag_no_memory(dg);
    show_progress(r, "prompt", r->prompt.count);
    if (st == ST_OK)
        st = engine_prompt(r->engine, r->prompt.ids, r->prompt.count, all ? logits : NULL, logits,
                           dg);
    if (st == ST_OK && all)
        st = save_logits(r, logits, dg);
    if (st == ST_OK)
        st = generate(r, all ? logits + (r->prompt.count - 1) * vocab : logits, dg);
    show_progress(r, NULL, 0);
    end_text(r);
    free(logits);
    return st;
}

/* ---- results ---- */

static double per_token(const struct run *r, uint64_t ns)
{
    return r->decoded ? (double)ns / 1e9 / (double)r->decoded : 0.0 / 0.0;
}

static double quantile(const struct run *r, double q)
{
    return r->decoded ? stats_quantile(r->token_s, r->decoded, q) : 0.0 / 0.0;
}

static char *id_list(const struct token_list *list)
{
    char *text = calloc(list->count * 11 + 1, 1), *at = text;
    for (size_t i = 0; text && i < list->count; i++)
        at += sprintf(at, "%s%" PRIu32, i ? " " : "", list->ids[i]);
    return text;
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0 / 0.0;
}

static void add_counts(struct report *rep, const struct run *r)
{
    const struct decide_counts *c = experts_counts(engine_experts(r->engine));
    const struct record_sums *sums = engine_sums(r->engine);
    report_count(rep, c->lookups);
    report_count(rep, c->hits);
    report_count(rep, c->misses);
    report_ratio(rep, ratio(c->hits, c->lookups));
    report_count(rep, r->decode_lookups);
    report_count(rep, r->decode_hits);
    report_ratio(rep, ratio(r->decode_hits, r->decode_lookups));
    report_count(rep, sums->late_hits);
    report_count(rep, c->prefetches);
    report_count(rep, c->prefetch_used);
    report_count(rep, c->prefetch_wasted);
    report_count(rep, c->evictions);
    report_count(rep, c->demand_bytes + c->prefetch_bytes);
    report_count(rep, sums->device_bytes);
}

static enum status print_row(const struct run *r, struct diag *dg)
{
    const struct graph_weights *w = engine_weights(r->engine);
    const struct experts *e = engine_experts(r->engine);
    const struct decide_setup *d = experts_decisions(e);
    struct host_meter host;
    char hash[20], *ids = id_list(&r->generated);
    struct report *rep;
    enum status st = ids ? report_open(&rep, r->a, columns, sizeof columns / sizeof *columns, dg)
                         : diag_no_memory(dg);
    if (st != ST_OK) {
        free(ids);
        return st;
    }
    host_meter_read(&host);
    snprintf(hash, sizeof hash, "%016" PRIx64, experts_counts(e)->command_hash);
    report_single(rep);
    report_text(rep, w->model->name);
    report_text(rep, d->policy->name);
    report_text(rep, prefetch_label(d->prefetch, experts_prefetch_timed(e)));
    report_count(rep, d->budget_bytes);
    report_count(rep, r->prompt.count);
    report_count(rep, r->generated.count);
    report_number(rep, r->decoded ? 1 / per_token(r, r->decode_ns) : 0.0 / 0.0);
    report_number(rep, (double)r->prompt_ns / 1e9);
    report_number(rep, quantile(r, 0.5));
    report_number(rep, quantile(r, 0.99));
    add_counts(rep, r);
    report_number(rep, per_token(r, r->decode_compute_ns));
    report_number(rep, per_token(r, r->decode_wait_ns));
    report_count(rep, w->dense_bytes);
    report_count(rep, experts_arena_bytes(e));
    report_count(rep, graph_state_bytes(engine_graph(r->engine)));
    report_count(rep, host.peak_rss_bytes);
    report_text(rep, hash);
    report_text(rep, experts_backend(e));
    report_text(rep, engine_isa(r->engine));
    report_count(rep, engine_threads(r->engine));
    report_text(rep, ids);
    report_count(rep, experts_counts(e)->prefetch_wasted_bytes);
    free(ids);
    return report_close(rep, dg);
}

static void say_figures(const struct run *r)
{
    const struct experts *e = engine_experts(r->engine);
    const struct decide_counts *c = experts_counts(e);
    char cache[QUANTITY_TEXT_MAX], read[QUANTITY_TEXT_MAX];
    if (r->decoded == 0)
        say("prompt %zu tokens, %.3f s", r->prompt.count, (double)r->prompt_ns / 1e9);
    else
        say("prompt %zu tokens, %.3f s; %zu tokens at %.2f tok/s (compute %.1f ms, waiting %.1f ms "
            "a token)",
            r->prompt.count, (double)r->prompt_ns / 1e9, r->generated.count,
            1 / per_token(r, r->decode_ns), 1e3 * per_token(r, r->decode_compute_ns),
            1e3 * per_token(r, r->decode_wait_ns));
    say("cache %s %s: %.1f %% of %" PRIu64 " lookups hit, %" PRIu64
        " late; %s read; hash %016" PRIx64,
        quantity_round(cache, experts_decisions(e)->budget_bytes, DIM_SIZE),
        experts_decisions(e)->policy->name,
        c->lookups ? 100.0 * (double)c->hits / (double)c->lookups : 0.0, c->lookups,
        engine_sums(r->engine)->late_hits,
        quantity_round(read, c->demand_bytes + c->prefetch_bytes, DIM_SIZE), c->command_hash);
    if (c->prefetches)
        say("prefetched %" PRIu64 ": %" PRIu64 " used, %" PRIu64 " wasted (%s)", c->prefetches,
            c->prefetch_used, c->prefetch_wasted,
            quantity_round(read, c->prefetch_wasted_bytes, DIM_SIZE));
    if (experts_prefetch_timed(e))
        say("%" PRIu64 " guesses came too late", experts_stale_guesses(e));
}

static enum status finish(struct run *r, struct diag *dg)
{
    enum status st = save_records(r, dg);
    if (st != ST_OK)
        return st;
    if (r->report)
        return print_row(r, dg);
    say_figures(r);
    return flush_stdout(dg);
}

/* What would be asked for and never be prefetched. */
static enum status check_prefetch(const struct run *r, struct diag *dg)
{
    const struct decide_setup *d = experts_decisions(engine_experts(r->engine));
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < d->layers; i++)
        if (d->expert_bytes[i] > 0 && d->expert_bytes[i] < least)
            least = d->expert_bytes[i];
    if (args_given(r->a, "prefetch-distance") && d->prefetch_distance >= d->layers)
        return diag_set(dg, ST_RANGE,
                        "--prefetch-distance: %" PRIu32 " layers ahead are none of the model's "
                        "%" PRIu32,
                        d->prefetch_distance, d->layers);
    if (args_given(r->a, "prefetch-budget") && d->prefetch_bytes_max < least)
        return diag_set(dg, ST_RANGE,
                        "--prefetch-budget: %" PRIu64
                        " bytes hold no expert, of which the smallest "
                        "has %" PRIu64,
                        d->prefetch_bytes_max, least);
    return ST_OK;
}

/* Positions beyond what the model has learnt are computed all the same. */
static void say_context(const struct run *r, const struct engine_setup *s)
{
    uint64_t most = engine_weights(r->engine)->model->max_context;
    if (most && s->context > most)
        say("a context of %zu tokens is beyond the %" PRIu64 " of the model: what it writes there "
            "means little",
            s->context, most);
}

static enum status open_engine(struct run *r, struct engine_setup *s, struct diag *dg)
{
    enum status st = engine_open(&r->engine, s, dg);
    progress_end(&r->loading);
    if (st != ST_OK)
        return st;
    const char *note = experts_note(engine_experts(r->engine));
    if (*note)
        say("%s", note);
    if (graph_chunk(engine_graph(r->engine)) < s->chunk)
        say("there is room for %zu tokens at a time: the prompt goes through in chunks of that "
            "many",
            graph_chunk(engine_graph(r->engine)));
    say_context(r, s);
    st = check_prefetch(r, dg);
    return st == ST_OK ? follow_route(r, dg) : st;
}

static void run_free(struct run *r)
{
    outfile_abandon(r->passes);
    sampler_free(r->sampler);
    engine_close(r->engine);
    engine_text_close(&r->text);
    token_list_free(&r->prompt);
    token_list_free(&r->generated);
    free(r->token_s);
}

/* --heads, or the file beside the model: MODEL.heads for MODEL.gguf. */
static enum status find_heads(struct engine_setup *s, struct args *a, struct diag *dg)
{
    const struct prefetch_policy *p = s->decide.prefetch;
    bool wanted = p && strcmp(p->name, "heads") == 0;
    if (args_given(a, "heads") && !wanted)
        return diag_set(dg, ST_USAGE, "--heads is for --prefetch heads");
    s->heads = args_text(a, "heads");
    if (!wanted || s->heads)
        return ST_OK;
    size_t length = strlen(s->model), end = length > 5 ? length - 5 : length;
    char *path = args_memory(a, length + sizeof ".heads");
    if (!path)
        return diag_no_memory(dg);
    strcpy(path, s->model);
    strcpy(path + (strcmp(path + end, ".gguf") == 0 ? end : length), ".heads");
    s->heads = path;
    return ST_OK;
}

/* What is read stands in options, in --adapter's list, or beside the model. */
static enum status check_outputs(const struct engine_setup *s, const struct args *a,
                                 struct diag *dg)
{
    static const char *const written[] = {"trace-out",  "decisions-out", "tokens-out",
                                          "logits-out", "timeline",      NULL};
    static const char *const read[] = {"prompt-file", "route", "pack", NULL};
    enum status st = outputs_check(a, written, read, dg);
    for (size_t i = 0; st == ST_OK && i < s->adapter_count; i++)
        st = *s->adapters[i] ? outputs_spare(a, written, s->adapters[i], dg)
                             : diag_set(dg, ST_USAGE, "--adapter: a name in the list is empty");
    if (st == ST_OK && s->heads)
        st = outputs_spare(a, written, s->heads, dg);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    struct run r = {
        .a = a, .report = args_given(a, "format") && strcmp(args_text(a, "format"), "table") != 0};
    struct engine_setup s = {.model = args_positional(a, 0),
                             .route = args_text(a, "route"),
                             .record_trace = args_given(a, "trace-out"),
                             .record_timeline = args_given(a, "timeline"),
                             .decisions = args_text(a, "decisions-out"),
                             .progress = on_load,
                             .progress_self = &r,
                             .on_pass = on_pass,
                             .on_pass_self = &r};
    enum status st = engine_options_read(&s, a, dg);
    if (st == ST_OK)
        st = find_heads(&s, a, dg);
    if (st == ST_OK && args_given(a, "adapter")) {
        s.adapters = args_split(a, args_text(a, "adapter"), &s.adapter_count);
        st = s.adapters ? ST_OK : diag_no_memory(dg);
    }
    if (st == ST_OK)
        st = check_outputs(&s, a, dg);
    if (st == ST_OK)
        st = plan_tokens(&r, &s, dg);
    if (st == ST_OK)
        st = open_passes(&r, dg);
    if (st == ST_OK)
        st = open_engine(&r, &s, dg);
    if (st == ST_OK)
        st = open_sampler(&r, dg);
    if (st == ST_OK)
        st = run_tokens(&r, dg);
    if (st == ST_OK)
        st = finish(&r, dg);
    run_free(&r);
    return st;
}

const struct command command_engine_run = {
    .name = "engine run",
    .summary = "run a GGUF model with its experts streamed from disk",
    .usage = "MODEL.gguf [--prompt TEXT | --tokens 1,2,3 | --route TRACE] [--generate N] "
             "[--cache SIZE]",
    .example = "memwall engine run models/tiny/tiny-q4_0.gguf --prompt \"In the beginning\" "
               "--cache 4MiB --generate 64",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .no_set = true,
    .run = run,
};
