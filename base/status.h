/* status.h -- how a function says that the world is wrong, and why.
 *
 * Two kinds of failure exist and never mix. The world is wrong (no such file, a bad number, a full
 * disk): the function returns a status and leaves one line of reason in the caller's struct diag,
 * `file:line: what was expected`. The program is wrong (broken invariant): assert() stops it.
 * Libraries never print and never exit; the command line prints diag.text.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum status {
    ST_OK = 0,
    ST_IO,          /* the operating system refused: no such file, disk full, closed pipe */
    ST_PARSE,       /* a text or binary file does not say what it should */
    ST_RANGE,       /* a number outside its limits */
    ST_MISSING,     /* a name that nothing answers to */
    ST_UNSUPPORTED, /* understood, but not something this program does */
    ST_MISFIT,      /* two inputs that do not belong together, or what does not fit in memory */
    ST_NO_MEMORY,
    ST_USAGE /* the command line was misused */
};

struct diag {
    enum status status;
    char text[1024]; /* one line, no newline at its end */
};

/* Records the reason and returns `status`, so that a failing function can end with it:
 * `return diag_set(dg, ST_PARSE, "%s:%zu: unknown key '%s'", path, line, key);`
 * A text that does not fit loses its middle. Control characters in the formatted text are replaced by '?', so the reason stays one line. */
enum status diag_set(struct diag *dg, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* The common case of an allocation that failed. */
enum status diag_no_memory(struct diag *dg);

/* `path: <what> : <strerror(errno)>`, status ST_IO. */
enum status diag_errno(struct diag *dg, const char *path, const char *what);

#endif
