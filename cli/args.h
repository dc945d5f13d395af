/* args.h -- the command line, from one table a command: the table is parser, limits and --help. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "base/quantity.h"

#include <stdbool.h>

enum option_type {
    OPTION_FLAG,
    OPTION_TEXT,    /* of at least `min` bytes */
    OPTION_COUNT,   /* whole number within min..max (max 0: no limit) */
    OPTION_SIZE,    /* 4GiB; a bare number is bytes */
    OPTION_CHOICE,  /* one of `choices`; args_count gives its position */
    OPTION_REPEATED /* text, may come several times */
};

struct option {
    const char *name; /* without the dashes */
    enum option_type type;
    const char *argument; /* placeholder in the help: "SIZE"; NULL for flags */
    const char *help;     /* one line */
    const char *fallback; /* default as text, shown in the help; NULL: none */
    const char *const *choices;
    uint64_t min, max;
    bool required;
};

struct command;
struct args;

/* Parses argv after the command's name. Misuse is ST_USAGE with a reason that names the nearest
 * option. --help is handled by the caller through args_help(). */
MUST_CHECK enum status args_parse(struct args **out, const struct command *c, int argc, char **argv,
                                  struct diag *dg);
void args_free(struct args *a);
/* Prints usage, options and example on stdout. */
void args_help(const struct command *c);

bool args_given(const struct args *a, const char *name); /* on the command line itself */
bool args_flag(const struct args *a, const char *name);
const char *args_text(const struct args *a, const char *name); /* given, else fallback, else NULL */
uint64_t args_count(const struct args *a, const char *name);   /* COUNT and SIZE; 0 if absent */
const char *const *args_list(const struct args *a, const char *name, size_t *count); /* REPEATED */
size_t args_positional_count(const struct args *a);
const char *args_positional(const struct args *a, size_t i); /* NULL past the end */

/* A run for its row instead of for print, see cli/capture.h; NULL for one from the command line. */
struct capture;
struct capture *args_capture(const struct args *a);
void args_set_capture(struct args *a, struct capture *c);

/* Whether `text` is a value that option `o` takes; ST_USAGE with the reason if not. */
MUST_CHECK enum status args_check_value(const struct option *o, const char *text, struct diag *dg);

/* Zeroed memory that lives as long as `a`, or NULL. */
void *args_memory(struct args *a, size_t bytes);

/* Splits "a,b,c"; the pieces live as long as `a`. NULL if there is no memory. */
const char *const *args_split(struct args *a, const char *text, size_t *count);

#endif
