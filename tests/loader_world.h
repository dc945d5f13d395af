/* loader_world.h -- the loader on a file of random bytes, in a world that can be told to fail:
 * what the tests of the loader share. */
#ifndef TESTS_LOADER_WORLD_H
#define TESTS_LOADER_WORLD_H

#include "kernels/loader/loader_io.h"
#include "kernels/store/store.h"

#include <stdatomic.h>

#define FILE_BYTES  (((size_t)6 << 20) + 777)
#define ARENA_BYTES ((size_t)32 << 20)
#define LOG_MAX     64

#define EACH_BACKEND(b) for (enum loader_backend_kind b = LOADER_URING; b <= LOADER_THREADS; b++)

/* The system with one fault: the `fatal_read`-th read from now (1 = the next; 0: none), and
 * `repeats` - 1 after it, see `fault`: -errno, or a number of bytes that it is cut to. */
struct world {
    struct loader_ops ops;
    atomic_int reads, fatal_read, repeats;
    int fault;
    bool refuse_direct, refuse_ring;
    int submit_error;
    atomic_int logged;
    uint64_t log[LOG_MAX]; /* offsets, in the order of the reads */
};

/* One loader on one file, with a store of rooms. */
struct bench {
    struct world world;
    struct store *store;
    struct loader_io *io;
    uint32_t file;
    unsigned char *content;
    const char *path;
};

/* A world without faults, and its file. */
void world_make(struct bench *b);
/* A loader of this world on the arena of b->store; world_start_with opens it and the file. */
struct loader_io_setup world_setup(struct bench *b, enum loader_backend_kind backend,
                                   uint32_t depth);
void world_start_with(struct bench *b, const struct loader_io_setup *s, bool direct);
/* All of it, with a store and direct reads. */
void world_start(struct bench *b, enum loader_backend_kind backend, uint32_t depth);
void world_stop(struct bench *b);

/* A load of one piece into a slot. */
struct load world_piece(struct bench *b, uint32_t slot, uint64_t offset, uint64_t bytes);
void world_expect(struct bench *b, const struct load *l);
/* Reads nine pieces of three experts; every failure must name file, layer and expert. The
 * failures. */
int world_read_three(struct bench *b);

#endif
