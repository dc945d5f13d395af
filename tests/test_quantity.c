/* test_quantity.c -- reading and printing quantities: exactness, every refusal, and the law that
 * what is printed reads back as the same number. */
#include "tests/support.h"

#include "base/hash.h"
#include "base/quantity.h"

#define DIMENSIONS (DIM_TOKEN_RATE + 1)

static struct diag dg;

static void expect(enum dimension dim, const char *text, uint64_t amount)
{
    uint64_t got;
    assert_ok(quantity_parse(&got, dim, text, QUANTITY_UNIT_REQUIRED, &dg));
    if (got != amount)
        fail_msg("%s: %llu instead of %llu", text, (unsigned long long)got,
                 (unsigned long long)amount);
}

/* The whole reason, so that each refusal keeps its own. */
static void expect_refusal(enum dimension dim, const char *text, enum status status,
                           const char *reason)
{
    uint64_t got;
    assert_int_equal(quantity_parse(&got, dim, text, QUANTITY_UNIT_REQUIRED, &dg), status);
    assert_string_equal(dg.text, reason);
}

static void every_named_unit_has_its_multiplier(void **state)
{
    (void)state;
    expect(DIM_COUNT, "64", 64);
    expect(DIM_SIZE, "3 B", 3);
    expect(DIM_SIZE, "1 kB", 1000);
    expect(DIM_SIZE, "1 MB", 1000000);
    expect(DIM_SIZE, "1 GB", 1000000000);
    expect(DIM_SIZE, "1 TB", 1000000000000);
    expect(DIM_SIZE, "1 KiB", 1024);
    expect(DIM_SIZE, "1 MiB", 1048576);
    expect(DIM_SIZE, "4GiB", 4294967296);
    expect(DIM_SIZE, "1 TiB", 1099511627776);
    expect(DIM_RATE, "1.6 GB/s", 1600000000);
    expect(DIM_RATE, "1 KiB/s", 1024);
    expect(DIM_RATE, "1 TiB/s", 1099511627776);
    expect(DIM_TIME, "7 ns", 7);
    expect(DIM_TIME, "80us", 80000);
    expect(DIM_TIME, "5 ms", 5000000);
    expect(DIM_TIME, "1.5 s", 1500000000);
    expect(DIM_TIME, "2 min", 120000000000);
    expect(DIM_TIME, "1 h", 3600000000000);
    expect(DIM_FREQUENCY, "100 /s", 100);
    expect(DIM_FREQUENCY, "3.2 GHz", 3200000000);
    expect(DIM_FREQUENCY, "350 kIOPS", 350000);
    expect(DIM_FREQUENCY, "1 MIOPS", 1000000);
    expect(DIM_COMPUTE, "35 TFLOP/s", 35000000000000);
    expect(DIM_COMPUTE, "1.2 POP/s", 1200000000000000);
    expect(DIM_POWER, "4.5 W", 4500000);
    expect(DIM_POWER, "1 kW", 1000000000);
    expect(DIM_ENERGY, "4 nJ", 4000);
    expect(DIM_ENERGY, "2 J", 2000000000000);
    expect(DIM_ENERGY, "53.2 Wh", 191520000000000000);
    expect(DIM_TEMPERATURE, "45 C", 45000);
    expect(DIM_TEMPERATURE,
           "45.5 \xc2\xb0"
           "C",
           45500);
    expect(DIM_RATIO, "0.71", 710000000);
    expect(DIM_RATIO, "71 %", 710000000);
    expect(DIM_RATIO, "71%", 710000000);
    expect(DIM_TOKEN_RATE, "2.5 tok/s", 2500000);
    expect(DIM_TOKEN_RATE, "3 tok/min", 50000);
}

static void kilo_and_micro_have_two_spellings(void **state)
{
    (void)state;
    expect(DIM_SIZE, "4 KB", 4000);
    expect(DIM_RATE, "4 KB/s", 4000);
    expect(DIM_TIME, "80 \xc2\xb5s", 80000);
    expect(DIM_TIME, "80\xce\xbcs", 80000);
    expect(DIM_POWER, "3 \xc2\xb5W", 3);
}

static void decimals_are_exact_however_many_there_are(void **state)
{
    (void)state;
    expect(DIM_SIZE, "0.0000000000009094947017729282379150390625 TiB", 1);
    expect(DIM_SIZE, "1.000000000000000000000000000000000000000000 B", 1);
    expect(DIM_SIZE, "0000000000000000000000000000000000000000000001 B", 1);
    expect(DIM_SIZE, "18446744073709551615 B", UINT64_MAX);
    expect(DIM_SIZE, "18446744073.709551615 GB", UINT64_MAX);
}

static void every_misfit_has_its_own_reason(void **state)
{
    (void)state;
    expect_refusal(DIM_SIZE, "-3 B", ST_RANGE, "'-3 B': a number without a sign is expected");
    expect_refusal(DIM_SIZE, "+3 B", ST_RANGE, "'+3 B': a number without a sign is expected");
    expect_refusal(DIM_SIZE, "", ST_PARSE, "'': a number is expected");
    expect_refusal(DIM_SIZE, "GiB", ST_PARSE, "'GiB': a number is expected");
    expect_refusal(DIM_SIZE, " 4 GiB", ST_PARSE, "' 4 GiB': a number is expected");
    expect_refusal(DIM_TIME, "65", ST_PARSE, "'65': a unit is required (ns us ms s min h)");
    expect_refusal(DIM_TIME, "65 m", ST_PARSE, "'65 m': unknown unit 'm' (ns us ms s min h)");
    expect_refusal(DIM_SIZE, "4 GiB x", ST_PARSE, "'4 GiB x': unexpected 'x' after the unit");
    expect_refusal(DIM_SIZE, "4 GiB ", ST_PARSE, "'4 GiB ': unexpected '' after the unit");
    expect_refusal(DIM_RATIO, "0.5 ", ST_PARSE, "'0.5 ': unexpected blank at the end");
    expect_refusal(DIM_SIZE, "1,5 GB", ST_PARSE,
                   "'1,5 GB': a number has digits on both sides of one decimal point");
    expect_refusal(DIM_SIZE, "5. GB", ST_PARSE,
                   "'5. GB': a number has digits on both sides of one decimal point");
    expect_refusal(DIM_SIZE, "1.5.2 GB", ST_PARSE,
                   "'1.5.2 GB': a number has digits on both sides of one decimal point");
    expect_refusal(DIM_COUNT, "64 kB", ST_PARSE,
                   "'64 kB': unexpected 'kB' after a plain whole number");
    expect_refusal(DIM_TIME, "0.3 ns", ST_RANGE, "'0.3 ns': is not a whole number of nanoseconds");
    expect_refusal(DIM_COUNT, "1.5", ST_RANGE, "'1.5': is not a whole number");
    expect_refusal(DIM_TOKEN_RATE, "1 tok/min", ST_RANGE,
                   "'1 tok/min': is not a whole number of microtokens/s");
}

static void values_beyond_64_bits_are_refused(void **state)
{
    (void)state;
    expect_refusal(DIM_SIZE, "18446744073709551616 B", ST_RANGE,
                   "'18446744073709551616 B': is too large, the limit is 2^64 - 1 bytes");
    expect_refusal(DIM_COUNT, "18446744073709551616", ST_RANGE,
                   "'18446744073709551616': is too large, the limit is 2^64 - 1");
    expect_refusal(DIM_SIZE, "16777216 TiB", ST_RANGE,
                   "'16777216 TiB': is too large, the limit is 2^64 - 1 bytes");
    /* Digits alone, and digits times the multiplier, are beyond 128 bits. */
    expect_refusal(DIM_COUNT, "999999999999999999999999999999999999999999", ST_RANGE,
                   "'999999999999999999999999999999999999999999': is too large, "
                   "the limit is 2^64 - 1");
    expect_refusal(DIM_SIZE, "99999999999999999999999999999999999999 TB", ST_RANGE,
                   "'99999999999999999999999999999999999999 TB': is too large, "
                   "the limit is 2^64 - 1 bytes");
    expect_refusal(DIM_SIZE, "1.0000000000000000000000000000000000000001 B", ST_RANGE,
                   "'1.0000000000000000000000000000000000000001 B': "
                   "has more digits than can be kept exactly");
}

static void bits_are_refused_with_a_hint(void **state)
{
    static const char *const sizes[] = {"4 Gb", "4 b", "4Mbit", "4 Kib", "4 bits"};
    static const char *const rates[] = {"4 Gb/s", "4 Gbps", "4 Mbit/s", "4 kbps", "4 Gib/s"};
    uint64_t got;
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(quantity_parse(&got, DIM_SIZE, sizes[i], QUANTITY_BARE_ALLOWED, &dg),
                         ST_PARSE);
        assert_non_null(strstr(dg.text, "counts bits, and 8 bits are 1 byte"));
        assert_int_equal(quantity_parse(&got, DIM_RATE, rates[i], QUANTITY_BARE_ALLOWED, &dg),
                         ST_PARSE);
        assert_non_null(strstr(dg.text, "counts bits, and 8 bits are 1 byte"));
    }
}

static void a_bare_number_is_bytes_only_where_a_size_may_be_bare(void **state)
{
    uint64_t got;
    (void)state;
    assert_ok(quantity_parse(&got, DIM_SIZE, "4096", QUANTITY_BARE_ALLOWED, &dg));
    assert_int_equal(got, 4096);
    assert_int_equal(quantity_parse(&got, DIM_SIZE, "4096", QUANTITY_UNIT_REQUIRED, &dg), ST_PARSE);
    assert_int_equal(quantity_parse(&got, DIM_RATE, "4096", QUANTITY_BARE_ALLOWED, &dg), ST_PARSE);
    assert_int_equal(quantity_parse(&got, DIM_TIME, "4096", QUANTITY_BARE_ALLOWED, &dg), ST_PARSE);
}

static void check_law(uint64_t value, enum dimension dim)
{
    char text[QUANTITY_TEXT_MAX], rounded[QUANTITY_TEXT_MAX];
    uint64_t back;
    quantity_print(text, value, dim);
    assert_ok(quantity_parse(&back, dim, text, QUANTITY_UNIT_REQUIRED, &dg));
    if (back != value)
        fail_msg("%llu printed as %s reads as %llu", (unsigned long long)value, text,
                 (unsigned long long)back);
    /* Rounded text is a quantity as well, unless rounding up left the range. */
    quantity_round(rounded, value, dim);
    if (quantity_parse(&back, dim, rounded, QUANTITY_UNIT_REQUIRED, &dg) == ST_OK) {
        uint64_t apart = back > value ? back - value : value - back;
        if (apart > value / 199 + 1)
            fail_msg("%s rounded to %s", text, rounded);
    } else {
        assert_int_equal(dg.status, ST_RANGE);
        assert_true(value > UINT64_MAX / 1000 * 999);
    }
}

static void what_is_printed_reads_back_as_the_same_number(void **state)
{
    (void)state;
    for (int dim = 0; dim < DIMENSIONS; dim++) {
        for (unsigned shift = 0; shift < 64; shift++) {
            uint64_t power = UINT64_C(1) << shift;
            check_law(power - 1, (enum dimension)dim);
            check_law(power, (enum dimension)dim);
            check_law(power + 1, (enum dimension)dim);
            for (uint64_t i = 0; i < 40; i++)
                check_law(hash_add(i, shift) >> shift, (enum dimension)dim);
        }
        for (uint64_t ten = 1, i = 0; i < 20; i++, ten *= 10) {
            check_law(ten - 1, (enum dimension)dim);
            check_law(ten, (enum dimension)dim);
            check_law(ten + ten / 1000, (enum dimension)dim);
        }
        check_law(UINT64_MAX, (enum dimension)dim);
        check_law(UINT64_MAX - 1, (enum dimension)dim);
    }
}

static void expect_print(uint64_t value, enum dimension dim, const char *exact, const char *rounded)
{
    char text[QUANTITY_TEXT_MAX];
    assert_string_equal(quantity_print(text, value, dim), exact);
    assert_string_equal(quantity_round(text, value, dim), rounded);
}

static void printing_takes_the_largest_unit_that_stays_short(void **state)
{
    (void)state;
    expect_print(0, DIM_SIZE, "0 B", "0 B");
    expect_print(999, DIM_SIZE, "999 B", "999 B");
    expect_print(1024, DIM_SIZE, "1 KiB", "1.02 kB");
    expect_print(1500, DIM_SIZE, "1.5 kB", "1.50 kB");
    expect_print(1536, DIM_SIZE, "1.5 KiB", "1.54 kB");
    expect_print(4294967296, DIM_SIZE, "4 GiB", "4.29 GB");
    expect_print(18600000000, DIM_SIZE, "18.6 GB", "18.6 GB");
    expect_print(1600000000, DIM_RATE, "1.6 GB/s", "1.60 GB/s");
    expect_print(2257300000, DIM_RATE, "2257.3 MB/s", "2.26 GB/s");
    expect_print(220000, DIM_TIME, "220 us", "220 us");
    expect_print(90000000000, DIM_TIME, "90 s", "90.0 s");
    expect_print(350000, DIM_FREQUENCY, "350 kIOPS", "350 kIOPS");
    expect_print(710000000, DIM_RATIO, "71 %", "71.0 %");
    expect_print(1, DIM_RATIO, "0.0000001 %", "0.0000001 %");
    expect_print(45000, DIM_TEMPERATURE, "45 C", "45.0 C");
    expect_print(3470000, DIM_TOKEN_RATE, "3.47 tok/s", "3.47 tok/s");
    expect_print(1234567, DIM_COUNT, "1234567", "1234567");
}

static void rounding_up_moves_to_the_next_digit_or_unit(void **state)
{
    (void)state;
    expect_print(9995, DIM_SIZE, "9.995 kB", "10.0 kB");
    expect_print(9994, DIM_SIZE, "9.994 kB", "9.99 kB");
    expect_print(99950, DIM_SIZE, "99.95 kB", "100 kB");
    expect_print(999499, DIM_SIZE, "999.499 kB", "999 kB");
    expect_print(999500, DIM_SIZE, "999.5 kB", "1.00 MB");
}

static void dimensions_have_names(void **state)
{
    (void)state;
    assert_string_equal(dimension_name(DIM_COUNT), "count");
    assert_string_equal(dimension_name(DIM_TOKEN_RATE), "token rate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_named_unit_has_its_multiplier),
        cmocka_unit_test(kilo_and_micro_have_two_spellings),
        cmocka_unit_test(decimals_are_exact_however_many_there_are),
        cmocka_unit_test(every_misfit_has_its_own_reason),
        cmocka_unit_test(values_beyond_64_bits_are_refused),
        cmocka_unit_test(bits_are_refused_with_a_hint),
        cmocka_unit_test(a_bare_number_is_bytes_only_where_a_size_may_be_bare),
        cmocka_unit_test(what_is_printed_reads_back_as_the_same_number),
        cmocka_unit_test(printing_takes_the_largest_unit_that_stays_short),
        cmocka_unit_test(rounding_up_moves_to_the_next_digit_or_unit),
        cmocka_unit_test(dimensions_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
