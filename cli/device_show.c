/* device_show.c -- `memwall device show`: every value of a description with its kind and source. */
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/report.h"

#include "devices/device.h"

#include <stdio.h>

enum { FORMAT_TABLE };

static const struct column columns[] = {
    {"path", CELL_TEXT, 0, false},         {"value", CELL_TEXT, 0, false},
    {"kind", CELL_TEXT, 0, false},         {"spread_ratio", CELL_RATIO, 0, false},
    {"spread_stated", CELL_TEXT, 0, true}, {"amount", CELL_COUNT, 0, true},
    {"dimension", CELL_TEXT, 0, true},     {"source", CELL_TEXT, 0, false}};

static void report_value(void *self, const char *path, struct value *v)
{
    struct report *r = self;
    char text[QUANTITY_TEXT_MAX];
    report_text(r, path);
    report_text(r, quantity_print(text, v->amount, v->dim));
    report_text(r, value_kind_name(v->kind));
    report_ratio(r, (double)value_spread(v) / 1e9);
    report_text(r, v->spread_given ? "yes" : "no");
    report_count(r, v->amount);
    report_text(r, dimension_name(v->dim));
    report_text(r, v->source);
}

static void print_head(const struct device *d)
{
    printf("%s: %s (%s)\n", d->name, d->title, device_class_name(d->class_of));
    if (d->note)
        printf("%s\n", d->note);
    for (size_t i = 0; i < d->storage_count; i++)
        if (d->storage[i].part)
            printf("storage.%zu '%s' is the part %s\n", i, d->storage[i].name, d->storage[i].part);
    putchar('\n');
}

static enum status print_device(const struct args *a, struct device *d, struct diag *dg)
{
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    if (args_count(a, "format") == FORMAT_TABLE)
        print_head(d);
    device_each_value(d, report_value, r);
    return report_close(r, dg);
}

static enum status run(struct args *a, struct diag *dg)
{
    char path[CATALOGUE_PATH_MAX];
    size_t count;
    const char *const *overrides = args_list(a, "set", &count);
    struct device *d;
    enum status st =
        device_load(&d, args_positional(a, 0), catalogue_dir(path, sizeof path, "devices/desc"),
                    overrides, count, dg);
    if (st != ST_OK)
        return st;
    st = print_device(a, d, dg);
    device_free(d);
    return st;
}

static const struct option options[] = {{0}};

const struct command command_device_show = {
    .name = "device show",
    .summary = "every value of a device with kind, spread and source",
    .usage = "DEVICE [--set PATH=VALUE]...",
    .example = "memwall device show oneplus-15r --format json",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .run = run,
};
