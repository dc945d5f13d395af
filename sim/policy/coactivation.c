/* coactivation.c -- learns online which experts of a later layer were used together with each expert of
 * this one, and guesses those with the most joint uses. Sees expert numbers only, no activations. */
#include "sim/policy/best_experts.h"
#include "sim/policy/prefetch_policy.h"

#include <string.h>

struct coactivation {
    uint32_t layers, experts, distance;
    uint32_t *score;      /* scratch, one an expert */
    uint32_t *last_count; /* by layer: size of its last batch */
    uint16_t *last;       /* by layer: that batch */
    uint16_t *joint;      /* [layer][expert][expert of layer + distance], saturating */
    uint32_t memory[];
};

static size_t coactivation_state_bytes(const struct prefetch_setup *s)
{
    size_t pairs = (size_t)s->layers * s->experts;
    return sizeof(struct coactivation) + (s->experts + s->layers) * sizeof(uint32_t) +
           (pairs + pairs * s->experts) * sizeof(uint16_t);
}

static void coactivation_start(void *state, const struct prefetch_setup *s)
{
    struct coactivation *c = state;
    c->layers = s->layers;
    c->experts = s->experts;
    c->distance = s->distance;
    c->score = c->memory;
    c->last_count = c->score + s->experts;
    c->last = (uint16_t *)(c->last_count + s->layers);
    c->joint = c->last + (size_t)s->layers * s->experts;
}

static uint16_t *joint_of(struct coactivation *c, uint32_t layer, uint32_t expert)
{
    return c->joint + ((size_t)layer * c->experts + expert) * c->experts;
}

static void coactivation_learn(void *state, uint32_t layer, const uint16_t *ids, size_t n)
{
    struct coactivation *c = state;
    uint16_t *own = c->last + (size_t)layer * c->experts;
    memcpy(own, ids, n * sizeof *ids);
    c->last_count[layer] = (uint32_t)n;
    uint32_t from = (layer + c->layers - c->distance % c->layers) % c->layers;
    const uint16_t *source = c->last + (size_t)from * c->experts;
    for (uint32_t i = 0; i < c->last_count[from]; i++) {
        uint16_t *joint = joint_of(c, from, source[i]);
        for (size_t j = 0; j < n; j++)
            joint[ids[j]] += joint[ids[j]] < UINT16_MAX;
    }
}

static size_t coactivation_guess(void *state, uint32_t layer, const uint16_t *ids, size_t n,
                                 uint32_t target, uint16_t *out, size_t most)
{
    (void)target;
    struct coactivation *c = state;
    memset(c->score, 0, c->experts * sizeof *c->score);
    for (size_t i = 0; i < n; i++) {
        const uint16_t *joint = joint_of(c, layer, ids[i]);
        for (uint32_t e = 0; e < c->experts; e++)
            c->score[e] += joint[e];
    }
    return best_experts(c->score, c->experts, out, most);
}

const struct prefetch_policy prefetch_coactivation = {
    .name = "co-activation",
    .summary = "what was used together with this layer's experts, learned online",
    .state_bytes = coactivation_state_bytes,
    .start = coactivation_start,
    .learn = coactivation_learn,
    .guess = coactivation_guess,
};
