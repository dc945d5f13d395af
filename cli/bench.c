/* bench.c -- `memwall bench replay|read`: how fast the program itself is. Times are wall-clock medians, so
 * only ratios within one run mean much; nothing else in the program prints a measured time to stdout. */
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/policy_options.h"

#include "base/pcg.h"
#include "base/stats.h"
#include "sim/replay/replay_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LAYERS = 40, EXPERTS = 250, TOP_K = 8, TOKENS = 31250 }; /* 10^4 keys, 10^7 lookups */

/* A decode of TOKENS tokens whose experts follow Zipf's law within each layer, the order of popularity
 * being the layer's own; experts of equal size. */
static enum status make_trace(struct trace **out, uint32_t tokens, uint64_t seed, struct diag *dg)
{
    struct trace_layer layer[LAYERS];
    struct trace_builder *b = NULL;
    struct pcg_table zipf;
    struct pcg chance;
    for (uint32_t l = 0; l < LAYERS; l++)
        layer[l] = (struct trace_layer){.expert_bytes = 1 << 20};
    enum status st = pcg_table_zipf(&zipf, EXPERTS, 1000, dg);
    if (st != ST_OK)
        return st;
    pcg_stream(&chance, seed, "bench/trace");
    st = trace_builder_new(&b, "bench", LAYERS, EXPERTS, TOP_K, layer, dg);
    for (uint32_t token = 0; st == ST_OK && token < tokens; token++)
        for (uint32_t l = 0; st == ST_OK && l < LAYERS; l++) {
            uint32_t chosen[TOP_K];
            for (uint32_t k = 0; st == ST_OK && k < TOP_K; k++) {
                bool again;
                do {
                    chosen[k] = (uint32_t)((pcg_pick(&chance, &zipf) * 7 + l * 31) % EXPERTS);
                    again = false;
                    for (uint32_t i = 0; i < k; i++)
                        again |= chosen[i] == chosen[k];
                } while (again);
                st = trace_builder_row(b, 0, PHASE_DECODE, token, token, l, k, chosen[k], 0, dg);
            }
        }
    pcg_table_free(&zipf);
    if (st == ST_OK)
        return trace_builder_finish(b, out, dg);
    trace_builder_free(b);
    return st;
}

/* Required lookups per second on one core, by policy; the others have none and compare with themselves. */
static double wanted_rate(const char *policy)
{
    static const struct {
        const char *name;
        double rate;
    } wanted[] = {{"lru", 20e6},   {"fifo", 20e6}, {"clock", 20e6}, {"sieve", 20e6},
                  {"s3fifo", 8e6}, {"arc", 8e6},   {"lfu", 8e6}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strcmp(wanted[i].name, policy) == 0)
            return wanted[i].rate;
    return 0.0 / 0.0;
}

static enum status time_policy(double *rate, const struct trace *t,
                               const struct cache_policy *policy, uint64_t repeats, struct diag *dg)
{
    double sample[64];
    struct replay_setup s = {.policy = policy, .budget_bytes = UINT64_C(1000) << 20};
    for (uint64_t i = 0; i < repeats; i++) {
        struct replay_result x;
        double start = bench_now_s();
        enum status st = replay_run(&x, t, &s, dg);
        if (st != ST_OK)
            return st;
        sample[i] = (double)x.counts.lookups / (bench_now_s() - start);
    }
    *rate = stats_median(sample, repeats);
    return ST_OK;
}

static enum status bench_replay(struct args *a, struct diag *dg)
{
    struct trace *t;
    struct report *r;
    enum status st = make_trace(&t, TOKENS, args_count(a, "seed"), dg);
    if (st != ST_OK)
        return st;
    st = bench_open(&r, a, dg);
    for (const struct cache_policy *const *p = cache_policies; st == ST_OK && *p; p++) {
        double rate;
        st = time_policy(&rate, t, *p, args_count(a, "repeats"), dg);
        if (st == ST_OK)
            bench_row(r, (*p)->name, rate, "lookups/s", wanted_rate((*p)->name));
    }
    trace_free(t);
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

static enum status time_reading(double *rate, const char *path, uint64_t repeats, struct diag *dg)
{
    double sample[64];
    struct stat info;
    if (stat(path, &info) != 0)
        return diag_errno(dg, path, "cannot be read");
    for (uint64_t i = 0; i < repeats; i++) {
        struct trace *t;
        double start = bench_now_s();
        enum status st = trace_load(&t, path, dg);
        if (st != ST_OK)
            return st;
        sample[i] = (double)info.st_size / (bench_now_s() - start);
        trace_free(t);
    }
    *rate = stats_median(sample, repeats);
    return ST_OK;
}

static enum status bench_read(struct args *a, struct diag *dg)
{
    char path[64];
    struct trace *t;
    struct report *r;
    double rate = 0;
    snprintf(path, sizeof path, "/tmp/memwall-bench-%ld.csv", (long)getpid());
    enum status st = make_trace(&t, TOKENS / 10, args_count(a, "seed"), dg);
    if (st != ST_OK)
        return st;
    st = trace_save(t, path, dg);
    trace_free(t);
    if (st == ST_OK)
        st = time_reading(&rate, path, args_count(a, "repeats"), dg);
    unlink(path);
    if (st == ST_OK)
        st = bench_open(&r, a, dg);
    if (st != ST_OK)
        return st;
    bench_row(r, "read_routing_csv", rate, "bytes/s", 100e6);
    return report_close(r, dg);
}

static const struct option options[] = {
    {"repeats", OPTION_COUNT, "N", "runs, of which the median counts", "3", NULL, 1, 64, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

const struct command command_bench_replay = {
    .name = "bench replay",
    .summary = "lookups a second of each cache policy on a trace of 10^7",
    .usage = "[--repeats N]",
    .example = "memwall bench replay --format csv",
    .options = options,
    .no_set = true,
    .run = bench_replay,
};

const struct command command_bench_read = {
    .name = "bench read",
    .summary = "bytes a second of reading a routing trace",
    .usage = "[--repeats N]",
    .example = "memwall bench read",
    .options = options,
    .no_set = true,
    .run = bench_read,
};
