/* outputs.h -- what a command writes, looked at before its work: a name that cannot be written is told at once and not
 * after an hour, and an output never replaces what the same run reads or writes elsewhere. */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include "cli/args.h"

/* `written` and `read` name options whose value is a path, and end with NULL; those that are not given are left
 * out. The positional arguments are read as well. ST_USAGE: one file in two places; ST_IO: an output cannot be
 * written. Standard output and what is no regular file (/dev/null, a pipe) may stand in several places. */
MUST_CHECK enum status outputs_check(const struct args *a, const char *const *written,
                                     const char *const *read, struct diag *dg);

/* None of the outputs is this file, which is read but stands in no option of its own. ST_USAGE. */
MUST_CHECK enum status outputs_spare(const struct args *a, const char *const *written,
                                     const char *path, struct diag *dg);

#endif
