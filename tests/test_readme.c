/* test_readme.c -- what README shows is what the program prints. */
#include "tests/support.h"

/* The text between the next pair of ``` lines after `from`; cuts it out in place. */
static char *next_block(char *from)
{
    char *start = strstr(from, "\n```\n");
    assert_non_null(start);
    start += strlen("\n```\n");
    char *end = strstr(start, "\n```\n");
    assert_non_null(end);
    end[1] = 0;
    return start;
}

static void the_answer_in_the_readme_is_the_programs(void **state)
{
    (void)state;
    char *readme = read_whole("README.md", NULL);
    char *at = strstr(readme, "`memwall plan ");
    assert_non_null(at);
    at += strlen("`memwall ");
    char *end = strstr(at, "`:");
    assert_non_null(end);
    *end = 0;
    struct run r = run_memwall(at);
    assert_int_equal(r.exit_code, 0);
    *end = '`';
    assert_string_equal(next_block(end), r.out);
    run_free(&r);
    free(readme);
}

/* Every `memwall ...` of the table runs, placeholders aside. */
static void every_command_of_the_readme_exists(void **state)
{
    (void)state;
    char *readme = read_whole("README.md", NULL);
    size_t seen = 0;
    for (char *at = readme; (at = strstr(at, "`memwall ")); seen++) {
        at += strlen("`memwall ");
        char *end = strchr(at, '`');
        assert_non_null(end);
        char words[64];
        size_t n = strcspn(at, "`");
        snprintf(words, sizeof words, "%.*s", (int)(n < sizeof words - 1 ? n : sizeof words - 1),
                 at);
        char *first = strtok(words, " "), *second = strtok(NULL, " ");
        char line[160];
        bool two = second && second[0] >= 'a' && second[0] <= 'z' &&
                   (strcmp(first, "trace") == 0 || strcmp(first, "model") == 0 ||
                    strcmp(first, "device") == 0 || strcmp(first, "engine") == 0 ||
                    strcmp(first, "validate") == 0);
        snprintf(line, sizeof line, "%s %s --help", first, two ? second : "");
        struct run r = run_memwall(line);
        if (r.exit_code != 0)
            fail_msg("memwall %s: %s", line, r.err);
        run_free(&r);
        at = end;
    }
    assert_true(seen >= 10);
    free(readme);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_in_the_readme_is_the_programs),
        cmocka_unit_test(every_command_of_the_readme_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
