/* test_device.c -- the device format, its strictness, and the catalogue. */
#include "tests/support.h"

#include "tests/allocations.h"
#include "tests/mutate.h"

#include "base/arena.h"
#include "devices/device.h"

#define CATALOGUE "devices/desc"

/* A complete small device, line by line; tests replace single lines. */
enum {
    LINE_TITLE,
    LINE_CLASS,
    LINE_RESERVE,
    LINE_DRAM,
    LINE_CAPACITY,
    LINE_PEAK,
    LINE_MEASURED,
    LINE_STORAGE,
    LINE_NAME,
    LINE_LATENCY,
    LINE_LANE,
    LINE_BANDWIDTH,
    LINE_HOT,
    LINES
};
static const char *const small[LINES] = {
    [LINE_TITLE] = "title: A box",
    [LINE_CLASS] = "class: desktop",
    [LINE_RESERVE] = "reserve: [1 GiB, assumed, test]",
    [LINE_DRAM] = "dram:",
    [LINE_CAPACITY] = "  capacity: [16 GiB, datasheet, test]",
    [LINE_PEAK] = "  bandwidth: [100 GB/s, datasheet, test]",
    [LINE_MEASURED] = "  measured_bandwidth: [80 GB/s, measured, test]",
    [LINE_STORAGE] = "storage:",
    [LINE_NAME] = "  - name: disk",
    [LINE_LATENCY] = "    latency: [100 us, measured, test, 4 %]",
    [LINE_LANE] = "    lane_bandwidth: [2 GB/s, fitted, test]",
    [LINE_BANDWIDTH] = "    bandwidth: [4 GB/s, measured, test]",
    [LINE_HOT] = "    hot_bandwidth: [3 GB/s, measured, test]",
};

/* The small device with one line replaced ("" removes it), as a file. */
static const char *device_with(int line, const char *text)
{
    static char path[200];
    char whole[2048] = "";
    strcpy(path, temp_path("box.yaml"));
    for (int i = 0; i < LINES; i++) {
        const char *l = i == line ? text : small[i];
        if (*l)
            strcat(strcat(whole, l), "\n");
    }
    write_file(path, whole);
    return path;
}

static struct device *loaded(const char *name, const char *const *overrides, size_t count)
{
    struct diag dg;
    struct device *d = NULL;
    assert_ok(device_load(&d, name, CATALOGUE, overrides, count, &dg));
    return d;
}

static struct device *loaded_with(const char *name, const char *override)
{
    return loaded(name, &override, 1);
}

static void assert_refused(const char *name, const char *override, enum status wanted,
                           const char *reason)
{
    struct diag dg = {0};
    struct device *d = NULL;
    enum status st = device_load(&d, name, CATALOGUE, &override, override ? 1 : 0, &dg);
    assert_null(d);
    if (!strstr(dg.text, reason))
        fail_msg("'%s' should say '%s'", dg.text, reason);
    assert_int_equal(st, wanted);
}

static void assert_line_refused(int line, const char *text, enum status wanted, const char *reason)
{
    assert_refused(device_with(line, text), NULL, wanted, reason);
}

/* --- the catalogue --- */

struct catalogue {
    struct arena arena;
    const char *const *names;
    size_t count;
};

static struct catalogue catalogue_open(void)
{
    struct diag dg;
    struct catalogue c = {0};
    assert_ok(device_names(&c.arena, CATALOGUE, &c.names, &c.count, &dg));
    return c;
}

static void every_catalogue_file_loads_and_is_named_like_its_file(void **state)
{
    (void)state;
    struct catalogue c = catalogue_open();
    assert_true(c.count >= 35);
    for (size_t i = 0; i < c.count; i++) {
        struct device *d = loaded(c.names[i], NULL, 0);
        assert_string_equal(d->name, c.names[i]);
        assert_true(strlen(d->title) > 0);
        device_free(d);
    }
    arena_free(&c.arena);
}

static void count_value(void *self, const char *path, struct value *v)
{
    size_t *count = self;
    ++*count;
    if (!v->given || !v->source || strlen(v->source) < 4 || v->kind >= KIND_MAX)
        fail_msg("%s: kind %d, source '%s'", path, (int)v->kind, v->source ? v->source : "");
    if (v->kind == KIND_ASSUMED && value_spread(v) == 0 && v->amount > 1)
        fail_msg("%s: an assumption without spread", path);
}

static void every_value_of_the_catalogue_has_kind_and_source(void **state)
{
    (void)state;
    struct catalogue c = catalogue_open();
    for (size_t i = 0; i < c.count; i++) {
        struct device *d = loaded(c.names[i], NULL, 0);
        size_t values = 0;
        device_each_value(d, count_value, &values);
        assert_true(values >= 2);
        device_free(d);
    }
    arena_free(&c.arena);
}

static void every_storage_of_the_catalogue_has_a_rate(void **state)
{
    (void)state;
    struct catalogue c = catalogue_open();
    for (size_t i = 0; i < c.count; i++) {
        struct device *d = loaded(c.names[i], NULL, 0);
        for (size_t s = 0; s < d->storage_count; s++) {
            uint64_t rate = storage_closed_rate_Bps(&d->storage[s], 4 << 20, 8);
            assert_true(rate >= 10000000 && rate <= d->storage[s].bandwidth.amount);
        }
        device_free(d);
    }
    arena_free(&c.arena);
}

static void an_h100_has_a_ridge_of_295_operations_a_byte(void **state)
{
    (void)state;
    struct device *d = loaded("h100-sxm", NULL, 0);
    assert_close((double)d->compute[0].f16.amount / (double)d->dram.bandwidth.amount, 295.2, 0.1);
    device_free(d);
}

static void names_are_sorted_and_free_of_the_suffix(void **state)
{
    (void)state;
    struct catalogue c = catalogue_open();
    for (size_t i = 0; i < c.count; i++) {
        assert_null(strstr(c.names[i], ".yaml"));
        if (i)
            assert_true(strcmp(c.names[i - 1], c.names[i]) < 0);
    }
    arena_free(&c.arena);
}

/* --- the format --- */

static void a_value_is_read_exactly_with_kind_source_and_spread(void **state)
{
    (void)state;
    struct device *d = loaded(device_with(-1, ""), NULL, 0);
    const struct value *v = &d->storage[0].latency;
    assert_int_equal(v->amount, 100000);
    assert_int_equal(v->kind, KIND_MEASURED);
    assert_string_equal(v->source, "test");
    assert_int_equal(value_spread(v), 40000000);
    assert_false(d->storage[0].iops.given);
    assert_string_equal(d->name, "box");
    assert_int_equal(d->class_of, DEVICE_DESKTOP);
    device_free(d);
}

static void unknown_missing_and_repeated_keys_are_refused_with_their_line(void **state)
{
    (void)state;
    assert_line_refused(LINE_RESERVE, "reserv: [1 GiB, assumed, test]", ST_PARSE, "box.yaml:3: ");
    assert_line_refused(LINE_LANE, "    lane_bandwith: [2 GB/s, fitted, test]", ST_PARSE,
                        "box.yaml:11: ");
    assert_line_refused(LINE_TITLE, "", ST_PARSE, "title");
    assert_line_refused(LINE_CLASS, "", ST_PARSE, "class");
    assert_line_refused(LINE_RESERVE, "title: again", ST_PARSE, "box.yaml:3: ");
    assert_line_refused(LINE_HOT, "    bandwidth: [4 GB/s, measured, test]", ST_PARSE,
                        "box.yaml:13: ");
    assert_line_refused(LINE_CLASS, "class: toaster", ST_PARSE, "box.yaml:2: ");
}

static void a_value_without_unit_kind_or_source_is_refused(void **state)
{
    (void)state;
    assert_line_refused(LINE_LATENCY, "    latency: [100, measured, test]", ST_PARSE,
                        "box.yaml:10: ");
    assert_line_refused(LINE_LATENCY, "    latency: [100 us, measured]", ST_PARSE, "box.yaml:10: ");
    assert_line_refused(LINE_LATENCY, "    latency: [100 us, guessed, test]", ST_PARSE,
                        "box.yaml:10: ");
    assert_line_refused(LINE_LATENCY, "    latency: 100 us", ST_PARSE, "box.yaml:10: ");
    assert_line_refused(LINE_LATENCY, "    latency: [100 GB, measured, test]", ST_PARSE,
                        "box.yaml:10: ");
}

static void values_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    assert_line_refused(
        LINE_HOT, "    hot_bandwidth: [5 GB/s, measured, test]", ST_RANGE,
        "box.yaml:13: storage.0.hot_bandwidth is 5 GB/s, above storage.0.bandwidth");
    assert_line_refused(LINE_LANE, "    lane_bandwidth: [41 GB/s, fitted, test]", ST_RANGE,
                        "10 times");
    assert_line_refused(LINE_MEASURED, "  measured_bandwidth: [101 GB/s, measured, test]", ST_RANGE,
                        "dram.bandwidth");
    assert_line_refused(LINE_RESERVE, "reserve: [17 GiB, assumed, test]", ST_RANGE,
                        "dram.capacity");
    assert_line_refused(LINE_BANDWIDTH, "    bandwidth: [0 B/s, measured, test]", ST_RANGE,
                        "box.yaml:12: ");
}

static void a_class_must_have_what_it_is_made_of(void **state)
{
    (void)state;
    assert_line_refused(LINE_CAPACITY, "", ST_PARSE, "capacity");
    assert_line_refused(LINE_BANDWIDTH, "", ST_PARSE, "bandwidth (model curve)");
    assert_line_refused(LINE_NAME, "  - model: curve", ST_PARSE, "name");
    assert_line_refused(LINE_NAME, "  - name: disk\n    model: nand", ST_PARSE, "model nand");
    const char *path = temp_path("empty.yaml");
    write_file(path, "title: Nothing\nclass: storage\n");
    assert_refused(path, NULL, ST_PARSE, "exactly one entry");
}

static void a_misspelt_name_gets_the_nearest(void **state)
{
    (void)state;
    assert_refused("oneplus-15", NULL, ST_MISSING, "oneplus-15r");
    assert_refused("../desc/oneplus-15r", NULL, ST_MISSING, "no device of that name");
    assert_refused("", NULL, ST_MISSING, "no device of that name");
    assert_refused("/nowhere/at/all.yaml", NULL, ST_IO, "/nowhere/at/all.yaml");
}

/* --- parts --- */

static void a_part_gives_what_the_entry_leaves_out(void **state)
{
    (void)state;
    struct device *part = loaded("samsung-990-pro", NULL, 0);
    struct device *d = loaded("rtx-4090-pc", NULL, 0);
    assert_string_equal(d->storage[0].part, "samsung-990-pro");
    assert_int_equal(d->storage[0].bandwidth.amount, part->storage[0].bandwidth.amount);
    assert_string_equal(d->storage[0].bandwidth.source, part->storage[0].bandwidth.source);
    device_free(part);
    device_free(d);
}

static void an_entry_overrides_its_part(void **state)
{
    (void)state;
    struct device *d =
        loaded(device_with(LINE_NAME, "  - name: disk\n    part: samsung-990-pro"), NULL, 0);
    assert_int_equal(d->storage[0].bandwidth.amount, 4000000000);
    assert_true(d->storage[0].iops.given);
    assert_string_equal(d->storage[0].name, "disk");
    device_free(d);
}

static void a_part_that_is_no_storage_is_refused(void **state)
{
    (void)state;
    assert_line_refused(LINE_NAME, "  - name: disk\n    part: oneplus-15r", ST_PARSE, "class");
    assert_line_refused(LINE_NAME, "  - name: disk\n    part: samsung-990-por", ST_MISSING,
                        "samsung-990-pro");
    write_file(
        temp_path("chain.yaml"),
        "title: A chain\nclass: storage\nstorage:\n  - name: a\n    part: samsung-990-pro\n");
    assert_line_refused(LINE_NAME, "  - name: disk\n    part: chain.yaml", ST_PARSE,
                        "chain.yaml:5: part: a part may not name another");
}

/* --- overrides --- */

static void an_override_reaches_a_value_of_a_part(void **state)
{
    (void)state;
    struct device *d = loaded_with("rtx-4090-pc", "storage.0.bandwidth=15GB/s");
    const struct value *v = &d->storage[0].bandwidth;
    assert_int_equal(v->amount, 15000000000);
    assert_int_equal(v->kind, KIND_ASSUMED);
    assert_string_equal(v->source, "--set");
    device_free(d);
}

static void an_override_reaches_a_key_that_nobody_gave(void **state)
{
    (void)state;
    struct device *d = loaded_with("rtx-4090-pc", "storage.0.hot_bandwidth=2 GB/s");
    assert_true(d->storage[0].hot_bandwidth.given);
    device_free(d);
    d = loaded_with("oneplus-15r", "dram.latency=120 ns");
    assert_int_equal(d->dram.latency.amount, 120);
    device_free(d);
    d = loaded_with("rtx-4090-pc", "compute.1.memory.capacity=48 GiB");
    assert_int_equal(d->compute[1].memory.capacity.amount, UINT64_C(48) << 30);
    device_free(d);
}

static void an_override_may_swap_the_part(void **state)
{
    (void)state;
    struct device *nine = loaded("samsung-9100-pro", NULL, 0);
    struct device *d = loaded_with("rtx-4090-pc", "storage.0.part=samsung-9100-pro");
    assert_int_equal(d->storage[0].bandwidth.amount, nine->storage[0].bandwidth.amount);
    device_free(nine);
    device_free(d);
}

/* Every machine of the catalogue, with the drive of another class in its slot. */
static void a_swapped_part_wins_over_what_the_machine_said_of_its_own(void **state)
{
    (void)state;
    static const char *const parts[] = {"ufs-5.0", "hbf-gen1"};
    struct arena arena = {0};
    const char *const *names;
    size_t count, swapped = 0;
    struct diag dg;
    assert_ok(device_names(&arena, CATALOGUE, &names, &count, &dg));
    for (size_t i = 0; i < 2 * count; i++) {
        struct device *own = loaded(names[i / 2], NULL, 0), *part = loaded(parts[i % 2], NULL, 0);
        char override[64];
        if (own->storage_count && own->class_of < DEVICE_MEMORY) {
            snprintf(override, sizeof override, "storage.0.part=%s", parts[i % 2]);
            struct device *d = loaded_with(names[i / 2], override);
            const struct storage *s = &d->storage[0], *p = &part->storage[0];
            assert_int_equal(s->bandwidth.amount, p->bandwidth.amount);
            assert_int_equal(s->latency.amount, p->latency.amount);
            assert_int_equal(s->lane_bandwidth.given, p->lane_bandwidth.given);
            assert_int_equal(s->iops.given, p->iops.given);
            assert_int_equal(s->hot_bandwidth.given, p->hot_bandwidth.given);
            assert_string_equal(s->name, p->name);
            assert_string_equal(s->part, parts[i % 2]);
            if (own->storage[0].link_bandwidth.given)
                assert_int_equal(s->link_bandwidth.amount, own->storage[0].link_bandwidth.amount);
            device_free(d);
            swapped++;
        }
        device_free(part);
        device_free(own);
    }
    assert_true(swapped > 80);
    arena_free(&arena);
}

static void an_override_beside_a_swap_goes_over_the_new_part(void **state)
{
    (void)state;
    static const char *const overrides[] = {"storage.0.part=ufs-5.0", "storage.0.bandwidth=7 GB/s"};
    struct device *d = loaded("oneplus-15r", overrides, 2);
    assert_int_equal(d->storage[0].bandwidth.amount, 7000000000);
    assert_false(d->storage[0].hot_bandwidth.given);
    device_free(d);
}

static void a_part_on_the_command_line_is_looked_for_in_the_current_folder(void **state)
{
    (void)state;
    struct device *d = loaded_with(device_with(LINE_NAME, "  - name: disk"),
                                   "storage.0.part=devices/desc/ufs-4.1.yaml");
    assert_string_equal(d->storage[0].name, "ufs");
    device_free(d);
}

static void memory_without_a_storage_entry_is_no_part(void **state)
{
    (void)state;
    assert_refused("oneplus-15r", "storage.0.part=cxl-micron-cz120", ST_PARSE, "storage entries");
}

static void an_override_may_bring_kind_and_source(void **state)
{
    (void)state;
    struct device *d =
        loaded_with("oneplus-15r", "storage.0.bandwidth=[2 GB/s, measured, my own run, 3 %]");
    assert_int_equal(d->storage[0].bandwidth.kind, KIND_MEASURED);
    assert_string_equal(d->storage[0].bandwidth.source, "my own run");
    device_free(d);
}

static void overriding_a_bandwidth_scales_what_was_measured_beside_it(void **state)
{
    (void)state;
    const char *box = device_with(-1, "");
    struct device *d = loaded_with(box, "dram.bandwidth=200GB/s");
    assert_int_equal(device_dram_rate(d).amount, UINT64_C(160000000000));
    assert_int_equal(d->dram.measured_bandwidth.kind, KIND_DERIVED);
    device_free(d);
    d = loaded_with(box, "storage.0.bandwidth=1GB/s");
    assert_int_equal(d->storage[0].hot_bandwidth.amount, 750000000);
    device_free(d);
    const char *const both[] = {"dram.bandwidth=200GB/s", "dram.measured_bandwidth=90GB/s"};
    d = loaded(box, both, 2);
    assert_int_equal(device_dram_rate(d).amount, UINT64_C(90000000000));
    device_free(d);
}

static void a_wrong_override_is_refused(void **state)
{
    (void)state;
    assert_refused("oneplus-15r", "storage.0.bandwidth=15", ST_PARSE, "--set");
    assert_refused("oneplus-15r", "storage.0.bandwidth=-1 GB/s", ST_RANGE, "--set");
    assert_refused("oneplus-15r", "storage.0.bandwidth=0 GB/s", ST_RANGE, "storage.0.bandwidth");
    assert_refused("oneplus-15r", "storage.0.bandwith=1 GB/s", ST_PARSE, "bandwidth");
    assert_refused("oneplus-15r", "storage.7.bandwidth=1 GB/s", ST_MISSING, "storage.7");
    assert_refused("oneplus-15r", "nonsense", ST_USAGE, "PATH=VALUE");
    assert_refused("oneplus-15r", "storage.0.bandwidth", ST_USAGE, "PATH=VALUE");
    assert_refused("oneplus-15r", "storage.0.part=no-such-part", ST_MISSING, "no-such-part");
}

static void the_dram_rate_is_measured_or_four_fifths_of_the_peak(void **state)
{
    (void)state;
    struct device *d = loaded(device_with(-1, ""), NULL, 0);
    assert_int_equal(device_dram_rate(d).amount, UINT64_C(80000000000));
    assert_int_equal(device_dram_rate(d).kind, KIND_MEASURED);
    device_free(d);
    d = loaded(device_with(LINE_MEASURED, ""), NULL, 0);
    assert_int_equal(device_dram_rate(d).amount, UINT64_C(80000000000));
    assert_int_equal(device_dram_rate(d).kind, KIND_DERIVED);
    device_free(d);
}

static void a_damaged_description_loads_or_gives_one_line_of_reason(void **state)
{
    (void)state;
    struct pcg p;
    char *whole = read_whole("devices/desc/rtx-4090-pc.yaml", NULL), path[200], text[8192];
    size_t refused = 0;
    pcg_stream(&p, 3, "damaged device");
    strcpy(path, temp_path("damaged.yaml"));
    for (int i = 0; i < 3000; i++) {
        struct diag dg = {0};
        struct device *d = NULL;
        assert_true(strlen(whole) + MUTATE_ROOM < sizeof text);
        mutate(strcpy(text, whole), &p);
        write_file(path, text);
        enum status st = device_load(&d, path, CATALOGUE, NULL, 0, &dg);
        if (st != ST_OK) {
            refused++;
            assert_true(strlen(dg.text) > 0);
            assert_null(strchr(dg.text, '\n'));
        }
        device_free(d);
    }
    assert_true(refused > 1000);
    free(whole);
}

static void a_load_survives_the_failure_of_any_allocation(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    static const char *const overrides[] = {"storage.0.part=crucial-p3", "dram.bandwidth=80GB/s"};
    struct diag dg;
    struct device *d = NULL;
    enum status st = ST_NO_MEMORY;
    for (size_t n = 1; st != ST_OK; n++) {
        assert_true(n < 100000);
        allocations_fail_at(n);
        st = device_load(&d, "rtx-4090-pc", CATALOGUE, overrides, 2, &dg);
        allocations_fail_at(0);
        if (st != ST_OK && st != ST_NO_MEMORY)
            fail_msg("allocation %zu: status %d, %s", n, (int)st, dg.text);
    }
    device_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_catalogue_file_loads_and_is_named_like_its_file),
        cmocka_unit_test(every_value_of_the_catalogue_has_kind_and_source),
        cmocka_unit_test(every_storage_of_the_catalogue_has_a_rate),
        cmocka_unit_test(an_h100_has_a_ridge_of_295_operations_a_byte),
        cmocka_unit_test(names_are_sorted_and_free_of_the_suffix),
        cmocka_unit_test(a_value_is_read_exactly_with_kind_source_and_spread),
        cmocka_unit_test(unknown_missing_and_repeated_keys_are_refused_with_their_line),
        cmocka_unit_test(a_value_without_unit_kind_or_source_is_refused),
        cmocka_unit_test(values_that_contradict_each_other_are_refused),
        cmocka_unit_test(a_class_must_have_what_it_is_made_of),
        cmocka_unit_test(a_misspelt_name_gets_the_nearest),
        cmocka_unit_test(a_part_gives_what_the_entry_leaves_out),
        cmocka_unit_test(an_entry_overrides_its_part),
        cmocka_unit_test(a_part_that_is_no_storage_is_refused),
        cmocka_unit_test(an_override_reaches_a_value_of_a_part),
        cmocka_unit_test(an_override_reaches_a_key_that_nobody_gave),
        cmocka_unit_test(an_override_may_swap_the_part),
        cmocka_unit_test(a_swapped_part_wins_over_what_the_machine_said_of_its_own),
        cmocka_unit_test(an_override_beside_a_swap_goes_over_the_new_part),
        cmocka_unit_test(a_part_on_the_command_line_is_looked_for_in_the_current_folder),
        cmocka_unit_test(memory_without_a_storage_entry_is_no_part),
        cmocka_unit_test(an_override_may_bring_kind_and_source),
        cmocka_unit_test(overriding_a_bandwidth_scales_what_was_measured_beside_it),
        cmocka_unit_test(a_wrong_override_is_refused),
        cmocka_unit_test(the_dram_rate_is_measured_or_four_fifths_of_the_peak),
        cmocka_unit_test(a_damaged_description_loads_or_gives_one_line_of_reason),
        cmocka_unit_test(a_load_survives_the_failure_of_any_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
