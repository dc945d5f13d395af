/* journal.c -- see journal.h. */
#include "experiments/journal.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FIRST_WORDS "memwall-journal 1 "

struct journal {
    int fd;
    char *path;
};

void journal_close(struct journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    free(j->path);
    free(j);
}

void journal_finish(struct journal *j)
{
    unlink(j->path);
    journal_close(j);
}

static enum status write_line(struct journal *j, const char *line, size_t bytes, struct diag *dg)
{
    while (bytes > 0) {
        ssize_t n = write(j->fd, line, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return diag_errno(dg, j->path, "cannot be written");
        line += n;
        bytes -= (size_t)n;
    }
    return ST_OK;
}

static uint64_t line_hash(uint64_t point, const char *cells)
{
    return hash_add(hash_add(HASH_SEED, point), hash_text(cells));
}

enum status journal_add(struct journal *j, uint64_t point, const char *cells, struct diag *dg)
{
    char *line;
    int n =
        asprintf(&line, "%" PRIu64 " %016" PRIx64 " %s\n", point, line_hash(point, cells), cells);
    if (n < 0)
        return diag_no_memory(dg);
    enum status st = write_line(j, line, (size_t)n, dg);
    free(line);
    return st;
}

/* "POINT HASH CELLS"; false for a line that was cut short or changed. */
static bool parse_line(char *line, uint64_t *point, char **cells)
{
    char *end;
    errno = 0;
    *point = strtoull(line, &end, 10);
    if (end == line || *end != ' ' || errno)
        return false;
    char *hash = end + 1;
    uint64_t given = strtoull(hash, &end, 16);
    if (end != hash + 16 || *end != ' ')
        return false;
    *cells = end + 1;
    return given == line_hash(*point, *cells);
}

struct reading {
    FILE *stream;
    char *line;
    size_t room;
    off_t good; /* bytes up to the last whole line */
};

/* Without its newline; false at the end or where the newline is missing. */
static bool next_line(struct reading *r)
{
    ssize_t n = getline(&r->line, &r->room, r->stream);
    if (n <= 0 || r->line[n - 1] != '\n')
        return false;
    r->line[n - 1] = 0;
    return true;
}

static enum status read_rows(struct reading *r, journal_row_fn *row, void *self, struct diag *dg)
{
    while (next_line(r)) {
        uint64_t point;
        char *cells;
        if (!parse_line(r->line, &point, &cells))
            break;
        enum status st = row(self, point, cells, dg);
        if (st != ST_OK)
            return st;
        r->good = ftello(r->stream);
    }
    return ST_OK;
}

/* Reads what an earlier run left and cuts off its torn end. */
static enum status read_back(struct journal *j, const char *identity, journal_row_fn *row,
                             void *self, struct diag *dg)
{
    struct reading r = {.stream = fopen(j->path, "r")};
    enum status st = ST_OK;
    if (!r.stream)
        return diag_errno(dg, j->path, "cannot be read");
    if (next_line(&r)) {
        bool ours = strncmp(r.line, FIRST_WORDS, strlen(FIRST_WORDS)) == 0 &&
                    strcmp(r.line + strlen(FIRST_WORDS), identity) == 0;
        r.good = ftello(r.stream);
        st = ours ? read_rows(&r, row, self, dg)
                  : diag_set(dg, ST_MISFIT,
                             "%s:1: the journal of another sweep, shard or version: remove it to "
                             "start over",
                             j->path);
    }
    fclose(r.stream);
    free(r.line);
    if (st == ST_OK && ftruncate(j->fd, r.good) != 0)
        st = diag_errno(dg, j->path, "cannot be cut to its whole lines");
    return st;
}

static enum status open_file(struct journal *j, bool resume, struct diag *dg)
{
    j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (resume ? 0 : O_EXCL), 0666);
    if (j->fd < 0 && errno == EEXIST)
        return diag_set(dg, ST_MISFIT,
                        "%s: left by a run that did not end: --resume goes on with it, removing "
                        "it starts over",
                        j->path);
    if (j->fd < 0)
        return diag_errno(dg, j->path, "cannot be opened");
    if (flock(j->fd, LOCK_EX | LOCK_NB) != 0)
        return diag_set(dg, ST_IO, "%s: another process is writing it", j->path);
    return ST_OK;
}

enum status journal_open(struct journal **out, const char *path, const char *identity, bool resume,
                         journal_row_fn *row, void *self, struct diag *dg)
{
    struct journal *j = calloc(1, sizeof *j);
    if (!j)
        return diag_no_memory(dg);
    *j = (struct journal){-1, strdup(path)};
    enum status st = j->path ? open_file(j, resume, dg) : diag_no_memory(dg);
    if (st == ST_OK && resume)
        st = read_back(j, identity, row, self, dg);
    if (st == ST_OK && lseek(j->fd, 0, SEEK_END) == 0) {
        char *line;
        int n = asprintf(&line, FIRST_WORDS "%s\n", identity);
        st = n < 0 ? diag_no_memory(dg) : write_line(j, line, (size_t)n, dg);
        if (n >= 0)
            free(line);
    }
    if (st != ST_OK) {
        journal_close(j);
        return st;
    }
    *out = j;
    return ST_OK;
}
