/* none.c -- no cache: an expert stays for its own batch only, so every lookup misses. What an engine does
 * that reads each expert anew, and the lower end of every comparison. */
#include "sim/policy/cache_policy.h"

static size_t none_state_bytes(const struct policy_setup *s)
{
    (void)s;
    return 0;
}

static void none_start(void *state, const struct policy_setup *s)
{
    (void)state, (void)s;
}

static void none_touch(void *state, uint32_t key)
{
    (void)state, (void)key;
}

static uint32_t none_victim(void *state, const struct guard *g, uint32_t incoming)
{
    (void)state, (void)g, (void)incoming;
    return NO_KEY;
}

const struct cache_policy cache_none = {
    .name = "none",
    .summary = "no cache: every lookup misses",
    .keeps_nothing = true,
    .state_bytes = none_state_bytes,
    .start = none_start,
    .hit = none_touch,
    .insert = none_touch,
    .victim = none_victim,
};
