/* test_text.c -- texts that grow in a buffer: separators, and what does not fit. */
#include "base/text.h"
#include "tests/support.h"

static void a_list_has_separators_between_its_items(void **state)
{
    (void)state;
    char out[32] = "";
    text_list(out, sizeof out, "; ", "%d", 1);
    assert_string_equal(out, "1");
    text_list(out, sizeof out, "; ", "%s", "two");
    text_append(out, sizeof out, "%c", '!');
    assert_string_equal(out, "1; two!");
}

static void what_does_not_fit_is_cut_off(void **state)
{
    (void)state;
    char out[6] = "abc";
    text_list(out, sizeof out, ", ", "def");
    assert_string_equal(out, "abc, ");
    text_list(out, sizeof out, ", ", "g");
    assert_string_equal(out, "abc, ");
    char full[4] = "abc";
    text_append(full, sizeof full, "d");
    assert_string_equal(full, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_separators_between_its_items),
        cmocka_unit_test(what_does_not_fit_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
