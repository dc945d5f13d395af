/* test_published.c -- published rows: reading, what each class may see, scoring by hand-made data, and the
 * command's formats. */
#include "tests/support.h"

#include "validate/score.h"
#include "validate/systems.h"

#define DATA "validate/data/published.csv"

static const struct published_folders folders = {"models/desc", "devices/desc",
                                                 "sim/pipeline/profiles", "sim/trace/presets"};

#define HEADER                                                                                     \
    "id,metric,value,unit,grade,model_slug,device_slug,profile,quant_slug,top_k,cache_bytes,"      \
    "overlap,hit_ratio,bytes_per_token,compute_s_per_token,io_s_per_token,rule,tolerance_"         \
    "percent\n"
#define PHONE "qwen3-30b-a3b,oneplus-15r,bigmoeonedge,q4_k_m,8,4194304000,"

/* ---- reading ---- */

static void refuses(const char *row, const char *reason)
{
    struct diag dg;
    struct published p;
    char text[1024];
    snprintf(text, sizeof text, "%s%s\n", HEADER, row);
    write_file(temp_path("bad.csv"), text);
    assert_int_equal(published_load(&p, temp_path("bad.csv"), &dg), ST_PARSE);
    if (!strstr(dg.text, reason) || !strstr(dg.text, ":2: "))
        fail_msg("%s", dg.text);
}

static void a_row_that_says_no_number_is_refused_with_its_line(void **state)
{
    (void)state;
    refuses("X,decode_rate,fast,tok/s,A," PHONE "serial,,,,,des,", "value: a number");
    refuses("X,decode_rate,-1,tok/s,A," PHONE "serial,,,,,des,", "value: a number");
    refuses("X,decode_rate,1,tok/s,A," PHONE "serial,1.5,,,,des,", "hit_ratio");
    refuses(",decode_rate,1,tok/s,A," PHONE "serial,,,,,des,", "an id");
}

static void a_time_is_above_zero_and_at_most_a_day(void **state)
{
    (void)state;
    refuses("X,decode_rate,1,tok/s,A," PHONE "serial,,,0,0.1,des,", "compute_s_per_token: seconds");
    refuses("X,decode_rate,1,tok/s,A," PHONE "serial,,,86401,0.1,des,", "to 86400");
    refuses("X,decode_rate,1,tok/s,A," PHONE "serial,,,0.1,1e10,des,", "io_s_per_token: seconds");
    refuses("X,decode_rate,1,tok/s,A," PHONE "serial,,,0.1,1e18,des,", "to 86400");
}

static void a_figure_is_above_zero_unless_it_is_a_hit_ratio(void **state)
{
    (void)state;
    refuses("X,decode_rate,0,tok/s,A," PHONE "serial,,,,,des,", "value: a decode_rate above 0");
    refuses("X,hit_ratio,1.5,,A," PHONE "serial,,,,,replay,", "value: a hit_ratio of 0 to 1");
}

static void bytes_beyond_any_machine_are_refused(void **state)
{
    (void)state;
    refuses("X,decode_rate,1,tok/s,A,qwen3-30b-a3b,oneplus-15r,bigmoeonedge,q4_k_m,8,"
            "99999999999999999999,serial,,,,,des,",
            "cache_bytes: bytes");
    refuses("X,decode_rate,1,tok/s,A," PHONE "serial,,1e300,,,des,", "bytes_per_token: bytes");
}

static void a_text_that_is_misspelt_is_refused_with_what_it_could_be(void **state)
{
    (void)state;
    refuses("X,decode_rate,1,tok/s,A," PHONE "seriell,,,,,des,",
            "overlap: one of serial, expert, layer, prefetch, unknown, not 'seriell'");
    refuses("X,decode_rate,1,tok/s,D," PHONE "serial,,,,,des,", "grade: one of A, B, C, not 'D'");
    static const struct {
        const char *column, *text, *reason;
    } wrong[] = {{"io_mode", "dierct", "io_mode: one of direct, page_cache"},
                 {"flash_kind", "rand", "flash_kind: one of sequential, random"},
                 {"cache_policy", "LRU globl", "cache_policy: one of none, OS page cache"},
                 {"value_low,value_high", "2,1", "the lower one first"},
                 {"value_low", "1", "both or neither"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct diag dg;
        struct published p;
        char text[256];
        snprintf(text, sizeof text, "id,metric,value,unit,%s\nX,decode_rate,1,tok/s,%s\n",
                 wrong[i].column, wrong[i].text);
        write_file(temp_path("misspelt.csv"), text);
        assert_int_equal(published_load(&p, temp_path("misspelt.csv"), &dg), ST_PARSE);
        if (!strstr(dg.text, wrong[i].reason) || !strstr(dg.text, ":2: "))
            fail_msg("%s", dg.text);
    }
}

static void a_count_is_whole(void **state)
{
    (void)state;
    refuses("X,decode_rate,1,tok/s,A,qwen3-30b-a3b,oneplus-15r,bigmoeonedge,q4_k_m,7.5,,"
            "serial,,,,,des,",
            "top_k: a whole number from 1 to 1e6, not '7.5'");
}

static void a_rule_that_is_unknown_is_refused(void **state)
{
    (void)state;
    refuses("X,decode_rate,1,tok/s,A," PHONE "serial,,,,,dess,", "not 'dess'");
}

static struct run run_file(const char *row)
{
    char text[1024], command[512];
    snprintf(text, sizeof text, "%s%s\n", HEADER, row);
    write_file(temp_path("one.csv"), text);
    snprintf(command, sizeof command, "validate published --draws 0 --data %s",
             temp_path("one.csv"));
    return run_memwall(command);
}

static void more_experts_a_token_than_the_model_has_are_refused_with_the_line(void **state)
{
    (void)state;
    refuses("X,decode_rate,1,tok/s,A,qwen3-30b-a3b,oneplus-15r,bigmoeonedge,q4_k_m,0,,serial,"
            ",,,,des,",
            "top_k: a whole number from 1");
    struct run r = run_file("X,decode_rate,1,tok/s,A,qwen3-30b-a3b,oneplus-15r,bigmoeonedge,q4_k_m,"
                            "129,,serial,,,,,des,");
    assert_int_equal(r.exit_code, 1);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "one.csv:2: top_k: at most the 128 experts of qwen3-30b-a3b"));
    run_free(&r);
}

static void one_row_of_one_engine_is_singular(void **state)
{
    (void)state;
    struct run r = run_file("X,decode_rate,3.5,tok/s,A," PHONE "serial,,,,,des,");
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, "over 1 row of 1 engine, "));
    run_free(&r);
}

static void a_file_without_values_is_refused(void **state)
{
    (void)state;
    struct diag dg;
    struct published p;
    write_file(temp_path("short.csv"), "id,metric,unit\nX,decode_rate,tok/s\n");
    assert_int_not_equal(published_load(&p, temp_path("short.csv"), &dg), ST_OK);
    assert_non_null(strstr(dg.text, "value"));
}

/* ---- classes ---- */

static void a_class_sees_only_its_own_columns(void **state)
{
    (void)state;
    struct published_number n = {2, true};
    struct published_row row = {.id = "X",
                                .rule = "des",
                                .overlap = "serial",
                                .cache_policy = "",
                                .value = n,
                                .flash_Bps = n,
                                .hit_ratio = {0.5, true},
                                .bytes_per_token = n,
                                .recall = {0.5, true},
                                .compute_s = n,
                                .io_s = n,
                                .cache_bytes = n};
    struct published_row blind = published_mask(&row, PUBLISHED_BLIND),
                         hits = published_mask(&row, PUBLISHED_HITS),
                         given = published_mask(&row, PUBLISHED_GIVEN);
    assert_true(blind.cache_bytes.given && hits.cache_bytes.given && given.cache_bytes.given);
    assert_false(blind.hit_ratio.given || blind.bytes_per_token.given || blind.recall.given);
    assert_false(blind.compute_s.given || blind.io_s.given);
    assert_true(hits.hit_ratio.given && hits.bytes_per_token.given && hits.recall.given);
    assert_false(hits.compute_s.given || hits.io_s.given);
    assert_true(given.compute_s.given && given.io_s.given);
    assert_false(blind.value.given || hits.value.given || given.value.given);
    assert_false(blind.flash_Bps.given || hits.flash_Bps.given || given.flash_Bps.given);
    row.overlap = "expert"; /* the I/O seconds are then what was left to wait for */
    assert_false(published_mask(&row, PUBLISHED_GIVEN).io_s.given);
    assert_true(published_mask(&row, PUBLISHED_GIVEN).compute_s.given);
}

static void bytes_asked_of_the_page_cache_give_no_hits_away(void **state)
{
    (void)state;
    struct published_row row = {.rule = "des",
                                .overlap = "",
                                .cache_policy = "OS page cache",
                                .bytes_per_token = {1e9, true}};
    assert_false(published_allows(&row, PUBLISHED_HITS));
    row.hit_ratio = (struct published_number){0.7, true};
    assert_true(published_allows(&row, PUBLISHED_HITS));
    assert_false(published_allows(&row, PUBLISHED_GIVEN));
}

/* Predictions of one class over a file whose columns from..to-1 of each row are `middle`. */
static char *predict(const char *class_of, const char *middle)
{
    char text[2048], command[512];
    snprintf(text, sizeof text,
             "%sX,decode_rate,3.5,tok/s,A," PHONE "serial,%s,des,16\n"
             "Y,decode_rate,4,tok/s,A," PHONE "expert,%s,des,16\n",
             HEADER, middle, middle);
    write_file(temp_path("rows.csv"), text);
    snprintf(command, sizeof command,
             "validate published --draws 2 --format csv --class %s --data %s", class_of,
             temp_path("rows.csv"));
    struct run r = run_memwall(command);
    assert_int_equal(r.exit_code, 0);
    char *out = strdup(r.out);
    run_free(&r);
    return out;
}

static void same_bytes(const char *class_of, const char *full, const char *blanked, bool same)
{
    char *a = predict(class_of, full), *b = predict(class_of, blanked);
    if (same)
        assert_string_equal(a, b);
    else
        assert_string_not_equal(a, b);
    free(a);
    free(b);
}

static void what_a_class_may_not_read_changes_no_byte_of_its_output(void **state)
{
    (void)state;
    same_bytes("blind", "0.76,235929600,0.161,0.127", ",,,", true);
    same_bytes("hits", "0.76,235929600,0.161,0.127", "0.76,235929600,,", true);
    same_bytes("hits", "0.76,235929600,,", "0.5,500000000,,", false);
    same_bytes("given", "0.76,235929600,0.161,0.127", "0.76,235929600,0.2,0.2", false);
}

static void serial_seconds_add_up(void **state)
{
    (void)state;
    char *out = predict("given", "0.76,235929600,0.16,0.14");
    double published, predicted;
    assert_int_equal(
        sscanf(strstr(out, "\nX,"), "\nX,decode_rate,tok/s,%lf,%lf", &published, &predicted), 2);
    assert_close(predicted, 1 / (0.16 + 0.14), 0.005 / 0.3);
    free(out);
}

static void any_number_of_threads_prints_the_same_bytes(void **state)
{
    (void)state;
    struct run one =
                   run_memwall("validate published --class given --draws 2 --jobs 1 --format csv"),
               many =
                   run_memwall("validate published --class given --draws 2 --jobs 5 --format csv");
    assert_int_equal(one.exit_code, 0);
    assert_string_equal(one.out, many.out);
    run_free(&one);
    run_free(&many);
}

/* ---- outcomes ---- */

static void a_row_that_lacks_an_input_is_empty_and_says_which(void **state)
{
    (void)state;
    write_file(temp_path("lacks.csv"), HEADER
               "X,decode_rate,1,tok/s,A,qwen3-30b-a3b,,bigmoeonedge,q4_k_m,8,,serial,,,,,des,\n"
               "Y,decode_rate,1,tok/s,A,no-such-model,oneplus-15r,generic,,,,,,,,,des,\n");
    char command[256];
    snprintf(command, sizeof command, "validate published --draws 0 --format csv --data %s",
             temp_path("lacks.csv"));
    struct run r = run_memwall(command);
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, "X,decode_rate,tok/s,1.000000,,,,,,bigmoeonedge,"
                                  "missing: device_slug,blind,des,,"));
    assert_non_null(strstr(r.out, "no-such-model"));
    run_free(&r);
}

static void the_error_is_zero_within_a_published_range_and_else_to_its_nearer_end(void **state)
{
    (void)state;
    assert_close(published_error(5, 4, 6), 0, 1e-12);
    assert_close(published_error(3, 4, 6), -0.25, 1e-12);
    assert_close(published_error(9, 4, 6), 0.5, 1e-12);
}

static void columns_stand_as_other_tools_expect_them(void **state)
{
    (void)state;
    char *out = predict("given", "0.76,235929600,0.161,0.127");
    static const char header[] = "id,metric,unit,published,predicted,signed_error,low,high,bound,"
                                 "profile,note,class,rule,tol,pass\n";
    assert_memory_equal(out, header, sizeof header - 1);
    free(out);
    struct run json = run_memwall("validate published --class given --draws 0 --format json"),
               table = run_memwall("validate published --class given --draws 0");
    assert_int_equal(json.out[0], '[');
    assert_non_null(strstr(json.out, "\"signed_error\""));
    assert_non_null(strstr(table.out, "median absolute error"));
    run_free(&json);
    run_free(&table);
}

/* ---- scores ---- */

static void equal_weights_give_the_usual_median(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, w[] = {1, 1, 1, 1}, v[] = {1, 1, 1, 1};
    assert_close(score_quantile(odd, w, 3, 0.5), 2, 1e-12);
    assert_close(score_quantile(even, v, 4, 0.5), 2.5, 1e-12);
}

static struct published_outcome outcome(const struct published_row *row, double error)
{
    return (struct published_outcome){.row = row,
                                      .class_of = PUBLISHED_BLIND,
                                      .predicted_given = true,
                                      .signed_error = error,
                                      .counted = true,
                                      .bound = ""};
}

static void every_engine_weighs_the_same_whatever_it_published(void **state)
{
    (void)state;
    struct diag dg;
    struct score s;
    struct published_row row[] = {
        {.id = "M", .engine = "many", .profile = "p", .grade = "A", .device = "d", .rule = "des"},
        {.id = "F",
         .engine = "many (fork)",
         .profile = "p",
         .grade = "B",
         .device = "d",
         .rule = "des"},
        {.id = "W", .engine = "", .profile = "few", .grade = "A", .device = "d", .rule = "des"},
        {.id = "X",
         .engine = "many",
         .profile = "p",
         .grade = "A",
         .device = "d",
         .rule = "fitted"}};
    struct published all = {.rows = row, .count = 4};
    struct published_outcome o[] = {outcome(&row[0], 0.1),  outcome(&row[0], 0.1),
                                    outcome(&row[0], 0.1),  outcome(&row[1], -0.7),
                                    outcome(&row[2], 0.3),  outcome(&row[2], 0.3),
                                    outcome(&row[3], 0.001)};
    o[6].counted = false;
    assert_ok(score_find(&s, &all, o, 7, &dg));
    assert_int_equal(s.count, 5); /* all, grade A, grade A held out, few, many */
    assert_int_equal(s.lines[0].rows, 6);
    assert_int_equal(s.lines[0].engines, 2);
    /* many: 0.1 0.1 0.1 0.7 at 1/4 each, few: 0.3 0.3 at 1/2: three quarters lie below 0.3 */
    assert_close(s.lines[0].absolute_median, 0.3, 1e-12);
    assert_true(s.lines[0].worst == &o[3]); /* 0.3 times is farther than 1.3 times */
    assert_int_equal(s.lines[1].rows, 5);
    assert_close(s.lines[1].absolute_median, 0.2, 1e-12); /* half and half: between 0.1 and 0.3 */
    assert_true(s.lines[2].held_out);                     /* a run of `many` on d was fitted to */
    assert_int_equal(s.lines[2].rows, 2);
    assert_close(s.lines[2].absolute_median, 0.3, 1e-12);
    assert_string_equal(s.lines[3].engine, "few");
    assert_string_equal(s.lines[4].engine, "many");
    score_free(&s);
}

static void a_fitted_row_counts_in_no_quantile(void **state)
{
    (void)state;
    struct diag dg;
    struct published p;
    struct published_outcome *o;
    size_t count, fitted = 0;
    struct published_request q = {
        .folders = folders, .only_class = PUBLISHED_GIVEN, .seed = 1, .threads = 1};
    assert_ok(published_load(&p, DATA, &dg));
    assert_ok(published_run_all(&o, &count, &p, &q, &dg));
    assert_int_equal(count, published_run_count(&p, PUBLISHED_GIVEN));
    for (size_t i = 0; i < count; i++)
        if (strcmp(o[i].row->rule, "fitted") == 0) {
            fitted++;
            assert_false(o[i].counted);
        }
    assert_true(fitted > 0);
    free(o);
    published_free(&p);
}

/* ---- the targets over the bundled rows ---- */

static void grade_a_medians_of_two_dozen_rows_stay_within_their_targets(void **state)
{
    (void)state;
    static const double most[PUBLISHED_CLASSES] = {0.30, 0.15, 0.08};
    struct diag dg;
    struct published p;
    struct published_outcome *o;
    struct score s;
    size_t count;
    struct published_request q = {.folders = folders, .only_class = -1, .seed = 1, .threads = 2};
    assert_ok(published_load(&p, DATA, &dg));
    assert_ok(published_run_all(&o, &count, &p, &q, &dg));
    assert_ok(score_find(&s, &p, o, count, &dg));
    int seen = 0;
    for (size_t i = 0; i < s.count; i++)
        if (s.lines[i].grade_a && !s.lines[i].held_out) {
            print_message("%s: %.1f %% over %zu rows\n", published_class_names[s.lines[i].class_of],
                          100 * s.lines[i].absolute_median, s.lines[i].rows);
            seen++;
            assert_true(s.lines[i].rows >= 24);
            assert_true(s.lines[i].absolute_median <= most[s.lines[i].class_of]);
        }
    assert_int_equal(seen, PUBLISHED_CLASSES);

    struct systems claims;
    static const char *const core[] = {"V04", "V05", "V09", "V10", "V12a", "V14a", "V16", "V39a"};
    assert_ok(systems_load(&claims, "validate/data/systems.csv", &dg));
    struct published_outcome *c = calloc(claims.count, sizeof *c);
    assert_non_null(c);
    assert_ok(systems_check(c, &claims, o, count, &folders, &dg));
    size_t found = 0;
    for (size_t i = 0; i < claims.count; i++)
        for (size_t j = 0; j < sizeof core / sizeof *core; j++)
            if (strcmp(claims.rows[i].id, core[j]) == 0) {
                found++;
                if (c[i].pass != 1)
                    fail_msg("%s: %g", core[j], c[i].signed_error);
            }
    assert_int_equal(found, sizeof core / sizeof *core);
    for (size_t i = 0; i < claims.count; i++) /* iso-curves: the range holds the published figure */
        if (strcmp(claims.rows[i].id, "V18") == 0) {
            assert_true(c[i].low < 0.6 && c[i].high > 0.6);
            assert_int_equal(c[i].pass, 1);
        } else if (strcmp(claims.rows[i].id, "V19") == 0) { /* 3 to 5 tok/s meet the range */
            assert_true(c[i].low < 5 && c[i].high > 3);
            assert_int_equal(c[i].pass, 1);
        }
    free(c);
    systems_free(&claims);
    score_free(&s);
    free(o);
    published_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_says_no_number_is_refused_with_its_line),
        cmocka_unit_test(a_time_is_above_zero_and_at_most_a_day),
        cmocka_unit_test(a_figure_is_above_zero_unless_it_is_a_hit_ratio),
        cmocka_unit_test(bytes_beyond_any_machine_are_refused),
        cmocka_unit_test(a_text_that_is_misspelt_is_refused_with_what_it_could_be),
        cmocka_unit_test(a_count_is_whole),
        cmocka_unit_test(a_rule_that_is_unknown_is_refused),
        cmocka_unit_test(more_experts_a_token_than_the_model_has_are_refused_with_the_line),
        cmocka_unit_test(one_row_of_one_engine_is_singular),
        cmocka_unit_test(a_file_without_values_is_refused),
        cmocka_unit_test(a_class_sees_only_its_own_columns),
        cmocka_unit_test(bytes_asked_of_the_page_cache_give_no_hits_away),
        cmocka_unit_test(what_a_class_may_not_read_changes_no_byte_of_its_output),
        cmocka_unit_test(serial_seconds_add_up),
        cmocka_unit_test(any_number_of_threads_prints_the_same_bytes),
        cmocka_unit_test(a_row_that_lacks_an_input_is_empty_and_says_which),
        cmocka_unit_test(the_error_is_zero_within_a_published_range_and_else_to_its_nearer_end),
        cmocka_unit_test(columns_stand_as_other_tools_expect_them),
        cmocka_unit_test(equal_weights_give_the_usual_median),
        cmocka_unit_test(every_engine_weighs_the_same_whatever_it_published),
        cmocka_unit_test(a_fitted_row_counts_in_no_quantile),
        cmocka_unit_test(grade_a_medians_of_two_dozen_rows_stay_within_their_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
