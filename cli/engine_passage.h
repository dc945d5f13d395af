/* engine_passage.h -- a text for a model to read while something is learnt from it, shared by
 * `engine heads` and `engine repair`. */
#ifndef CLI_ENGINE_PASSAGE_H
#define CLI_ENGINE_PASSAGE_H

#include "cli/args.h"
#include "kernels/graph/engine.h"
#include "kernels/graph/tokenizer.h"

/* Rows for a command's option table. */
#define PASSAGE_OPTIONS                                                                            \
    {.name = "tokens-max",                                                                         \
     .type = OPTION_COUNT,                                                                         \
     .argument = "N",                                                                              \
     .help = "read at most so many tokens of the text",                                            \
     .fallback = "16384",                                                                          \
     .min = 1,                                                                                     \
     .max = 100000000},                                                                            \
        {.name = "window",                                                                         \
         .type = OPTION_COUNT,                                                                     \
         .argument = "N",                                                                          \
         .help = "tokens from an empty context (at most 512, or the model's context)",             \
         .min = 1,                                                                                 \
         .max = 1000000},                                                                          \
        {.name = "cache",                                                                          \
         .type = OPTION_SIZE,                                                                      \
         .argument = "SIZE",                                                                       \
         .help = "expert cache (all that fits)",                                                   \
         .min = 1},                                                                                \
        {.name = "threads",                                                                        \
         .type = OPTION_COUNT,                                                                     \
         .argument = "N",                                                                          \
         .help = "compute threads (all processors)",                                               \
         .min = 1,                                                                                 \
         .max = 1024},                                                                             \
    {                                                                                              \
        .name = "isa", .type = OPTION_TEXT, .argument = "ISA",                                     \
        .help = "instruction set of the kernels: auto, scalar, ...", .fallback = "auto"            \
    }

/* The tokens of a text file, by the vocabulary of the model, or (path NULL) those that --tokens
 * lists; cut to --tokens-max. */
MUST_CHECK enum status passage_read(struct token_list *out, struct args *a, const char *model,
                                    const char *path, struct diag *dg);

/* Everything of the setup that PASSAGE_OPTIONS and the model say, for an engine without surprises:
 * all experts that fit, least recently used out first. */
void passage_setup(struct engine_setup *s, const struct args *a, const char *model);
/* After --window, the model's own context and what is usual; the setup's context follows it. */
MUST_CHECK enum status passage_window(size_t *window, struct engine_setup *s, const struct args *a,
                                      struct diag *dg);

/* A graph_progress_fn whose `self` is a struct progress that was started. */
void passage_progress(void *self, uint64_t done, uint64_t all);

#endif
