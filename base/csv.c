/* csv.c -- see csv.h.
 *
 * A file is read in blocks and cut into lines. Comments and empty lines go first. A row without a
 * quote is split at its commas right there, in the block; a row that holds a quote is given to libcsv,
 * together with the lines that its quoted fields run over. Both fill `raw`, from which one function
 * delivers rows.
 *
 * Why libcsv does not get every row: its parser works byte by byte, copies every field and calls back
 * for each. Fed line by line, as comments and line numbers require, it reads a routing trace at 180
 * MB/s (one core of a small virtual machine); splitting in place reads it at 900 MB/s, and every
 * replay reads a trace of millions of rows. The tests hold the two against each other.
 */
#include "base/csv.h"

#include "base/infile.h"

#include <csv.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES     ((size_t)256 << 10)
#define NO_SOURCE      SIZE_MAX
#define NAME_SHOWN_MAX 100

/* Bytes that turn a line into more than text between commas. */
enum special { SPECIAL_QUOTE, SPECIAL_RETURN, SPECIAL_NUL, SPECIAL_COUNT };
static const char special_byte[SPECIAL_COUNT] = {'"', '\r', '\0'};

/* A line in the block, without its end. */
struct line {
    const char *text;
    size_t length;
    bool returned; /* it ended with CR LF */
};

struct reader {
    const char *path;
    const struct csv_column *columns;
    size_t column_count;
    bool extra_allowed;
    csv_name_fn *name; /* not NULL: the header is all that is read */
    struct diag *dg;
    int fd;

    char *block; /* CSV_ROW_BYTES_MAX bytes; those from begin to end are not yet cut into lines */
    size_t begin, end;
    bool at_end;                        /* nothing follows the block */
    const char *special[SPECIAL_COUNT]; /* the next such byte in the block; NULL: not looked up */
    size_t line;                        /* number of the line cut last */

    struct csv_field *raw; /* CSV_COLUMNS_MAX fields of the current row, in the file's order */
    size_t raw_count;      /* may exceed CSV_COLUMNS_MAX: then only so many are stored */
    size_t *source;        /* for each column asked for: its place in raw, or NO_SOURCE */
    struct csv_field *fields;
    size_t file_columns; /* 0 before the header */

    struct csv_parser parser; /* libcsv's, for rows with quotes */
    char *record;             /* the unquoted text of such a row; allocated when one is met */
    size_t record_bytes;
    bool row_ended;
};

static enum status fail(const struct reader *r, size_t line, const char *expected)
{
    return diag_set(r->dg, ST_PARSE, "%s:%zu: %s", r->path, line, expected);
}

/* ---- lines ---- */

/* Moves what is left to the front and reads behind it. */
static enum status fill(struct reader *r)
{
    memmove(r->block, r->block + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    for (int i = 0; i < SPECIAL_COUNT; i++)
        r->special[i] = NULL;
    size_t room = CSV_ROW_BYTES_MAX - r->end;
    if (room == 0)
        return fail(r, r->line + 1, "a line of less than 1 MiB was expected");
    ssize_t got;
    do {
        got = read(r->fd, r->block + r->end, room < READ_BYTES ? room : READ_BYTES);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return diag_errno(r->dg, r->path, "cannot be read");
    r->end += (size_t)got;
    r->at_end = got == 0;
    return ST_OK;
}

static const char *find_byte(const char *from, const char *to, char byte)
{
    const char *found = memchr(from, byte, (size_t)(to - from));
    return found ? found : to;
}

/* Whether the line holds such a byte. Looked up once a block rather than once a line, because most
 * blocks hold none. */
static bool line_has(struct reader *r, const struct line *l, enum special s)
{
    if (!r->special[s] || r->special[s] < l->text)
        r->special[s] = find_byte(l->text, r->block + r->end, special_byte[s]);
    return r->special[s] < l->text + l->length;
}

/* Cuts the next line off the block; *found is false at the end of the file. */
static enum status next_line(struct reader *r, struct line *l, bool *found)
{
    size_t searched = 0;
    const char *end;
    for (;;) {
        const char *block_end = r->block + r->end;
        end = find_byte(r->block + r->begin + searched, block_end, '\n');
        if (end < block_end || r->at_end)
            break;
        searched = r->end - r->begin;
        enum status st = fill(r);
        if (st != ST_OK)
            return st;
    }
    l->text = r->block + r->begin;
    l->length = (size_t)(end - l->text);
    *found = r->begin < r->end;
    if (!*found)
        return ST_OK;
    r->begin += l->length + (end < r->block + r->end);
    if (line_has(r, l, SPECIAL_NUL))
        return fail(r, r->line + 1, "text was expected, not a NUL byte");
    l->returned = l->length > 0 && l->text[l->length - 1] == '\r';
    l->length -= l->returned;
    if (r->line++ == 0 && l->length >= 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0) {
        l->text += 3;
        l->length -= 3;
    }
    return ST_OK;
}

/* ---- from a line to raw fields ---- */

static void add_raw(struct reader *r, const char *text, size_t length)
{
    if (r->raw_count < CSV_COLUMNS_MAX)
        r->raw[r->raw_count] = (struct csv_field){text, length};
    r->raw_count++;
}

static void split_plain(struct reader *r, const struct line *l)
{
    const char *start = l->text, *end = l->text + l->length;
    r->raw_count = 0;
    for (const char *c = start; c < end; c++)
        if (*c == ',') {
            add_raw(r, start, (size_t)(c - start));
            start = c + 1;
        }
    add_raw(r, start, (size_t)(end - start));
}

static void on_field(void *data, size_t length, void *self)
{
    struct reader *r = self;
    char *copy = r->record + r->record_bytes;
    if (length > 0)
        memcpy(copy, data, length);
    r->record_bytes += length;
    add_raw(r, copy, length);
}

static void on_row(int terminator, void *self)
{
    (void)terminator;
    ((struct reader *)self)->row_ended = true;
}

/* libcsv would trim unquoted fields; here spaces belong to them. */
static int never_space(unsigned char c)
{
    (void)c;
    return 0;
}

static enum status feed(struct reader *r, size_t row_line, const char *text, size_t length)
{
    if (csv_parse(&r->parser, text, length, on_field, on_row, r) == length)
        return ST_OK;
    if (csv_error(&r->parser) != CSV_EPARSE)
        return diag_no_memory(r->dg);
    return fail(r, row_line, "quotes were expected around whole fields only, and doubled inside");
}

/* One line of a row with quotes. Its end is fed apart, because a carriage return that does not end
 * the line would end the row for libcsv. */
static enum status feed_line(struct reader *r, size_t row_line, const struct line *l)
{
    enum status st = feed(r, row_line, l->text, l->length);
    if (st != ST_OK)
        return st;
    if (r->row_ended)
        return fail(r, r->line, "a carriage return was expected only at the end of a line");
    return l->returned ? feed(r, row_line, "\r\n", 2) : feed(r, row_line, "\n", 1);
}

/* Reads on until the row's quotes are closed. The text without quotes is never longer than the row,
 * so `record` cannot overflow. */
static enum status split_quoted(struct reader *r, struct line l)
{
    if (!r->record && !(r->record = malloc(CSV_ROW_BYTES_MAX)))
        return diag_no_memory(r->dg);
    size_t row_line = r->line, row_bytes = 0;
    r->raw_count = r->record_bytes = 0;
    r->row_ended = false;
    for (;;) {
        row_bytes += l.length + 2;
        if (row_bytes > CSV_ROW_BYTES_MAX)
            return fail(r, row_line,
                        "a row of less than 1 MiB was expected; is a quote not closed?");
        enum status st = feed_line(r, row_line, &l);
        if (st != ST_OK || r->row_ended)
            return st;
        bool found;
        st = next_line(r, &l, &found);
        if (st != ST_OK)
            return st;
        if (!found)
            return fail(r, row_line, "a closing quote was expected before the end of the file");
    }
}

/* ---- header and rows ---- */

static int shown(struct csv_field f)
{
    return f.length < NAME_SHOWN_MAX ? (int)f.length : NAME_SHOWN_MAX;
}

static bool same_text(struct csv_field a, struct csv_field b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static enum status refuse_repeated(const struct reader *r, size_t line)
{
    for (size_t i = 0; i < r->raw_count; i++)
        for (size_t k = 0; k < i; k++)
            if (same_text(r->raw[i], r->raw[k]))
                return diag_set(r->dg, ST_PARSE, "%s:%zu: column '%.*s' was expected only once",
                                r->path, line, shown(r->raw[i]), r->raw[i].text);
    return ST_OK;
}

static enum status refuse_unknown(const struct reader *r, size_t line)
{
    char names[512];
    size_t length = 0;
    for (size_t i = 0; i < r->raw_count; i++) {
        bool known = false;
        for (size_t k = 0; k < r->column_count; k++)
            known |= r->source[k] == i;
        if (!known && length < sizeof names)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s'%.*s'",
                                       length ? ", " : "", shown(r->raw[i]), r->raw[i].text);
    }
    if (length == 0)
        return ST_OK;
    return diag_set(r->dg, ST_PARSE, "%s:%zu: only known columns were expected, not %s", r->path,
                    line, names);
}

static enum status read_header(struct reader *r, size_t line, void *self)
{
    if (r->raw_count > CSV_COLUMNS_MAX)
        return diag_set(r->dg, ST_PARSE, "%s:%zu: at most %zu columns were expected", r->path, line,
                        CSV_COLUMNS_MAX);
    enum status st = refuse_repeated(r, line);
    if (st != ST_OK)
        return st;
    for (size_t k = 0; k < r->column_count; k++) {
        r->source[k] = NO_SOURCE;
        for (size_t i = 0; i < r->raw_count; i++)
            if (csv_equal(r->raw[i], r->columns[k].name))
                r->source[k] = i;
        if (r->source[k] == NO_SOURCE && r->columns[k].required)
            return diag_set(r->dg, ST_PARSE, "%s:%zu: a column '%s' was expected in the header",
                            r->path, line, r->columns[k].name);
        r->fields[k] = (struct csv_field){"", 0};
    }
    r->file_columns = r->raw_count;
    for (size_t i = 0; r->name && st == ST_OK && i < r->raw_count; i++)
        st = r->name(self, r->raw[i], r->dg);
    if (st != ST_OK)
        return st;
    return r->extra_allowed ? ST_OK : refuse_unknown(r, line);
}

static enum status deliver(struct reader *r, size_t line, csv_row_fn *row, void *self)
{
    if (r->raw_count != r->file_columns)
        return diag_set(r->dg, ST_PARSE,
                        "%s:%zu: %zu fields were expected, as in the header, not %zu", r->path,
                        line, r->file_columns, r->raw_count);
    for (size_t k = 0; k < r->column_count; k++)
        if (r->source[k] != NO_SOURCE)
            r->fields[k] = r->raw[r->source[k]];
    return row(self, line, r->fields, r->dg);
}

static enum status read_row(struct reader *r, const struct line *l, csv_row_fn *row, void *self)
{
    size_t line = r->line;
    if (line_has(r, l, SPECIAL_QUOTE)) {
        enum status st = split_quoted(r, *l);
        if (st != ST_OK)
            return st;
    } else if (line_has(r, l, SPECIAL_RETURN)) {
        return fail(r, line, "a carriage return was expected only at the end of a line");
    } else {
        split_plain(r, l);
    }
    return r->file_columns ? deliver(r, line, row, self) : read_header(r, line, self);
}

static enum status read_lines(struct reader *r, csv_row_fn *row, csv_comment_fn *comment,
                              void *self)
{
    for (;;) {
        struct line l;
        bool found;
        enum status st = next_line(r, &l, &found);
        if (st != ST_OK)
            return st;
        if (!found)
            return r->file_columns ? ST_OK : fail(r, r->line + 1, "a header row was expected");
        if (l.length == 0)
            continue;
        if (*l.text != '#')
            st = read_row(r, &l, row, self);
        else if (comment)
            st = comment(self, r->line, l.text, l.length, r->dg);
        if (st != ST_OK || (r->name && r->file_columns))
            return st;
    }
}

static bool allocate(struct reader *r)
{
    r->block = malloc(CSV_ROW_BYTES_MAX);
    r->raw = malloc(CSV_COLUMNS_MAX * sizeof *r->raw);
    r->source = calloc(r->column_count + 1, sizeof *r->source);
    r->fields = calloc(r->column_count + 1, sizeof *r->fields);
    return r->block && r->raw && r->source && r->fields;
}

static void release(struct reader *r)
{
    free(r->block);
    free(r->raw);
    free(r->source);
    free(r->fields);
    free(r->record);
    csv_free(&r->parser);
    if (r->fd >= 0)
        close(r->fd);
}

static enum status read_file(struct reader *r, enum infile_kind kind, csv_row_fn *row,
                             csv_comment_fn *comment, void *self)
{
    r->fd = -1;
    if (csv_init(&r->parser, CSV_STRICT) != 0)
        return diag_no_memory(r->dg);
    csv_set_space_func(&r->parser, never_space);
    enum status st = infile_open(&r->fd, r->path, kind, r->dg);
    if (st == ST_OK)
        st = allocate(r) ? read_lines(r, row, comment, self) : diag_no_memory(r->dg);
    release(r);
    return st;
}

enum status csv_read(const char *path, const struct csv_column *columns, size_t column_count,
                     bool extra_allowed, csv_row_fn *row, csv_comment_fn *comment, void *self,
                     struct diag *dg)
{
    struct reader r = {.path = path,
                       .columns = columns,
                       .column_count = column_count,
                       .extra_allowed = extra_allowed,
                       .dg = dg};
    return read_file(&r, INFILE_STREAM, row, comment, self);
}

enum status csv_header(const char *path, csv_name_fn *name, void *self, struct diag *dg)
{
    struct reader r = {.path = path, .extra_allowed = true, .name = name, .dg = dg};
    return read_file(&r, INFILE_REGULAR, NULL, NULL, self);
}
