/* loader_world.c -- see loader_world.h. */
#include "tests/loader_world.h"

#include "base/pcg.h"
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct diag dg;

static int64_t see(struct world *w, uint64_t offset, int64_t result)
{
    int n = ++w->reads, at = w->logged++;
    if (at < LOG_MAX)
        w->log[at] = offset;
    if (w->fatal_read == 0 || n < w->fatal_read || n >= w->fatal_read + w->repeats)
        return result;
    return w->fault < 0 ? w->fault : w->fault < result ? w->fault : result;
}

/* What is cut off a read was never there: its place is spoilt. */
static ssize_t world_pread(void *self, int fd, void *to, size_t bytes, off_t offset)
{
    ssize_t got = pread(fd, to, bytes, offset);
    int64_t n = see(self, (uint64_t)offset, got);
    if (n < 0) {
        errno = (int)-n;
        return -1;
    }
    if (n < got)
        memset((char *)to + n, 0xdd, (size_t)(got - n));
    return n;
}

static int world_result(void *self, uint64_t offset, size_t bytes, int result)
{
    (void)bytes;
    return (int)see(self, offset, result);
}

static int world_open(void *self, const char *path, int flags)
{
    struct world *w = self;
    if (w->refuse_direct && (flags & O_DIRECT)) {
        errno = EINVAL;
        return -1;
    }
    return open(path, flags);
}

static int world_ring_init(void *self, struct io_uring *ring, unsigned entries)
{
    struct world *w = self;
    return w->refuse_ring ? -ENOSYS : loader_ops_system.ring_init(NULL, ring, entries);
}

static int world_submit(void *self, struct io_uring *ring)
{
    struct world *w = self;
    return w->submit_error ? w->submit_error : loader_ops_system.ring_submit(NULL, ring);
}

static void make_file(struct bench *b, size_t bytes)
{
    struct pcg chance;
    pcg_seed(&chance, 7, 1);
    b->path = temp_path("experts.bin");
    b->content = malloc(bytes);
    assert_non_null(b->content);
    for (size_t i = 0; i < bytes; i++)
        b->content[i] = (unsigned char)pcg_u32(&chance);
    FILE *f = fopen(b->path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->content, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

void world_make(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->world.ops = loader_ops_system;
    b->world.ops.self = &b->world;
    b->world.ops.open = world_open;
    b->world.ops.pread = world_pread;
    b->world.ops.ring_init = world_ring_init;
    b->world.ops.ring_submit = world_submit;
    b->world.ops.ring_result = world_result;
    b->world.repeats = 1;
    make_file(b, FILE_BYTES);
}

struct loader_io_setup world_setup(struct bench *b, enum loader_backend_kind backend,
                                   uint32_t depth)
{
    return (struct loader_io_setup){.backend = backend,
                                    .depth = depth,
                                    .loads_max = 64,
                                    .arena = store_arena(b->store),
                                    .arena_bytes = store_arena_bytes(b->store),
                                    .ops = &b->world.ops};
}

void world_start_with(struct bench *b, const struct loader_io_setup *s, bool direct)
{
    assert_ok(loader_io_new(&b->io, s, &dg));
    assert_ok(loader_io_add_file(b->io, b->path, direct, &b->file, &dg));
    b->world.reads = 0;
    b->world.logged = 0;
}

void world_start(struct bench *b, enum loader_backend_kind backend, uint32_t depth)
{
    world_make(b);
    assert_ok(store_new(&b->store, ARENA_BYTES, 4096, 256, &dg));
    struct loader_io_setup s = world_setup(b, backend, depth);
    world_start_with(b, &s, true);
}

void world_stop(struct bench *b)
{
    loader_io_free(b->io);
    store_free(b->store);
    free(b->content);
    unlink(b->path);
}

struct load world_piece(struct bench *b, uint32_t slot, uint64_t offset, uint64_t bytes)
{
    struct load l = {.layer = 3, .expert = slot, .piece_count = 1};
    uint64_t payload;
    l.piece[0] = (struct load_piece){b->file, offset, bytes};
    l.room_bytes = loader_io_layout(b->io, l.piece, 1, &payload);
    assert_true(store_take(b->store, slot, l.room_bytes));
    l.room = store_address(b->store, slot);
    return l;
}

void world_expect(struct bench *b, const struct load *l)
{
    uint64_t payload[LOADER_PIECES_MAX];
    loader_io_layout(b->io, l->piece, l->piece_count, payload);
    for (uint32_t p = 0; p < l->piece_count; p++)
        assert_memory_equal((char *)l->room + payload[p], b->content + l->piece[p].offset_bytes,
                            l->piece[p].bytes);
}

int world_read_three(struct bench *b)
{
    uint32_t ticket[3], failed = 0;
    struct load load[3];
    for (uint32_t i = 0; i < 3; i++) {
        struct load l = {.layer = 5, .expert = 40 + i, .piece_count = 3};
        uint64_t payload[3];
        for (uint32_t p = 0; p < 3; p++)
            l.piece[p] = (struct load_piece){b->file, p * 2000000 + i * 70001, 70001};
        l.room_bytes = loader_io_layout(b->io, l.piece, 3, payload);
        assert_true(store_take(b->store, i, l.room_bytes));
        l.room = store_address(b->store, i);
        load[i] = l;
        assert_ok(loader_io_submit(b->io, &l, &ticket[i], &dg));
    }
    for (uint32_t i = 0; i < 3; i++) {
        char name[32];
        if (loader_io_wait(b->io, ticket[i], NULL, &dg) == ST_OK) {
            world_expect(b, &load[i]);
            continue;
        }
        failed++;
        snprintf(name, sizeof name, "(layer 5, expert %u,", 40 + i);
        assert_int_equal(dg.status, ST_IO);
        assert_non_null(strstr(dg.text, b->path));
        assert_non_null(strstr(dg.text, name));
        assert_non_null(strstr(dg.text, "offset "));
    }
    return (int)failed;
}
