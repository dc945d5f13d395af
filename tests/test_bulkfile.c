/* test_bulkfile.c -- large outputs: every byte arrives, whole or not at all, and no disk is filled in vain. */
#include "tests/support.h"

#include "base/bulkfile.h"
#include "tests/allocations.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct diag dg;

/* Byte `i` of the content; a prime period, so that a piece written twice shows. */
static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i % 251 + i / 65521);
}

/* Writes `bytes` in steps of `step`, the last quarter as zeros. */
static enum status write_all(const char *path, size_t bytes, size_t step)
{
    struct bulkfile *f;
    unsigned char *data = malloc(bytes + 1);
    assert_non_null(data);
    size_t filled = bytes - bytes / 4;
    for (size_t i = 0; i < filled; i++)
        data[i] = byte_at(i);
    enum status st = bulkfile_open(&f, path, bytes, &dg);
    bool opened = st == ST_OK;
    for (size_t i = 0; i < filled && st == ST_OK; i += step)
        st = bulkfile_write(f, data + i, filled - i < step ? filled - i : step, &dg);
    if (st == ST_OK)
        st = bulkfile_zeros(f, bytes - filled, &dg);
    if (st == ST_OK) {
        assert_int_equal(bulkfile_at(f), bytes);
        st = bulkfile_commit(f, &dg);
    } else if (opened) {
        bulkfile_abandon(f);
    }
    free(data);
    return st;
}

static void expect_bytes(const char *path, size_t bytes)
{
    size_t got;
    char *text = read_whole(path, &got);
    assert_int_equal(got, bytes);
    size_t filled = bytes - bytes / 4;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] != (i < filled ? byte_at(i) : 0))
            fail_msg("byte %zu of %zu is %d", i, bytes, text[i]);
    free(text);
}

static void files_of_any_length_arrive_byte_for_byte(void **state)
{
    (void)state;
    static const size_t bytes[] = {0, 1, 4095, 4096, 1000000, 4 << 20, (4 << 20) + 1, 9000001};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        for (int fine = 0; fine < 2; fine++) {
            const char *path = temp_path("bulk.bin");
            assert_ok(write_all(path, bytes[i], fine ? 7919 : 5000000));
            expect_bytes(path, bytes[i]);
        }
}

static void a_file_appears_only_at_commit(void **state)
{
    (void)state;
    struct bulkfile *f;
    const char *path = temp_path("later.bin");
    assert_ok(bulkfile_open(&f, path, 3, &dg));
    assert_ok(bulkfile_write(f, "abc", 3, &dg));
    assert_int_equal(access(path, F_OK), -1);
    bulkfile_abandon(f);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_disk_without_room_is_refused_before_anything_is_written(void **state)
{
    (void)state;
    struct bulkfile *f;
    const char *path = temp_path("vast.bin");
    assert_int_equal(bulkfile_open(&f, path, UINT64_C(1) << 60, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "vast.bin: needs "));
    assert_non_null(strstr(dg.text, " free"));
    assert_int_equal(access(path, F_OK), -1);
}

static void a_full_device_is_named(void **state)
{
    (void)state;
    assert_int_equal(write_all("/dev/full", 9000000, 9000000), ST_IO);
    assert_non_null(strstr(dg.text, "/dev/full"));
    assert_int_equal(write_all("/dev/full", 10, 10), ST_IO);
}

static void a_file_that_may_grow_no_further_leaves_nothing(void **state)
{
    (void)state;
    const char *path = temp_path("limited.bin");
    struct rlimit old, limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 5000000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum status st = write_all(path, 9000000, 100000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, ST_IO);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_pipe_is_written_like_a_file(void **state)
{
    (void)state;
    const char *path = temp_path("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    assert_ok(write_all(path, 4000, 4000));
    unsigned char got[4100];
    assert_int_equal(read(fd, got, sizeof got), 4000);
    for (size_t i = 0; i < 3000; i++)
        assert_int_equal(got[i], byte_at(i));
    close(fd);
}

static void any_allocation_that_fails_is_reported(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (size_t n = 1; n < 50; n++) {
        struct bulkfile *f;
        allocations_fail_at(n);
        enum status st = bulkfile_open(&f, temp_path("scarce.bin"), 0, &dg);
        allocations_fail_at(0);
        if (st == ST_OK) {
            bulkfile_abandon(f);
            assert_true(n > 3);
            return;
        }
    }
    fail_msg("no allocation succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_any_length_arrive_byte_for_byte),
        cmocka_unit_test(a_file_appears_only_at_commit),
        cmocka_unit_test(a_disk_without_room_is_refused_before_anything_is_written),
        cmocka_unit_test(a_full_device_is_named),
        cmocka_unit_test(a_file_that_may_grow_no_further_leaves_nothing),
        cmocka_unit_test(a_pipe_is_written_like_a_file),
        cmocka_unit_test(any_allocation_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
