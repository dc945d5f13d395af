/* test_utf8.c -- the length of a character, and what a terminal obeys instead of showing. */
#include "tests/support.h"

#include "base/utf8.h"

static void a_character_has_the_length_that_unicode_gives_it(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int length;
    } cases[] = {{"a", 1},
                 {"", 1},
                 {"\xc3\xa9", 2},
                 {"\xe2\x82\xac", 3},
                 {"\xf0\x9f\x98\x80", 4},
                 {"\x80", 0},
                 {"\xc0\xaf", 0},         /* overlong */
                 {"\xe0\x9f\xbf", 0},     /* overlong */
                 {"\xed\xa0\x80", 0},     /* a surrogate */
                 {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
                 {"\xc3", 0},             /* cut short */
                 {"\xf0\x9f", 0},
                 {"\xff", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(utf8_length(cases[i].text), cases[i].length);
}

static void control_characters_are_those_of_both_blocks(void **state)
{
    (void)state;
    static const char *const control[] = {"\n", "\x1b", "\x7f", "\xc2\x80", "\xc2\x9f"};
    static const char *const shown[] = {" ", "~", "\xc2\xa0", "\xc3\x9f", "\xe2\x80\x80"};
    for (size_t i = 0; i < 5; i++) {
        assert_true(utf8_is_control(control[i], utf8_length(control[i])));
        assert_false(utf8_is_control(shown[i], utf8_length(shown[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_has_the_length_that_unicode_gives_it),
        cmocka_unit_test(control_characters_are_those_of_both_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
