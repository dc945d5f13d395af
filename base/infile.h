/* infile.h -- opening an input file so that no name makes the program wait for ever.
 *
 * Opening a named pipe waits until somebody writes to it. Here it does not: a pipe without a writer
 * is at its end at once, one with a writer is read as usual, waiting for its data.
 */
#ifndef BASE_INFILE_H
#define BASE_INFILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum infile_kind {
    INFILE_REGULAR, /* a file whose size is known and that can be read twice: all else is refused */
    INFILE_STREAM   /* pipes and devices too: read once, from its beginning to its end */
};

/* The descriptor is the caller's to close. ST_IO with `path: reason`. */
MUST_CHECK enum status infile_open(int *fd, const char *path, enum infile_kind kind,
                                   struct diag *dg);

/* Reads `bytes` at `offset` of a file, on after reads that are short or interrupted. *got is less only where the file ends:
 * that is the caller's to judge. ST_IO with `path: reason`. */
MUST_CHECK enum status infile_read_at(int fd, const char *path, void *to, size_t bytes,
                                      uint64_t offset, size_t *got, struct diag *dg);

#endif
