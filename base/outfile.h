/* outfile.h -- an output file that appears whole or not at all: written under a temporary name in
 * the same directory, checked, brought to the disk, then renamed. On any failure the temporary file is
 * removed (where the file system has files without a name, so it is when the process is killed) and what stood under
 * the path before is untouched. A path of "-" is standard output; a path
 * that is no regular file (/dev/null, /dev/full, a pipe) is written directly. A symbolic link is
 * followed; the mode is that of the file replaced, else as the umask has it.
 *
 * Every failure is ST_IO with the path and the system's reason. A closed pipe is one only if the
 * program ignores SIGPIPE; otherwise it ends the program. */
#ifndef BASE_OUTFILE_H
#define BASE_OUTFILE_H

#include "base/status.h"

#include <stdio.h>

struct outfile;

MUST_CHECK enum status outfile_open(struct outfile **out, const char *path, struct diag *dg);
FILE *outfile_stream(struct outfile *f); /* for fprintf and fwrite */
/* Only now does the file stand under its path. Frees f either way; standard output stays open. */
MUST_CHECK enum status outfile_commit(struct outfile *f, struct diag *dg);
/* Whether the path can be written, before work that ends in it: what outfile_open would say of it now. Nothing is
 * left behind, and nobody is waited for at the other end of a pipe. */
MUST_CHECK enum status outfile_check(const char *path, struct diag *dg);
void outfile_abandon(struct outfile *f); /* removes the temporary file; NULL is fine */

#endif
