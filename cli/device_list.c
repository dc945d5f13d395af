/* device_list.c -- `memwall device list`: the catalogue at a glance. */
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/report.h"

#include "devices/device.h"

enum { FORMAT_TABLE };

/* People read quantities, programs read base units. */
static const struct column for_people[] = {
    {"name", CELL_TEXT, 0, false},      {"title", CELL_TEXT, 0, false},
    {"class", CELL_TEXT, 0, false},     {"dram", CELL_TEXT, 0, false},
    {"dram_rate", CELL_TEXT, 0, false}, {"storage_rate", CELL_TEXT, 0, false},
    {"assumed", CELL_COUNT, 0, false}};
static const struct column for_programs[] = {
    {"name", CELL_TEXT, 0, false},      {"title", CELL_TEXT, 0, false},
    {"class", CELL_TEXT, 0, false},     {"dram_bytes", CELL_COUNT, 0, false},
    {"dram_Bps", CELL_COUNT, 0, false}, {"storage_Bps", CELL_COUNT, 0, false},
    {"assumed", CELL_COUNT, 0, false}};

static void count_assumed(void *self, const char *path, struct value *v)
{
    uint64_t *count = self;
    (void)path;
    *count += v->kind == KIND_ASSUMED;
}

static void report_amount(struct report *r, const struct value *v, bool people)
{
    char text[QUANTITY_TEXT_MAX];
    if (!v->given)
        report_empty(r);
    else if (people)
        report_text(r, quantity_round(text, v->amount, v->dim));
    else
        report_count(r, v->amount);
}

static void report_device(struct report *r, struct device *d, bool people)
{
    static const struct value none;
    const struct value rate = device_dram_rate(d);
    uint64_t assumed = 0;
    device_each_value(d, count_assumed, &assumed);
    report_text(r, d->name);
    report_text(r, d->title);
    report_text(r, device_class_name(d->class_of));
    report_amount(r, &d->dram.capacity, people);
    report_amount(r, &rate, people);
    report_amount(r, d->storage_count ? &d->storage[0].bandwidth : &none, people);
    report_count(r, assumed);
}

static bool is_wanted(const struct args *a, const struct device *d)
{
    uint64_t wanted = args_count(a, "class");
    return !args_given(a, "class") || wanted == (uint64_t)d->class_of;
}

static enum status list(struct report *r, const struct args *a, struct arena *arena, bool people,
                        struct diag *dg)
{
    char path[CATALOGUE_PATH_MAX];
    const char *catalogue = catalogue_dir(path, sizeof path, "devices/desc");
    const char *const *names;
    size_t count;
    enum status st = device_names(arena, catalogue, &names, &count, dg);
    for (size_t i = 0; st == ST_OK && i < count; i++) {
        struct device *d;
        st = device_load(&d, names[i], catalogue, NULL, 0, dg);
        if (st != ST_OK)
            return st;
        if (is_wanted(a, d))
            report_device(r, d, people);
        device_free(d);
    }
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    bool people = args_count(a, "format") == FORMAT_TABLE;
    struct arena arena = {0};
    struct report *r;
    enum status st = report_open(&r, a, people ? for_people : for_programs,
                                 sizeof for_people / sizeof *for_people, dg);
    if (st != ST_OK)
        return st;
    st = list(r, a, &arena, people, dg);
    arena_free(&arena);
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

static const struct option options[] = {{"class", OPTION_CHOICE, "CLASS",
                                         "only devices of this class", NULL, device_class_names, 0,
                                         0, false},
                                        {0}};

const struct command command_device_list = {
    .name = "device list",
    .summary = "the machines and storage parts of the catalogue",
    .usage = "[--class CLASS]",
    .example = "memwall device list --class phone",
    .options = options,
    .no_set = true,
    .run = run,
};
