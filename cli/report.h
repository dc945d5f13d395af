/* report.h -- results on standard output as a table for people, CSV or JSON: one set of columns, three
 * prints, the same bytes on every machine. JSON is an array of objects, or one object for `single`. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/args.h"

enum cell_type {
    CELL_TEXT,
    CELL_COUNT,
    CELL_RATIO /* nine decimals */,
    CELL_NUMBER /* given decimals */
};

struct column {
    const char *name; /* snake_case, unit last */
    enum cell_type type;
    int decimals;   /* CELL_NUMBER */
    bool wide_only; /* left out of the table for people */
};

struct report;
MUST_CHECK enum status report_open(struct report **out, const struct args *a,
                                   const struct column *columns, size_t count, struct diag *dg);
void report_single(struct report *r); /* JSON: print the only row as an object */
void report_text(struct report *r, const char *text);
void report_count(struct report *r, uint64_t n);
void report_ratio(struct report *r, double x); /* NaN prints empty (null in JSON) */
void report_number(struct report *r, double x);
void report_empty(struct report *r);
/* A number as text, printed as it is: for rows that were captured. Blank text is empty. */
void report_raw(struct report *r, const char *text);
/* Hands the rows to the capture of the arguments if there is one. Else flushes; ST_IO if standard
 * output could not take it. Frees r. */
MUST_CHECK enum status report_close(struct report *r, struct diag *dg);
/* Frees r without printing; NULL is fine. */
void report_abandon(struct report *r);

/* For commands that print by hand: ST_IO if what was printed did not arrive. */
MUST_CHECK enum status flush_stdout(struct diag *dg);

#endif
