/* loader_file.h -- a weight file that is read past the page cache, and watched for being changed.
 *
 * What the file was when it was opened (device, inode, size, time of last change) is kept; after
 * each load the path is looked at again. A file that was written to, truncated, replaced or removed
 * under the run is an error from then on, even where an open descriptor would still show the old
 * bytes. Writes through a mapping show late, when the kernel stamps the time; against those only
 * checksums help.
 */
#ifndef KERNELS_LOADER_LOADER_FILE_H
#define KERNELS_LOADER_LOADER_FILE_H

#include "base/file_identity.h"
#include "base/status.h"
#include "kernels/loader/loader_ops.h"

#include <stdbool.h>

#define LOADER_BLOCK_BYTES 4096u /* where the file system does not tell its own */

struct loader_file {
    char *path;
    int fd;
    bool direct;
    uint32_t block_bytes;          /* a power of two; the same for direct and buffered reads */
    struct file_identity identity; /* when opened */
};

/* Opens a regular file. Where O_DIRECT is refused, by open() or by a first read, the file is opened
 * buffered and `*direct_errno` tells why (else 0). ST_IO: cannot be opened, looked at or read;
 * ST_UNSUPPORTED: no regular file. */
MUST_CHECK enum status loader_file_open(struct loader_file *f, const struct loader_ops *ops,
                                        const char *path, bool direct, int *direct_errno,
                                        struct diag *dg);
void loader_file_close(struct loader_file *f);

/* NULL if the path still names the same, unchanged file; else what happened to it. */
const char *loader_file_change(const struct loader_file *f, const struct loader_ops *ops);

#endif
