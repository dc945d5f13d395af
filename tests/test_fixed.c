/* test_fixed.c -- fixed-point functions against libm, and against their own definitions where libm
 * has no digits left. */
#include "base/fixed.h"

#include "base/pcg.h"
#include "tests/support.h"

#include <math.h>

#define TOLERANCE (1.0 / (1 << 28))

static double real(int64_t q32)
{
    return (double)q32 / 4294967296.0;
}

/* Random numbers of every size: a random word shifted right by 0 to 63. */
static uint64_t any_size(struct pcg *p)
{
    uint64_t word = pcg_u64(p);
    return word >> pcg_below(p, 64);
}

static void logarithms_agree_with_libm(void **state)
{
    (void)state;
    for (uint64_t x = 1; x < 100000; x++)
        assert_close(real(fixed_log2_q32(x)), log2((double)x), TOLERANCE);
    struct pcg p;
    pcg_stream(&p, 1, "log2");
    for (int i = 0; i < 100000; i++) {
        uint64_t x = any_size(&p) | 1;
        assert_close(real(fixed_log2_q32(x)), log2((double)x), TOLERANCE);
    }
    assert_close(real(fixed_log2_q32(UINT64_MAX)), 64, TOLERANCE);
}

static void logarithms_of_powers_of_two_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++)
        assert_true(fixed_log2_q32(UINT64_C(1) << i) == i * FIXED_ONE);
}

static void logarithms_never_fall(void **state)
{
    (void)state;
    for (uint64_t x = 1; x < 100000; x++)
        assert_true(fixed_log2_q32(x) < fixed_log2_q32(x + 1));
}

/* Relative to the larger of the value and one: below one, Q32 has no more digits. */
static void powers_agree_with_libm(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 1, "exp2");
    for (int i = 0; i < 200000; i++) {
        int64_t e = (int64_t)(pcg_u64(&p) >> 26) - 32 * FIXED_ONE - FIXED_ONE / 2;
        double expected = exp2(real(e)), scale = expected > 1 ? expected : 1;
        if (e < 32 * FIXED_ONE)
            assert_close((double)fixed_exp2_q32(e) / 4294967296.0 / scale, expected / scale,
                         TOLERANCE);
    }
}

static void powers_of_whole_exponents_are_exact(void **state)
{
    (void)state;
    for (int i = -32; i < 32; i++)
        assert_true(fixed_exp2_q32(i * FIXED_ONE) == UINT64_C(1) << (i + 32));
}

static void powers_saturate_above_and_vanish_below(void **state)
{
    (void)state;
    assert_true(fixed_exp2_q32(32 * FIXED_ONE - 1) > UINT64_MAX - (UINT64_C(1) << 33));
    assert_true(fixed_exp2_q32(32 * FIXED_ONE) == UINT64_MAX);
    assert_true(fixed_exp2_q32(INT64_MAX) == UINT64_MAX);
    assert_true(fixed_exp2_q32(-32 * FIXED_ONE - 1) == 0);
    assert_true(fixed_exp2_q32(INT64_MIN) == 0);
}

static void a_power_undoes_a_logarithm(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 2, "both");
    for (int i = 0; i < 100000; i++) {
        uint64_t x = (any_size(&p) >> 32) | 1;
        double back = (double)fixed_exp2_q32(fixed_log2_q32(x)) / 4294967296.0;
        assert_close(back / (double)x, 1, TOLERANCE);
    }
}

/* libm rounds these; this is the same on every machine, and pinned to the last bit. */
static void results_never_change(void **state)
{
    (void)state;
    assert_true(fixed_log2_q32(3) == INT64_C(6807362106));
    assert_true(fixed_log2_q32(10) == INT64_C(14267572527));
    assert_true(fixed_exp2_q32(FIXED_ONE / 2) == UINT64_C(6074001000));
    assert_true(fixed_exp2_q32(-FIXED_ONE / 2) == UINT64_C(3037000500));
}

static void the_square_root_is_the_floor_of_the_true_one(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 3, "sqrt");
    for (int i = 0; i < 200000; i++) {
        uint64_t x = i < 1000 ? (uint64_t)i : any_size(&p), root = fixed_sqrt_u64(x);
        assert_true(root * root <= x);
        assert_true((unsigned __int128)(root + 1) * (root + 1) > x);
    }
    assert_true(fixed_sqrt_u64(UINT64_MAX) == UINT32_MAX);
    uint64_t largest = UINT64_C(0xfffffffe00000001); /* UINT32_MAX squared */
    assert_true(fixed_sqrt_u64(largest) == UINT32_MAX);
    assert_true(fixed_sqrt_u64(largest - 1) == UINT32_MAX - 1);
}

static void a_product_is_divided_without_overflow_and_saturates(void **state)
{
    (void)state;
    assert_true(fixed_mul_div(7, 5, 3) == 11);
    assert_true(fixed_mul_div(0, UINT64_MAX, 1) == 0);
    assert_true(fixed_mul_div(UINT64_MAX, UINT64_MAX, UINT64_MAX) == UINT64_MAX);
    assert_true(fixed_mul_div(UINT64_MAX, 10, 11) == UINT64_C(16769767339735956013));
    assert_true(fixed_mul_div(UINT64_MAX, 2, 1) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_agree_with_libm),
        cmocka_unit_test(logarithms_of_powers_of_two_are_exact),
        cmocka_unit_test(logarithms_never_fall),
        cmocka_unit_test(powers_agree_with_libm),
        cmocka_unit_test(powers_of_whole_exponents_are_exact),
        cmocka_unit_test(powers_saturate_above_and_vanish_below),
        cmocka_unit_test(a_power_undoes_a_logarithm),
        cmocka_unit_test(results_never_change),
        cmocka_unit_test(the_square_root_is_the_floor_of_the_true_one),
        cmocka_unit_test(a_product_is_divided_without_overflow_and_saturates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
