/* test_nearest.c -- the hint for a misspelt name. */
#include "tests/support.h"

#include "base/nearest.h"

static const char *const names[] = {"bandwidth", "latency", "lane_bandwidth", "iops",
                                    "grain",     "lru",     "qwen3-30b-a3b"};

static void expect(const char *wanted, const char *nearest)
{
    const char *got = nearest_name(wanted, names, sizeof names / sizeof *names);
    if (nearest)
        assert_non_null(got);
    if (got)
        assert_string_equal(got, nearest ? nearest : "none");
}

static void one_slip_of_any_kind_is_near(void **state)
{
    (void)state;
    expect("bandwith", "bandwidth");   /* left out */
    expect("bandwiddth", "bandwidth"); /* too many */
    expect("bandwixth", "bandwidth");  /* wrong */
    expect("bandwdith", "bandwidth");  /* swapped */
    expect("Latency", "latency");
    expect("iosp", "iops");
}

static void a_beginning_is_near(void **state)
{
    (void)state;
    expect("qwen", "qwen3-30b-a3b");
    expect("QWEN3-30B", "qwen3-30b-a3b");
    expect("q", NULL);
}

static void other_words_are_not_near(void **state)
{
    (void)state;
    expect("temperature", NULL);
    expect("xyz", NULL);
    expect("", NULL);
    expect("a-name-that-is-longer-than-any-name-that-could-ever-be-in-such-a-table", NULL);
    assert_null(nearest_name("lru", names, 0));
}

static void of_several_the_nearest_is_taken(void **state)
{
    static const char *const policies[] = {"lfu-aged", "slru", "lru", "lfu"};
    (void)state;
    assert_string_equal(nearest_name("lruu", policies, 4), "lru");
    assert_string_equal(nearest_name("lf", policies, 4), "lfu");
    assert_string_equal(nearest_name("lfu-agd", policies, 4), "lfu-aged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slip_of_any_kind_is_near),
        cmocka_unit_test(a_beginning_is_near),
        cmocka_unit_test(other_words_are_not_near),
        cmocka_unit_test(of_several_the_nearest_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
