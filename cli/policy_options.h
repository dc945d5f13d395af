/* policy_options.h -- options that name policies, prefetchers and budgets, shared by the commands that
 * take decisions (replay, trace mrc, later sim and engine). */
#ifndef CLI_POLICY_OPTIONS_H
#define CLI_POLICY_OPTIONS_H

#include "cli/args.h"
#include "sim/policy/decide.h"

#define POLICY_NAMES                                                                               \
    "pinned fifo lru clock lfu lfu-aged slru sieve s3fifo arc least-stale random belady"

extern const char *const prefetch_names[];      /* none first, then the table of prefetchers */
extern const char *const prefetch_when_names[]; /* ordered, idle */

/* Rows for a command's option table. */
#define PREFETCH_OPTIONS                                                                           \
    {"prefetch", OPTION_CHOICE,                                                                    \
     "P",        "prefetcher: none previous-token frequency co-activation gate heads oracle",      \
     "none",     prefetch_names,                                                                   \
     0,          0,                                                                                \
     false},                                                                                       \
        {"prefetch-distance", OPTION_COUNT, "N", "layers ahead", "1", NULL, 1, 4096, false},       \
        {"prefetch-experts",                                                                       \
         OPTION_COUNT,                                                                             \
         "N",                                                                                      \
         "most experts a prediction may load (default top_k)",                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         1,                                                                                        \
         65535,                                                                                    \
         false},                                                                                   \
    {                                                                                              \
        "prefetch-budget", OPTION_SIZE, "SIZE", "most bytes in advance of one layer", NULL, NULL,  \
            1, 0, false                                                                            \
    }

/* Another row, for commands that have a device: 1 is timed. */
#define PREFETCH_WHEN_OPTION                                                                       \
    {                                                                                              \
        "prefetch-when", OPTION_CHOICE, "ordered|idle",                                            \
            "at once, or (timed) only while the drive has nothing else to do, dropping what "      \
            "comes "                                                                               \
            "too late",                                                                            \
            "ordered", prefetch_when_names, 0, 0, false                                            \
    }

struct policy_list {
    const struct cache_policy *policy[32];
    size_t count;
};
/* --policy: names separated by commas, or `all`. A misspelt one gets the nearest as a hint. */
MUST_CHECK enum status policy_list_read(struct policy_list *out, struct args *a, struct diag *dg);

struct size_list {
    uint64_t *size; /* lives as long as the arguments */
    size_t count;
};
MUST_CHECK enum status size_list_read(struct size_list *out, struct args *a, const char *option,
                                      struct diag *dg);

/* The PREFETCH_OPTIONS; *prefetch is NULL for none, a limit that was not given is 0. */
MUST_CHECK enum status prefetch_options_read(const struct args *a,
                                             const struct prefetch_policy **prefetch,
                                             uint32_t *distance, uint32_t *experts_max,
                                             uint64_t *bytes_max, struct diag *dg);

/* Its name in results, with `(timed)` behind it if its guesses wait for an idle device; NULL is none. */
const char *prefetch_label(const struct prefetch_policy *p, bool timed);

#endif
