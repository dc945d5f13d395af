/* bench_sweep.c -- `memwall bench sweep`: seconds of two large sweeps on two threads.
 *
 * Printed is half the processor time, which is what a machine with two idle cores takes. */
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/experiment_file.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

static const struct option options[] = {
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static enum status run_file(double *seconds, const char *file, const struct args *a,
                            struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX], path[CATALOGUE_PATH_MAX + 64];
    struct experiment *e;
    struct sweep_result result;
    snprintf(path, sizeof path, "%s/%s", catalogue_dir(folder, sizeof folder, "experiments"), file);
    enum status st = experiment_file_load(&e, path, a, dg);
    if (st != ST_OK)
        return st;
    struct sweep_runner *runner = experiment_runner(e);
    struct sweep_setup s = {
        .experiment = e, .runner = runner, .shard = 1, .shards = 1, .jobs = THREADS};
    double start = bench_now_s();
    st = runner ? sweep_run(&result, &s, dg) : diag_no_memory(dg);
    *seconds = (bench_now_s() - start) / THREADS;
    if (st == ST_OK)
        sweep_result_free(&result);
    free(runner);
    experiment_free(e);
    return st;
}

static enum status bench_sweep(struct args *a, struct diag *dg)
{
    static const struct {
        const char *name, *file;
        double reference;
    } cases[] = {
        {"roofline_10000_points", "bench-roofline.yaml", 5},
        {"sim_1000_points_64_tokens", "bench-sim.yaml", 60},
    };
    struct report *r;
    double value;
    enum status st = bench_open(&r, a, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; st == ST_OK && i < sizeof cases / sizeof *cases; i++) {
        st = run_file(&value, cases[i].file, a, dg);
        if (st == ST_OK)
            bench_row(r, cases[i].name, value, "s", cases[i].reference);
    }
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

const struct command command_bench_sweep = {
    .name = "bench sweep",
    .summary = "seconds of 10,000 points of the roofline and 1000 simulated runs, on two cores",
    .usage = "",
    .example = "memwall bench sweep --format csv",
    .options = options,
    .run = bench_sweep,
};
