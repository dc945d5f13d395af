/* test_pack_order.c -- orders of records: from traces, from files, and what they are worth. */
#include "tests/synth_file.h"

#include "kernels/pack/pack_order.h"
#include "tests/cli_expect.h"

static struct diag dg;

/* Tokens of a model of 5 layers of 4 experts: always 0 with 3, and 1 with 2; sometimes 3 with 1. */
static struct trace *paired_trace(void)
{
    struct trace_builder *b;
    struct trace *t;
    struct trace_layer layers[5];
    static const uint32_t choices[][2] = {{0, 3}, {1, 2}, {3, 1}, {0, 3}, {2, 1}};
    for (size_t l = 0; l < 5; l++)
        layers[l] = (struct trace_layer){.expert_bytes = 10};
    assert_ok(trace_builder_new(&b, "paired", 5, 4, 2, layers, &dg));
    for (uint32_t pass = 0; pass < 5; pass++)
        for (uint32_t l = 0; l < 5; l++)
            for (uint32_t slot = 0; slot < 2; slot++)
                assert_ok(
                    trace_builder_row(b, 0, 1, pass, pass, l, slot, choices[pass][slot], 0, &dg));
    assert_ok(trace_builder_finish(b, &t, &dg));
    return t;
}

static void experts_chosen_together_become_neighbours(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("order.gguf", "qwen3moe", "q4_0", 1));
    struct trace *t = paired_trace();
    struct pack_order order, plain;
    struct pack_runs runs;
    static const uint32_t expected[] = {0, 3, 1, 2};
    assert_ok(pack_order_coactivation(&order, o.m, t, &dg));
    assert_int_equal(order.count, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(order.key[i].layer, i / 4);
        assert_int_equal(order.key[i].expert, expected[i % 4]);
    }
    assert_ok(pack_order_runs(&runs, &order, o.m, t, &dg));
    assert_true(runs.choices == 50 && runs.runs == 25);
    assert_ok(pack_order_plain(&plain, o.m, &dg));
    assert_ok(pack_order_runs(&runs, &plain, o.m, t, &dg));
    assert_true(runs.choices == 50 && runs.runs == 40);
    pack_order_free(&plain);
    pack_order_free(&order);
    trace_free(t);
    close_gguf(&o);
}

static void an_order_from_any_trace_names_every_expert_once(void **state)
{
    (void)state;
    struct model *m;
    struct trace *t;
    struct pack_order order, plain;
    struct pack_runs before, after;
    bool seen[8 * 32] = {false};
    struct synth_figures figures = {.layers = 8, .experts = 32};
    assert_ok(model_load(&m, "qwen3-30b-a3b", "models/desc", NULL, 0, &dg));
    assert_ok(synth_model_change(m, &figures, &dg));
    assert_ok(trace_load(&t, large_trace_path(), &dg));
    assert_ok(pack_order_coactivation(&order, m, t, &dg));
    assert_int_equal(order.count, 8 * 32);
    for (size_t i = 0; i < order.count; i++) {
        size_t key = order.key[i].layer * 32 + order.key[i].expert;
        assert_true(key < sizeof seen && !seen[key]);
        seen[key] = true;
    }
    assert_ok(pack_order_plain(&plain, m, &dg));
    assert_ok(pack_order_runs(&before, &plain, m, t, &dg));
    assert_ok(pack_order_runs(&after, &order, m, t, &dg));
    assert_true(after.choices == before.choices && after.runs < before.runs);
    assert_ok(pack_order_foresight(&after, &before, m, t, &dg));
    assert_true(after.choices == before.choices && after.runs < before.runs);
    assert_in_range(after.choices, t->row_count / 2 - 1000, t->row_count / 2 + 1000);
    pack_order_free(&plain);
    pack_order_free(&order);
    trace_free(t);
    model_free(m);
}

static void orders_that_are_none_are_refused(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("orders.gguf", "qwen3moe", "q4_0", 1));
    const char *csv = temp_path("bad.csv");
    static const char *const cases[][2] = {
        {"layer,expert\n0,4\n", "bad.csv:2: expected a layer and an expert"},
        {"layer,expert\n5,0\n", "bad.csv:2: expected a layer and an expert"},
        {"layer,expert\n0,1\n0,1\n", "bad.csv:3: layer 0, expert 1, stands there twice"},
        {"layer,expert\n0,1\n", "names 1 experts"},
        {"expert\n0\n", "layer"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pack_order order;
        write_file(csv, cases[i][0]);
        assert_int_equal(pack_order_load(&order, o.m, csv, &dg), ST_PARSE);
        if (!strstr(dg.text, cases[i][1]))
            fail_msg("expected '%s', got '%s'", cases[i][1], dg.text);
    }
    struct pack_order order;
    struct trace *t;
    assert_ok(trace_load(&t, small_trace_path(), &dg));
    assert_int_equal(pack_order_coactivation(&order, o.m, t, &dg), ST_MISFIT);
    trace_free(t);
    close_gguf(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_chosen_together_become_neighbours),
        cmocka_unit_test(an_order_from_any_trace_names_every_expert_once),
        cmocka_unit_test(orders_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
