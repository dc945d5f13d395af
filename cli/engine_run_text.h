/* engine_run_text.h -- text in and out of an engine's run, or token ids where the model has no vocabulary. */
#ifndef CLI_ENGINE_RUN_TEXT_H
#define CLI_ENGINE_RUN_TEXT_H

#include "cli/args.h"
#include "kernels/graph/tokenizer.h"

struct engine_text {
    struct tokenizer *tokenizer; /* NULL: ids only */
    struct diag why_none;
};

/* A model without vocabulary is fine; other failures of the file are returned. */
MUST_CHECK enum status engine_text_open(struct engine_text *t, const char *path, struct diag *dg);
void engine_text_close(struct engine_text *t);

/* From --prompt, --prompt-file or --tokens, of which one must be given unless --route is. */
MUST_CHECK enum status engine_text_prompt(struct token_list *out, const struct engine_text *t,
                                          struct args *a, struct diag *dg);

/* The whole of a text file; the ids of --tokens. ST_USAGE: no vocabulary, or nothing in it. */
MUST_CHECK enum status engine_text_file(struct token_list *out, const struct engine_text *t,
                                        const char *path, struct diag *dg);
MUST_CHECK enum status engine_text_ids(struct token_list *out, struct args *a, struct diag *dg);

bool engine_text_ends(const struct engine_text *t, uint32_t token);
/* Onto standard output, at once; ids are separated by commas. ST_IO: nobody takes it. */
MUST_CHECK enum status engine_text_print(const struct engine_text *t, uint32_t token, bool first,
                                         struct diag *dg);

#endif
