/* test_report.c -- `memwall report`: every row is on the page, cells are never more than text, the
 * markup is well formed, and the page needs nothing else. tests/check-browser opens pages in a browser;
 * it is not part of the quick tests. */
#include "tests/cli_expect.h"

#include <ctype.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MAX_BYTES 200

static void write_text(char path[PATH_MAX_BYTES], const char *name, const char *text)
{
    snprintf(path, PATH_MAX_BYTES, "%s", temp_path(name));
    write_file(path, text);
}

static size_t count_of(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* ---- is it well formed? ---- */

enum { DEPTH_MAX = 64, IDS_MAX = 4096, NAME_MAX_BYTES = 32, ID_MAX_BYTES = 64 };

struct checker {
    char open[DEPTH_MAX][NAME_MAX_BYTES];
    size_t depth, id_count;
    char (*id)[ID_MAX_BYTES];
};

static bool is_void(const char *name)
{
    return strcmp(name, "meta") == 0; /* the only element of these pages that has no end */
}

static void check_entity(const char *at)
{
    size_t n = 1 + (at[1] == '#');
    while (isalnum((unsigned char)at[n]))
        n++;
    if (at[n] != ';' || n < 2)
        fail_msg("no entity: %.30s", at);
}

static void keep_id(struct checker *c, const char *value, size_t length)
{
    assert_true(c->id_count < IDS_MAX && length < ID_MAX_BYTES);
    char *id = c->id[c->id_count++];
    snprintf(id, ID_MAX_BYTES, "%.*s", (int)length, value);
    for (size_t i = 0; i + 1 < c->id_count; i++)
        if (strcmp(c->id[i], id) == 0)
            fail_msg("id %s stands there twice", id);
}

/* One attribute with its value in quotes; returns what follows it. */
static const char *check_attribute(struct checker *c, const char *at)
{
    size_t name = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:");
    if (strncasecmp(at, "on", 2) == 0)
        fail_msg("a handler: %.30s", at);
    const char *equals = at + name + strspn(at + name, " "), *quote = equals + 1;
    quote += strspn(quote, " ");
    if (name == 0 || *equals != '=' || (*quote != '"' && *quote != '\''))
        fail_msg("no attribute: %.30s", at);
    const char *end = strchr(quote + 1, *quote);
    assert_non_null(end);
    if (name == 2 && memcmp(at, "id", 2) == 0)
        keep_id(c, quote + 1, (size_t)(end - quote) - 1);
    return end + 1;
}

static const char *check_tag(struct checker *c, const char *at)
{
    bool closing = at[1] == '/';
    const char *name = at + 1 + closing;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    char text[NAME_MAX_BYTES];
    if (length == 0 || length >= NAME_MAX_BYTES)
        fail_msg("no tag: %.30s", at);
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    at = name + length;
    for (at += strspn(at, " \t\n"); *at && *at != '>' && *at != '/'; at += strspn(at, " \t\n"))
        at = check_attribute(c, at);
    bool alone = *at == '/';
    at += alone;
    assert_int_equal(*at, '>');
    if (closing) {
        if (c->depth == 0 || strcmp(c->open[c->depth - 1], text) != 0)
            fail_msg("</%s> closes <%s>", text, c->depth ? c->open[c->depth - 1] : "");
        c->depth--;
    } else if (!alone && !is_void(text)) {
        assert_true(c->depth < DEPTH_MAX);
        memcpy(c->open[c->depth++], text, sizeof text);
    }
    return at + 1;
}

static void check_utf8(const char *page)
{
    char command[512];
    snprintf(command, sizeof command, "iconv -f UTF-8 -t UTF-8 %s > /dev/null", page);
    struct run r = run_shell(command);
    assert_int_equal(r.exit_code, 0);
    run_free(&r);
}

/* Elements nest, attributes are quoted, ids are unique, every & begins an entity; nothing is fetched or run. */
static void check_page(const char *page)
{
    static const char *const foreign[] = {
        "<script", "<img",     "<link",       "<iframe",   "@import",
        "src=",    "url(http", "href=\"http", "href='http"};
    static const char start[] =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">";
    struct checker c = {.id = calloc(IDS_MAX, ID_MAX_BYTES)};
    assert_non_null(c.id);
    assert_memory_equal(page, start, strlen(start));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strstr(page, foreign[i]))
            fail_msg("the page needs something else: %.60s", strstr(page, foreign[i]));
    for (const char *at = page + strlen("<!DOCTYPE html>"); *at;) {
        if (*at == '<') {
            at = check_tag(&c, at);
            continue;
        }
        if (*at == '&')
            check_entity(at);
        at++;
    }
    assert_int_equal(c.depth, 0);
    free(c.id);
}

/* The page of `report ARGUMENTS`, checked; `said` must be on stderr. */
static char *report_saying(const char *arguments, const char *said)
{
    char out[PATH_MAX_BYTES], line[ARGUMENTS_MAX];
    size_t bytes;
    snprintf(out, sizeof out, "%s", temp_path("page.html"));
    unlink(out);
    snprintf(line, sizeof line, "report %s --out %s", arguments, out);
    struct run r = run_memwall(line);
    if (r.exit_code != 0 || r.out_bytes > 0 || !strstr(r.err, said))
        fail_msg("%s: exit %d: %s%s", line, r.exit_code, r.out, r.err);
    run_free(&r);
    char *page = read_whole(out, &bytes);
    assert_int_equal(strlen(page), bytes); /* no NUL */
    check_utf8(out);
    check_page(page);
    return page;
}

static char *report(const char *arguments)
{
    return report_saying(arguments, "page.html");
}

/* Rows of the first table after `heading`, those of the fold included, without the heads. */
static size_t rows_after(const char *page, const char *heading)
{
    const char *at = strstr(page, heading);
    assert_non_null(at);
    const char *end = strstr(at + 1, "<h2>");
    size_t length = end ? (size_t)(end - at) : strlen(at);
    char *part = strndup(at, length);
    size_t n = count_of(part, "<tr>") - count_of(part, "<thead>");
    free(part);
    return n;
}

/* ---- experiments ---- */

#define E01 "experiments/e01-flash-bandwidth.yaml"

static void the_page_of_an_experiment_says_what_was_asked_expected_and_found(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char *page = report(E01);
    assert_non_null(strstr(page, "<dt>question</dt>\n<dd>How fast does decoding get"));
    assert_non_null(strstr(page, "<dt>prediction</dt>\n<dd>Linear up to about"));
    assert_non_null(strstr(page, "<dt>refuted if</dt>\n<dd>decode rate of 4 experts"));
    assert_non_null(strstr(page, "<dt>refuted</dt>\n<dd>in part</dd>"));
    assert_non_null(strstr(page, "<h1>Past 10 GB/s of flash the engine&#39;s own costs bind"));
    assert_int_equal(count_of(page, "<svg "), 1);
    free(page);
}

static void all_rows_of_an_experiment_are_there_and_long_tables_are_folded(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char *page = report(E01);
    assert_non_null(strstr(page, "64 of 64 points"));
    assert_int_equal(rows_after(page, "<h2>Results</h2>"), 64);
    assert_non_null(strstr(page, "<details><summary>the other 49 rows</summary>"));
    assert_int_equal(count_of(page, "<details>"), count_of(page, "</details>"));
    free(page);
}

/* Of the machine, of the engine's profile, of the model and of the command line: kind and source each. */
static void every_input_has_its_kind_and_source(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char *page = report(E01);
    assert_non_null(strstr(page, "<tr><td>dram.capacity</td><td>12 GiB</td><td>datasheet</td><td>"
                                 "Apple; LPDDR5X-9600, 64 bit</td></tr>"));
    assert_non_null(strstr(page, "<tr><td>storage.0.bandwidth</td><td>1.6 GB/s | 2.5 GB/s | "));
    assert_non_null(strstr(page, "<td>layer_overhead</td><td>710 us</td><td>fitted</td>"));
    assert_non_null(
        strstr(page, "<tr><td>profile</td><td>flash-moe</td><td>set</td><td>the experiment, "));
    assert_non_null(strstr(page, "<tr><td>top-k</td><td>4 | 10</td><td>swept</td><td>top_k</td>"));
    assert_non_null(strstr(page, "<tr><td>draws</td><td>0</td><td>usual</td><td>of a sweep</td>"));
    assert_non_null(strstr(page, "<td>derived of shapes of grade A</td>"));
    free(page);
}

static void what_is_set_on_the_command_line_is_said_to_be(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char *page = report(E01 " --set tokens=4 --set dram.capacity=8GiB");
    assert_non_null(strstr(page, "<tr><td>tokens</td><td>4</td><td>set</td><td>--set</td></tr>"));
    assert_non_null(strstr(page, "<td>dram.capacity</td><td>8 GiB</td><td>assumed</td><td>--set"));
    free(page);
}

/* Each method has other options and descriptions; replay has no machine at all. */
static void every_committed_experiment_has_a_page(void **state)
{
    (void)state;
    struct run r = run_shell(
        "for e in experiments/e[0-9]*.yaml; do n=$(basename $e | cut -d- -f1); "
        "[ -e experiments/results/$n.csv ] && PATH=/nonexistent $MEMWALL report $e --out - "
        "2>/dev/null | grep -c 'points, in the order'; done | sort | uniq -c | tr -s ' '");
    assert_string_equal(r.out, " 11 1\n");
    run_free(&r);
}

static void another_kind_of_figure_is_drawn_on_request(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char *page = report(E01 " --figure lines --figure bars");
    assert_int_equal(count_of(page, "<svg "), 2); /* check_page() saw that their ids differ */
    assert_non_null(strstr(page, "id=\"f1-"));
    assert_non_null(strstr(page, "id=\"f2-"));
    free(page);
}

static void a_page_is_the_same_bytes_each_time(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char *a = report("plots/data/published.csv"), *b = report("plots/data/published.csv");
    assert_string_equal(a, b);
    free(a);
    free(b);
}

/* ---- validations ---- */

#define PUBLISHED "id,metric,unit,class,published,predicted,signed_error,low,high\n"

static const char published[] = PUBLISHED "near,decode_rate,tok/s,blind,10,10.5,0.05,9,12\n"
                                          "far,decode_rate,tok/s,blind,10,16,0.6,15,17\n"
                                          "lacking,decode_rate,tok/s,given,10,,,,\n"
                                          "slow,decode_rate,tok/s,given,10,8,-0.2,7,9\n";

static void quantiles_of_a_validation_are_those_of_its_rows(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char path[PATH_MAX_BYTES];
    write_text(path, "published.csv", published);
    char *page = report(path);
    /* |errors| 5, 20, 60 %: median 20, p90 52, p95 56; signed -20, 5, 60. Two of three intervals miss. */
    static const char *const cells[] = {"everything", "4",      "3",       "20.0 %",
                                        "52.0 %",     "56.0 %", "-15.0 %", "+5.0 %",
                                        "+49.0 %",    "33.3 %", "far"};
    const char *at = strstr(page, "<td>everything</td>");
    assert_non_null(at);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        at = strstr(at, "<td");
        at = strchr(at, '>') + 1;
        if (strncmp(at, cells[i], strlen(cells[i])) != 0)
            fail_msg("cell %zu: %s, not %.20s", i, cells[i], at);
    }
    assert_int_equal(count_of(page, "<svg "), 2); /* predicted against published, and quantiles */
    free(page);
}

static void the_worst_row_comes_first_and_rows_without_an_error_last(void **state)
{
    (void)state;
    char path[PATH_MAX_BYTES];
    write_text(path, "published.csv", published);
    char *page = report(path), *at = strstr(page, "<h2>Rows, worst first</h2>");
    static const char *const order[] = {"far", "slow", "near", "lacking"};
    assert_non_null(at);
    assert_int_equal(rows_after(page, "<h2>Rows, worst first</h2>"), 4);
    for (size_t i = 0; i < 4; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "<tr><td>%s</td>", order[i]);
        at = strstr(at, cell);
        assert_non_null(at);
    }
    free(page);
}

static void all_published_rows_are_on_the_page(void **state)
{
    (void)state;
    size_t bytes;
    char *page = report("plots/data/published.csv");
    char *data = read_whole("plots/data/published.csv", &bytes);
    size_t rows = count_of(data, "\n") - 1;
    assert_int_equal(rows_after(page, "<h2>Rows, worst first</h2>"), rows);
    free(page);
    free(data);
}

static void measured_cells_have_a_page_too(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char path[PATH_MAX_BYTES];
    write_text(path, "measured.csv",
               "cell,policy,s_per_token_measured,spread_ratio,s_per_token_simulated,signed_error,"
               "low_s,high_s,admitted\n"
               "0,lru,0.010,0.02,0.011,0.1,0.010,0.012,1\n"
               "1,arc,0.020,0.01,0.019,-0.05,0.018,0.020,0\n");
    char *page = report(path);
    assert_non_null(strstr(page, "<h1>Runs on this machine against their simulation</h1>"));
    assert_non_null(strstr(page, "<caption>admitted</caption>"));
    assert_int_equal(count_of(page, "<svg "), 2);
    assert_int_equal(rows_after(page, "<h2>Rows, worst first</h2>"), 2);
    free(page);
}

/* ---- what cells may hold ---- */

static void markup_in_cells_comes_out_as_text(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char path[PATH_MAX_BYTES];
    write_text(path, "hostile.csv",
               PUBLISHED
               "<script>alert(1)</script>,decode_rate,tok/s,\"</text></svg><b onclick='x'>\","
               "10,11,0.1,9,12\n"
               "\"a&b \"\"q\"\" 'p' </td></table>\",decode_rate,tok/s,&lt;,10,12,0.2,9,12\n"
               "bad \xff utf \x01,decode_rate,tok/s,\xc3\xa4,10,9,-0.1,9,12\n");
    char *page = report(path); /* is well formed and without a script: check_page() */
    assert_non_null(strstr(page, "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>"));
    assert_non_null(
        strstr(page, "<td>a&amp;b &quot;q&quot; &#39;p&#39; &lt;/td&gt;&lt;/table&gt;</td>"));
    assert_non_null(strstr(page, "<td>&amp;lt;</td>"));
    assert_non_null(strstr(page, "<td>bad \xef\xbf\xbd utf \xef\xbf\xbd</td>"));
    assert_non_null(strstr(page, "<td>\xc3\xa4</td>"));
    assert_int_equal(count_of(page, "<svg "), 2);
    free(page);
}

static void markup_in_an_experiments_texts_comes_out_as_text(void **state)
{
    (void)state;
    char yaml[PATH_MAX_BYTES], data[PATH_MAX_BYTES], line[2 * PATH_MAX_BYTES + 16];
    write_text(yaml, "hostile.yaml",
               "question: 'a <i>question</i>?'\npredict: '</dl><script>'\nrefuted_if: '\"&\"'\n"
               "method: replay\ntrace: tests/data/demo.trace.csv\ncache: 1GiB\n"
               "sweep:\n  policy: [lru, arc]\n");
    write_text(data, "hostile.csv", "policy,hits\nlru,<b>1\narc,2\n");
    snprintf(line, sizeof line, "%s --data %s", yaml, data);
    char *page = report(line);
    assert_non_null(strstr(page, "<h1>a &lt;i&gt;question&lt;/i&gt;?</h1>"));
    assert_non_null(strstr(page, "<dd>&lt;/dl&gt;&lt;script&gt;</dd>"));
    assert_non_null(strstr(page, "<dd>&quot;&amp;&quot;</dd>"));
    assert_non_null(strstr(page, "<dd>not recorded</dd>"));
    free(page);
}

/* A program that draws what it should not: of its picture only what draws arrives. */
static const char false_gnuplot[] =
    "#!/bin/sh\n"
    "out=$(sed -n \"s/^out = '\\(.*\\)'$/\\1/p\" \"$2\")\n"
    "cat >\"$out\" <<'END'\n"
    "<?xml version=\"1.0\"?>\n"
    "<svg xmlns=\"http://www.w3.org/2000/svg\"><g id=\"a\"><path d=\"M0,0\"/></g>\n"
    "<script>alert(1)</script><g onload=\"alert(2)\"><text>x & y &amp; z</text>\n"
    "<use xlink:href='#a'/><image href=\"http://example.org/a.png\"/></svg>\n"
    "END\n";

static void of_a_drawing_only_what_draws_is_let_in(void **state)
{
    (void)state;
    char folder[PATH_MAX_BYTES], program[PATH_MAX_BYTES], data[PATH_MAX_BYTES], line[1024];
    snprintf(folder, sizeof folder, "%s", temp_path("bin"));
    mkdir(folder, 0700);
    write_text(program, "bin/gnuplot", false_gnuplot);
    chmod(program, 0700);
    write_text(data, "published.csv", published);
    snprintf(line, sizeof line,
             "PATH=%s:$PATH $MEMWALL report %s --figure predicted --out -; rm -r %s", folder, data,
             folder);
    struct run r = run_shell(line);
    assert_non_null(strstr(r.out, "<figure>\n<svg xmlns=\"http://www.w3.org/2000/svg\">"));
    assert_non_null(strstr(r.out, "<g id=\"f1-a\"><path d=\"M0,0\"/></g>"));
    assert_non_null(strstr(r.out, "xlink:href='#f1-a'"));
    assert_non_null(strstr(r.out, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_non_null(strstr(r.out, "&lt;g onload=&quot;alert(2)&quot;&gt;"));
    assert_non_null(strstr(r.out, "x &amp; y &amp; z"));
    assert_null(strstr(r.out, "<image"));
    run_free(&r);
}

/* ---- without gnuplot; what is no result ---- */

static void without_gnuplot_the_tables_are_written_and_it_is_said_what_to_install(void **state)
{
    (void)state;
    char line[1024], out[PATH_MAX_BYTES];
    size_t bytes;
    snprintf(out, sizeof out, "%s", temp_path("none.html"));
    snprintf(
        line, sizeof line,
        "P=$(realpath $MEMWALL); PATH=/nonexistent $P report plots/data/published.csv --out %s",
        out);
    struct run r = run_shell(line);
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.err, "figures need gnuplot, which is not installed: apt-get install "
                                  "gnuplot-nox"));
    run_free(&r);
    char *page = read_whole(out, &bytes);
    check_page(page);
    assert_int_equal(count_of(page, "No figure: figures need gnuplot, which is not installed: "
                                    "apt-get install gnuplot-nox"),
                     2);
    assert_int_equal(count_of(page, "<svg "), 0);
    assert_true(rows_after(page, "<h2>Rows, worst first</h2>") > 400);
    free(page);
}

/* The rows of a sweep alone, without its experiment. */
static void results_of_a_sweep_alone_have_a_page_of_their_rows(void **state)
{
    (void)state;
    char *page = report("experiments/results/e03.csv");
    assert_non_null(strstr(page, "320 rows of memwall replay."));
    assert_int_equal(rows_after(page, "<h1>"), 320);
    free(page);
}

static void what_is_no_result_is_refused_and_nothing_is_written(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"tests/data/rates.csv", EXIT_FAILED, "tests/data/rates.csv: no results: the columns of"},
        {"README.md", EXIT_FAILED, "README.md:"},
        {"none.csv", EXIT_FAILED, "none.csv: cannot be opened"},
        {"none.yaml", EXIT_FAILED, "none.yaml"},
        {"@", EXIT_FAILED, "no rows"},
        {E01 " --data experiments/results/e05.csv", EXIT_FAILED, "it has no column 'top_k'"},
        {E01 " --data none.csv", EXIT_FAILED, "none.csv: no results yet: memwall sweep"},
        {E01 " --figure line", EXIT_MISUSE, "no figure of kind 'line' (did you mean lines?)"},
        {E01 " --figure timeline", EXIT_MISUSE, "it is drawn from a timeline"},
        {E01 " --set tokens=many", EXIT_MISUSE, "tokens"},
        {"plots/data/published.csv --set a=b", EXIT_MISUSE, "--set goes with an experiment"},
        {"plots/data/published.csv --data a", EXIT_MISUSE, "--data goes with an experiment"},
        {"experiments/results/e03.csv --figure lines", EXIT_MISUSE, "x: which column?"},
        {"", EXIT_MISUSE, "an argument is missing"},
    };
    char empty[PATH_MAX_BYTES], arguments[ARGUMENTS_MAX], line[ARGUMENTS_MAX + 300],
        out[PATH_MAX_BYTES];
    write_text(empty, "empty.csv", PUBLISHED);
    snprintf(out, sizeof out, "%s", temp_path("never.html"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill_path(arguments, cases[i].arguments, empty);
        snprintf(line, sizeof line, "report %s --out %s", arguments, out);
        expect_refusal(line, cases[i].exit_code, cases[i].reason);
        assert_int_equal(access(out, F_OK), -1);
    }
    expect_refusal("report plots/data/published.csv --out none/page.html", EXIT_FAILED,
                   "none/page.html: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_of_an_experiment_says_what_was_asked_expected_and_found),
        cmocka_unit_test(all_rows_of_an_experiment_are_there_and_long_tables_are_folded),
        cmocka_unit_test(every_input_has_its_kind_and_source),
        cmocka_unit_test(what_is_set_on_the_command_line_is_said_to_be),
        cmocka_unit_test(every_committed_experiment_has_a_page),
        cmocka_unit_test(another_kind_of_figure_is_drawn_on_request),
        cmocka_unit_test(a_page_is_the_same_bytes_each_time),
        cmocka_unit_test(quantiles_of_a_validation_are_those_of_its_rows),
        cmocka_unit_test(the_worst_row_comes_first_and_rows_without_an_error_last),
        cmocka_unit_test(all_published_rows_are_on_the_page),
        cmocka_unit_test(measured_cells_have_a_page_too),
        cmocka_unit_test(markup_in_cells_comes_out_as_text),
        cmocka_unit_test(markup_in_an_experiments_texts_comes_out_as_text),
        cmocka_unit_test(of_a_drawing_only_what_draws_is_let_in),
        cmocka_unit_test(without_gnuplot_the_tables_are_written_and_it_is_said_what_to_install),
        cmocka_unit_test(results_of_a_sweep_alone_have_a_page_of_their_rows),
        cmocka_unit_test(what_is_no_result_is_refused_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
