/* csv.h -- CSV files read by column name (libcsv does the splitting), and written with quoting.
 *
 * The first line that is neither empty nor a comment is the header. Lines that start with '#' before,
 * between or after the rows are handed to the caller, not parsed; empty lines are skipped. Fields are
 * quoted as RFC 4180 says, and spaces belong to them. Lines end with LF or CR LF; a UTF-8 byte order
 * mark at the start is skipped.
 * A row with more or fewer fields than the header, a missing or repeated column, an unterminated
 * quote, a quote in the middle of a field or a NUL byte is an error with its line. Memory does not
 * grow with the file: a row is at most CSV_ROW_BYTES_MAX long, and has at most CSV_COLUMNS_MAX fields.
 */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CSV_ROW_BYTES_MAX ((size_t)1 << 20)
#define CSV_COLUMNS_MAX   ((size_t)4096)

struct csv_column {
    const char *name;
    bool required;
};

struct csv_field {
    const char *text; /* not NUL-terminated; empty where the column is absent */
    size_t length;
};

/* One row; fields stand in the order of the columns asked for, whatever the file's order, and last
 * until the callback returns. `line` is the row's first line, from 1. */
typedef enum status csv_row_fn(void *self, size_t line, const struct csv_field *fields,
                               struct diag *dg);
/* One comment line, without its newline. */
typedef enum status csv_comment_fn(void *self, size_t line, const char *text, size_t length,
                                   struct diag *dg);

/* Reads `path` and calls back until the end or the first failure. `comment` may be NULL. Unknown
 * columns are ignored if `extra_allowed`, otherwise an error that names them. */
MUST_CHECK enum status csv_read(const char *path, const struct csv_column *columns,
                                size_t column_count, bool extra_allowed, csv_row_fn *row,
                                csv_comment_fn *comment, void *self, struct diag *dg);

/* One name of the header. */
typedef enum status csv_name_fn(void *self, struct csv_field name, struct diag *dg);

/* Reads the header alone and calls back for each of its names, in order: for a caller that takes any columns. As
 * the rows are then read from the beginning, `path` must be a regular file. */
MUST_CHECK enum status csv_header(const char *path, csv_name_fn *name, void *self, struct diag *dg);

/* Whole-field conversions; false if the field is empty, not a number or out of range. Numbers are
 * decimal, without spaces; whole ones without a sign. A double has a point whatever the locale, is the
 * nearest to the text (a tiny one may be 0), is finite, and has at most 127 characters. */
bool csv_u64(struct csv_field f, uint64_t *out);
bool csv_double(struct csv_field f, double *out);
bool csv_equal(struct csv_field f, const char *text);

/* A field with quotes where needed: around commas, quotes, line ends and a leading '#'. */
void csv_write_field(FILE *stream, const char *text);

#endif
