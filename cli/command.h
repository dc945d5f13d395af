/* command.h -- a subcommand: one file, one row of the table in main.c. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/args.h"

struct command {
    const char *name;    /* "replay", "model show" */
    const char *summary; /* one line */
    const char *usage;   /* arguments: "MODEL --device D [--quant Q]" */
    const char *example; /* a full command that works on a fresh checkout */
    const struct option
        *options; /* ends with a NULL name; --format --seed --set --help are common */
    size_t positional_min, positional_max;
    bool no_set; /* reads no description: --set is misuse */
    /* Of a command that may be the method of an experiment: the row it prints for one run, and the flag that
     * asks for that row, if it usually prints something else. */
    const struct column *columns;
    size_t column_count;
    const char *row_flag;
    enum status (*run)(struct args *a, struct diag *dg);
};

/* Where a part of the catalogue ("models/desc") lies: beside the program (also one or two folders up, as
 * in build/CONFIG), or under share/memwall of its prefix. Writes the path into `buffer` and returns it. */
#define CATALOGUE_PATH_MAX 4096
const char *catalogue_dir(char *buffer, size_t size, const char *what);

/* The bundled model's path, written into `buffer`. */
const char *catalogue_bundled_model(char buffer[CATALOGUE_PATH_MAX]);

/* All commands; ends with a NULL name. */
extern const struct command *const commands[];

/* memwall: warning or note on stderr. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
