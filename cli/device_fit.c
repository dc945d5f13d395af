/* device_fit.c -- `memwall device fit`: the closed form of a drive from a table of rates. */
#include "cli/commands.h"
#include "cli/fit_report.h"

#include "devices/part_file.h"

#include <stdio.h>

static enum status write_part(const struct args *a, const struct storage_fit *fit,
                              const struct rate_table *table, struct diag *dg)
{
    char source[512];
    const char *name = args_text(a, "name");
    struct storage s = {.name = name, .model = STORAGE_CURVE};
    snprintf(source, sizeof source, "closed-form fit, %s corner, %zu rows of %s, RMS %.1f %%",
             fit_report_corners[args_count(a, "corner")], fit->rows, table->name, 100 * fit->rms);
    storage_fit_values(&s, fit, source);
    return part_file_write(args_text(a, "out"), name, NULL, &s, dg);
}

static enum status run(struct args *a, struct diag *dg)
{
    struct rate_table table = {0};
    struct storage_fit fit;
    enum status st = rate_table_read(&table, args_positional(a, 0), args_text(a, "state"), dg);
    if (st == ST_OK)
        st = storage_fit_run(&fit, &table, fit_report_corner(a), dg);
    if (st == ST_OK && args_given(a, "out"))
        st = write_part(a, &fit, &table, dg);
    if (st == ST_OK)
        st = fit_report(a, &fit, &table, dg);
    rate_table_free(&table);
    return st;
}

static const struct option options[] = {
    {"state", OPTION_TEXT, "TEXT", "only rows of this state (column state: cold, hot)", NULL, NULL,
     0, 0, false},
    FIT_REPORT_OPTIONS,
    {0},
};

const struct command command_device_fit = {
    .name = "device fit",
    .summary = "fit latency, lane rate and ceiling to a table of read size, depth and rate",
    .usage = "TABLE.csv [--state S] [--out PART.yaml]",
    .example = "memwall device fit tests/data/rates.csv --out drive.yaml",
    .options = options,
    .no_set = true,
    .positional_min = 1,
    .positional_max = 1,
    .run = run,
};
