/* test_forced_route.c -- a trace whose routing a model cannot follow is refused, by the layer that cannot. */
#include "tests/support.h"

#include "kernels/graph/forced_route.h"

static struct diag dg;

/* Three layers: a dense one, one of 8 experts and top 3, one of 4 experts and top 2. */
static struct layer layers[3] = {{.ffn = {.dense_width = 64}},
                                 {.ffn = {.experts = 8, .top_k = 3}},
                                 {.ffn = {.experts = 4, .top_k = 2}}};
static const struct model model = {.layer_count = 3, .layers = layers};

struct row {
    uint32_t layer, slot, expert;
};

/* One token's rows, and what the model says of them; NULL: it takes them. */
static void expect(const struct row *row, size_t rows, uint32_t step, const char *reason)
{
    const struct trace_layer shape[3] = {{0, 0}, {100, 0}, {100, 0}};
    struct trace_builder *b;
    struct trace *t;
    struct forced_route *f;
    const char *path = temp_path("route.csv");
    assert_ok(trace_builder_new(&b, "m", 3, 8, 3, shape, &dg));
    for (size_t i = 0; i < rows; i++)
        assert_ok(trace_builder_row(b, 0, PHASE_DECODE, 0, step, row[i].layer, row[i].slot,
                                    row[i].expert, 0, &dg));
    assert_ok(trace_builder_finish(b, &t, &dg));
    assert_ok(trace_save(t, path, &dg));
    trace_free(t);
    enum status st = forced_route_load(&f, path, &model, &dg);
    if (reason) {
        assert_int_equal(st, ST_MISFIT);
        if (!strstr(dg.text, reason) || !strstr(dg.text, path) || strchr(dg.text, '\n'))
            fail_msg("expected '%s', not: %s", reason, dg.text);
        return;
    }
    assert_int_equal(st, ST_OK);
    uint16_t ids[4] = {77, 77, 77, 77};
    struct route route = forced_route_of(f);
    assert_true(route.at(route.self, step, 2, ids)); /* top 2: no third is written */
    assert_int_equal(ids[0], 3);
    assert_int_equal(ids[1], 1);
    assert_int_equal(ids[2], 77);
    assert_true(route.at(route.self, step, 1, ids));
    assert_int_equal(ids[2], 0);
    assert_int_equal(ids[3], 77);
    forced_route_free(f);
}

#define COUNT(rows) (sizeof(rows) / sizeof(*(rows)))

static void layers_may_differ_in_experts_and_top_k(void **state)
{
    (void)state;
    const struct row rows[] = {{1, 0, 7}, {1, 1, 5}, {1, 2, 0}, {2, 0, 3}, {2, 1, 1}};
    expect(rows, COUNT(rows), 0, NULL);
}

static void an_expert_that_the_layer_does_not_have_is_refused(void **state)
{
    (void)state;
    const struct row rows[] = {{1, 0, 7}, {1, 1, 5}, {1, 2, 0}, {2, 0, 4}, {2, 1, 1}};
    expect(rows, COUNT(rows), 0, "layer 2: token 0 takes expert 4; the model's layer has 4");
}

static void another_number_of_experts_than_the_layer_takes_is_refused(void **state)
{
    (void)state;
    const struct row more[] = {{1, 0, 7}, {1, 1, 5}, {1, 2, 0}, {2, 0, 3}, {2, 1, 1}, {2, 2, 0}};
    const struct row less[] = {{1, 0, 7}, {1, 1, 5}, {2, 0, 3}, {2, 1, 1}};
    expect(more, COUNT(more), 0, "layer 2: token 0 takes 3 experts; the model's layer takes 2");
    expect(less, COUNT(less), 0, "layer 1: token 0 takes 2 experts; the model's layer takes 3");
}

static void a_dense_layer_that_is_routed_is_refused(void **state)
{
    (void)state;
    /* A layer without experts has no rows in a trace of its own shape, so this trace has another. */
    const struct trace_layer shape[3] = {{100, 0}, {100, 0}, {100, 0}};
    struct trace_builder *b;
    struct trace *t;
    struct forced_route *f;
    const char *path = temp_path("dense.csv");
    assert_ok(trace_builder_new(&b, "m", 3, 8, 3, shape, &dg));
    for (uint32_t slot = 0; slot < 3; slot++)
        assert_ok(trace_builder_row(b, 0, PHASE_DECODE, 0, 0, 0, slot, slot, 0, &dg));
    assert_ok(trace_builder_finish(b, &t, &dg));
    assert_ok(trace_save(t, path, &dg));
    trace_free(t);
    assert_int_equal(forced_route_load(&f, path, &model, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "layer 0 is routed; the model's is dense"));
}

static void a_step_far_out_asks_for_no_memory(void **state)
{
    (void)state;
    const struct row rows[] = {{1, 0, 7}, {1, 1, 5}, {1, 2, 0}, {2, 0, 3}, {2, 1, 1}};
    expect(rows, COUNT(rows), 4000000000u, "has a token 4000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_may_differ_in_experts_and_top_k),
        cmocka_unit_test(an_expert_that_the_layer_does_not_have_is_refused),
        cmocka_unit_test(another_number_of_experts_than_the_layer_takes_is_refused),
        cmocka_unit_test(a_dense_layer_that_is_routed_is_refused),
        cmocka_unit_test(a_step_far_out_asks_for_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
