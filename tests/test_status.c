/* test_status.c -- a reason is one line, and its end is said however long a name stands before it. */
#include "tests/support.h"

static void a_reason_is_one_line(void **state)
{
    (void)state;
    struct diag dg;
    assert_int_equal(diag_set(&dg, ST_RANGE, "%s: %d", "a\nb\x1b[31m\x7f", 7), ST_RANGE);
    assert_int_equal(dg.status, ST_RANGE);
    assert_string_equal(dg.text, "a?b?[31m?: 7");
}

static void a_long_name_loses_its_middle_and_the_reason_stays(void **state)
{
    (void)state;
    struct diag dg;
    for (size_t length = sizeof dg.text - 20; length < sizeof dg.text + 5000; length++) {
        char *name = malloc(length + 1);
        memset(name, 'n', length);
        name[length] = 0;
        (void)diag_set(&dg, ST_IO, "begin %s: the end", name);
        free(name);
        assert_true(strlen(dg.text) < sizeof dg.text);
        assert_memory_equal(dg.text, "begin nnn", 9);
        assert_string_equal(dg.text + strlen(dg.text) - 10, "n: the end");
        assert_true((strstr(dg.text, "n ... n") != NULL) ==
                    (length + strlen("begin : the end") >= sizeof dg.text));
    }
}

static void no_character_is_cut_in_two(void **state)
{
    (void)state;
    struct diag dg;
    char name[4096];
    for (size_t shift = 0; shift < 3; shift++) {
        size_t used = 0;
        while (used < shift)
            name[used++] = 'n';
        for (; used + 4 < sizeof name; used += 3)
            memcpy(name + used, "\xe2\x82\xac", 3);
        name[used] = 0;
        (void)diag_set(&dg, ST_IO, "%s: end", name);
        char *gap = strstr(dg.text, " ... ");
        assert_non_null(gap);
        assert_memory_equal(gap - 3, "\xe2\x82\xac", 3);
        assert_memory_equal(gap + 5, "\xe2\x82\xac", 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_is_one_line),
        cmocka_unit_test(a_long_name_loses_its_middle_and_the_reason_stays),
        cmocka_unit_test(no_character_is_cut_in_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
