/* experiment_file.h -- an experiment's keys are the options of the command that answers it, with '_' for
 * '-', and paths of descriptions as for --set. A point is that command, run for its row (capture.h). */
#ifndef CLI_EXPERIMENT_FILE_H
#define CLI_EXPERIMENT_FILE_H

#include "cli/command.h"
#include "experiments/sweep_run.h"

/* experiment_load() with the rules of the commands; --set of `a` goes over the file. */
MUST_CHECK enum status experiment_file_load(struct experiment **out, const char *path,
                                            const struct args *a, struct diag *dg);

/* The command that answers it. */
const struct command *experiment_command(const struct experiment *e);

/* Whether an experiment may set this option of its command. */
bool experiment_takes(const struct option *o);
/* The arguments of point `i`, as its command gets them; `words` owns their texts and must outlive them. */
MUST_CHECK enum status experiment_point_args(struct args **out, struct arena *words,
                                             const struct experiment *e, uint64_t i,
                                             struct diag *dg);
/* The command that a sweep's result with these columns came from, or NULL: all of its columns must be there. */
const struct command *experiment_command_of(bool (*has)(const void *self, const char *column),
                                            const void *self);

/* A runner for sweep_run(); the experiment must outlive it. NULL without memory; release with free(). */
struct sweep_runner *experiment_runner(const struct experiment *e);

#endif
