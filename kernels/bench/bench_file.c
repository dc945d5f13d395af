/* bench_file.c -- see bench_file.h. */
#include "kernels/bench/bench_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)4 << 20)

/* One random chunk, stamped with its place, so that no two blocks of the file are alike. */
static bool write_chunks(int fd, uint64_t *chunk, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        size_t n = bytes - at < CHUNK_BYTES ? (size_t)(bytes - at) : CHUNK_BYTES;
        for (size_t i = 0; i < n / sizeof *chunk; i += BENCH_FILE_BLOCK / sizeof *chunk)
            chunk[i] = at + i;
        ssize_t wrote = write(fd, chunk, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        at += (uint64_t)wrote / BENCH_FILE_BLOCK * BENCH_FILE_BLOCK;
        if ((size_t)wrote < n && lseek(fd, (off_t)at, SEEK_SET) < 0)
            return false;
    }
    return fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
}

/* Its name goes as soon as it is open. */
static int open_nameless(const char *dir, struct diag *dg)
{
    char *path;
    if (asprintf(&path, "%s/memwall-bench-XXXXXX", dir) < 0) {
        (void)diag_no_memory(dg);
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        (void)diag_errno(dg, dir, "a temporary file cannot be made there");
    else
        unlink(path);
    free(path);
    return fd;
}

enum status bench_file_make(struct bench_file *out, const char *dir, uint64_t bytes, uint64_t seed,
                            struct diag *dg)
{
    struct pcg chance;
    *out = (struct bench_file){.fd = -1};
    uint64_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return diag_no_memory(dg);
    out->fd = open_nameless(dir, dg);
    if (out->fd < 0) {
        free(chunk);
        return ST_IO;
    }
    snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", out->fd);
    pcg_stream(&chance, seed, "engine-bench/file");
    for (size_t i = 0; i < CHUNK_BYTES / sizeof *chunk; i++)
        chunk[i] = pcg_u64(&chance);
    enum status st = ST_OK;
    if (!write_chunks(out->fd, chunk, bytes)) {
        st = diag_errno(dg, dir, "the temporary file there cannot be written");
        bench_file_close(out);
    }
    free(chunk);
    return st;
}

void bench_file_close(struct bench_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

static uint64_t pick_bytes(uint64_t least, uint64_t most, struct pcg *chance)
{
    uint64_t doublings = 0, first = least / BENCH_FILE_BLOCK;
    while (least << doublings < most)
        doublings++;
    if (doublings == 0)
        return least;
    uint64_t from = first << pcg_below(chance, (uint32_t)doublings);
    uint64_t bytes = (from + pcg_below(chance, (uint32_t)from)) * BENCH_FILE_BLOCK;
    return bytes < most ? bytes : most;
}

size_t bench_file_reads(struct bench_read *out, size_t max, uint64_t file_bytes, uint64_t bytes_min,
                        uint64_t bytes_max, uint64_t total, struct pcg *chance)
{
    assert(bytes_min >= BENCH_FILE_BLOCK && bytes_min <= bytes_max && bytes_max <= file_bytes);
    size_t n = 0;
    for (uint64_t sum = 0; n == 0 || (n < max && sum < total); n++) {
        uint64_t bytes = pick_bytes(bytes_min, bytes_max, chance);
        uint64_t places = (file_bytes - bytes) / BENCH_FILE_BLOCK + 1;
        uint64_t place = pcg_below(chance, places < UINT32_MAX ? (uint32_t)places : UINT32_MAX);
        out[n] = (struct bench_read){place * BENCH_FILE_BLOCK, bytes};
        sum += bytes;
    }
    return n;
}
