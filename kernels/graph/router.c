/* router.c -- see router.h. */
#include "kernels/graph/router.h"

#include "kernels/isa/top_k.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Keeps weights numbers where all probabilities are 0; as DeepSeek-V3's published modelling code has it. */
#define LEAST_SUM 1e-20f

/* What a group of n is worth: its best expert, or its best two together. */
static float worth_of(const float *score, size_t n, bool two)
{
    float first = -INFINITY, second = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (score[i] > first) {
            second = first;
            first = score[i];
        } else if (score[i] > second) {
            second = score[i];
        }
    return two && n > 1 ? first + second : first;
}

/* Leaves only the experts of the best groups. */
static void keep_groups(const struct graph_numbers *n, float *score, size_t experts)
{
    float worth[ROUTER_CHOICE_MAX];
    uint32_t best[ROUTER_CHOICE_MAX];
    bool kept[ROUTER_CHOICE_MAX] = {false};
    size_t each = experts / n->groups;
    if (n->groups <= 1 || n->groups_used >= n->groups)
        return;
    for (size_t g = 0; g < n->groups; g++)
        worth[g] = worth_of(score + g * each, each, n->gating == GATING_SIGMOID);
    top_k(best, n->groups_used, worth, n->groups);
    for (size_t g = 0; g < n->groups_used; g++)
        kept[best[g]] = true;
    for (size_t i = 0; i < experts; i++)
        if (!kept[i / each])
            score[i] = -INFINITY;
}

void router_scores(const struct graph_weights *w, const struct isa *isa, size_t layer,
                   float *probability, float *score)
{
    size_t experts = w->model->layers[layer].ffn.experts;
    const float *bias = w->layers[layer].select_bias;
    if (w->numbers.gating == GATING_SOFTMAX)
        isa->softmax(probability, experts);
    for (size_t i = 0; w->numbers.gating == GATING_SIGMOID && i < experts; i++)
        probability[i] = 1.0f / (1.0f + isa_exp(-probability[i]));
    for (size_t i = 0; i < experts; i++)
        score[i] = probability[i] + (bias ? bias[i] : 0.0f);
    keep_groups(&w->numbers, score, experts);
}

void router_choose(const float *score, size_t experts, size_t count, uint16_t *ids)
{
    uint32_t index[ROUTER_CHOICE_MAX];
    assert(count <= ROUTER_CHOICE_MAX);
    top_k(index, count, score, experts);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint16_t)index[i];
}

void router_weights(const struct graph_weights *w, const struct isa *isa, const float *probability,
                    const uint16_t *ids, size_t count, float *weights)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        weights[i] = probability[ids[i]];
    if (w->numbers.gating == GATING_SOFTMAX_CHOSEN) {
        isa->softmax(weights, count);
    } else if (w->numbers.normalised) {
        for (size_t i = 0; i < count; i++)
            sum += weights[i];
        for (size_t i = 0; i < count; i++)
            weights[i] /= sum + LEAST_SUM;
    }
    for (size_t i = 0; i < count; i++)
        weights[i] *= w->numbers.weights_scale;
}
