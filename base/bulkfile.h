/* bulkfile.h -- an output of gigabytes, written at the speed of its disk.
 *
 * An outfile (temporary name, renamed when whole) that is written past the page cache: in aligned pieces of
 * some megabytes, with O_DIRECT where the file system has it. Through the page cache the same write competes
 * with everything the cache holds, and evicts it. What cannot be written so (standard output, pipes,
 * file systems without O_DIRECT) is written in the same pieces the usual way.
 *
 * The size is known beforehand: a disk without room for it is refused before anything is written. One thread
 * uses a bulkfile; another, its own, writes the last piece while the next one is filled. A write that fails is
 * reported by one of the calls that follow, at the latest by bulkfile_commit. */
#ifndef BASE_BULKFILE_H
#define BASE_BULKFILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct bulkfile;

/* `bytes` is what will be written in all. ST_IO: cannot be written; ST_MISFIT: not enough free space, both
 * figures named. */
MUST_CHECK enum status bulkfile_open(struct bulkfile **out, const char *path, uint64_t bytes,
                                     struct diag *dg);
MUST_CHECK enum status bulkfile_write(struct bulkfile *f, const void *data, size_t bytes,
                                      struct diag *dg);
MUST_CHECK enum status bulkfile_zeros(struct bulkfile *f, uint64_t count, struct diag *dg);
uint64_t bulkfile_at(const struct bulkfile *f); /* bytes written so far */
/* Only now does the file stand under its path; exactly `bytes` must have been written. Frees f either way. */
MUST_CHECK enum status bulkfile_commit(struct bulkfile *f, struct diag *dg);
void bulkfile_abandon(struct bulkfile *f); /* removes the temporary file; NULL is fine */

#endif
