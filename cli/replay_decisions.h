/* replay_decisions.h -- `memwall replay --decisions`: the calls of a decision log made again. */
#ifndef CLI_REPLAY_DECISIONS_H
#define CLI_REPLAY_DECISIONS_H

#include "cli/args.h"

/* Prints one row; ST_MISFIT with the first difference if the commands are not those of the file. */
MUST_CHECK enum status replay_decisions(struct args *a, const char *path, struct diag *dg);

#endif
