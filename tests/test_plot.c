/* test_plot.c -- figures: every kind is drawn, from any result, the same bytes each time; and what is said where one
 * cannot be. Drawing needs gnuplot: without it those tests are skipped, and say so. */
#include "tests/cli_expect.h"

#include <sys/stat.h>
#include <unistd.h>

static const char grid[] = "bandwidth,memory,policy,rate,low,high\n"
                           "1 GB/s,4 GiB,lru,1,0.9,1.2\n1 GB/s,8 GiB,lru,2,1.8,2.4\n"
                           "2 GB/s,4 GiB,lru,2,1.9,2.2\n2 GB/s,8 GiB,lru,4,3.9,4.2\n"
                           "1 GB/s,4 GiB,arc,1.5,1.4,1.7\n1 GB/s,8 GiB,arc,3,2.9,3.2\n"
                           "2 GB/s,4 GiB,arc,3,2.9,3.2\n2 GB/s,8 GiB,arc,5,4.9,5.2\n";

/* `arguments` with the grid's path for '@'; the picture's path is returned and must be new and whole. */
static char *draw(const char *arguments, const char *picture, size_t *bytes)
{
    char data[200], line[ARGUMENTS_MAX + 300], with_data[ARGUMENTS_MAX];
    snprintf(data, sizeof data, "%s", temp_path("grid.csv"));
    write_file(data, grid);
    const char *out = temp_path(picture);
    unlink(out);
    fill_path(with_data, arguments, data);
    snprintf(line, sizeof line, "plot %s --out %s", with_data, out);
    struct run r = run_memwall(line);
    if (r.exit_code != 0 || r.out_bytes > 0)
        fail_msg("%s: exit %d: %s%s", line, r.exit_code, r.out, r.err);
    run_free(&r);
    return read_whole(out, bytes);
}

static const char *const kinds[] = {
    "@ --x bandwidth --y rate --by policy,memory",
    "@ --x bandwidth --y rate --low low --high high --by policy --where 'memory=4 GiB'",
    "@ --kind bars --x bandwidth --y rate --by policy --where 'memory=8 GiB'",
    "@ --kind bars --x policy --y rate --where 'memory=8 GiB,bandwidth=1 GB/s'",
    "@ --kind contour --x bandwidth --y memory --z rate --levels 1.5,3 --where policy=lru",
    "@ --kind iso --x bandwidth --y memory --z rate --levels 2 --by policy",
    "plots/data/mrc-demo.csv",
    "plots/data/tornado-phone.csv --kind tornado",
    "plots/data/roofline-phone.csv --kind roofline",
    "plots/data/published.csv --where metric=decode_rate --by class",
    "plots/data/published.csv --kind quantiles --by class",
    "plots/data/timeline-phone.json",
    "plots/data/timeline-phone.json --pass 9 --title 'One token'",
};

/* As `validate measured` writes it. */
static const char measured[] =
    "cell,policy,s_per_token_measured,spread_ratio,s_per_token_simulated,signed_error\n"
    "1,lru,0.020,0.04,0.021,0.05\n2,lru,0.040,0.02,0.039,-0.025\n3,arc,0.030,0.03,0.030,0\n";

static void a_measured_validation_is_drawn_with_its_spread(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    static const char *const kind[] = {"", "--kind quantiles"};
    char data[200], line[512];
    snprintf(data, sizeof data, "%s", temp_path("measured.csv"));
    write_file(data, measured);
    for (size_t i = 0; i < 2; i++) {
        const char *out = temp_path("measured.svg");
        snprintf(line, sizeof line, "plot %s --by policy %s --out %s", data, kind[i], out);
        expect_holds(line, 0, NULL, "measured.svg");
        char *svg = read_whole(out, NULL);
        assert_non_null(strstr(svg, i ? "absolute error" : "predicted = measured"));
        free(svg);
    }
}

static void every_kind_of_figure_is_drawn(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t bytes;
        char *svg = draw(kinds[i], "kind.svg", &bytes);
        if (!strstr(svg, "<svg") || !strstr(svg, "</svg>") || bytes < 3000)
            fail_msg("%s: %zu bytes that are no picture", kinds[i], bytes);
        free(svg);
    }
}

static void a_figure_is_the_same_bytes_each_time(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    size_t n, m;
    char *a = draw(kinds[0], "a.svg", &n), *b = draw(kinds[0], "b.svg", &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

static void a_name_that_ends_in_png_gives_a_png(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    size_t bytes;
    char *png = draw(kinds[0], "a.png", &bytes);
    assert_memory_equal(png, "\x89PNG", 4);
    free(png);
}

static void curves_differ_without_colours(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    size_t bytes;
    char *svg = draw("@ --x bandwidth --y rate --by policy,memory", "c.svg", &bytes);
    size_t dashes = 0;
    for (const char *at = svg; (at = strstr(at, "stroke-dasharray")); at++)
        dashes++;
    assert_true(dashes >= 3); /* the first of four curves is solid */
    free(svg);
}

static void texts_are_printed_as_they_are(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    size_t bytes;
    char *svg = draw("@ --x bandwidth --y rate --where policy=lru --by memory --title "
                     "'A_b ^c \"d\" \\n {f} `touch g` @h'",
                     "t.svg", &bytes);
    assert_non_null(strstr(svg, "A_b ^c \"d\" \\n {f} `touch g` @h"));
    free(svg);
}

static void categories_are_printed_without_what_means_something_to_gnuplot(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char data[200], line[512];
    snprintf(data, sizeof data, "%s", temp_path("names.csv"));
    write_file(data, "how,rate\n\"5 % of `touch g`, 'b' \"\"c\"\" \\n\",1\nelse,2\n");
    const char *out = temp_path("names.svg");
    snprintf(line, sizeof line, "plot %s --kind bars --x how --y rate --out %s", data, out);
    expect_holds(line, 0, NULL, "names.svg");
    char *svg = read_whole(out, NULL);
    assert_non_null(strstr(svg, "5 % of touch g, b c n"));
    free(svg);
}

/* gnuplot hands a line that begins with '!' to the shell. */
static void a_line_end_in_a_category_runs_nothing(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char data[200], ran[200], text[512], line[512];
    snprintf(data, sizeof data, "%s", temp_path("lines.csv"));
    snprintf(ran, sizeof ran, "%s", temp_path("ran"));
    snprintf(text, sizeof text, "x,y\na,2\n\"b\n!touch %s\n\",3\n\"c\r\nd\",4\n", ran);
    write_file(data, text);
    const char *out = temp_path("lines.svg");
    snprintf(line, sizeof line, "plot %s --x x --y y --out %s", data, out);
    expect_holds(line, 0, NULL, "lines.svg");
    assert_int_not_equal(access(ran, F_OK), 0);
    char *svg = read_whole(out, NULL);
    assert_non_null(strstr(svg, "b !touch "));
    free(svg);
}

/* Of an experiment: its figure, its finding as the title, and y over that of other rows. */
static void an_experiment_says_how_it_is_drawn(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char path[200], text[2048];
    snprintf(path, sizeof path, "%s", temp_path("e.yaml"));
    write_file(path, "question: q\npredict: p\nrefuted_if: r\nfinding: More is more\n"
                     "model: qwen3-30b-a3b\ndevice: oneplus-15r\nquant: q4_k_m\n"
                     "sweep:\n  top_k: [4, 8]\n  context: [0, 4096]\n"
                     "figure: {kind: lines, x: context, y: decode_tok_per_s, by: top_k, "
                     "relative_to: top_k=8}\n");
    path[strlen(path) - strlen("/e.yaml")] = 0;
    snprintf(text, sizeof text,
             "P=$(realpath $MEMWALL) && cd %s && $P sweep e.yaml --out r.csv && $P plot e.yaml "
             "--data r.csv --out e.svg && grep -c 'More is more' e.svg",
             path);
    struct run r = run_shell(text);
    if (r.exit_code != 0 || strcmp(r.out, "1\n") != 0)
        fail_msg("%s%s", r.out, r.err);
    run_free(&r);
}

/* Drawn anew, with the same gnuplot, each is what is committed. */
static void every_committed_figure_is_drawn_from_committed_data(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char text[1024];
    snprintf(
        text, sizeof text,
        "plots/figures.sh %s 2>/dev/null && cd %s && for f in *.svg; do "
        "c=$OLDPWD/plots/figures/$f; "
        "[ -e $c ] || echo $f is not committed; v='Produced by GNUPLOT [^ ]* [^ ]* [^ ]*'; "
        "[ \"$(grep -o \"$v\" $f)\" != \"$(grep -o \"$v\" $c)\" ] || cmp $f $c; done; "
        "for c in $OLDPWD/plots/figures/*.svg; do [ -e $(basename $c) ] || echo $c has no data; "
        "done",
        temp_path("figures"), temp_path("figures"));
    struct run r = run_shell(text);
    if (r.exit_code != 0 || r.out_bytes > 0)
        fail_msg("%s%s", r.out, r.err);
    run_free(&r);
}

/* ---- what cannot be drawn ---- */

static void without_gnuplot_it_is_said_what_to_install(void **state)
{
    (void)state;
    char line[1024];
    const char *out = temp_path("none.svg");
    snprintf(
        line, sizeof line,
        "P=$(realpath $MEMWALL); PATH=/nonexistent $P plot tests/data/rates.csv --x read_bytes "
        "--y MB_per_s --out %s",
        out);
    expect_shell_refusal(
        line, EXIT_FAILED,
        "figures need gnuplot, which is not installed: apt-get install gnuplot-nox");
    assert_int_equal(access(out, F_OK), -1);
}

/* A gnuplot that ends well with half a picture, as the real one does on a full disk. */
static void a_picture_that_is_not_whole_replaces_nothing(void **state)
{
    (void)state;
    static const char *const endings[] = {"svg", "png"};
    char folder[200], line[1400];
    snprintf(folder, sizeof folder, "%s", temp_path("gnuplot"));
    folder[strlen(folder) - strlen("/gnuplot")] = 0;
    write_file(temp_path("gnuplot"), "#!/bin/sh\n"
                                     "o=$(sed -n \"s/^out = '\\(.*\\)'$/\\1/p\" \"$2\")\n"
                                     "echo '<svg>half' >\"$o\"\n");
    for (size_t i = 0; i < 2; i++) {
        snprintf(
            line, sizeof line,
            "P=$(realpath $MEMWALL); D=$PWD; cd %s && chmod +x gnuplot && echo old >f.%s && "
            "PATH=.:$PATH $P plot $D/tests/data/rates.csv --x read_bytes --y MB_per_s --out f.%s",
            folder, endings[i], endings[i]);
        expect_shell_refusal(line, EXIT_FAILED, "no whole picture");
        snprintf(line, sizeof line, "cd %s && cat f.%s && ls -A | grep -c '^[.]f'", folder,
                 endings[i]);
        struct run r = run_shell(line);
        assert_string_equal(r.out, "old\n0\n");
        run_free(&r);
    }
}

static void a_figure_without_points_is_refused_with_its_column(void **state)
{
    (void)state;
    static const struct {
        const char *data, *options, *reason;
    } cases[] = {
        {"x,y\n1,nan\n2,inf\n", "", "d.csv: column y: no number that can be drawn\n"},
        {"x,y\n0,1\n-1,2\n", "--log x", "d.csv: column y: no number that can be drawn, log: x\n"},
        {"x,y\n1,0\n2,-1\n", "--log xy", "d.csv: column y: no number that can be drawn, log: xy\n"},
        {"cache_bytes,policy,decode_hit_ratio\n,lru,0.5\n", "--kind mrc",
         "column decode_hit_ratio: no number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char data[200], line[600];
        snprintf(data, sizeof data, "%s", temp_path("d.csv"));
        write_file(data, cases[i].data);
        snprintf(line, sizeof line, "plot %s %s %s", data, i < 3 ? "--x x --y y" : "",
                 cases[i].options);
        expect_refusal(line, EXIT_FAILED, cases[i].reason);
    }
}

/* What gnuplot says is passed on without the names of temporary files. */
static void complaints_of_gnuplot_name_no_script(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    char data[200], line[600];
    snprintf(data, sizeof data, "%s", temp_path("huge.csv"));
    write_file(data, "x,y\n1e308,1\n-1e308,2\n");
    snprintf(line, sizeof line, "plot %s --x x --y y", data);
    expect_refusal(line, EXIT_FAILED, "huge.csv: gnuplot cannot draw it: x range is invalid\n");
}

/* Nobody writes to it: waiting for somebody would be for ever. */
static void a_pipe_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(temp_path("pipe.csv"), 0600), 0);
    char line[300];
    snprintf(line, sizeof line, "plot %s --x x --y y", temp_path("pipe.csv"));
    expect_refusal(line, EXIT_FAILED, "pipe.csv: a regular file is expected");
}

static void other_files_beside_the_picture_stay(void **state)
{
    (void)state;
    NEED_GNUPLOT();
    write_file(temp_path("k.tmp.svg"), "precious");
    free(draw(kinds[0], "k.svg", NULL));
    char *text = read_whole(temp_path("k.tmp.svg"), NULL);
    assert_string_equal(text, "precious");
    free(text);
}

static void what_cannot_be_drawn_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"@", EXIT_MISUSE, "x: which column?"},
        {"@ --x bandwidth", EXIT_MISUSE, "y: which column?"},
        {"@ --x bandwith --y rate", EXIT_FAILED, "no column 'bandwith' (did you mean bandwidth?)"},
        {"@ --kind line --x a --y b", EXIT_MISUSE,
         "no figure of kind 'line' (did you mean lines?)"},
        {"@ --kind timeline", EXIT_MISUSE, "it is drawn from a timeline (.json)"},
        {"plots/data/timeline-phone.json --kind lines", EXIT_MISUSE, "it is drawn from a CSV file"},
        {"plots/data/timeline-phone.json --pass 3", EXIT_FAILED,
         "events of that pass are expected"},
        {"@ --x bandwidth --y rate --where policy=fifo", EXIT_FAILED, "no rows where policy=fifo"},
        {"@ --x bandwidth --y rate --where policy", EXIT_MISUSE, "COLUMN=VALUE is expected"},
        {"@ --kind contour --x bandwidth --y memory --z rate", EXIT_MISUSE, "levels: which values"},
        {"@ --kind contour --x policy --y memory --z rate --levels 1", EXIT_FAILED,
         "a grid needs two values of policy"},
        {"@ --kind contour --x bandwidth --y memory --z rate --levels a", EXIT_MISUSE,
         "levels: numbers are expected"},
        {"@ --x bandwidth --y rate --log z", EXIT_MISUSE, "log: x, y or xy is expected"},
        {"@ --kind tornado", EXIT_FAILED, "no columns factor_...: results of plan have them"},
        {"@ --kind roofline", EXIT_FAILED, "no column 'flop_per_token'"},
        {"none.csv", EXIT_FAILED, "none.csv: cannot be opened"},
        {"tests --x a --y b", EXIT_FAILED, "tests: a regular file is expected"},
        {"@ --x memory --y policy", EXIT_FAILED,
         "grid.csv: column policy: no number that can be drawn"},
        {"experiments/bench-sim.yaml", EXIT_FAILED, "no results yet: memwall sweep "},
        {"@ --x bandwidth --y rate --out a.pdf", EXIT_MISUSE, "a name that ends in .svg or .png"},
        {"@ --x bandwidth --y rate --out none/a.svg", EXIT_FAILED, "none/a.svg: cannot be written"},
    };
    char path[200], arguments[ARGUMENTS_MAX], line[ARGUMENTS_MAX + 8];
    snprintf(path, sizeof path, "%s", temp_path("grid.csv"));
    write_file(path, grid);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill_path(arguments, cases[i].arguments, path);
        snprintf(line, sizeof line, "plot %s", arguments);
        expect_refusal(line, cases[i].exit_code, cases[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_figure_is_drawn),
        cmocka_unit_test(a_measured_validation_is_drawn_with_its_spread),
        cmocka_unit_test(a_figure_is_the_same_bytes_each_time),
        cmocka_unit_test(a_name_that_ends_in_png_gives_a_png),
        cmocka_unit_test(curves_differ_without_colours),
        cmocka_unit_test(texts_are_printed_as_they_are),
        cmocka_unit_test(categories_are_printed_without_what_means_something_to_gnuplot),
        cmocka_unit_test(a_line_end_in_a_category_runs_nothing),
        cmocka_unit_test(an_experiment_says_how_it_is_drawn),
        cmocka_unit_test(every_committed_figure_is_drawn_from_committed_data),
        cmocka_unit_test(without_gnuplot_it_is_said_what_to_install),
        cmocka_unit_test(a_picture_that_is_not_whole_replaces_nothing),
        cmocka_unit_test(a_figure_without_points_is_refused_with_its_column),
        cmocka_unit_test(complaints_of_gnuplot_name_no_script),
        cmocka_unit_test(a_pipe_is_refused),
        cmocka_unit_test(other_files_beside_the_picture_stay),
        cmocka_unit_test(what_cannot_be_drawn_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
