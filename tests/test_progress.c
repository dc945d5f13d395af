/* test_progress.c -- what appears on a terminal, and that nothing does elsewhere. */
#include "base/progress.h"

#include "tests/support.h"

#include <fcntl.h>
#include <unistd.h>

/* Stands in for standard error while `work` runs; what was written is left in `text`. */
static void with_stderr(int replacement, int reader, void (*work)(void), char text[4096])
{
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(replacement, STDERR_FILENO) >= 0);
    work();
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    assert_true(fcntl(reader, F_SETFL, O_NONBLOCK) == 0);
    size_t used = 0;
    for (ssize_t got; (got = read(reader, text + used, 4095 - used)) > 0;)
        used += (size_t)got;
    text[used] = '\0';
}

static void on_terminal(void (*work)(void), char text[4096])
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(end >= 0);
    with_stderr(end, terminal, work, text);
    close(end);
    close(terminal);
}

static void slow_work(void)
{
    struct progress p;
    progress_start(&p, "reading", 4);
    usleep(120000);
    progress_add(&p, 1);
    usleep(120000);
    progress_add(&p, 1);
    progress_end(&p);
}

static void quick_work(void)
{
    struct progress p;
    progress_start(&p, "reading", 50);
    for (int i = 0; i < 50; i++)
        progress_add(&p, 1);
    progress_end(&p);
}

static void more_work_than_announced(void)
{
    struct progress p;
    progress_start(&p, "reading", 0);
    usleep(120000);
    progress_add(&p, 1);
    progress_end(&p);
    progress_start(&p, "reading", 1);
    usleep(120000);
    progress_add(&p, 5);
    progress_end(&p);
}

static void slow_bytes(void)
{
    struct progress p;
    progress_start_bytes(&p, "writing", 400000000);
    usleep(120000);
    progress_add(&p, 100000000);
    progress_end(&p);
}

static void bytes_are_drawn_with_their_rate(void **state)
{
    (void)state;
    char text[4096];
    on_terminal(slow_bytes, text);
    double rate = 0;
    int end = 0;
    sscanf(text, "\rwriting 25 %%, %*u s left, %lf MB/s\033[K%n", &rate, &end);
    assert_true(rate > 1 && rate <= 834); /* 100 MB in at least 0.12 s */
    assert_string_equal(text + end, "\r\033[K");
}

static void slow_work_is_drawn_with_the_time_left_and_erased(void **state)
{
    (void)state;
    char text[4096];
    on_terminal(slow_work, text);
    /* A quarter takes at least 0.12 s; how much more is up to the machine. */
    unsigned quarter_s = 0, half_s = 0;
    int end = 0;
    sscanf(text, "\rreading 25 %%, %u s left\033[K\rreading 50 %%, %u s left\033[K%n", &quarter_s,
           &half_s, &end);
    assert_in_range(quarter_s, 1, 100);
    assert_in_range(half_s, 1, 100);
    assert_true(end > 0);
    assert_string_equal(text + strlen(text) - 4, "\r\033[K");
}

static void quick_work_shows_nothing(void **state)
{
    (void)state;
    char text[4096];
    on_terminal(quick_work, text);
    assert_string_equal(text, "");
}

static void a_wrong_total_is_no_harm(void **state)
{
    (void)state;
    char text[4096];
    on_terminal(more_work_than_announced, text);
    assert_string_equal(text, "\r\033[K\rreading 100 %, 0 s left\033[K\r\033[K");
}

static void nothing_is_drawn_where_there_is_no_terminal(void **state)
{
    (void)state;
    char text[4096];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    with_stderr(ends[1], ends[0], slow_work, text);
    close(ends[0]);
    close(ends[1]);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_drawn_with_their_rate),
        cmocka_unit_test(slow_work_is_drawn_with_the_time_left_and_erased),
        cmocka_unit_test(quick_work_shows_nothing),
        cmocka_unit_test(a_wrong_total_is_no_harm),
        cmocka_unit_test(nothing_is_drawn_where_there_is_no_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
