/* Energy: the sums of SYSTEMS 1.10, and what they say of inputs they lack. */
#include "tests/support.h"

#include "sim/pipeline/energy.h"

#define GB UINT64_C(1000000000)
#define S  UINT64_C(1000000000)
#define W  UINT64_C(1000000)       /* in uW */
#define J  UINT64_C(1000000000000) /* in pJ */

static struct value amount(uint64_t n)
{
    return (struct value){.amount = n, .given = true};
}

struct bench {
    struct storage storage[2];
    struct compute compute[2];
    struct device device;
};

/* Micron 9650: 18 W at 28 GB/s, 0.64 J/GB; LPDDR at 48 pJ/B; an op of 2 pJ; 3 W idle. */
static struct device *full_device(struct bench *b)
{
    *b = (struct bench){
        .storage = {{.read_power = amount(18 * W), .bandwidth = amount(28 * GB)},
                    {.read_power = amount(5 * W), .bandwidth = amount(5 * GB)}},
        .compute = {{.energy_per_op = amount(2)},
                    {.energy_per_op = amount(1),
                     .memory = {.capacity = amount(8 * GB), .read_energy_per_byte = amount(38)}}},
        .device = {.dram = {.read_energy_per_byte = amount(48)},
                   .idle_power = amount(3 * W),
                   .storage_count = 2,
                   .compute_count = 2}};
    b->device.storage = b->storage;
    b->device.compute = b->compute;
    return &b->device;
}

static const uint64_t read_bytes[] = {14 * GB, 2 * GB};
static const struct energy_use second = {.span_ns = S,
                                         .busy_ns = S / 4,
                                         .operations = UINT64_C(300000000000),
                                         .dram_bytes = 50 * GB,
                                         .flash_bytes = read_bytes};

static void the_parts_are_those_of_the_formula(void **state)
{
    (void)state;
    struct bench b;
    struct energy e;
    energy_of(&e, full_device(&b), 0, &second);
    assert_int_equal(e.form, ENERGY_PARTS);
    assert_string_equal(energy_form_name(e.form), "parts");
    assert_int_equal(e.flash_pJ, 9 * J + 2 * J); /* half a second of 18 W, 2 GB at 1 J/GB */
    assert_int_equal(e.dram_pJ, UINT64_C(2400) * J / 1000);
    assert_int_equal(e.compute_pJ, UINT64_C(600) * J / 1000);
    assert_int_equal(e.idle_pJ, 3 * J);
    assert_int_equal(e.total_pJ, 17 * J);
    assert_int_equal(e.missing, 0);
}

/* 18 W at 28 GB/s is 0.64 J/GB, 80 pJ a bit (SYSTEMS 1.10). */
static void the_read_energy_of_a_drive_is_its_published_figure(void **state)
{
    (void)state;
    struct bench b;
    struct energy e;
    const uint64_t one_gigabyte[] = {GB, 0};
    energy_of(&e, full_device(&b), 0, &(struct energy_use){.flash_bytes = one_gigabyte});
    assert_int_equal(e.total_pJ / GB, 642); /* pJ a byte */
    assert_int_equal(e.total_pJ / GB / 8, 80);
}

static void a_unit_with_its_own_memory_pays_for_that_one(void **state)
{
    (void)state;
    struct bench b;
    struct energy e;
    energy_of(&e, full_device(&b), 1, &second);
    assert_int_equal(e.dram_pJ, UINT64_C(1900) * J / 1000);
    assert_int_equal(e.compute_pJ, UINT64_C(300) * J / 1000);
}

static void a_device_with_powers_alone_is_billed_by_busy_time(void **state)
{
    (void)state;
    struct bench b;
    struct energy e;
    struct device *d = full_device(&b);
    b.compute[0].energy_per_op.given = false;
    d->load_power = amount(11 * W);
    energy_of(&e, d, 0, &second);
    assert_int_equal(e.form, ENERGY_LOAD);
    assert_string_equal(energy_form_name(e.form), "load");
    assert_int_equal(e.compute_pJ, 2 * J);
    assert_int_equal(e.idle_pJ, 3 * J);
    assert_int_equal(e.flash_pJ, 11 * J);
    assert_int_equal(e.dram_pJ, 0);
    assert_int_equal(e.total_pJ, 16 * J);
    assert_int_equal(e.missing, 0);
    struct energy_use whole = {.span_ns = 10 * S, .busy_ns = 10 * S};
    energy_of(&e, d, 0, &whole); /* busy all the time: the power under load */
    assert_int_equal(e.total_pJ, 110 * J);
}

static void the_energy_per_operation_goes_before_the_power_under_load(void **state)
{
    (void)state;
    struct bench b;
    struct energy e;
    struct device *d = full_device(&b);
    d->load_power = amount(11 * W);
    energy_of(&e, d, 0, &second);
    assert_int_equal(e.form, ENERGY_PARTS);
    assert_int_equal(e.total_pJ, 17 * J);
}

static void what_is_not_given_is_named_and_counts_as_nothing(void **state)
{
    (void)state;
    char text[ENERGY_MISSING_MAX];
    struct bench b;
    struct energy e;
    struct device *d = full_device(&b);
    struct energy_use use = second;
    use.link_bytes = 1;
    b.storage[0].read_power.given = false;
    d->dram.read_energy_per_byte.given = false;
    d->idle_power.given = false;
    energy_of(&e, d, 0, &use);
    assert_string_equal(energy_missing_text(text, e.missing),
                        "storage read_power, dram.read_energy_per_byte, energy of a link, "
                        "idle_power");
    assert_int_equal(e.total_pJ, 2 * J + UINT64_C(600) * J / 1000);
    b.compute[0].energy_per_op.given = false;
    energy_of(&e, d, 0, &second);
    assert_int_equal(e.form, ENERGY_UNKNOWN);
    assert_string_equal(energy_missing_text(text, e.missing),
                        "storage read_power, compute energy_per_op or load_power, idle_power");
    assert_int_equal(e.total_pJ, 2 * J);
    assert_string_equal(energy_missing_text(text, 0), "");
    assert_true(strlen(energy_missing_text(text, (1U << ENERGY_INPUTS) - 1)) + 1 <= sizeof text);
}

static void what_was_not_used_is_not_missing(void **state)
{
    (void)state;
    struct bench b;
    struct energy e;
    struct device *d = full_device(&b);
    const uint64_t second_drive[] = {0, 5 * GB};
    b.storage[0].read_power.given = false;
    d->dram.read_energy_per_byte.given = false;
    energy_of(&e, d, 0, &(struct energy_use){.operations = 1});
    assert_int_equal(e.missing, 0);
    b.compute[0].energy_per_op.given = false;
    energy_of(&e, d, 0, &(struct energy_use){.span_ns = S, .flash_bytes = second_drive});
    assert_int_equal(e.missing, 0);
    assert_int_equal(e.total_pJ, 5 * J + 3 * J);
    d->idle_power.given = false;
    energy_of(&e, d, 0, &(struct energy_use){0});
    assert_int_equal(e.missing, 0);
    assert_int_equal(e.total_pJ, 0);
}

/* Two halves cost what the whole does: nothing but flat rates. */
static void energy_is_additive(void **state)
{
    (void)state;
    struct bench b;
    struct energy half, whole;
    const uint64_t half_bytes[] = {7 * GB, GB};
    struct energy_use use = {.span_ns = S / 2,
                             .busy_ns = S / 8,
                             .operations = second.operations / 2,
                             .dram_bytes = second.dram_bytes / 2,
                             .flash_bytes = half_bytes};
    energy_of(&half, full_device(&b), 0, &use);
    energy_of(&whole, full_device(&b), 0, &second);
    assert_int_equal(2 * half.total_pJ, whole.total_pJ);
}

static void sums_saturate_instead_of_wrapping(void **state)
{
    (void)state;
    struct bench b;
    struct energy e;
    const uint64_t all[] = {UINT64_MAX, UINT64_MAX};
    struct energy_use use = {.span_ns = UINT64_MAX,
                             .busy_ns = UINT64_MAX,
                             .operations = UINT64_MAX,
                             .dram_bytes = UINT64_MAX,
                             .flash_bytes = all};
    struct device *d = full_device(&b);
    b.storage[0].read_power = amount(UINT64_C(1000000000000));
    b.storage[0].bandwidth = amount(1);
    energy_of(&e, d, 0, &use);
    assert_int_equal(e.flash_pJ, UINT64_MAX);
    assert_int_equal(e.dram_pJ, UINT64_MAX);
    assert_int_equal(e.compute_pJ, UINT64_MAX);
    assert_int_equal(e.total_pJ, UINT64_MAX);
    /* 584 years of 3 W are 15 MWh: too much for 64 bits of pJ as well */
    assert_int_equal(e.idle_pJ, UINT64_MAX);
}

static void a_battery_lasts_its_energy_over_the_mean_power(void **state)
{
    (void)state;
    struct device d = {.battery = amount(20 * 3600 * J)}; /* 20 Wh */
    uint64_t lasts_ms;
    assert_int_equal(energy_mean_uW(17 * J, 2 * S), 8500000);
    assert_int_equal(energy_mean_uW(17 * J, 0), 0);
    assert_int_equal(energy_mean_uW(UINT64_MAX, 1), UINT64_MAX);
    assert_true(energy_battery_ms(&lasts_ms, &d, 8 * W));
    assert_int_equal(lasts_ms, 2500 * 3600);
    assert_false(energy_battery_ms(&lasts_ms, &d, 0));
    d.battery.given = false;
    assert_false(energy_battery_ms(&lasts_ms, &d, 8 * W));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_are_those_of_the_formula),
        cmocka_unit_test(the_read_energy_of_a_drive_is_its_published_figure),
        cmocka_unit_test(a_unit_with_its_own_memory_pays_for_that_one),
        cmocka_unit_test(a_device_with_powers_alone_is_billed_by_busy_time),
        cmocka_unit_test(the_energy_per_operation_goes_before_the_power_under_load),
        cmocka_unit_test(what_is_not_given_is_named_and_counts_as_nothing),
        cmocka_unit_test(what_was_not_used_is_not_missing),
        cmocka_unit_test(energy_is_additive),
        cmocka_unit_test(sums_saturate_instead_of_wrapping),
        cmocka_unit_test(a_battery_lasts_its_energy_over_the_mean_power),
    };
    return cmocka_run_group_tests_name("energy", tests, NULL, NULL);
}
