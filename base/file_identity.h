/* file_identity.h -- whether a path still names the file that was read, unchanged.
 *
 * A model is opened several times in a run (its header, its dense weights, its experts); between two of these it
 * may be replaced, truncated or written to. Kept is what stat() says: device, inode, size, time of the last
 * change. Writes through a mapping show late, when the kernel stamps the time. */
#ifndef BASE_FILE_IDENTITY_H
#define BASE_FILE_IDENTITY_H

#include <stdint.h>
#include <sys/stat.h>

struct file_identity {
    uint64_t bytes;
    dev_t device;
    ino_t inode;
    struct timespec changed;
};

struct file_identity file_identity_of(const struct stat *s);

/* NULL if it is the same, unchanged file; else what happened to it. `now` NULL: it is not there. */
const char *file_identity_change(const struct file_identity *was, const struct stat *now);

/* The same for what the path names now. */
const char *file_identity_change_at(const struct file_identity *was, const char *path);

#endif
