/* file_identity.c -- see file_identity.h. */
#include "base/file_identity.h"

#include <stddef.h>

struct file_identity file_identity_of(const struct stat *s)
{
    return (struct file_identity){.bytes = (uint64_t)s->st_size,
                                  .device = s->st_dev,
                                  .inode = s->st_ino,
                                  .changed = s->st_mtim};
}

const char *file_identity_change(const struct file_identity *was, const struct stat *now)
{
    if (!now)
        return "the file is no longer there";
    if (now->st_dev != was->device || now->st_ino != was->inode)
        return "the file was replaced by another while it was read";
    if ((uint64_t)now->st_size != was->bytes)
        return "the file's size changed while it was read";
    if (now->st_mtim.tv_sec != was->changed.tv_sec || now->st_mtim.tv_nsec != was->changed.tv_nsec)
        return "the file was written to while it was read";
    return NULL;
}

const char *file_identity_change_at(const struct file_identity *was, const char *path)
{
    struct stat now;
    return file_identity_change(was, stat(path, &now) == 0 ? &now : NULL);
}
