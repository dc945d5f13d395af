/* bulkfile.c -- see bulkfile.h. The outfile's descriptor is written to directly; its stream stays empty. */
#include "base/bulkfile.h"

#include "base/outfile.h"
#include "base/quantity.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PIECE_BYTES  ((size_t)4 << 20) /* where larger ones are no faster (SSDs, virtual disks) */
#define PIECE_ALIGN  ((size_t)2 << 20) /* a huge page: the kernel then pins few of them a write */
#define DIRECT_ALIGN 4096u

struct bulkfile {
    struct outfile *file;
    char *path; /* for errors */
    int fd;
    bool direct;
    unsigned char *piece; /* PIECE_BYTES, of which `held` wait to be written */
    size_t held;
    uint64_t at, bytes;
};

static void bulkfile_free(struct bulkfile *f)
{
    free(f->piece);
    free(f->path);
    free(f);
}

/* Past the page cache from now on, or no longer. False if the file system does not do it. */
static bool set_direct(struct bulkfile *f, bool direct)
{
    int flags = fcntl(f->fd, F_GETFL);
    int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    if (flags < 0 || fcntl(f->fd, F_SETFL, wanted))
        return false;
    f->direct = direct;
    return true;
}

static enum status check_space(const struct bulkfile *f, struct diag *dg)
{
    struct statvfs fs;
    if (fstatvfs(f->fd, &fs))
        return diag_errno(dg, f->path, "cannot be written");
    uint64_t block = fs.f_frsize ? fs.f_frsize : fs.f_bsize;
    if (f->bytes / block < fs.f_bavail)
        return ST_OK;
    char needed[QUANTITY_TEXT_MAX], there[QUANTITY_TEXT_MAX];
    quantity_round(needed, f->bytes, DIM_SIZE);
    quantity_round(there, (uint64_t)fs.f_bavail * block, DIM_SIZE);
    return diag_set(dg, ST_MISFIT, "%s: needs %s, the file system has %s free", f->path, needed,
                    there);
}

/* Takes the descriptor out of the outfile. Standard output and what is no regular file are shared with others,
 * so their flags stay as they are. */
static enum status prepare(struct bulkfile *f, struct diag *dg)
{
    struct stat st;
    f->fd = fileno(outfile_stream(f->file));
    if (fstat(f->fd, &st))
        return diag_errno(dg, f->path, "cannot be written");
    if (!S_ISREG(st.st_mode) || !strcmp(f->path, "-"))
        return ST_OK;
    set_direct(f, true);
    return check_space(f, dg);
}

enum status bulkfile_open(struct bulkfile **out, const char *path, uint64_t bytes, struct diag *dg)
{
    *out = NULL;
    struct bulkfile *f = calloc(1, sizeof *f);
    if (!f)
        return diag_no_memory(dg);
    f->bytes = bytes;
    f->path = strdup(path);
    f->piece = aligned_alloc(PIECE_ALIGN, PIECE_BYTES);
    enum status st = f->path && f->piece ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK) {
        madvise(f->piece, PIECE_BYTES, MADV_HUGEPAGE);
        st = outfile_open(&f->file, path, dg);
    }
    if (st == ST_OK)
        st = prepare(f, dg);
    if (st == ST_OK)
        *out = f;
    else
        bulkfile_abandon(f);
    return st;
}

/* Writes `bytes` of the piece, all of them. A file system may take O_DIRECT at open and refuse it here, and
 * after a short write the rest is no longer aligned. */
static enum status put(struct bulkfile *f, size_t bytes, struct diag *dg)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(f->fd, f->piece + done, bytes - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EINVAL && f->direct && set_direct(f, false))
            continue;
        else if (errno != EINTR)
            return diag_errno(dg, f->path, "cannot be written");
    }
    f->held = 0;
    return ST_OK;
}

/* Room at the end of the piece, which is written first if it is full. */
static enum status make_room(struct bulkfile *f, size_t *room, struct diag *dg)
{
    enum status st = f->held == PIECE_BYTES ? put(f, PIECE_BYTES, dg) : ST_OK;
    *room = PIECE_BYTES - f->held;
    return st;
}

static void took(struct bulkfile *f, size_t bytes)
{
    f->held += bytes;
    f->at += bytes;
    assert(f->at <= f->bytes);
}

enum status bulkfile_write(struct bulkfile *f, const void *data, size_t bytes, struct diag *dg)
{
    const unsigned char *from = data;
    while (bytes > 0) {
        size_t room;
        enum status st = make_room(f, &room, dg);
        if (st != ST_OK)
            return st;
        size_t n = bytes < room ? bytes : room;
        memcpy(f->piece + f->held, from, n);
        took(f, n);
        from += n;
        bytes -= n;
    }
    return ST_OK;
}

enum status bulkfile_zeros(struct bulkfile *f, uint64_t count, struct diag *dg)
{
    while (count > 0) {
        size_t room;
        enum status st = make_room(f, &room, dg);
        if (st != ST_OK)
            return st;
        size_t n = count < room ? (size_t)count : room;
        memset(f->piece + f->held, 0, n);
        took(f, n);
        count -= n;
    }
    return ST_OK;
}

uint64_t bulkfile_at(const struct bulkfile *f)
{
    return f->at;
}

enum status bulkfile_commit(struct bulkfile *f, struct diag *dg)
{
    assert(f->at == f->bytes);
    /* The last piece is no whole number of blocks. */
    enum status st = ST_OK;
    if (f->direct && f->held % DIRECT_ALIGN != 0 && !set_direct(f, false))
        st = diag_errno(dg, f->path, "cannot be written");
    if (st == ST_OK)
        st = put(f, f->held, dg);
    if (st != ST_OK) {
        bulkfile_abandon(f);
        return st;
    }
    st = outfile_commit(f->file, dg);
    bulkfile_free(f);
    return st;
}

void bulkfile_abandon(struct bulkfile *f)
{
    if (!f)
        return;
    outfile_abandon(f->file);
    bulkfile_free(f);
}
