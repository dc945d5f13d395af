/* test_timeline_diff.c -- two timelines side by side: sums, bursts, what only one has, and files that are none. */
#include "tests/support.h"

#include "sim/trace/timeline.h"
#include "validate/timeline_diff.h"

#include <math.h>

struct span {
    const char *operation;
    uint64_t start_us, end_us;
    uint32_t pass, layer;
};

static const char *save(const char *name, const struct span *span, size_t n)
{
    struct diag dg = {0};
    struct timeline *t;
    uint32_t lane;
    assert_ok(timeline_new(&t, 64, &dg));
    assert_ok(timeline_lane(&lane, t, "lane", &dg));
    for (size_t i = 0; i < n; i++)
        timeline_span(t, &(struct timeline_span){.lane = lane,
                                                 .operation = span[i].operation,
                                                 .start_ns = span[i].start_us * 1000,
                                                 .end_ns = span[i].end_us * 1000,
                                                 .pass = span[i].pass,
                                                 .layer = span[i].layer,
                                                 .expert = TIMELINE_NONE});
    const char *path = temp_path(name);
    assert_ok(timeline_save(t, path, &dg));
    timeline_free(t);
    return path;
}

static const struct diff_component *component(const struct diff_component *c, const char *operation)
{
    for (int i = 0; i < DIFF_OPERATIONS; i++)
        if (strcmp(c[i].operation, operation) == 0)
            return &c[i];
    fail_msg("no component %s", operation);
    return NULL;
}

static void spans_of_a_place_add_up_and_reads_are_one_burst(void **state)
{
    (void)state;
    const struct span first[] = {{TIMELINE_EXPERT, 0, 10, 0, 0},
                                 {TIMELINE_EXPERT, 20, 30, 0, 0},
                                 {TIMELINE_READ, 0, 40, 0, 0},
                                 {TIMELINE_READ, 10, 50, 0, 0},
                                 {TIMELINE_HEAD, 60, 70, 0, TIMELINE_NONE}};
    const struct span second[] = {{TIMELINE_EXPERT, 5, 45, 0, 0},
                                  {TIMELINE_READ, 0, 25, 0, 0},
                                  {TIMELINE_HEAD, 90, 110, 0, TIMELINE_NONE},
                                  {TIMELINE_STALL, 45, 50, 0, 0}};
    struct diff_component c[DIFF_OPERATIONS];
    struct diag dg = {0};
    assert_ok(timeline_diff(c, save("a.json", first, 5), save("b.json", second, 4), 0, &dg));
    const struct diff_component *x = component(c, TIMELINE_EXPERT);
    assert_int_equal(x->places, 1);
    assert_close(x->first_s, 20e-6, 1e-12);
    assert_close(x->second_s, 40e-6, 1e-12);
    assert_close(x->signed_error, -0.5, 1e-9);
    assert_close(component(c, TIMELINE_READ)->first_s, 50e-6, 1e-12);
    assert_close(component(c, TIMELINE_READ)->signed_error, 1, 1e-9);
    assert_int_equal(component(c, TIMELINE_HEAD)->only_first, 0);
    assert_close(component(c, TIMELINE_HEAD)->error_median, 0.5, 1e-9);
    assert_int_equal(component(c, TIMELINE_STALL)->only_second, 1);
    assert_int_equal(component(c, TIMELINE_PREFETCH)->places, 0);
}

static void earlier_passes_can_be_left_out_and_the_worst_place_is_named(void **state)
{
    (void)state;
    const struct span first[] = {{TIMELINE_FIXED, 0, 1000, 0, 0},
                                 {TIMELINE_FIXED, 1000, 1010, 1, 0},
                                 {TIMELINE_FIXED, 1010, 1060, 1, 3}};
    const struct span second[] = {{TIMELINE_FIXED, 0, 10, 0, 0},
                                  {TIMELINE_FIXED, 10, 20, 1, 0},
                                  {TIMELINE_FIXED, 20, 30, 1, 3}};
    struct diff_component c[DIFF_OPERATIONS];
    struct diag dg = {0};
    assert_ok(timeline_diff(c, save("a.json", first, 3), save("b.json", second, 3), 1, &dg));
    const struct diff_component *x = component(c, TIMELINE_FIXED);
    assert_int_equal(x->places, 2);
    assert_int_equal(x->worst_pass, 1);
    assert_int_equal(x->worst_layer, 3);
    assert_close(x->worst_s, 40e-6, 1e-12);
}

static void what_is_no_timeline_is_refused(void **state)
{
    (void)state;
    struct diff_component c[DIFF_OPERATIONS];
    struct diag dg = {0};
    const char *path = temp_path("none.json");
    write_file(path, "{\"traceEvents\": []}");
    assert_int_equal(timeline_diff(c, path, path, 0, &dg), ST_PARSE);
    write_file(path, "[1, 2]");
    assert_int_equal(timeline_diff(c, path, path, 0, &dg), ST_PARSE);
    assert_int_equal(timeline_diff(c, "/nowhere.json", path, 0, &dg), ST_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_of_a_place_add_up_and_reads_are_one_burst),
        cmocka_unit_test(earlier_passes_can_be_left_out_and_the_worst_place_is_named),
        cmocka_unit_test(what_is_no_timeline_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
