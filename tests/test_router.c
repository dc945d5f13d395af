/* test_router.c -- from logits to experts and weights, against numbers made by hand. */
#include "tests/support.h"

#include "kernels/graph/router.h"

#include <math.h>

#define EXPERTS 8

/* A model of one layer that has only a router. */
struct router {
    struct layer layer;
    struct model model;
    struct layer_weights weights;
    struct graph_weights w;
    const struct isa *isa;
};

static void set_up(struct router *r, enum gating gating, uint32_t groups, uint32_t used)
{
    struct diag dg;
    *r = (struct router){.layer.ffn = {.experts = EXPERTS, .top_k = 2}};
    r->model = (struct model){.layer_count = 1, .layers = &r->layer};
    r->w = (struct graph_weights){.model = &r->model, .layers = &r->weights};
    r->w.numbers = (struct graph_numbers){.gating = gating,
                                          .groups = groups,
                                          .groups_used = used,
                                          .normalised = true,
                                          .weights_scale = 1};
    assert_ok(isa_choose(&r->isa, "scalar", &dg));
}

static void choose(const struct router *r, const float logit[EXPERTS], uint16_t ids[2],
                   float weights[2])
{
    float probability[EXPERTS], score[EXPERTS];
    memcpy(probability, logit, sizeof probability);
    router_scores(&r->w, r->isa, 0, probability, score);
    router_choose(score, EXPERTS, 2, ids);
    router_weights(&r->w, r->isa, probability, ids, 2, weights);
}

/* Four groups of two, of which one is used: {0.1, 3.0}, {2.5, 2.4}, {0, 0}, {0, 0}. The best expert is in the first,
 * the best two together are in the second. */
static const float two_kinds_of_best[EXPERTS] = {0.1F, 3.0F, 2.5F, 2.4F, 0, 0, 0, 0};

static void a_softmax_ranks_groups_by_their_best_expert(void **state)
{
    struct router r;
    uint16_t ids[2];
    float weights[2];
    (void)state;
    set_up(&r, GATING_SOFTMAX, 4, 1);
    choose(&r, two_kinds_of_best, ids, weights);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 0);
    assert_close((double)weights[0], 1 / (1 + exp(0.1 - 3.0)), 1e-6); /* of the two that are left */
}

static void sigmoids_rank_groups_by_their_best_two_experts(void **state)
{
    struct router r;
    uint16_t ids[2];
    float weights[2];
    (void)state;
    set_up(&r, GATING_SIGMOID, 4, 1);
    choose(&r, two_kinds_of_best, ids, weights);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], 3);
    double a = 1 / (1 + exp(-2.5)), b = 1 / (1 + exp(-2.4));
    assert_close((double)weights[0], a / (a + b), 1e-6);
    assert_close((double)weights[1], b / (a + b), 1e-6);
}

/* The bias decides who is chosen, groups too, and has no part in the weight. */
static void a_selection_bias_chooses_and_does_not_weigh(void **state)
{
    static const float bias[EXPERTS] = {0, 0, 0, 0, 0, 0, 1.0F, 0.9F};
    struct router r;
    uint16_t ids[2];
    float weights[2];
    (void)state;
    set_up(&r, GATING_SIGMOID, 4, 1);
    r.weights.select_bias = bias;
    choose(&r, two_kinds_of_best, ids, weights);
    assert_int_equal(ids[0], 6);
    assert_int_equal(ids[1], 7);
    assert_close((double)weights[0], 0.5, 1e-6);
    assert_close((double)weights[1], 0.5, 1e-6);
}

static void with_two_groups_of_four_used_the_others_are_left_out(void **state)
{
    /* Best of the groups: 3.0, 2.5, 2.9, 0; without groups experts 1 and 4 of 3.0 and 2.9. */
    static const float logit[EXPERTS] = {0.1F, 3.0F, 2.5F, 2.4F, 2.9F, 2.8F, 0, 0};
    struct router r;
    uint16_t ids[2];
    float weights[2];
    (void)state;
    set_up(&r, GATING_SOFTMAX, 2, 1); /* groups of four: 3.0 against 2.9 */
    choose(&r, logit, ids, weights);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    set_up(&r, GATING_SOFTMAX, 1, 1);
    choose(&r, logit, ids, weights);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 4);
}

/* Sigmoids of logits below -104 are 0 in F32, and so is their sum. */
static void weights_stay_numbers_where_all_probabilities_are_0(void **state)
{
    float logit[EXPERTS], weights[2];
    struct router r;
    uint16_t ids[2];
    (void)state;
    for (size_t i = 0; i < EXPERTS; i++)
        logit[i] = -200;
    set_up(&r, GATING_SIGMOID, 1, 1);
    choose(&r, logit, ids, weights);
    for (size_t i = 0; i < 2; i++)
        assert_true(weights[i] >= 0 && weights[i] <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_softmax_ranks_groups_by_their_best_expert),
        cmocka_unit_test(sigmoids_rank_groups_by_their_best_two_experts),
        cmocka_unit_test(a_selection_bias_chooses_and_does_not_weigh),
        cmocka_unit_test(with_two_groups_of_four_used_the_others_are_left_out),
        cmocka_unit_test(weights_stay_numbers_where_all_probabilities_are_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
