/* loader_file.c -- opening a weight file for direct reads, and noticing that it changed. */
#include "kernels/loader/loader_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_power_of_two(uint32_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

static enum status look(struct loader_file *f, const struct loader_ops *ops, struct diag *dg)
{
    struct stat s;
    if (ops->stat(ops->self, f->path, &s) != 0)
        return diag_errno(dg, f->path, "cannot be looked at");
    if (!S_ISREG(s.st_mode))
        return diag_set(dg, ST_UNSUPPORTED, "%s: expected a regular file", f->path);
    f->identity = file_identity_of(&s);
    uint32_t align = ops->direct_align(ops->self, f->path);
    f->block_bytes = is_power_of_two(align) && align >= 64 ? align : LOADER_BLOCK_BYTES;
    return ST_OK;
}

/* Some file systems accept O_DIRECT and refuse the reads. 0, or the errno of a first read. */
static int try_read(const struct loader_file *f, const struct loader_ops *ops)
{
    size_t align = f->block_bytes > LOADER_BLOCK_BYTES ? f->block_bytes : LOADER_BLOCK_BYTES;
    void *block = aligned_alloc(align, align);
    if (!block)
        return ENOMEM;
    int error;
    do
        error = ops->pread(ops->self, f->fd, block, f->block_bytes, 0) < 0 ? errno : 0;
    while (error == EINTR);
    free(block);
    return error;
}

static enum status open_direct(struct loader_file *f, const struct loader_ops *ops, int *why,
                               struct diag *dg)
{
    f->fd = ops->open(ops->self, f->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    *why = f->fd < 0 ? errno : try_read(f, ops);
    f->direct = *why == 0;
    if (f->direct || *why == EINVAL || *why == EOPNOTSUPP)
        return ST_OK;
    if (*why == ENOMEM)
        return diag_no_memory(dg);
    errno = *why;
    return diag_errno(dg, f->path, f->fd < 0 ? "cannot be opened" : "cannot be read at offset 0");
}

static enum status open_either(struct loader_file *f, const struct loader_ops *ops, bool direct,
                               int *why, struct diag *dg)
{
    enum status status = look(f, ops, dg);
    if (status == ST_OK && direct)
        status = open_direct(f, ops, why, dg);
    if (status != ST_OK || f->direct)
        return status;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = ops->open(ops->self, f->path, O_RDONLY | O_CLOEXEC);
    return f->fd >= 0 ? ST_OK : diag_errno(dg, f->path, "cannot be opened");
}

enum status loader_file_open(struct loader_file *f, const struct loader_ops *ops, const char *path,
                             bool direct, int *direct_errno, struct diag *dg)
{
    *f = (struct loader_file){.path = strdup(path), .fd = -1};
    *direct_errno = 0;
    if (!f->path)
        return diag_no_memory(dg);
    enum status status = open_either(f, ops, direct, direct_errno, dg);
    const char *change = status == ST_OK ? loader_file_change(f, ops) : NULL;
    if (change)
        status = diag_set(dg, ST_IO, "%s: %s", path, change);
    if (status != ST_OK)
        loader_file_close(f);
    return status;
}

void loader_file_close(struct loader_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (struct loader_file){.fd = -1};
}

const char *loader_file_change(const struct loader_file *f, const struct loader_ops *ops)
{
    struct stat s;
    return file_identity_change(&f->identity, ops->stat(ops->self, f->path, &s) == 0 ? &s : NULL);
}
