/* bulkfile.c -- see bulkfile.h. The outfile's descriptor is written to directly; its stream stays empty.
 *
 * Of two pieces the caller fills one while a thread writes the other, so that what makes the data and what stores
 * them work at the same time. Members below `lock` are shared and looked at only under it; a piece belongs to
 * the thread while `pending` is not 0. */
#include "base/bulkfile.h"

#include "base/outfile.h"
#include "base/quantity.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
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
    bool direct;             /* the thread's, while it runs */
    unsigned char *piece[2]; /* PIECE_BYTES each */
    size_t filling;          /* the piece of the caller, of which `held` wait to be written */
    size_t held;
    uint64_t at, bytes;
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t pending; /* bytes of the other piece that the thread has to write */
    bool stop;
    enum status status; /* of the first write that failed */
    struct diag diag;
};

static void bulkfile_free(struct bulkfile *f)
{
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    free(f->piece[0]);
    free(f->piece[1]);
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

/* Writes all of these bytes. A file system may take O_DIRECT at open and refuse it here, and after a short
 * write the rest is no longer aligned. */
static enum status put(struct bulkfile *f, const unsigned char *from, size_t bytes, struct diag *dg)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(f->fd, from + done, bytes - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EINVAL && f->direct && set_direct(f, false))
            continue;
        else if (errno != EINTR)
            return diag_errno(dg, f->path, "cannot be written");
    }
    return ST_OK;
}

/* The thread: writes what is pending until it is told to stop. After a failure it writes no more. */
static void *write_pieces(void *self)
{
    struct bulkfile *f = self;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (f->pending == 0 && !f->stop)
            pthread_cond_wait(&f->changed, &f->lock);
        if (f->pending == 0)
            break;
        const unsigned char *from = f->piece[!f->filling];
        size_t bytes = f->pending;
        bool failed = f->status != ST_OK;
        struct diag diag;
        pthread_mutex_unlock(&f->lock);
        enum status st = failed ? ST_OK : put(f, from, bytes, &diag);
        pthread_mutex_lock(&f->lock);
        if (st != ST_OK) {
            f->status = st;
            f->diag = diag;
        }
        f->pending = 0;
        pthread_cond_signal(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Waits until nothing is pending, then lets the thread have the caller's piece. */
static enum status hand_over(struct bulkfile *f, struct diag *dg)
{
    pthread_mutex_lock(&f->lock);
    while (f->pending)
        pthread_cond_wait(&f->changed, &f->lock);
    enum status st = f->status;
    if (st != ST_OK)
        *dg = f->diag;
    f->filling = !f->filling;
    f->pending = f->held;
    f->held = 0;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return st;
}

static void stop_thread(struct bulkfile *f)
{
    if (!f->threaded)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    f->threaded = false;
}

static enum status start_thread(struct bulkfile *f, struct diag *dg)
{
    errno = pthread_create(&f->thread, NULL, write_pieces, f);
    f->threaded = errno == 0;
    return f->threaded ? ST_OK : diag_errno(dg, f->path, "no thread can be started to write it");
}

static bool make_pieces(struct bulkfile *f)
{
    for (int i = 0; i < 2; i++) {
        f->piece[i] = aligned_alloc(PIECE_ALIGN, PIECE_BYTES);
        if (!f->piece[i])
            return false;
        madvise(f->piece[i], PIECE_BYTES, MADV_HUGEPAGE);
    }
    return true;
}

enum status bulkfile_open(struct bulkfile **out, const char *path, uint64_t bytes, struct diag *dg)
{
    *out = NULL;
    struct bulkfile *f = calloc(1, sizeof *f);
    if (!f)
        return diag_no_memory(dg);
    f->bytes = bytes;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->path = strdup(path);
    enum status st = f->path && make_pieces(f) ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        st = outfile_open(&f->file, path, dg);
    if (st == ST_OK)
        st = prepare(f, dg);
    if (st == ST_OK)
        st = start_thread(f, dg);
    if (st == ST_OK)
        *out = f;
    else
        bulkfile_abandon(f);
    return st;
}

/* Room at the end of the caller's piece, which is handed over first if it is full. */
static enum status make_room(struct bulkfile *f, size_t *room, struct diag *dg)
{
    enum status st = f->held == PIECE_BYTES ? hand_over(f, dg) : ST_OK;
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
        memcpy(f->piece[f->filling] + f->held, from, n);
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
        memset(f->piece[f->filling] + f->held, 0, n);
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
    stop_thread(f); /* what is pending is written first */
    enum status st = f->status;
    if (st != ST_OK)
        *dg = f->diag;
    /* The last piece is no whole number of blocks. */
    if (st == ST_OK && f->direct && f->held % DIRECT_ALIGN != 0 && !set_direct(f, false))
        st = diag_errno(dg, f->path, "cannot be written");
    if (st == ST_OK)
        st = put(f, f->piece[f->filling], f->held, dg);
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
    stop_thread(f);
    outfile_abandon(f->file);
    bulkfile_free(f);
}
