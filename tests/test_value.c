/* test_value.c -- kinds of values and their customary spreads; memory of an arena. */
#include "tests/support.h"

#include "base/arena.h"
#include "base/value.h"

static struct diag dg;

static void kinds_read_back_from_their_names(void **state)
{
    (void)state;
    for (int k = 0; k < KIND_MAX; k++) {
        enum value_kind kind = KIND_MAX;
        assert_ok(value_kind_parse(&kind, value_kind_name((enum value_kind)k), &dg));
        assert_int_equal(kind, k);
    }
}

static void an_unknown_kind_is_refused_with_the_known_ones(void **state)
{
    enum value_kind kind;
    (void)state;
    assert_int_equal(value_kind_parse(&kind, "Measured", &dg), ST_PARSE);
    assert_string_equal(dg.text, "'Measured': unknown kind "
                                 "(datasheet measured fitted assumed derived)");
}

static void spread_is_the_stated_one_or_that_of_the_kind(void **state)
{
    static const uint64_t percent[KIND_MAX] = {
        [KIND_DATASHEET] = 12, [KIND_MEASURED] = 5, [KIND_FITTED] = 7,
        [KIND_ASSUMED] = 30,   [KIND_DERIVED] = 10,
    };
    (void)state;
    for (int k = 0; k < KIND_MAX; k++) {
        struct value v = {.kind = (enum value_kind)k};
        assert_int_equal(value_spread(&v), percent[k] * 10000000);
        v.spread = 0;
        v.spread_given = true;
        assert_int_equal(value_spread(&v), 0);
        v.spread = 40000000;
        assert_int_equal(value_spread(&v), 40000000);
    }
}

static void arena_memory_is_zero_aligned_and_apart(void **state)
{
    struct arena a = {0};
    unsigned char *piece[300];
    (void)state;
    /* Memory that was used before is what a missing zero would show in. */
    char *used[64];
    for (size_t i = 0; i < 64; i++) {
        used[i] = malloc(4200);
        assert_non_null(used[i]);
        memset(used[i], 0x5a, 4200);
    }
    for (size_t i = 0; i < 64; i++)
        free(used[i]);
    for (size_t i = 0; i < 300; i++) {
        size_t bytes = i * 7 % 2000;
        piece[i] = arena_alloc(&a, bytes);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % _Alignof(max_align_t), 0);
        for (size_t b = 0; b < bytes; b++)
            assert_int_equal(piece[i][b], 0);
        memset(piece[i], (int)(i % 255 + 1), bytes);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t b = 0; b < i * 7 % 2000; b++)
            assert_int_equal(piece[i][b], i % 255 + 1);
    arena_free(&a);
    assert_null(a.head);
}

static void arena_refuses_what_no_memory_can_hold(void **state)
{
    struct arena a = {0};
    (void)state;
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 64));
    assert_string_equal(arena_text(&a, "kept"), "kept");
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_read_back_from_their_names),
        cmocka_unit_test(an_unknown_kind_is_refused_with_the_known_ones),
        cmocka_unit_test(spread_is_the_stated_one_or_that_of_the_kind),
        cmocka_unit_test(arena_memory_is_zero_aligned_and_apart),
        cmocka_unit_test(arena_refuses_what_no_memory_can_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
