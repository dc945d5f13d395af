/* test_layer_set.c -- which layers a text names, and texts that name nothing. */
#include "tests/support.h"

#include "models/layer_set.h"

static struct diag dg;

#define LAYERS 12

/* "110000000001" */
static const char *marks(const bool *in, size_t count)
{
    static char text[64];
    for (size_t i = 0; i < count; i++)
        text[i] = in[i] ? '1' : '0';
    text[count] = 0;
    return text;
}

static void texts_name_the_layers_they_say(void **state)
{
    static const struct {
        const char *text, *marks;
    } cases[] = {
        {"all", "111111111111"},
        {"0", "100000000000"},
        {"11", "000000000001"},
        {"0-2", "111000000000"},
        {" 0 - 2 , 5 ", "111001000000"},
        {"every 4 from 3", "000100010001"},
        {"every 4 from 3 to 10", "000100010000"},
        {"every 2 from 0, 11", "101010101011"},
        {"rest", "001111111111"},
        {"0, rest", "101111111111"},
    };
    const bool taken[LAYERS] = {true, true};
    bool out[LAYERS];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(layer_set_parse(out, LAYERS, cases[i].text, taken, &dg));
        assert_string_equal(marks(out, LAYERS), cases[i].marks);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "some",
                                      "allx",
                                      "12",
                                      "2-1",
                                      "0-12",
                                      "1,",
                                      "1 2",
                                      "-1",
                                      "every 0 from 0",
                                      "every 2",
                                      "every 2 from",
                                      "every from 2",
                                      "every 2 from 1 to",
                                      "0x1",
                                      "99999999999999999999999"};
    const bool taken[LAYERS] = {false};
    bool out[LAYERS];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (layer_set_parse(out, LAYERS, bad[i], taken, &dg) == ST_OK)
            fail_msg("'%s' was taken for %s", bad[i], marks(out, LAYERS));
}

static void a_rest_of_no_layers_is_refused(void **state)
{
    const bool taken[2] = {true, true};
    bool out[2];
    (void)state;
    assert_int_equal(layer_set_parse(out, 2, "rest", taken, &dg), ST_RANGE);
}

static void every_set_of_layers_reads_back_as_printed(void **state)
{
    const bool taken[LAYERS] = {false};
    (void)state;
    for (unsigned set = 1; set < 1u << LAYERS; set++) {
        bool in[LAYERS], out[LAYERS];
        char text[200];
        for (unsigned i = 0; i < LAYERS; i++)
            in[i] = set >> i & 1;
        assert_true(layer_set_print(text, sizeof text, in, LAYERS));
        assert_ok(layer_set_parse(out, LAYERS, text, taken, &dg));
        assert_memory_equal(in, out, sizeof in);
    }
}

static void printed_sets_are_short(void **state)
{
    bool in[LAYERS] = {false}, one = true;
    char text[64];
    (void)state;
    in[3] = in[7] = in[11] = true;
    assert_true(layer_set_print(text, sizeof text, in, LAYERS));
    assert_string_equal(text, "every 4 from 3");
    in[10] = true;
    assert_true(layer_set_print(text, sizeof text, in, LAYERS));
    assert_string_equal(text, "3, 7, 10-11");
    memset(in, 1, sizeof in);
    assert_true(layer_set_print(text, sizeof text, in, LAYERS));
    assert_string_equal(text, "all");
    assert_true(layer_set_print(text, sizeof text, &one, 1));
    assert_string_equal(text, "0");
    assert_false(layer_set_print(text, 3, in, LAYERS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_name_the_layers_they_say),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(a_rest_of_no_layers_is_refused),
        cmocka_unit_test(every_set_of_layers_reads_back_as_printed),
        cmocka_unit_test(printed_sets_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
