/* lfu_aged.c -- LFU whose counts are halved after every ten uses per slot (Arlitt et al.'s aging, with a
 * period instead of an age), so that yesterday's favourites can leave when the topic changes. */
#include "sim/policy/use_counts.h"

enum { USES_PER_SLOT = 10 };

struct lfu_aged {
    struct use_counts counts;
    uint64_t uses, period;
    uint64_t memory[];
};

static size_t lfu_aged_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct lfu_aged) + use_counts_bytes(s->keys);
}

static void lfu_aged_start(void *state, const struct policy_setup *s)
{
    struct lfu_aged *l = state;
    l->period = (uint64_t)s->slots * USES_PER_SLOT;
    use_counts_start(&l->counts, l->memory, s->keys);
}

static void lfu_aged_use(void *state, uint32_t key)
{
    struct lfu_aged *l = state;
    use_counts_add(&l->counts, key);
    if (++l->uses < l->period)
        return;
    l->uses = 0;
    use_counts_halve(&l->counts);
}

static void lfu_aged_again(void *state, uint32_t key)
{
    use_counts_again(&((struct lfu_aged *)state)->counts, key);
}

static uint32_t lfu_aged_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    return use_counts_take(&((struct lfu_aged *)state)->counts, g);
}

const struct cache_policy cache_lfu_aged = {
    .name = "lfu-aged",
    .summary = "LFU with counts halved every ten uses a slot",
    .state_bytes = lfu_aged_state_bytes,
    .start = lfu_aged_start,
    .hit = lfu_aged_use,
    .again = lfu_aged_again,
    .insert = lfu_aged_use,
    .victim = lfu_aged_victim,
};
