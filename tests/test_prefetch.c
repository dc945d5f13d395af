/* test_prefetch.c -- what each prefetcher guesses after a history short enough to see through, and what a
 * wrong guess is charged with. */
#include "tests/support.h"

#include "sim/policy/decide.h"

static struct diag dg;

static void *start(const struct prefetch_policy *p, uint32_t layers, uint32_t experts,
                   uint32_t distance)
{
    struct prefetch_setup s = {layers, experts, distance};
    void *state = calloc(1, p->state_bytes(&s));
    assert_non_null(state);
    p->start(state, &s);
    return state;
}

static void previous_token_guesses_the_whole_last_batch_in_its_order(void **unused)
{
    (void)unused;
    const struct prefetch_policy *p = prefetch_policy_find("previous-token");
    void *state = start(p, 3, 16, 1);
    const uint16_t one[] = {5, 9, 2}, two[] = {7};
    uint16_t out[16];
    assert_int_equal(p->guess(state, 0, two, 1, 1, out, 8), 0);
    p->learn(state, 1, one, 3);
    assert_int_equal(p->guess(state, 0, two, 1, 1, out, 8), 3);
    assert_memory_equal(out, one, sizeof one);
    assert_int_equal(p->guess(state, 0, two, 1, 1, out, 2), 2);
    p->learn(state, 1, two, 1);
    assert_int_equal(p->guess(state, 0, one, 3, 1, out, 8), 1);
    assert_int_equal(out[0], 7);
    free(state);
}

static void frequency_guesses_the_most_used_first(void **unused)
{
    (void)unused;
    const struct prefetch_policy *p = prefetch_policy_find("frequency");
    void *state = start(p, 2, 16, 1);
    const uint16_t history[][2] = {{9, 4}, {4, 3}, {3, 4}};
    uint16_t out[16];
    for (size_t i = 0; i < 3; i++)
        p->learn(state, 1, history[i], 2);
    assert_int_equal(p->guess(state, 0, history[0], 2, 1, out, 8), 3);
    assert_int_equal(out[0], 4);
    assert_int_equal(out[1], 3);
    assert_int_equal(out[2], 9);
    assert_int_equal(p->guess(state, 0, history[0], 2, 0, out, 8), 0);
    free(state);
}

static void coactivation_guesses_what_went_together_most_often(void **unused)
{
    (void)unused;
    const struct prefetch_policy *p = prefetch_policy_find("co-activation");
    void *state = start(p, 2, 16, 1);
    const uint16_t four[] = {4}, five[] = {5}, both[] = {6, 7}, seven[] = {7}, eight[] = {8};
    uint16_t out[16];
    p->learn(state, 0, four, 1);
    p->learn(state, 1, both, 2);
    p->learn(state, 0, four, 1);
    p->learn(state, 1, seven, 1);
    p->learn(state, 0, five, 1);
    p->learn(state, 1, eight, 1);
    assert_int_equal(p->guess(state, 0, four, 1, 1, out, 8), 2);
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 6);
    free(state);
}

/* Two layers ahead of the last but one is the first layer of the next pass. */
static void coactivation_reaches_into_the_next_pass(void **unused)
{
    (void)unused;
    const struct prefetch_policy *p = prefetch_policy_find("co-activation");
    void *state = start(p, 3, 8, 2);
    const uint16_t three[] = {3}, five[] = {5}, other[] = {1};
    uint16_t out[8];
    p->learn(state, 0, other, 1);
    p->learn(state, 1, three, 1);
    p->learn(state, 2, other, 1);
    p->learn(state, 0, five, 1);
    assert_int_equal(p->guess(state, 1, three, 1, 0, out, 8), 1);
    assert_int_equal(out[0], 5);
    free(state);
}

static void step(struct decide *d, uint32_t pass, uint32_t layer, uint16_t expert, int guess)
{
    size_t count;
    decide_batch(d, pass, layer, &expert, 1, &count);
    uint16_t id = (uint16_t)guess;
    if (guess >= 0)
        decide_predict(d, pass, layer, (layer + 1) % 2, &id, NULL, 1, &count);
    decide_layer_end(d, pass, layer, &count);
}

/* Two slots. The guess of layer 1's expert 2 drives out its expert 1, which is wanted next: pollution. The
 * miss of layer 0's expert 0 afterwards is not, because a demand drove it out. */
static void only_what_a_prefetch_drove_out_is_pollution(void **unused)
{
    (void)unused;
    const uint64_t bytes[] = {1, 1};
    const struct decide_setup setup = {.policy = cache_policy_find("lru"),
                                       .prefetch = prefetch_policy_find("gate"),
                                       .layers = 2,
                                       .experts = 4,
                                       .expert_bytes = bytes,
                                       .budget_bytes = 2,
                                       .prefetch_distance = 1,
                                       .prefetch_experts_max = 1};
    struct decide *d;
    assert_ok(decide_new(&d, &setup, 1, &dg));
    step(d, 0, 0, 0, -1);
    step(d, 0, 1, 1, -1);
    step(d, 1, 0, 0, 2);
    step(d, 1, 1, 1, -1);
    const struct decide_counts *c = decide_counts(d);
    assert_int_equal(c->hits, 1);
    assert_int_equal(c->prefetches, 1);
    assert_int_equal(c->pollution, 1);
    step(d, 2, 0, 0, -1);
    assert_int_equal(c->misses, 4);
    assert_int_equal(c->pollution, 1);
    assert_int_equal(c->prefetch_used, 0);
    assert_int_equal(c->prefetch_wasted, 1);
    assert_int_equal(c->demand_bytes, 4);
    assert_int_equal(c->prefetch_bytes, 1);
    decide_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(previous_token_guesses_the_whole_last_batch_in_its_order),
        cmocka_unit_test(frequency_guesses_the_most_used_first),
        cmocka_unit_test(coactivation_guesses_what_went_together_most_often),
        cmocka_unit_test(coactivation_reaches_into_the_next_pass),
        cmocka_unit_test(only_what_a_prefetch_drove_out_is_pollution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
