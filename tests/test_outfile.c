/* test_outfile.c -- outputs appear whole or not at all, whatever the device does. */
#include "tests/support.h"

#include "base/outfile.h"
#include "tests/allocations.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct diag dg;

static void expect_content(const char *path, const char *content)
{
    char *text = read_whole(path, NULL);
    assert_string_equal(text, content);
    free(text);
}

/* Entries of the test's folder whose names hold `part`. */
static size_t count_files(const char *part)
{
    size_t count = 0;
    DIR *folder = opendir(temp_path(""));
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        count += strstr(e->d_name, part) != NULL;
    closedir(folder);
    return count;
}

static enum status write_text(const char *path, const char *text)
{
    struct outfile *f;
    enum status status = outfile_open(&f, path, &dg);
    if (status != ST_OK)
        return status;
    fputs(text, outfile_stream(f));
    return outfile_commit(f, &dg);
}

static void a_file_appears_only_at_commit(void **state)
{
    struct outfile *f;
    const char *path = temp_path("new.csv");
    (void)state;
    assert_ok(outfile_open(&f, path, &dg));
    fputs("a,b\n", outfile_stream(f));
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(outfile_commit(f, &dg));
    expect_content(path, "a,b\n");
    assert_int_equal(count_files("new.csv"), 1);
}

static void an_old_file_stays_until_commit(void **state)
{
    struct outfile *f;
    const char *path = temp_path("old.csv");
    (void)state;
    write_file(path, "old");
    assert_ok(outfile_open(&f, path, &dg));
    fputs("new", outfile_stream(f));
    fflush(outfile_stream(f));
    expect_content(path, "old");
    assert_ok(outfile_commit(f, &dg));
    expect_content(path, "new");
}

static void abandoning_leaves_nothing_behind(void **state)
{
    struct outfile *f;
    const char *path = temp_path("gone.csv");
    (void)state;
    write_file(path, "old");
    assert_ok(outfile_open(&f, path, &dg));
    fputs("half", outfile_stream(f));
    outfile_abandon(f);
    outfile_abandon(NULL);
    expect_content(path, "old");
    assert_int_equal(count_files("gone.csv"), 1);
}

static void a_disk_that_fills_up_keeps_the_old_file(void **state)
{
    struct outfile *f;
    struct rlimit before, small;
    const char *path = temp_path("limit.csv");
    (void)state;
    write_file(path, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 65536, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_ok(outfile_open(&f, path, &dg));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 100000; i++)
        fputs("a long row of results\n", outfile_stream(f));
    /* There is room again at commit: only the stream remembers that rows were lost. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(outfile_commit(f, &dg), ST_IO);
    assert_non_null(strstr(dg.text, "limit.csv: cannot be written"));
    expect_content(path, "old");
    assert_int_equal(count_files("limit.csv"), 1);
}

static void the_mode_is_that_of_the_umask_or_of_the_file_replaced(void **state)
{
    struct stat st;
    const char *path = temp_path("mode.csv");
    (void)state;
    mode_t mask = umask(027);
    assert_ok(write_text(path, "a"));
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    assert_ok(write_text(path, "b"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604);
}

static void a_symbolic_link_is_followed(void **state)
{
    struct stat st;
    const char *path = temp_path("link-target.csv"), *link = temp_path("link.csv");
    (void)state;
    write_file(path, "old");
    assert_int_equal(symlink("link-target.csv", link), 0);
    assert_ok(write_text(link, "new"));
    expect_content(path, "new");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static void a_symbolic_link_to_nothing_or_in_a_circle_is_left_alone(void **state)
{
    static const char *const to[] = {"link-to-nowhere.csv", "circle.csv"};
    static const char *const reason[] = {"a symbolic link to nothing", "Too many levels"};
    (void)state;
    const char *link = temp_path("circle.csv");
    for (size_t i = 0; i < 2; i++) {
        struct stat st;
        assert_int_equal(symlink(to[i], link), 0);
        assert_int_equal(write_text(link, "x"), ST_IO);
        assert_non_null(strstr(dg.text, reason[i]));
        assert_int_equal(lstat(link, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_int_equal(remove(link), 0);
    }
}

static void a_path_that_cannot_be_written_is_named(void **state)
{
    struct outfile *f;
    (void)state;
    assert_int_equal(outfile_open(&f, temp_path("no/such/folder.csv"), &dg), ST_IO);
    assert_null(f);
    assert_non_null(strstr(dg.text, "no/such/folder.csv: cannot be written: No such file"));
    assert_int_equal(outfile_open(&f, temp_path(""), &dg), ST_IO);
    assert_non_null(strstr(dg.text, "cannot be written: Is a directory"));
}

static void a_check_says_what_opening_would_and_leaves_nothing(void **state)
{
    const char *path = temp_path("checked.csv"), *pipe = temp_path("unread-pipe");
    (void)state;
    assert_ok(outfile_check(path, &dg));
    assert_int_equal(count_files("checked.csv"), 0);
    write_file(path, "old");
    assert_ok(outfile_check(path, &dg));
    expect_content(path, "old");
    assert_int_equal(count_files("checked.csv"), 1);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_ok(outfile_check(pipe, &dg)); /* and waits for no reader */
    assert_ok(outfile_check("-", &dg));
    assert_int_equal(outfile_check(temp_path("no/such/folder.csv"), &dg), ST_IO);
    assert_int_equal(outfile_check(temp_path(""), &dg), ST_IO);
    assert_non_null(strstr(dg.text, "Is a directory"));
}

static void a_special_file_is_written_directly(void **state)
{
    struct stat st;
    char text[16] = "";
    const char *path = temp_path("pipe");
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDWR | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_ok(write_text(path, "row\n"));
    assert_int_equal(read(reader, text, sizeof text), 4);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    close(reader);
    /* Only now, and only if the pipe was not replaced, is the machine's own device written to. */
    assert_int_equal(write_text("/dev/full", "nothing"), ST_IO);
    assert_string_equal(dg.text, "/dev/full: cannot be written: No space left on device");
}

/* A child whose standard output is `fd` writes to "-"; it exits with the status of the commit. */
static int write_to_stdout(int fd, size_t rows)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct outfile *f;
        signal(SIGPIPE, SIG_IGN);
        if (dup2(fd, STDOUT_FILENO) < 0 || outfile_open(&f, "-", &dg) != ST_OK)
            _exit(100);
        for (size_t i = 0; i < rows; i++)
            fputs("row\n", outfile_stream(f));
        _exit((int)outfile_commit(f, &dg));
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static void a_dash_is_standard_output(void **state)
{
    int ends[2];
    char text[16] = "";
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write_to_stdout(ends[1], 1), ST_OK);
    close(ends[1]); /* so that nothing to read is an end, not a wait */
    assert_int_equal(read(ends[0], text, sizeof text), 4);
    assert_string_equal(text, "row\n");
    close(ends[0]);
}

static void a_full_or_closed_standard_output_is_an_error(void **state)
{
    int ends[2];
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_int_equal(write_to_stdout(fileno(full), 1), ST_IO);
    assert_int_equal(write_to_stdout(fileno(full), 100000), ST_IO);
    fclose(full);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write_to_stdout(ends[1], 1), ST_IO);
    assert_int_equal(write_to_stdout(ends[1], 100000), ST_IO);
    close(ends[1]);
}

static void any_allocation_may_fail(void **state)
{
    struct outfile *f;
    const char *path = temp_path("memory.csv");
    (void)state;
    NEED_ALLOCATIONS();
    write_file(path, "old");
    size_t before = allocations_count();
    assert_ok(outfile_open(&f, path, &dg));
    size_t calls = allocations_count() - before;
    outfile_abandon(f);
    for (size_t n = 1; n <= calls; n++) {
        allocations_fail_at(n);
        enum status status = outfile_open(&f, path, &dg);
        allocations_fail_at(0);
        if (status == ST_OK)
            outfile_abandon(f); /* what failed was not needed */
        else
            assert_null(f);
        expect_content(path, "old");
        assert_int_equal(count_files("memory.csv"), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_only_at_commit),
        cmocka_unit_test(an_old_file_stays_until_commit),
        cmocka_unit_test(abandoning_leaves_nothing_behind),
        cmocka_unit_test(a_disk_that_fills_up_keeps_the_old_file),
        cmocka_unit_test(the_mode_is_that_of_the_umask_or_of_the_file_replaced),
        cmocka_unit_test(a_symbolic_link_is_followed),
        cmocka_unit_test(a_symbolic_link_to_nothing_or_in_a_circle_is_left_alone),
        cmocka_unit_test(a_path_that_cannot_be_written_is_named),
        cmocka_unit_test(a_check_says_what_opening_would_and_leaves_nothing),
        cmocka_unit_test(a_special_file_is_written_directly),
        cmocka_unit_test(a_dash_is_standard_output),
        cmocka_unit_test(a_full_or_closed_standard_output_is_an_error),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
