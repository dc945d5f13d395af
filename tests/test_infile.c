/* test_infile.c -- opening inputs: no name makes the program wait for a writer that never comes; and reading them. */
#include "tests/support.h"

#include "base/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void a_pipe_without_a_writer_is_at_its_end_at_once(void **state)
{
    (void)state;
    struct diag dg;
    int fd;
    char byte;
    const char *path = temp_path("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_ok(infile_open(&fd, path, INFILE_STREAM, &dg));
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

static void a_pipe_with_a_writer_is_waited_for(void **state)
{
    (void)state;
    struct diag dg;
    int ends[2], fd;
    char path[64], text[8] = "";
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_ok(infile_open(&fd, path, INFILE_STREAM, &dg));
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    assert_int_equal(read(fd, text, 5), 5);
    assert_string_equal(text, "hello");
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

static void where_a_regular_file_is_expected_nothing_else_is_opened(void **state)
{
    (void)state;
    struct diag dg;
    int fd;
    const char *pipe_path = temp_path("other-pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    const char *const paths[] = {pipe_path, "/dev/zero", "/tmp"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(infile_open(&fd, paths[i], INFILE_REGULAR, &dg), ST_IO);
        assert_non_null(strstr(dg.text, ": a regular file is expected"));
        assert_int_equal(fd, -1);
    }
    assert_ok(infile_open(&fd, "Makefile", INFILE_REGULAR, &dg));
    close(fd);
}

static void a_folder_and_a_missing_file_have_the_systems_reason(void **state)
{
    (void)state;
    struct diag dg;
    int fd;
    assert_int_equal(infile_open(&fd, "/tmp", INFILE_STREAM, &dg), ST_IO);
    assert_string_equal(dg.text, "/tmp: cannot be read: Is a directory");
    assert_int_equal(infile_open(&fd, "/nowhere/x", INFILE_STREAM, &dg), ST_IO);
    assert_string_equal(dg.text, "/nowhere/x: cannot be opened: No such file or directory");
}

/* ---- reads that do not go through at once ---- */

static struct {
    int interrupts, short_by; /* left; and how many bytes a read may have at most */
} world;

/* Takes the place of the C library's. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    if (world.interrupts > 0) {
        world.interrupts--;
        errno = EINTR;
        return -1;
    }
    size_t most = world.short_by ? (size_t)world.short_by : bytes;
    return syscall(SYS_pread64, fd, to, bytes < most ? bytes : most, offset);
}

static void reads_go_on_where_they_were_short_or_interrupted(void **state)
{
    (void)state;
    struct diag dg;
    int fd;
    size_t got;
    char text[12] = "";
    const char *path = temp_path("letters");
    write_file(path, "abcdefghijklmnop");
    assert_ok(infile_open(&fd, path, INFILE_REGULAR, &dg));
    world.interrupts = 3;
    world.short_by = 2;
    assert_ok(infile_read_at(fd, path, text, 11, 3, &got, &dg));
    assert_int_equal(got, 11);
    assert_memory_equal(text, "defghijklmn", 11);
    assert_ok(infile_read_at(fd, path, text, 11, 10, &got, &dg)); /* the file ends */
    assert_int_equal(got, 6);
    assert_memory_equal(text, "klmnop", 6);
    close(fd);
    assert_int_equal(infile_read_at(fd, path, text, 1, 0, &got, &dg), ST_IO);
    assert_non_null(strstr(dg.text, ": cannot be read: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_without_a_writer_is_at_its_end_at_once),
        cmocka_unit_test(a_pipe_with_a_writer_is_waited_for),
        cmocka_unit_test(where_a_regular_file_is_expected_nothing_else_is_opened),
        cmocka_unit_test(a_folder_and_a_missing_file_have_the_systems_reason),
        cmocka_unit_test(reads_go_on_where_they_were_short_or_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
