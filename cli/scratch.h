/* scratch.h -- temporary folders that a signal does not leave behind. They are flat: files, and no folders in them.
 *
 * The list of those in use is the one thing a signal's handler can look at, so it is kept for the process. Output
 * files need none of this: until they are whole they have no name (base/outfile.h). */
#ifndef CLI_SCRATCH_H
#define CLI_SCRATCH_H

#include "base/status.h"

#define SCRATCH_PATH_MAX 64

/* From now on INT, TERM and HUP remove what is in use before they end the process, which ends by that signal as it would
 * have without. One that is ignored (nohup) stays ignored. */
void scratch_watch(void);

/* Makes /tmp/memwall-NAME-XXXXXX and writes its path. ST_IO. */
MUST_CHECK enum status scratch_open(char path[SCRATCH_PATH_MAX], const char *name, struct diag *dg);
/* Removes the folder with what is in it. */
void scratch_close(const char *path);

#endif
