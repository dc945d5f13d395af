/* support.h -- what the tests share: cmocka with its includes, the shared data, running the program. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define SHARED "../shared/data/"

/* Skips the running test when ../shared is absent. */
#define NEED_SHARED()                                                                              \
    do {                                                                                           \
        if (!shared_present())                                                                     \
            skip();                                                                                \
    } while (0)
bool shared_present(void);

/* Fails the test, showing the reason, unless the call succeeded. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != ST_OK)                                                                       \
            fail_msg("%s: %s", #call, dg.text);                                                    \
    } while (0)
#define assert_close(a, b, tolerance)                                                              \
    do {                                                                                           \
        double a_ = (a), b_ = (b);                                                                 \
        double d_ = a_ > b_ ? a_ - b_ : b_ - a_;                                                   \
        if (!(d_ <= (tolerance)))                                                                  \
            fail_msg("%s = %.12g, %s = %.12g, apart by %g", #a, a_, #b, b_, d_);                   \
    } while (0)

/* A program run to its end. Output is NUL-terminated; free with run_free. */
struct run {
    int exit_code; /* -1: killed by a signal */
    char *out, *err;
    size_t out_bytes, err_bytes;
};
/* Runs ./memwall (or $MEMWALL) with the given arguments, split at spaces ('...' keeps them together). */
struct run run_memwall(const char *arguments);
/* Any shell command; $MEMWALL is the program. */
struct run run_shell(const char *command);
void run_free(struct run *r);

/* A file in a fresh temporary directory, removed when the process ends. */
const char *temp_path(const char *name);
void write_file(const char *path, const char *text);
char *read_whole(const char *path, size_t *bytes);

#endif
