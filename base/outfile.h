/* outfile.h -- an output file that appears whole or not at all: written under a temporary name in
 * the same directory, checked, then renamed. A path of "-" is standard output. */
#ifndef BASE_OUTFILE_H
#define BASE_OUTFILE_H

#include "base/status.h"

#include <stdio.h>

struct outfile;

MUST_CHECK enum status outfile_open(struct outfile **out, const char *path, struct diag *dg);
FILE *outfile_stream(struct outfile *f);                 /* for fprintf and fwrite */
MUST_CHECK enum status outfile_commit(struct outfile *f, struct diag *dg); /* frees f either way */
void outfile_abandon(struct outfile *f);                 /* removes the temporary file; NULL is fine */

#endif
