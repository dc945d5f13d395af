/* calibrate.c -- `memwall calibrate`: this machine, measured with a model, as a device description. */
#include "cli/commands.h"
#include "cli/engine_options.h"
#include "cli/outputs.h"
#include "cli/report.h"

#include "base/outfile.h"
#include "validate/calibration.h"

#include <stdio.h>
#include <string.h>

static const struct option options[] = {
    {"model", OPTION_TEXT, "FILE.gguf", "the model whose runs are to be foretold (the bundled one)",
     NULL, NULL, 1, 0, false},
    {"out", OPTION_TEXT, "D.yaml", "device description to write", NULL, NULL, 1, 0, true},
    {"quick", OPTION_FLAG, NULL, "about 20 seconds: fewer repeats", NULL, NULL, 0, 0, false},
    {"pack", OPTION_TEXT, "FILE", "experts from this packed file", NULL, NULL, 0, 0, false},
    {"threads", OPTION_COUNT, "N", "compute threads (all processors)", NULL, NULL, 1, 1024, false},
    {"isa", OPTION_TEXT, "ISA", "instruction set of the kernels", "auto", NULL, 0, 0, false},
    {"io", OPTION_CHOICE, "uring|threads", "how experts are read", "uring", io_names, 0, 0, false},
    {"depth", OPTION_COUNT, "N", "reads in flight at most", "16", NULL, 1, LOADER_DEPTH_MAX, false},
    {"direct", OPTION_CHOICE, "on|off", "past the page cache, or through it", "on", direct_names, 0,
     0, false},
    {0},
};

static const struct column columns[] = {
    {"experts", CELL_COUNT, 0, false},    {"reads", CELL_COUNT, 0, false},
    {"bytes", CELL_COUNT, 0, false},      {"measured_us", CELL_NUMBER, 1, false},
    {"low_us", CELL_NUMBER, 1, false},    {"high_us", CELL_NUMBER, 1, false},
    {"fitted_us", CELL_NUMBER, 1, false}, {"signed_error", CELL_RATIO, 0, false},
    {"held_out", CELL_TEXT, 0, false},
};

static void say_step(void *self, const char *step)
{
    (void)self;
    say("measuring %s", step);
}

static enum status print_fit(const struct args *a, const struct calibration *c, struct diag *dg)
{
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < c->bursts; i++) {
        const struct read_burst *b = &c->burst[i];
        report_count(r, b->experts);
        report_count(r, b->reads);
        report_count(r, b->bytes);
        report_number(r, b->ns / 1e3);
        report_number(r, b->low_ns / 1e3);
        report_number(r, b->high_ns / 1e3);
        report_number(r, c->fitted_ns[i] / 1e3);
        report_ratio(r, c->fitted_ns[i] / b->ns - 1);
        report_text(r, station_fit_held_out(i) ? "yes" : "no");
    }
    return report_close(r, dg);
}

static void say_result(const struct calibration *c, const char *path)
{
    say("%s: fit of the drive within %.1f %% (median) and %.1f %% (worst), held out %.1f %% and "
        "%.1f %%",
        path, 100 * c->station.residual_median, 100 * c->station.residual_max,
        100 * c->station.held_out_median, 100 * c->station.held_out_max);
    if (c->noise > 0.15)
        say("this machine is noisy: repeats of one measurement differ by %.0f %%, so do runs, and "
            "a "
            "prediction cannot be closer than that",
            100 * c->noise);
}

static enum status run(struct args *a, struct diag *dg)
{
    static const char *const written[] = {"out", NULL};
    static const char *const read[] = {"model", "pack", NULL};
    struct calibration c;
    char bundled[CATALOGUE_PATH_MAX];
    size_t threads = args_given(a, "threads") ? args_count(a, "threads") : host_processors();
    struct calibrate_setup s = {
        .engine = {.model = args_given(a, "model") ? args_text(a, "model")
                                                   : catalogue_bundled_model(bundled),
                   .pack = args_text(a, "pack"),
                   .isa = args_text(a, "isa"),
                   .direct = args_count(a, "direct") == 0,
                   .loader = {.backend = (enum loader_backend_kind)args_count(a, "io"),
                              .depth = (uint32_t)args_count(a, "depth")},
                   .decide = {.policy = cache_policy_find("lru")}},
        .threads = &threads,
        .thread_counts = 1,
        .quick = args_flag(a, "quick"),
        .seed = args_count(a, "seed"),
        .progress = say_step,
    };
    struct outfile *out;
    enum status st = outputs_check(a, written, read, dg);
    if (st == ST_OK)
        st = outputs_spare(a, written, s.engine.model, dg);
    if (st == ST_OK)
        st = outfile_open(&out, args_text(a, "out"), dg);
    if (st != ST_OK)
        return st;
    st = calibrate(&c, &s, dg);
    if (st == ST_OK)
        calibration_write(outfile_stream(out), &c, 0);
    if (st == ST_OK)
        st = outfile_commit(out, dg);
    else
        outfile_abandon(out);
    if (st == ST_OK)
        st = print_fit(a, &c, dg);
    if (st == ST_OK)
        say_result(&c, args_text(a, "out"));
    return st;
}

const struct command command_calibrate = {
    .name = "calibrate",
    .summary = "measure this machine with a model, and write it as a device description",
    .usage = "--out D.yaml [--model FILE.gguf] [--quick]",
    .example = "memwall calibrate --quick --out here.yaml",
    .options = options,
    .no_set = true,
    .run = run,
};
