/* cli_expect.h -- what the command line tests ask of a run: its exact output, or a refusal in one line. */
#ifndef TESTS_CLI_EXPECT_H
#define TESTS_CLI_EXPECT_H

#include "tests/support.h"

/* Two layers of four experts of 100 bytes: a prefill pass of two tokens and two decode passes. */
extern const char small_trace[];
/* Writes it and gives its path, which lasts as long as the process. */
const char *small_trace_path(void);
/* A generated trace of 32 experts in 8 layers whose text does not fit into a pipe. */
const char *large_trace_path(void);

/* Writes `pattern` with `path` in place of its '@' (it may have none). Returns `buffer`. */
#define ARGUMENTS_MAX 9000
const char *fill_path(char buffer[ARGUMENTS_MAX], const char *pattern, const char *path);

/* Exit 0, this and nothing else on standard output. */
void expect_stdout(const char *arguments, const char *text);

/* This exit code; `out` somewhere on standard output and `err` on stderr, unless NULL; a failure prints no result. */
void expect_holds(const char *arguments, int exit_code, const char *out, const char *err);

enum { EXIT_FAILED = 1, EXIT_MISUSE = 2 };
/* This exit code, nothing on standard output, one line on stderr that starts with "memwall: " and holds
 * `reason`. */
void expect_refusal(const char *arguments, int exit_code, const char *reason);
/* A row of a table of such. */
struct refusal {
    const char *arguments; /* pattern or tail of a command line, as the table's test says */
    int exit_code;
    const char *reason;
};
/* The same of a shell command; $MEMWALL is the program. */
void expect_shell_refusal(const char *command, int exit_code, const char *reason);

/* Skips a test that draws, and says so, where there is no gnuplot. */
bool gnuplot_present(void);
#define NEED_GNUPLOT()                                                                             \
    do {                                                                                           \
        if (!gnuplot_present()) {                                                                  \
            print_message("skipped: gnuplot is not installed (apt-get install gnuplot-nox)\n");    \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

/* Every command of the table, as `memwall` lists them. */
struct command_list {
    char name[64][32];
    size_t count;
};
void command_list_read(struct command_list *out);
/* Those that measure the machine, which takes a while and never gives the same figures twice, or need a model twice; they
 * are tried with small settings elsewhere. */
bool example_is_slow(const char *command);
/* The example of a command's --help with the program's absolute path in front, run in a temporary folder
 * beside links to tests/, experiments/ and models/. `tail` is appended to the command. */
struct run run_example(const char *command, const char *tail);

#endif
