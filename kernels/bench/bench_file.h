/* bench_file.h -- a temporary file of random bytes to read, and which pieces of it. */
#ifndef KERNELS_BENCH_BENCH_FILE_H
#define KERNELS_BENCH_BENCH_FILE_H

#include "base/pcg.h"

#define BENCH_FILE_BLOCK 4096u

/* Without a name in any folder: it is gone when it is closed, and when the process is killed. */
struct bench_file {
    int fd;
    char path[32]; /* opens it once more, in this process and while it is open */
};

/* Writes a new file of `bytes` (a multiple of BENCH_FILE_BLOCK) into the file system of the folder, brings it to
 * the disk and drops it from the page cache. ST_IO, with nothing left behind; ST_NO_MEMORY. */
MUST_CHECK enum status bench_file_make(struct bench_file *out, const char *dir, uint64_t bytes,
                                       uint64_t seed, struct diag *dg);
void bench_file_close(struct bench_file *f);

struct bench_read {
    uint64_t offset, bytes; /* whole blocks */
};

/* Random reads of a file, about `total` bytes: sizes in bytes_min .. bytes_max, equally likely in
 * each doubling. At most `max` reads, at least one; returns how many. */
size_t bench_file_reads(struct bench_read *out, size_t max, uint64_t file_bytes, uint64_t bytes_min,
                        uint64_t bytes_max, uint64_t total, struct pcg *chance);

#endif
