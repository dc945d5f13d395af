/* fit_report.c -- see fit_report.h. */
#include "cli/fit_report.h"

#include "cli/report.h"

#include <stdio.h>

const char *const fit_report_tables[] = {"residuals", "parameters", NULL};
const char *const fit_report_corners[] = {"sharp", "rounded", NULL};

enum { TABLE_RESIDUALS, TABLE_PARAMETERS };
enum { FORMAT_TABLE };

enum fit_corner fit_report_corner(const struct args *a)
{
    return args_count(a, "corner") == 0 ? FIT_SHARP : FIT_ROUNDED;
}

static const struct {
    const char *unit;
    enum dimension dim;
} parameters[FIT_PARAMETERS] = {
    {"ns", DIM_TIME}, {"B/s", DIM_RATE}, {"B/s", DIM_RATE}, {"reads/s", DIM_FREQUENCY}};

static enum status print_parameters(const struct args *a, const struct storage_fit *fit,
                                    struct diag *dg)
{
    static const struct column columns[] = {{"parameter", CELL_TEXT, 0, false},
                                            {"value", CELL_TEXT, 0, false},
                                            {"half_width_90", CELL_NUMBER, 4, false},
                                            {"amount", CELL_COUNT, 0, true},
                                            {"unit", CELL_TEXT, 0, true}};
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t p = 0; p < FIT_PARAMETERS; p++) {
        char text[QUANTITY_TEXT_MAX];
        if (!fit->given[p])
            continue;
        uint64_t amount = storage_fit_rounded(fit->amount[p]);
        report_text(r, fit_parameter_key((enum fit_parameter)p));
        report_text(r, quantity_round(text, amount, parameters[p].dim));
        report_number(r, fit->half_width[p]);
        report_count(r, amount);
        report_text(r, parameters[p].unit);
    }
    return report_close(r, dg);
}

static enum status print_residuals(const struct args *a, const struct storage_fit *fit,
                                   const struct rate_table *table, struct diag *dg)
{
    static const struct column columns[] = {{"read_bytes", CELL_COUNT, 0, false},
                                            {"depth", CELL_COUNT, 0, false},
                                            {"measured_Bps", CELL_COUNT, 0, false},
                                            {"fitted_Bps", CELL_COUNT, 0, false},
                                            {"residual_ratio", CELL_NUMBER, 4, false}};
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < table->count; i++) {
        const struct rate_row *row = &table->rows[i];
        double rate = storage_fit_rate(fit, row->bytes, row->depth);
        report_count(r, row->bytes);
        report_count(r, row->depth);
        report_count(r, row->rate_Bps);
        report_count(r, storage_fit_rounded(rate));
        double off = rate / (double)row->rate_Bps - 1;
        report_number(r, off > -0.00005 && off < 0.00005 ? 0 : off); /* never "-0.0000" */
    }
    return report_close(r, dg);
}

/* How good the fit is, and how good it would be with the other corner. */
static enum status print_quality(const struct storage_fit *fit, const struct rate_table *table,
                                 struct diag *dg)
{
    struct storage_fit other;
    bool sharp = fit->corner == FIT_SHARP;
    enum status st = storage_fit_run(&other, table, sharp ? FIT_ROUNDED : FIT_SHARP, dg);
    if (st != ST_OK)
        return st;
    printf("%s: closed-form fit, %s corner, RMS %.1f %% over %zu rows (%s corner: %.1f %%)\n",
           table->name, sharp ? "sharp" : "rounded", 100 * fit->rms, fit->rows,
           sharp ? "rounded" : "sharp", 100 * other.rms);
    for (size_t p = 0; p < FIT_IOPS; p++)
        if (!fit->given[p])
            printf("%s: not determined by this table\n", fit_parameter_key((enum fit_parameter)p));
    putchar('\n');
    return ST_OK;
}

enum status fit_report(const struct args *a, const struct storage_fit *fit,
                       const struct rate_table *table, struct diag *dg)
{
    if (args_count(a, "format") != FORMAT_TABLE)
        return args_count(a, "print") == TABLE_PARAMETERS ? print_parameters(a, fit, dg)
                                                          : print_residuals(a, fit, table, dg);
    enum status st = print_quality(fit, table, dg);
    if (st == ST_OK)
        st = print_parameters(a, fit, dg);
    putchar('\n');
    return st == ST_OK ? print_residuals(a, fit, table, dg) : st;
}
