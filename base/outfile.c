/* outfile.c -- see outfile.h.
 *
 * A regular file is written beside its final place and renamed over it, after its data has reached
 * the disk; whoever reads the path sees the old content or the new one, never half of it. Where the
 * file system can (O_TMPFILE), the file has no name until then, so that a process that is killed
 * leaves nothing behind. What is no regular file (/dev/full, a pipe) cannot be replaced and is
 * written directly, as is stdout. */
#include "base/outfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct outfile {
    FILE *stream;
    char *path;      /* for the caller and the errors */
    char *target;    /* what is renamed over: `path` with symbolic links followed */
    char *temporary; /* NULL: written directly */
    bool named;      /* the temporary file has its name */
};

static void outfile_free(struct outfile *f)
{
    free(f->path);
    free(f->target);
    free(f->temporary);
    free(f);
}

/* The permissions open(2) would have given: those of the file replaced, else 0666 less the umask.
 * The umask can only be read by setting it, so /proc is asked for it instead of the process. */
static mode_t mode_wanted(const char *target)
{
    struct stat st;
    unsigned mask = 022;
    char line[256];
    if (stat(target, &st) == 0)
        return st.st_mode & 0777;
    FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return 0644;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    fclose(status);
    return 0666 & ~(mode_t)mask;
}

static enum status open_direct(struct outfile *f, struct diag *dg)
{
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        f->stream = fdopen(fd, "w");
    if (f->stream)
        return ST_OK;
    enum status status = diag_errno(dg, f->path, "cannot be written");
    if (fd >= 0)
        close(fd);
    return status;
}

/* A file without a name in the folder of the target; -1 if that cannot be or could get no name later. */
static int open_nameless(const struct outfile *f)
{
    const char *slash = strrchr(f->target, '/');
    if (access("/proc/self/fd", X_OK) || (access(f->temporary, F_OK) && errno != ENOENT))
        return -1;
    if (!slash)
        return open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    char *folder = strndup(f->target, (size_t)(slash + 1 - f->target));
    int fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    free(folder);
    return fd;
}

/* Gives the file the name that is then renamed: the X's of the pattern become a number nobody has. */
static bool give_name(struct outfile *f)
{
    char from[64], *number = strrchr(f->temporary, '.') + 1;
    snprintf(from, sizeof from, "/proc/self/fd/%d", fileno(f->stream));
    uint32_t first = (uint32_t)getpid() * 2654435761u;
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(number, 7, "%06" PRIx32, (first + i) & 0xffffff);
        f->named = linkat(AT_FDCWD, from, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW) == 0;
        if (f->named || errno != EEXIST)
            return f->named;
    }
    return false;
}

static void remove_temporary(const struct outfile *f)
{
    if (f->named)
        unlink(f->temporary);
}

static enum status open_temporary(struct outfile *f, struct diag *dg)
{
    const char *slash = strrchr(f->target, '/');
    int folder = slash ? (int)(slash + 1 - f->target) : 0;
    if (asprintf(&f->temporary, "%.*s.%s.XXXXXX", folder, f->target, f->target + folder) < 0) {
        f->temporary = NULL;
        return diag_no_memory(dg);
    }
    int fd = open_nameless(f);
    if (fd < 0) {
        fd = mkostemp(f->temporary, O_CLOEXEC);
        f->named = fd >= 0;
    }
    if (fd >= 0 && fchmod(fd, mode_wanted(f->target)) == 0)
        f->stream = fdopen(fd, "w");
    if (f->stream)
        return ST_OK;
    enum status status = diag_errno(dg, f->path, "cannot be written");
    remove_temporary(f);
    if (fd >= 0)
        close(fd);
    return status;
}

static enum status open_stream(struct outfile *f, struct diag *dg)
{
    struct stat st;
    if (!strcmp(f->path, "-")) {
        f->stream = stdout;
        return ST_OK;
    }
    if (stat(f->path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) {
            errno = EISDIR;
            return diag_errno(dg, f->path, "cannot be written");
        }
        if (!S_ISREG(st.st_mode))
            return open_direct(f, dg);
        if (access(f->path, W_OK))
            return diag_errno(dg, f->path, "cannot be written");
        f->target = realpath(f->path, NULL);
    } else if (errno != ENOENT) {
        return diag_errno(dg, f->path, "cannot be written");
    } else if (lstat(f->path, &st) == 0) { /* a rename would replace the link itself */
        return diag_set(dg, ST_IO, "%s: cannot be written: a symbolic link to nothing", f->path);
    } else {
        f->target = strdup(f->path);
    }
    return f->target ? open_temporary(f, dg) : diag_errno(dg, f->path, "cannot be written");
}

enum status outfile_open(struct outfile **out, const char *path, struct diag *dg)
{
    *out = NULL;
    struct outfile *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return diag_no_memory(dg);
    }
    enum status status = open_stream(f, dg);
    if (status == ST_OK)
        *out = f;
    else
        outfile_free(f);
    return status;
}

enum status outfile_check(const char *path, struct diag *dg)
{
    struct stat st;
    struct outfile *f;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return access(path, W_OK) ? diag_errno(dg, path, "cannot be written") : ST_OK;
    enum status status = outfile_open(&f, path, dg);
    outfile_abandon(f);
    return status;
}

FILE *outfile_stream(struct outfile *f)
{
    return f->stream;
}

/* Everything written has arrived; with `sync`, on the disk. errno says why not. */
static bool flushed(FILE *stream, bool sync)
{
    if (fflush(stream))
        return false;
    if (ferror(stream)) {
        errno = EIO; /* an earlier write failed, its reason is gone */
        return false;
    }
    return !sync || fsync(fileno(stream)) == 0;
}

enum status outfile_commit(struct outfile *f, struct diag *dg)
{
    bool own = f->stream != stdout;
    bool good = flushed(f->stream, f->temporary != NULL);
    if (good && f->temporary && !f->named)
        good = give_name(f);
    int reason = errno;
    if (own && fclose(f->stream) && good) {
        good = false;
        reason = errno;
    }
    f->stream = NULL;
    if (good && f->temporary && rename(f->temporary, f->target)) {
        good = false;
        reason = errno;
    }
    enum status status = ST_OK;
    if (!good) {
        errno = reason;
        status = diag_errno(dg, own ? f->path : "standard output", "cannot be written");
        remove_temporary(f);
    }
    outfile_free(f);
    return status;
}

void outfile_abandon(struct outfile *f)
{
    if (!f)
        return;
    if (f->stream != stdout)
        fclose(f->stream);
    remove_temporary(f);
    outfile_free(f);
}
