/* test_csv.c -- what is read from well-formed files, the complaint about every kind of broken one,
 * and the two ways of splitting a row held against each other. */
#include "base/csv.h"

#include "base/pcg.h"
#include "tests/allocations.h"
#include "tests/support.h"

#include <locale.h>
#include <math.h>
#include <sys/resource.h>

static const struct csv_column a_and_b[] = {{"a", true}, {"b", true}};

/* Everything a file calls back with, as text: `line:field|field;` and `line#comment;`. */
struct log {
    char *text;
    size_t bytes;
    FILE *stream;
    size_t columns, rows, rows_max;
};

static enum status log_row(void *self, size_t line, const struct csv_field *fields, struct diag *dg)
{
    struct log *l = self;
    if (l->rows == l->rows_max)
        return diag_set(dg, ST_RANGE, "enough");
    l->rows++;
    fprintf(l->stream, "%zu:", line);
    for (size_t i = 0; i < l->columns; i++) {
        assert_non_null(fields[i].text);
        fprintf(l->stream, "%s%.*s", i ? "|" : "", (int)fields[i].length, fields[i].text);
    }
    fputc(';', l->stream);
    return ST_OK;
}

static enum status log_comment(void *self, size_t line, const char *text, size_t length,
                               struct diag *dg)
{
    (void)dg;
    fprintf(((struct log *)self)->stream, "%zu%.*s;", line, (int)length, text);
    return ST_OK;
}

static void log_start(struct log *l, size_t columns)
{
    *l = (struct log){.columns = columns, .rows_max = SIZE_MAX};
    l->stream = open_memstream(&l->text, &l->bytes);
    assert_non_null(l->stream);
}

static void log_stop(struct log *l)
{
    fclose(l->stream);
    free(l->text);
}

static const char *write_bytes(const char *text, size_t bytes)
{
    const char *path = temp_path("file.csv");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void assert_reads_as(const char *text, const char *expected)
{
    struct diag dg;
    struct log l;
    log_start(&l, 2);
    assert_ok(
        csv_read(write_bytes(text, strlen(text)), a_and_b, 2, true, log_row, log_comment, &l, &dg));
    fflush(l.stream);
    assert_string_equal(l.text, expected);
    log_stop(&l);
}

static void assert_refused_bytes(const char *text, size_t bytes, const char *reason)
{
    struct diag dg;
    struct log l;
    log_start(&l, 2);
    const char *path = write_bytes(text, bytes);
    enum status st = csv_read(path, a_and_b, 2, false, log_row, log_comment, &l, &dg);
    log_stop(&l);
    assert_int_equal(st, ST_PARSE);
    assert_int_equal(strncmp(dg.text, path, strlen(path)), 0);
    assert_string_equal(dg.text + strlen(path), reason);
}

static void assert_refused(const char *text, const char *reason)
{
    assert_refused_bytes(text, strlen(text), reason);
}

static void fields_arrive_in_the_order_asked_for(void **state)
{
    (void)state;
    assert_reads_as("a,b\n1,2\n3,4\n", "2:1|2;3:3|4;");
    assert_reads_as("b,x,a\n1,2,3\n4,5,6", "2:3|1;3:6|4;");
}

static void empty_fields_and_spaces_are_kept(void **state)
{
    (void)state;
    assert_reads_as("a,b\n,\n 1 ,\t\n\" 2 \", \n", "2:|;3: 1 |\t;4: 2 | ;");
}

static void a_column_that_is_absent_and_not_required_is_empty(void **state)
{
    (void)state;
    struct diag dg;
    struct log l;
    log_start(&l, 3);
    const struct csv_column columns[] = {{"a", true}, {"gone", false}, {"b", true}};
    write_file(temp_path("absent.csv"), "b,a\n1,2\n");
    assert_ok(csv_read(temp_path("absent.csv"), columns, 3, false, log_row, NULL, &l, &dg));
    fflush(l.stream);
    assert_string_equal(l.text, "2:2||1;");
    log_stop(&l);
}

static void comments_arrive_with_their_line_wherever_they_stand(void **state)
{
    (void)state;
    assert_reads_as("# x=1\n#\na,b\n# \"mid\n1,2\n\n# end, no newline",
                    "1# x=1;2#;4# \"mid;5:1|2;7# end, no newline;");
}

static void a_comment_sign_inside_a_row_is_text(void **state)
{
    (void)state;
    assert_reads_as("a,b\n1,#2\n\"#3\",4\n\"5\n#6\",7\n", "2:1|#2;3:#3|4;4:5\n#6|7;");
}

static void without_a_comment_callback_comments_are_skipped(void **state)
{
    (void)state;
    struct diag dg;
    struct log l;
    log_start(&l, 2);
    write_file(temp_path("skip.csv"), "#\na,b\n#\n1,2\n");
    assert_ok(csv_read(temp_path("skip.csv"), a_and_b, 2, false, log_row, NULL, &l, &dg));
    assert_int_equal(l.rows, 1);
    log_stop(&l);
}

static void a_byte_order_mark_and_carriage_returns_are_not_part_of_the_text(void **state)
{
    (void)state;
    assert_reads_as("\xef\xbb\xbf"
                    "a,b\r\n1,2\r\n\r\n# c\r\n\"3\",4\r\n",
                    "2:1|2;4# c;5:3|4;");
    assert_reads_as("\xef\xbb\xbf# c\na,b\n", "1# c;");
    assert_reads_as("\xef\xbb\xbf\"a\",b\n1,2\n", "2:1|2;");
}

static void quotes_hold_commas_quotes_and_line_ends(void **state)
{
    (void)state;
    assert_reads_as("a,b\n\"1,2\",\"say \"\"hi\"\"\"\n\"\",\"x\ny\r\n\nz\"\n7,8\n",
                    "2:1,2|say \"hi\";3:|x\ny\r\n\nz;7:7|8;");
    assert_reads_as("\"a\",\"b\"\n1,\"2\"", "2:1|2;");
}

static void every_broken_file_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_refused("", ":1: a header row was expected");
    assert_refused("# only\n\n", ":3: a header row was expected");
    assert_refused("a,b\n1,2\n3\n", ":3: 2 fields were expected, as in the header, not 1");
    assert_refused("a,b\n\n\"1\",2,3", ":3: 2 fields were expected, as in the header, not 3");
    assert_refused("#\na,c\n", ":2: a column 'b' was expected in the header");
    assert_refused("a,b,a\n", ":1: column 'a' was expected only once");
    assert_refused("a,x,b,y\n", ":1: only known columns were expected, not 'x', 'y'");
    assert_refused("a,b\n1,2\n\"3,4\n5,6\n",
                   ":3: a closing quote was expected before the end of the file");
    assert_refused("a,b\n1,2\"\n",
                   ":2: quotes were expected around whole fields only, and doubled inside");
    assert_refused("a,b\n\"1\" ,2\n",
                   ":2: quotes were expected around whole fields only, and doubled inside");
    assert_refused("a,b\n1\r2,3\n", ":2: a carriage return was expected only at the end of a line");
    assert_refused("a,b\n\"1\",2\r3\n",
                   ":2: a carriage return was expected only at the end of a line");
    static const char with_nul[] = "a,b\n1,2\n3,4\0\n";
    assert_refused_bytes(with_nul, sizeof with_nul - 1, ":3: text was expected, not a NUL byte");
    static const char nul_comment[] = "#\0\na,b\n";
    assert_refused_bytes(nul_comment, sizeof nul_comment - 1,
                         ":1: text was expected, not a NUL byte");
    static const char nul_quoted[] = "a,b\n\"1\n\0\",2\n";
    assert_refused_bytes(nul_quoted, sizeof nul_quoted - 1,
                         ":3: text was expected, not a NUL byte");
}

static void rows_and_headers_have_a_largest_size(void **state)
{
    (void)state;
    size_t bytes = CSV_ROW_BYTES_MAX + 100;
    char *text = malloc(bytes);
    memset(text, 'x', bytes);
    memcpy(text, "a,b\n", 4);
    assert_refused_bytes(text, bytes, ":2: a line of less than 1 MiB was expected");
    memset(text, '\n', bytes);
    memcpy(text, "a,b\n\"", 5);
    assert_refused_bytes(text, bytes,
                         ":2: a row of less than 1 MiB was expected; is a quote not closed?");
    memset(text, ',', bytes);
    text[CSV_COLUMNS_MAX] = '\n';
    assert_refused_bytes(text, CSV_COLUMNS_MAX + 1, ":1: at most 4096 columns were expected");
    memcpy(text, "a,b\n", 4);
    assert_refused_bytes(text, CSV_COLUMNS_MAX + 1,
                         ":2: 2 fields were expected, as in the header, not 4093");
    free(text);
}

static void a_row_nearly_as_long_as_allowed_is_read_whole(void **state)
{
    (void)state;
    size_t bytes = CSV_ROW_BYTES_MAX - 10;
    for (int quoted = 0; quoted < 2; quoted++) {
        char *text = malloc(bytes);
        memset(text, 'x', bytes);
        memcpy(text, "a,b\n", 4);
        memcpy(text + bytes - 3, ",y\n", 3);
        if (quoted)
            text[4] = text[bytes - 4] = '"';
        struct diag dg;
        struct log l;
        log_start(&l, 2);
        assert_ok(csv_read(write_bytes(text, bytes), a_and_b, 2, false, log_row, NULL, &l, &dg));
        fflush(l.stream);
        assert_int_equal(l.bytes, strlen("2:|y;") + bytes - 7 - 2 * (size_t)quoted);
        log_stop(&l);
        free(text);
    }
}

static void what_cannot_be_opened_or_read_is_reported_by_the_system(void **state)
{
    (void)state;
    static const char *const paths[][2] = {
        {"/nowhere/x.csv", "/nowhere/x.csv: cannot be opened: No such file or directory"},
        {"/tmp", "/tmp: cannot be read: Is a directory"},
        {"/proc/self/mem", "/proc/self/mem: cannot be read: Input/output error"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct diag dg;
        struct log l;
        log_start(&l, 2);
        enum status st = csv_read(paths[i][0], a_and_b, 2, false, log_row, NULL, &l, &dg);
        assert_int_equal(st, ST_IO);
        assert_string_equal(dg.text, paths[i][1]);
        log_stop(&l);
    }
}

static void the_first_failure_of_a_callback_ends_the_reading(void **state)
{
    (void)state;
    struct diag dg;
    struct log l;
    log_start(&l, 2);
    l.rows_max = 2;
    write_file(temp_path("stop.csv"), "a,b\n1,2\n3,4\n5,6\n7,8,9\n");
    enum status st = csv_read(temp_path("stop.csv"), a_and_b, 2, false, log_row, NULL, &l, &dg);
    assert_int_equal(st, ST_RANGE);
    assert_string_equal(dg.text, "enough");
    assert_int_equal(l.rows, 2);
    log_stop(&l);
}

static enum status count_row(void *self, size_t line, const struct csv_field *fields,
                             struct diag *dg)
{
    (void)line, (void)fields, (void)dg;
    ++*(size_t *)self;
    return ST_OK;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    write_file(temp_path("memory.csv"), "a,b\n1,2\n\"3\",\"4\"\n");
    enum status st = ST_NO_MEMORY;
    size_t n = 1;
    for (; st == ST_NO_MEMORY; n++) {
        struct diag dg = {.status = ST_OK};
        size_t rows = 0;
        allocations_fail_at(n);
        st = csv_read(temp_path("memory.csv"), a_and_b, 2, false, count_row, NULL, &rows, &dg);
        allocations_fail_at(0);
        assert_true(st == ST_OK ? rows == 2 : dg.status == ST_NO_MEMORY);
    }
    assert_int_equal(st, ST_OK);
    assert_in_range(n, 6, 20); /* block, raw, source, fields, record, and what libcsv takes */
}

/* A field of 0 to 11 characters out of `alphabet`. */
static void random_field(char out[12], struct pcg *p, const char *alphabet)
{
    uint32_t length = pcg_below(p, 12);
    for (uint32_t i = 0; i < length; i++)
        out[i] = alphabet[pcg_below(p, (uint32_t)strlen(alphabet))];
    out[length] = '\0';
}

/* Megabytes, so that rows of every length lie across the ends of blocks. */
static void rows_with_and_without_quotes_read_the_same(void **state)
{
    (void)state;
    enum { ROWS = 100000 };
    const char *plain = temp_path("plain.csv"), *quoted = temp_path("quoted.csv");
    FILE *p = fopen(plain, "wb"), *q = fopen(quoted, "wb");
    assert_true(p && q);
    fputs("a,b\n", p);
    fputs("a,b\n", q);
    struct pcg chance;
    pcg_stream(&chance, 1, "csv");
    for (int i = 0; i < ROWS; i++) {
        char a[12], b[12];
        random_field(a, &chance, "0123456789 .xyz\xc3\xa4");
        random_field(b, &chance, "0123456789 .xyz#");
        fprintf(p, "%s,%s\n", a, b);
        fprintf(q, pcg_below(&chance, 2) ? "\"%s\",%s\n" : "%s,\"%s\"\n", a, b);
    }
    fclose(p);
    fclose(q);
    struct diag dg;
    struct log one, two;
    log_start(&one, 2);
    log_start(&two, 2);
    assert_ok(csv_read(plain, a_and_b, 2, false, log_row, log_comment, &one, &dg));
    assert_ok(csv_read(quoted, a_and_b, 2, false, log_row, log_comment, &two, &dg));
    fflush(one.stream);
    fflush(two.stream);
    assert_int_equal(one.rows, ROWS);
    assert_string_equal(one.text, two.text);
    log_stop(&one);
    log_stop(&two);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    enum { ROWS = 20000 };
    const char *path = temp_path("written.csv");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    struct log expected, got;
    log_start(&expected, 2);
    log_start(&got, 2);
    fputs("a,b\n", f);
    struct pcg chance;
    pcg_stream(&chance, 2, "csv");
    size_t line = 2;
    for (int i = 0; i < ROWS; i++) {
        char a[12], b[12];
        random_field(a, &chance, "xy,\"\r\n# ");
        random_field(b, &chance, "xy,\"\r\n# ");
        csv_write_field(f, a);
        fputc(',', f);
        csv_write_field(f, b);
        fputc('\n', f);
        fprintf(expected.stream, "%zu:%s|%s;", line, a, b);
        line++;
        for (const char *c = a; *c; c++)
            line += *c == '\n';
        for (const char *c = b; *c; c++)
            line += *c == '\n';
    }
    fclose(f);
    struct diag dg;
    assert_ok(csv_read(path, a_and_b, 2, false, log_row, log_comment, &got, &dg));
    fflush(expected.stream);
    fflush(got.stream);
    assert_string_equal(got.text, expected.text);
    log_stop(&expected);
    log_stop(&got);
}

/* Some bytes of a good file replaced, at random: it is read, or refused with path and line. */
static void a_damaged_file_is_read_or_refused_cleanly(void **state)
{
    (void)state;
    static const char good[] = "# c\na,b\n1,2\n\"x\",\"y\"\"z\"\n3,\"4\n5\"\r\n# d\n6,7\n";
    static const char bad[] = "\"\r\n,#\0x";
    struct pcg chance;
    pcg_stream(&chance, 3, "csv");
    int refused = 0;
    for (int i = 0; i < 3000; i++) {
        char text[sizeof good - 1];
        memcpy(text, good, sizeof text);
        for (uint32_t k = pcg_below(&chance, 4) + 1; k > 0; k--)
            text[pcg_below(&chance, sizeof text)] = bad[pcg_below(&chance, sizeof bad - 1)];
        struct diag dg;
        struct log l;
        log_start(&l, 2);
        const char *path = write_bytes(text, pcg_below(&chance, sizeof text) + 1);
        enum status st = csv_read(path, a_and_b, 2, false, log_row, log_comment, &l, &dg);
        log_stop(&l);
        if (st == ST_OK)
            continue;
        refused++;
        unsigned line;
        assert_int_equal(st, ST_PARSE);
        assert_int_equal(strncmp(dg.text, path, strlen(path)), 0);
        assert_int_equal(sscanf(dg.text + strlen(path), ":%u: ", &line), 1);
        assert_in_range(line, 1, 20);
    }
    assert_in_range(refused, 1000, 2999);
}

/* Runs first, while the process has never been larger. */
static void memory_does_not_grow_with_the_file(void **state)
{
    (void)state;
    const char *path = temp_path("large.csv");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("a,b\n", f);
    for (int i = 0; i < 1000000; i++)
        fprintf(f, "%d,\"%d\"\n", i, i);
    fclose(f);
    struct rusage before, after;
    struct diag dg;
    struct log l = {.stream = fopen("/dev/null", "w"), .columns = 2, .rows_max = SIZE_MAX};
    assert_non_null(l.stream);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    assert_ok(csv_read(path, a_and_b, 2, false, log_row, NULL, &l, &dg));
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    fclose(l.stream);
    assert_int_equal(l.rows, 1000000);
    assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 8192); /* KiB; the file has 16 MB */
}

static struct csv_field field(const char *text)
{
    return (struct csv_field){text, strlen(text)};
}

static void whole_numbers_are_digits_within_64_bits(void **state)
{
    (void)state;
    uint64_t n = 7;
    assert_true(csv_u64(field("18446744073709551615"), &n) && n == UINT64_MAX);
    assert_true(csv_u64(field("0"), &n) && n == 0);
    assert_true(csv_u64(field("007"), &n) && n == 7);
    assert_true(csv_u64((struct csv_field){"1234", 2}, &n) && n == 12);
    static const char *const wrong[] = {"",
                                        "18446744073709551616",
                                        "99999999999999999999",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1.0",
                                        "0x1",
                                        "1e3",
                                        "\xd9\xa1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(csv_u64(field(wrong[i]), &n));
    assert_int_equal(n, 12);
}

static void real_numbers_are_decimal_and_finite(void **state)
{
    (void)state;
    double d = 7;
    assert_true(csv_double(field("0.384493"), &d) && d == 0.384493);
    assert_true(csv_double(field("-1.5e-3"), &d) && d == -1.5e-3);
    assert_true(csv_double(field("+.5E2"), &d) && d == 50);
    assert_true(csv_double(field("9007199254740993"), &d) && d == 9007199254740992.0);
    assert_true(csv_double(field("2.2250738585072011e-308"), &d) && d > 0);
    assert_true(csv_double(field("1e-999"), &d) && d == 0);
    assert_true(csv_double((struct csv_field){"12.59", 4}, &d) && d == 12.5);
    static const char *const wrong[] = {"",     ".",     "-",  "1e", "1e+", "e5",    "inf", "nan",
                                        "0x10", "1e999", " 1", "1 ", "1,5", "1.2.3", "--1", "1f"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(csv_double(field(wrong[i]), &d));
    assert_false(csv_double((struct csv_field){"1\0", 2}, &d));
    char longest[129];
    memset(longest, '1', sizeof longest);
    assert_true(csv_double((struct csv_field){longest, 127}, &d));
    assert_false(csv_double((struct csv_field){longest, 128}, &d));
}

static void a_real_number_of_17_digits_is_read_back_exactly(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 4, "csv");
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = pcg_u64(&p);
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        char text[40];
        snprintf(text, sizeof text, "%.17g", value);
        assert_true(csv_double(field(text), &back) && back == value);
    }
}

/* In a German locale, where strtod expects a comma; it is compiled here, because a system need not
 * have one. Without glibc's localedef the default locale alone is tested. */
static void a_real_number_has_a_point_in_every_locale(void **state)
{
    (void)state;
    struct run made = run_shell("command -v localedef && test -f /usr/share/i18n/locales/de_DE");
    if (made.exit_code == 0) {
        char command[256];
        snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s",
                 temp_path("decimal_comma"));
        run_free(&made);
        made = run_shell(command);
        *strrchr(strcpy(command, temp_path("decimal_comma")), '/') = '\0';
        setenv("LOCPATH", command, 1);
        assert_non_null(setlocale(LC_ALL, "decimal_comma"));
        assert_true(strtod("1,5", NULL) == 1.5);
    }
    run_free(&made);
    double d = 0;
    bool point_read = csv_double(field("1.5"), &d), comma_read = csv_double(field("1,5"), &d);
    setlocale(LC_ALL, "C");
    assert_true(point_read && !comma_read && d == 1.5);
}

static void a_field_equals_a_text_of_the_same_length_only(void **state)
{
    (void)state;
    assert_true(csv_equal((struct csv_field){"abc", 2}, "ab"));
    assert_false(csv_equal((struct csv_field){"abc", 3}, "ab"));
    assert_false(csv_equal((struct csv_field){"abc", 2}, "abc"));
    assert_true(csv_equal((struct csv_field){"", 0}, ""));
}

/* Counts from the folders' SOURCE.md. */
static void the_shared_tables_have_their_published_numbers_of_rows(void **state)
{
    (void)state;
    NEED_SHARED();
    static const struct {
        const char *path;
        size_t rows;
    } tables[] = {{SHARED "facts/models.csv", 57}, {SHARED "facts/devices.csv", 79}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct diag dg;
        struct log l;
        log_start(&l, 0);
        assert_ok(csv_read(tables[i].path, NULL, 0, true, log_row, NULL, &l, &dg));
        assert_int_equal(l.rows, tables[i].rows);
        log_stop(&l);
    }
}

static enum status log_name(void *self, struct csv_field name, struct diag *dg)
{
    struct log *l = self;
    if (l->rows == l->rows_max)
        return diag_set(dg, ST_RANGE, "enough");
    l->rows++;
    fprintf(l->stream, "%.*s;", (int)name.length, name.text);
    return ST_OK;
}

/* The rows after it may be broken: they are not read. */
static void a_header_alone_gives_its_names_in_order(void **state)
{
    (void)state;
    static const char text[] = "# c\n\n\"b, \"\"c\"\"\",a,\"d\ne\"\r\n1\n\"";
    struct log l;
    struct diag dg;
    log_start(&l, 0);
    const char *path = write_bytes(text, sizeof text - 1);
    assert_int_equal(csv_header(path, log_name, &l, &dg), ST_OK);
    fflush(l.stream);
    assert_string_equal(l.text, "b, \"c\";a;d\ne;");
    l.rows = 0;
    l.rows_max = 2;
    assert_int_equal(csv_header(path, log_name, &l, &dg), ST_RANGE);
    assert_int_equal(csv_header(write_bytes("a,a\n", 4), log_name, &l, &dg), ST_PARSE);
    assert_int_equal(csv_header(write_bytes("# c\n", 4), log_name, &l, &dg), ST_PARSE);
    assert_int_equal(csv_header("/dev/null", log_name, &l, &dg), ST_IO);
    log_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_does_not_grow_with_the_file),
        cmocka_unit_test(fields_arrive_in_the_order_asked_for),
        cmocka_unit_test(empty_fields_and_spaces_are_kept),
        cmocka_unit_test(a_column_that_is_absent_and_not_required_is_empty),
        cmocka_unit_test(comments_arrive_with_their_line_wherever_they_stand),
        cmocka_unit_test(a_comment_sign_inside_a_row_is_text),
        cmocka_unit_test(without_a_comment_callback_comments_are_skipped),
        cmocka_unit_test(a_byte_order_mark_and_carriage_returns_are_not_part_of_the_text),
        cmocka_unit_test(quotes_hold_commas_quotes_and_line_ends),
        cmocka_unit_test(a_header_alone_gives_its_names_in_order),
        cmocka_unit_test(every_broken_file_is_refused_with_its_line),
        cmocka_unit_test(rows_and_headers_have_a_largest_size),
        cmocka_unit_test(a_row_nearly_as_long_as_allowed_is_read_whole),
        cmocka_unit_test(what_cannot_be_opened_or_read_is_reported_by_the_system),
        cmocka_unit_test(the_first_failure_of_a_callback_ends_the_reading),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(rows_with_and_without_quotes_read_the_same),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_damaged_file_is_read_or_refused_cleanly),
        cmocka_unit_test(whole_numbers_are_digits_within_64_bits),
        cmocka_unit_test(real_numbers_are_decimal_and_finite),
        cmocka_unit_test(a_real_number_of_17_digits_is_read_back_exactly),
        cmocka_unit_test(a_real_number_has_a_point_in_every_locale),
        cmocka_unit_test(a_field_equals_a_text_of_the_same_length_only),
        cmocka_unit_test(the_shared_tables_have_their_published_numbers_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
