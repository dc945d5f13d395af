/* infile.c -- see infile.h. */
#include "base/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status examine(int fd, const char *path, enum infile_kind kind, struct diag *dg)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return diag_errno(dg, path, "cannot be examined");
    if (kind == INFILE_REGULAR && !S_ISREG(info.st_mode))
        return diag_set(dg, ST_IO, "%s: a regular file is expected", path);
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return diag_errno(dg, path, "cannot be read");
    }
    int flags = fcntl(fd, F_GETFL); /* from here on a read may wait */
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return diag_errno(dg, path, "cannot be examined");
    return ST_OK;
}

enum status infile_open(int *fd, const char *path, enum infile_kind kind, struct diag *dg)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return diag_errno(dg, path, "cannot be opened");
    enum status st = examine(*fd, path, kind, dg);
    if (st != ST_OK) {
        close(*fd);
        *fd = -1;
    }
    return st;
}

enum status infile_read_at(int fd, const char *path, void *to, size_t bytes, uint64_t offset,
                           size_t *got, struct diag *dg)
{
    *got = 0;
    while (*got < bytes) {
        ssize_t n = pread(fd, (char *)to + *got, bytes - *got, (off_t)(offset + *got));
        if (n < 0 && errno != EINTR)
            return diag_errno(dg, path, "cannot be read");
        if (n == 0)
            return ST_OK;
        *got += n > 0 ? (size_t)n : 0;
    }
    return ST_OK;
}
