/* lfu.c -- least frequently used since the start; among equals the one whose last use is oldest. Strong
 * on a skewed, stationary router; slow to forget. */
#include "sim/policy/use_counts.h"

struct lfu {
    struct use_counts counts;
    uint64_t memory[];
};

static size_t lfu_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct lfu) + use_counts_bytes(s->keys);
}

static void lfu_start(void *state, const struct policy_setup *s)
{
    struct lfu *l = state;
    use_counts_start(&l->counts, l->memory, s->keys);
}

static void lfu_use(void *state, uint32_t key)
{
    use_counts_add(&((struct lfu *)state)->counts, key);
}

static void lfu_again(void *state, uint32_t key)
{
    use_counts_again(&((struct lfu *)state)->counts, key);
}

static uint32_t lfu_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)incoming;
    return use_counts_take(&((struct lfu *)state)->counts, g);
}

const struct cache_policy cache_lfu = {
    .name = "lfu",
    .summary = "least frequently used since the start",
    .state_bytes = lfu_state_bytes,
    .start = lfu_start,
    .hit = lfu_use,
    .again = lfu_again,
    .insert = lfu_use,
    .victim = lfu_victim,
};
