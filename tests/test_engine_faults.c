/* test_engine_faults.c -- when the world is at fault the loader hands out nothing and says where,
 * or does without what it can do without. Each test runs on both backends. */
#include "tests/support.h"

#include "tests/allocations.h"
#include "tests/loader_world.h"

#include <errno.h>
#include <unistd.h>

static struct diag dg;

static void every_read_fails_once_and_its_expert_is_named(void **state)
{
    (void)state;
    EACH_BACKEND(backend) for (uint32_t depth = 1; depth <= 4; depth += 3)
    {
        struct bench b;
        world_start(&b, backend, depth);
        for (int n = 1; n <= 9; n++) {
            b.world.reads = 0;
            b.world.fault = -EIO;
            b.world.fatal_read = n;
            assert_int_equal(world_read_three(&b), 1);
            b.world.fatal_read = 0;
            assert_int_equal(world_read_three(&b), 0);
        }
        world_stop(&b);
    }
}

static void the_reason_tells_offset_and_system_error(void **state)
{
    (void)state;
    EACH_BACKEND(backend)
    {
        struct bench b;
        uint32_t ticket;
        char expected[512];
        world_start(&b, backend, 2);
        struct load l = world_piece(&b, 9, 8192, 1000);
        b.world.fault = -EIO;
        b.world.fatal_read = 1;
        assert_ok(loader_io_submit(b.io, &l, &ticket, &dg));
        assert_int_equal(loader_io_wait(b.io, ticket, NULL, &dg), ST_IO);
        snprintf(expected, sizeof expected,
                 "%s: offset 8192 (layer 3, expert 9, 1000 bytes from 8192): read: "
                 "Input/output error",
                 b.path);
        assert_string_equal(dg.text, expected);
        world_stop(&b);
    }
}

/* What one passing fault, or one that stays, makes of a load. */
static void expect_fault(int fault, int repeats, const char *reason)
{
    EACH_BACKEND(backend)
    {
        struct bench b;
        uint32_t ticket;
        world_start(&b, backend, 2);
        struct load l = world_piece(&b, 1, 100000, 300000);
        memset(l.room, 0xee, l.room_bytes);
        b.world.fault = fault;
        b.world.repeats = repeats;
        b.world.fatal_read = 1;
        assert_ok(loader_io_submit(b.io, &l, &ticket, &dg));
        enum status status = loader_io_wait(b.io, ticket, NULL, &dg);
        assert_int_equal(status, reason ? ST_IO : ST_OK);
        if (reason)
            assert_non_null(strstr(dg.text, reason));
        else
            world_expect(&b, &l);
        world_stop(&b);
    }
}

static void a_short_read_is_read_on(void **state)
{
    (void)state;
    expect_fault(100000, 1, NULL);
    expect_fault(4096, 20, NULL);
    expect_fault(100, 1, NULL); /* less than a block: from the same place again */
}

static void reads_that_stay_short_of_a_block_are_an_error(void **state)
{
    (void)state;
    expect_fault(100, 1000, "short again and again");
}

static void a_passing_EAGAIN_or_EINTR_is_tried_again(void **state)
{
    (void)state;
    expect_fault(-EAGAIN, 3, NULL);
    expect_fault(-EINTR, 3, NULL);
}

static void a_lasting_EAGAIN_is_an_error(void **state)
{
    (void)state;
    expect_fault(-EAGAIN, 1000, "Resource temporarily unavailable");
}

static void a_read_at_the_end_of_the_file_is_an_error(void **state)
{
    (void)state;
    expect_fault(0, 1, "the file ends here");
}

static void a_piece_behind_the_end_is_refused_at_once(void **state)
{
    struct bench b;
    uint32_t ticket;
    (void)state;
    world_start(&b, LOADER_URING, 2);
    struct load l = world_piece(&b, 9, FILE_BYTES - 777, 778);
    assert_int_equal(loader_io_submit(b.io, &l, &ticket, &dg), ST_RANGE);
    assert_non_null(strstr(dg.text, "expected 778 bytes at offset 6291456 (layer 3, expert 9)"));
    l.piece[0].bytes = 777;
    assert_ok(loader_io_submit(b.io, &l, &ticket, &dg));
    assert_ok(loader_io_wait(b.io, ticket, NULL, &dg));
    world_stop(&b);
}

static void truncate_it(struct bench *b)
{
    assert_int_equal(truncate(b->path, 5 << 20), 0);
}

static void replace_it(struct bench *b)
{
    const char *other = temp_path("other.bin");
    FILE *f = fopen(other, "wb");
    assert_non_null(f);
    fwrite(b->content, 1, FILE_BYTES, f);
    fclose(f);
    assert_int_equal(rename(other, b->path), 0);
}

static void write_it(struct bench *b)
{
    FILE *f = fopen(b->path, "r+b");
    assert_non_null(f);
    usleep(20000); /* the kernel's stamps are that coarse */
    fputc('x', f);
    fclose(f);
}

static void remove_it(struct bench *b)
{
    unlink(b->path);
}

static void a_file_that_changed_under_us_is_an_error(void **state)
{
    static const struct {
        void (*change)(struct bench *b);
        const char *reason;
    } cases[] = {
        {truncate_it, "the file's size changed"},
        {replace_it, "the file was replaced"},
        {write_it, "the file was written to"},
        {remove_it, "the file is no longer there"},
    };
    (void)state;
    EACH_BACKEND(backend) for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct bench b;
        uint32_t ticket;
        world_start(&b, backend, 2);
        assert_int_equal(world_read_three(&b), 0);
        cases[i].change(&b);
        struct load l = world_piece(&b, 7, 0, 5000);
        assert_ok(loader_io_submit(b.io, &l, &ticket, &dg));
        assert_int_equal(loader_io_wait(b.io, ticket, NULL, &dg), ST_IO);
        assert_non_null(strstr(dg.text, cases[i].reason));
        assert_non_null(strstr(dg.text, "expert 7"));
        world_stop(&b);
    }
}

static void without_direct_reads_it_reads_buffered_and_says_so(void **state)
{
    (void)state;
    EACH_BACKEND(backend)
    {
        struct bench b;
        world_make(&b);
        b.world.refuse_direct = true;
        assert_ok(store_new(&b.store, ARENA_BYTES, 4096, 256, &dg));
        struct loader_io_setup s = world_setup(&b, backend, 4);
        world_start_with(&b, &s, true);
        assert_non_null(strstr(loader_io_note(b.io), "no direct reads here (Invalid argument)"));
        assert_int_equal(world_read_three(&b), 0);
        world_stop(&b);
    }
}

static void without_a_ring_threads_read_and_the_note_says_so(void **state)
{
    struct bench b;
    (void)state;
    world_make(&b);
    b.world.refuse_ring = true;
    assert_ok(store_new(&b.store, ARENA_BYTES, 4096, 256, &dg));
    struct loader_io_setup s = world_setup(&b, LOADER_URING, 4);
    world_start_with(&b, &s, true);
    assert_string_equal(loader_io_backend(b.io), "threads");
    assert_string_equal(loader_io_note(b.io),
                        "no io_uring: Function not implemented: threads read instead");
    assert_int_equal(world_read_three(&b), 0);
    world_stop(&b);
}

static void a_ring_that_refuses_to_submit_fails_the_loads(void **state)
{
    struct bench b;
    uint32_t ticket;
    (void)state;
    world_start(&b, LOADER_URING, 4);
    b.world.submit_error = -EBADF;
    struct load l = world_piece(&b, 7, 0, 5000);
    assert_ok(loader_io_submit(b.io, &l, &ticket, &dg));
    assert_int_equal(loader_io_wait(b.io, ticket, NULL, &dg), ST_IO);
    assert_non_null(strstr(dg.text, "Bad file descriptor"));
    assert_int_equal(world_read_three(&b), 3);
    b.world.submit_error = -EBUSY;
    world_stop(&b);
}

static void a_ring_that_stays_busy_fails_the_loads_in_the_end(void **state)
{
    struct bench b;
    uint32_t ticket;
    (void)state;
    world_start(&b, LOADER_URING, 4);
    b.world.submit_error = -EBUSY;
    struct load l = world_piece(&b, 7, 0, 5000);
    assert_ok(loader_io_submit(b.io, &l, &ticket, &dg));
    assert_int_equal(loader_io_wait(b.io, ticket, NULL, &dg), ST_IO);
    assert_non_null(strstr(dg.text, "Device or resource busy"));
    world_stop(&b);
}

static uint32_t large_block(void *self, const char *path)
{
    (void)self;
    return strstr(path, "large") ? 8192 : 512;
}

static void pieces_of_files_with_unequal_blocks_share_a_room(void **state)
{
    (void)state;
    EACH_BACKEND(backend)
    {
        struct bench b;
        uint32_t large, ticket;
        uint64_t payload[2];
        world_make(&b);
        const char *path = temp_path("large.bin");
        assert_int_equal(link(b.path, path), 0);
        b.world.ops.direct_align = large_block;
        assert_ok(store_new(&b.store, ARENA_BYTES, 8192, 256, &dg));
        struct loader_io_setup s = world_setup(&b, backend, 4);
        world_start_with(&b, &s, true);
        assert_ok(loader_io_add_file(b.io, path, true, &large, &dg));
        struct load l = {.piece_count = 2};
        l.piece[0] = (struct load_piece){b.file, 513, 100};
        l.piece[1] = (struct load_piece){large, 5000, 100000};
        l.room_bytes = loader_io_layout(b.io, l.piece, 2, payload);
        assert_int_equal(loader_io_block_bytes(b.io), 8192);
        assert_int_equal(payload[1], 8192 + 5000);
        assert_true(store_take(b.store, 0, l.room_bytes));
        l.room = store_address(b.store, 0);
        assert_ok(loader_io_submit(b.io, &l, &ticket, &dg));
        assert_ok(loader_io_wait(b.io, ticket, NULL, &dg));
        world_expect(&b, &l);
        unlink(path);
        world_stop(&b);
    }
}

static void a_failed_first_read_or_a_missing_file_is_named(void **state)
{
    struct bench b;
    (void)state;
    world_start(&b, LOADER_THREADS, 1);
    uint32_t file;
    assert_int_equal(loader_io_add_file(b.io, temp_path("none"), true, &file, &dg), ST_IO);
    assert_non_null(strstr(dg.text, "none: cannot be looked at: No such file"));
    assert_int_equal(loader_io_add_file(b.io, temp_path(""), true, &file, &dg), ST_UNSUPPORTED);
    b.world.fatal_read = 1;
    b.world.reads = 0;
    b.world.fault = -EIO;
    assert_int_equal(loader_io_add_file(b.io, b.path, true, &file, &dg), ST_IO);
    assert_non_null(strstr(dg.text, "cannot be read at offset 0"));
    world_stop(&b);
}

/* All that allocates: the store, the loader, its file; then a load, which must not. */
static enum status whole_life(struct bench *b, enum loader_backend_kind backend)
{
    enum status status = store_new(&b->store, 8 << 20, 4096, 16, &dg);
    if (status != ST_OK)
        return status;
    struct loader_io_setup s = world_setup(b, backend, 2);
    status = loader_io_new(&b->io, &s, &dg);
    if (status == ST_OK)
        status = loader_io_add_file(b->io, b->path, true, &b->file, &dg);
    if (status == ST_OK) {
        size_t before = allocations_count();
        assert_int_equal(world_read_three(b), 0);
        assert_int_equal(allocations_count(), before);
    }
    loader_io_free(b->io);
    store_free(b->store);
    b->io = NULL;
    b->store = NULL;
    return status;
}

static void every_allocation_fails_once_and_is_reported(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    EACH_BACKEND(backend)
    {
        struct bench b;
        int failures = 0;
        world_make(&b);
        for (size_t n = 1;; n++) {
            size_t before = allocations_count();
            dg.text[0] = '\0';
            allocations_fail_at(n);
            enum status status = whole_life(&b, backend);
            bool reached = allocations_count() - before >= n;
            allocations_fail_at(0);
            if (!reached) {
                assert_int_equal(status, ST_OK);
                break;
            }
            failures++;
            assert_int_not_equal(status, ST_OK);
            assert_true(dg.text[0] != '\0');
        }
        assert_true(failures >= 8);
        free(b.content);
        unlink(b.path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_read_fails_once_and_its_expert_is_named),
        cmocka_unit_test(the_reason_tells_offset_and_system_error),
        cmocka_unit_test(a_short_read_is_read_on),
        cmocka_unit_test(reads_that_stay_short_of_a_block_are_an_error),
        cmocka_unit_test(a_passing_EAGAIN_or_EINTR_is_tried_again),
        cmocka_unit_test(a_lasting_EAGAIN_is_an_error),
        cmocka_unit_test(a_read_at_the_end_of_the_file_is_an_error),
        cmocka_unit_test(a_piece_behind_the_end_is_refused_at_once),
        cmocka_unit_test(a_file_that_changed_under_us_is_an_error),
        cmocka_unit_test(without_direct_reads_it_reads_buffered_and_says_so),
        cmocka_unit_test(without_a_ring_threads_read_and_the_note_says_so),
        cmocka_unit_test(a_ring_that_refuses_to_submit_fails_the_loads),
        cmocka_unit_test(a_ring_that_stays_busy_fails_the_loads_in_the_end),
        cmocka_unit_test(pieces_of_files_with_unequal_blocks_share_a_room),
        cmocka_unit_test(a_failed_first_read_or_a_missing_file_is_named),
        cmocka_unit_test(every_allocation_fails_once_and_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
