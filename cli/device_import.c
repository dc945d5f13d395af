/* device_import.c -- `memwall device import`: a storage description from what fio measured. */
#include "cli/commands.h"
#include "cli/fit_report.h"
#include "cli/report.h"

#include "cli/command.h"
#include "devices/fio_import.h"
#include "devices/part_file.h"

#include <stdio.h>
#include <stdlib.h>

static enum status print_jobs(const struct args *a, const struct fio_table *t, struct diag *dg)
{
    static const struct column columns[] = {
        {"job", CELL_TEXT, 0, false},           {"random", CELL_TEXT, 0, false},
        {"read_bytes", CELL_COUNT, 0, false},   {"depth", CELL_COUNT, 0, false},
        {"rate_Bps", CELL_COUNT, 0, false},     {"iops", CELL_NUMBER, 1, false},
        {"lat_mean_ns", CELL_NUMBER, 0, false}, {"lat_p50_ns", CELL_COUNT, 0, true},
        {"lat_p99_ns", CELL_COUNT, 0, false},   {"file", CELL_TEXT, 0, true}};
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < t->count; i++) {
        const struct fio_row *row = &t->rows[i];
        report_text(r, row->job);
        report_text(r, row->random ? "yes" : "no");
        report_count(r, row->bytes);
        report_count(r, row->depth);
        report_count(r, row->rate_Bps);
        report_number(r, row->iops);
        report_number(r, row->latency_mean_ns);
        report_count(r, row->latency_p50_ns);
        report_count(r, row->latency_p99_ns);
        report_text(r, row->file);
    }
    return report_close(r, dg);
}

/* For people the jobs and, where there is one, the fit; CSV and JSON hold the jobs. */
static enum status print_all(const struct args *a, const struct fio_table *t,
                             const struct storage_fit *fit, const char *reason, struct diag *dg)
{
    enum { FORMAT_TABLE };
    enum status st = print_jobs(a, t, dg);
    if (st != ST_OK || args_count(a, "format") != FORMAT_TABLE)
        return st;
    if (*reason) {
        printf("\nno fit: %s\n", reason);
        return flush_stdout(dg);
    }
    struct rate_table rates = {0};
    st = fio_rates(&rates, t, dg);
    putchar('\n');
    if (st == ST_OK)
        st = fit_report(a, fit, &rates, dg);
    rate_table_free(&rates);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    struct fio_table t = {0};
    struct storage s;
    struct storage_fit fit;
    const char *reason = "", *name = args_text(a, "name");
    enum status st = ST_OK;
    for (size_t i = 0; i < args_positional_count(a) && st == ST_OK; i++)
        st = fio_import(&t, args_positional(a, i), dg);
    if (st == ST_OK)
        st = fio_storage(&s, &fit, &reason, fit_report_corner(a), &t, dg);
    if (st == ST_OK && t.write_jobs)
        say("%zu jobs that write are left out", t.write_jobs);
    if (st == ST_OK && args_given(a, "out")) {
        s.name = name;
        st = part_file_write(args_text(a, "out"), name, NULL, &s, dg);
    }
    if (st == ST_OK)
        st = print_all(a, &t, &fit, reason, dg);
    fio_table_free(&t);
    return st;
}

static const struct option options[] = {
    FIT_REPORT_OPTIONS,
    {0},
};

const struct command command_device_import = {
    .name = "device import",
    .summary = "a storage description from fio's JSON output",
    .usage = "FIO.json... [--out PART.yaml]",
    .example = "memwall device import tests/data/fio.json --out drive.yaml",
    .options = options,
    .no_set = true,
    .positional_min = 1,
    .positional_max = 64,
    .run = run,
};
