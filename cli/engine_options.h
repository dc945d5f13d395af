/* engine_options.h -- options that say how the reference engine runs, shared by the commands that run it. */
#ifndef CLI_ENGINE_OPTIONS_H
#define CLI_ENGINE_OPTIONS_H

#include "cli/args.h"
#include "cli/policy_options.h"
#include "kernels/graph/engine.h"

/* By name: what a choice option takes, in the order of its values. */
extern const char *const io_names[], *const direct_names[], *const engine_overlap_names[],
                                                                *const activation_names[];

/* Rows for a command's option table, beside PREFETCH_OPTIONS and PREFETCH_WHEN_OPTION. */
#define ENGINE_OPTIONS                                                                              \
    {"cache", OPTION_SIZE, "SIZE", "expert cache (all that fits)", NULL, NULL, 1, 0, false},        \
        {"memory", OPTION_SIZE, "SIZE", "all memory of the run: the cache gets what is left",       \
         NULL,     NULL,        1,      0,                                                          \
         false},                                                                                    \
        {"policy", OPTION_TEXT, "P", "cache policy: none " POLICY_NAMES, "lru", NULL, 0, 0, false}, \
        {"scope",                                                                                   \
         OPTION_CHOICE,                                                                             \
         "global|layer",                                                                            \
         "one cache, or an equal share a layer",                                                    \
         "global",                                                                                  \
         scope_names,                                                                               \
         0,                                                                                         \
         0,                                                                                         \
         false},                                                                                    \
        {"evict",                                                                                   \
         OPTION_CHOICE,                                                                             \
         "before|after",                                                                            \
         "make room before a load, or shrink when the layer ends",                                  \
         "before",                                                                                  \
         evict_names,                                                                               \
         0,                                                                                         \
         0,                                                                                         \
         false},                                                                                    \
        {"io", OPTION_CHOICE, "uring|threads", "how experts are read", "uring", io_names, 0,        \
         0,    false},                                                                              \
        {"depth", OPTION_COUNT,     "N",  "reads in flight at most", "16", NULL,                    \
         1,       LOADER_DEPTH_MAX, false},                                                         \
        {"direct", OPTION_CHOICE, "on|off", "past the page cache, or through it",                   \
         "on",     direct_names,  0,        0,                                                      \
         false},                                                                                    \
        {"overlap",                                                                                 \
         OPTION_CHOICE,                                                                             \
         "serial|expert",                                                                           \
         "all reads of a layer before its experts, or experts as they arrive",                      \
         "expert",                                                                                  \
         engine_overlap_names,                                                                      \
         0,                                                                                         \
         0,                                                                                         \
         false},                                                                                    \
        {"limit-rate", OPTION_TEXT, "RATE", "emulate slower flash: 500MB/s", NULL, NULL, 0, 0,      \
         false},                                                                                    \
        {"add-latency", OPTION_TEXT, "TIME", "emulate slower flash: 200us more a read",             \
         NULL,          NULL,        0,      0,                                                     \
         false},                                                                                    \
        {"threads", OPTION_COUNT, "N",  "compute threads (all processors)", NULL, NULL,             \
         1,         1024,         false},                                                           \
        {"isa",  OPTION_TEXT, "ISA", "instruction set of the kernels: auto, scalar, ...",           \
         "auto", NULL,        0,     0,                                                             \
         false},                                                                                    \
        {"activations",                                                                             \
         OPTION_CHOICE,                                                                             \
         "q8|f32",                                                                                  \
         "8-bit activations, or full precision (slow; for tests)",                                  \
         "q8",                                                                                      \
         activation_names,                                                                          \
         0,                                                                                         \
         0,                                                                                         \
         false},                                                                                    \
        {"chunk", OPTION_COUNT, "N", "tokens of the prompt that go through the layers together",    \
         "32",    NULL,         1,   4096,                                                          \
         false},                                                                                    \
        {"context", OPTION_COUNT, "N", "tokens of state (the prompt and what is generated)",        \
         NULL,      NULL,         1,   100000000,                                                   \
         false},                                                                                    \
    {                                                                                               \
        "pack", OPTION_TEXT, "FILE", "experts from this packed file (memwall engine pack)", NULL,   \
            NULL, 0, 0, false                                                                       \
    }

/* Fills the setup but for the model, the context's default and what is recorded. ST_USAGE. */
MUST_CHECK enum status engine_options_read(struct engine_setup *s, struct args *a, struct diag *dg);

#endif
