/* frequency.c -- guesses the experts that a layer has used most often so far. Helps on a skewed router,
 * and only for experts that the cache did not already keep for the same reason. */
#include "sim/policy/best_experts.h"
#include "sim/policy/prefetch_policy.h"

struct frequency {
    uint32_t experts;
    uint32_t uses[]; /* by layer and expert */
};

static size_t frequency_state_bytes(const struct prefetch_setup *s)
{
    return sizeof(struct frequency) + (size_t)s->layers * s->experts * sizeof(uint32_t);
}

static void frequency_start(void *state, const struct prefetch_setup *s)
{
    ((struct frequency *)state)->experts = s->experts;
}

static void frequency_learn(void *state, uint32_t layer, const uint16_t *ids, size_t n)
{
    struct frequency *f = state;
    for (size_t i = 0; i < n; i++)
        f->uses[(size_t)layer * f->experts + ids[i]]++;
}

static size_t frequency_guess(void *state, uint32_t layer, const uint16_t *ids, size_t n,
                              uint32_t target, uint16_t *out, size_t most)
{
    (void)layer, (void)ids, (void)n;
    struct frequency *f = state;
    return best_experts(&f->uses[(size_t)target * f->experts], f->experts, out, most);
}

const struct prefetch_policy prefetch_frequency = {
    .name = "frequency",
    .summary = "what the layer has used most often",
    .state_bytes = frequency_state_bytes,
    .start = frequency_start,
    .learn = frequency_learn,
    .guess = frequency_guess,
};
