/* infile.h -- opening an input file so that no name makes the program wait for ever.
 *
 * Opening a named pipe waits until somebody writes to it. Here it does not: a pipe without a writer
 * is at its end at once, one with a writer is read as usual, waiting for its data.
 */
#ifndef BASE_INFILE_H
#define BASE_INFILE_H

#include "base/status.h"

enum infile_kind {
    INFILE_REGULAR, /* a file whose size is known and that can be read twice: all else is refused */
    INFILE_STREAM   /* pipes and devices too: read once, from its beginning to its end */
};

/* The descriptor is the caller's to close. ST_IO with `path: reason`. */
MUST_CHECK enum status infile_open(int *fd, const char *path, enum infile_kind kind,
                                   struct diag *dg);

#endif
