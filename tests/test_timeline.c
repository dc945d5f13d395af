/* Timelines: the file is valid JSON that says what was recorded, and what was left out. */
#include "tests/support.h"

#include "base/json.h"
#include "sim/trace/timeline.h"
#include "tests/allocations.h"

static struct diag dg;

static struct timeline *fresh(size_t capacity)
{
    struct timeline *t;
    assert_ok(timeline_new(&t, capacity, &dg));
    return t;
}

static uint32_t lane(struct timeline *t, const char *name)
{
    uint32_t id;
    assert_ok(timeline_lane(&id, t, name, &dg));
    return id;
}

static struct json_doc *saved(const struct timeline *t)
{
    struct json_doc *doc;
    const char *path = temp_path("timeline.json");
    assert_ok(timeline_save(t, path, &dg));
    assert_ok(json_open(&doc, path, &dg));
    return doc;
}

static uint64_t number(const json_node *object, const char *key)
{
    uint64_t n;
    if (!json_u64(json_get(object, key), &n))
        fail_msg("no whole number '%s'", key);
    return n;
}

static double decimal(const json_node *object, const char *key)
{
    double n;
    if (!json_double(json_get(object, key), &n))
        fail_msg("no number '%s'", key);
    return n;
}

/* The n-th event of a phase ("X", "C", "i"), or NULL. */
static const json_node *event(const struct json_doc *doc, const char *phase, size_t n)
{
    const json_node *events = json_get(json_root(doc), "traceEvents");
    for (size_t i = 0; i < json_count(events); i++) {
        const json_node *e = json_at(events, i);
        if (strcmp(json_text(json_get(e, "ph")), phase) == 0 && n-- == 0)
            return e;
    }
    return NULL;
}

/* The name of the lane that a thread id belongs to. */
static const char *lane_name(const struct json_doc *doc, uint64_t tid)
{
    const json_node *e;
    for (size_t i = 0; (e = event(doc, "M", i)); i++)
        if (strcmp(json_text(json_get(e, "name")), "thread_name") == 0 && number(e, "tid") == tid)
            return json_text(json_get(json_get(e, "args"), "name"));
    fail_msg("no lane has the id %llu", (unsigned long long)tid);
    return NULL;
}

static void a_span_comes_back_with_all_its_fields(void **state)
{
    (void)state;
    struct timeline *t = fresh(4);
    uint32_t compute = lane(t, "compute"), drive = lane(t, "ufs");
    timeline_span(t, &(struct timeline_span){.lane = drive,
                                             .operation = TIMELINE_READ,
                                             .start_ns = 1234567,
                                             .end_ns = 2000008,
                                             .pass = 3,
                                             .layer = 0,
                                             .expert = 17,
                                             .bytes = UINT64_C(6000000000)});
    timeline_span(t, &(struct timeline_span){.lane = compute,
                                             .operation = TIMELINE_HEAD,
                                             .start_ns = 3000000,
                                             .end_ns = 3000000,
                                             .pass = 3,
                                             .layer = TIMELINE_NONE,
                                             .expert = TIMELINE_NONE});
    struct json_doc *doc = saved(t);
    const json_node *read = event(doc, "X", 0), *args = json_get(read, "args");
    assert_string_equal(json_text(json_get(read, "name")), "read");
    assert_string_equal(lane_name(doc, number(read, "tid")), "ufs");
    assert_close(decimal(read, "ts"), 1234.567, 1e-9);
    assert_close(decimal(read, "dur"), 765.441, 1e-9);
    assert_int_equal(number(args, "pass"), 3);
    assert_int_equal(number(args, "layer"), 0);
    assert_int_equal(number(args, "expert"), 17);
    assert_int_equal(number(args, "bytes"), UINT64_C(6000000000));
    const json_node *head = event(doc, "X", 1);
    assert_string_equal(lane_name(doc, number(head, "tid")), "compute");
    assert_int_equal(json_count(json_get(head, "args")), 1);
    assert_null(event(doc, "X", 2));
    json_close(doc);
    timeline_free(t);
}

/* Time is written digit by digit: a double would lose the nanoseconds of a long run. */
static void nanoseconds_survive_a_month(void **state)
{
    (void)state;
    struct timeline *t = fresh(1);
    timeline_mark(t, UINT64_C(2592000000000001), "pressure");
    assert_ok(timeline_save(t, temp_path("month.json"), &dg));
    char *text = read_whole(temp_path("month.json"), NULL);
    assert_non_null(strstr(text, "\"ts\":2592000000000.001"));
    free(text);
    timeline_free(t);
}

static void events_stand_in_order_of_time_then_of_recording(void **state)
{
    (void)state;
    static const char *const names[] = {"d", "b", "c", "a"};
    static const uint64_t start[] = {30, 10, 10, 5};
    struct timeline *t = fresh(4);
    uint32_t id = lane(t, "compute");
    for (int i = 0; i < 4; i++)
        timeline_span(t, &(struct timeline_span){.lane = id,
                                                 .operation = names[i],
                                                 .start_ns = start[i],
                                                 .end_ns = start[i] + 5});
    struct json_doc *doc = saved(t);
    for (size_t i = 0; i < 4; i++) {
        const char want[] = {(char)('a' + i), 0};
        assert_string_equal(json_text(json_get(event(doc, "X", i), "name")), want);
    }
    json_close(doc);
    timeline_free(t);
}

/* Three reads at once, a fourth when one of them is over: three rows, and in none do spans cross. */
static void overlapping_spans_of_a_lane_get_rows_of_their_own(void **state)
{
    (void)state;
    static const uint64_t span[][2] = {{0, 100}, {10, 40}, {20, 60}, {40, 50}, {60, 90}};
    static const uint64_t row[] = {0, 1, 2, 1, 1};
    struct timeline *t = fresh(8);
    uint32_t drive = lane(t, "ufs"), after = lane(t, "compute");
    for (int i = 0; i < 5; i++)
        timeline_span(t, &(struct timeline_span){.lane = drive,
                                                 .operation = TIMELINE_READ,
                                                 .start_ns = span[i][0],
                                                 .end_ns = span[i][1]});
    timeline_span(t, &(struct timeline_span){
                         .lane = after, .operation = TIMELINE_FIXED, .start_ns = 70, .end_ns = 80});
    struct json_doc *doc = saved(t);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(number(event(doc, "X", i), "tid"), 1 + row[i]);
        assert_string_equal(lane_name(doc, 1 + row[i]), "ufs");
    }
    assert_int_equal(number(event(doc, "X", 5), "tid"), 4);
    assert_string_equal(lane_name(doc, 4), "compute");
    json_close(doc);
    timeline_free(t);
}

static void names_are_escaped(void **state)
{
    (void)state;
    static const char nasty[] = "a \"b\"\\\n\t\x01 \xc3\xa9 \xff";
    static const char kept[] = "a \"b\"\\\n\t\x01 \xc3\xa9 \xef\xbf\xbd";
    struct timeline *t = fresh(4);
    uint32_t id = lane(t, nasty), track;
    assert_ok(timeline_track(&track, t, nasty, nasty, 0, &dg));
    assert_ok(timeline_note(t, nasty, nasty, &dg));
    timeline_span(t, &(struct timeline_span){.lane = id, .operation = nasty});
    timeline_counter(t, track, 1, 5);
    timeline_mark(t, 2, nasty);
    struct json_doc *doc = saved(t);
    assert_string_equal(lane_name(doc, 1), kept);
    assert_string_equal(json_text(json_get(event(doc, "X", 0), "name")), kept);
    assert_string_equal(json_text(json_get(event(doc, "C", 0), "name")), kept);
    assert_int_equal(number(json_get(event(doc, "C", 0), "args"), kept), 5);
    assert_string_equal(json_text(json_get(event(doc, "i", 0), "name")), kept);
    assert_string_equal(json_text(json_get(json_get(json_root(doc), "otherData"), kept)), kept);
    json_close(doc);
    timeline_free(t);
}

static void counters_are_written_where_they_change(void **state)
{
    (void)state;
    struct timeline *t = fresh(8);
    uint32_t cache, heat;
    assert_ok(timeline_track(&cache, t, "cache", "bytes", 0, &dg));
    assert_ok(timeline_track(&heat, t, "temperature", "C", 3, &dg));
    timeline_counter(t, cache, 0, 0);
    timeline_counter(t, cache, 5, 0);
    timeline_counter(t, heat, 6, 36050);
    timeline_counter(t, cache, 7, UINT64_C(1) << 52);
    assert_int_equal(timeline_count(t), 3);
    struct json_doc *doc = saved(t);
    assert_int_equal(number(json_get(event(doc, "C", 0), "args"), "bytes"), 0);
    assert_string_equal(json_text(json_get(event(doc, "C", 1), "name")), "temperature");
    assert_close(decimal(json_get(event(doc, "C", 1), "args"), "C"), 36.05, 1e-12);
    assert_int_equal(number(json_get(event(doc, "C", 2), "args"), "bytes"), UINT64_C(1) << 52);
    assert_close(decimal(event(doc, "C", 2), "ts"), 0.007, 1e-12);
    json_close(doc);
    timeline_free(t);
}

static void a_full_timeline_keeps_the_beginning_and_says_what_it_left_out(void **state)
{
    (void)state;
    struct timeline *t = fresh(3);
    uint32_t id = lane(t, "compute");
    for (uint64_t i = 0; i < 10; i++)
        timeline_span(t, &(struct timeline_span){
                             .lane = id, .operation = TIMELINE_FIXED, .start_ns = i, .end_ns = i});
    assert_int_equal(timeline_count(t), 3);
    assert_int_equal(timeline_dropped(t), 7);
    struct json_doc *doc = saved(t);
    assert_close(decimal(event(doc, "X", 2), "ts"), 0.002, 1e-12);
    assert_null(event(doc, "X", 3));
    assert_string_equal(json_text(json_get(event(doc, "i", 0), "name")), "timeline full");
    assert_close(decimal(event(doc, "i", 0), "ts"), 0.003, 1e-12);
    const json_node *metadata = json_get(json_root(doc), "otherData");
    assert_int_equal(number(metadata, "records"), 3);
    assert_int_equal(number(metadata, "dropped"), 7);
    json_close(doc);
    timeline_free(t);
}

static void an_empty_timeline_is_a_file_with_its_lanes(void **state)
{
    (void)state;
    struct timeline *t = fresh(1);
    lane(t, "compute");
    struct json_doc *doc = saved(t);
    assert_string_equal(lane_name(doc, 1), "compute");
    assert_null(event(doc, "i", 0));
    assert_string_equal(json_text(json_get(json_get(json_root(doc), "otherData"), "format")),
                        "memwall-timeline 1");
    json_close(doc);
    timeline_free(t);
}

static void no_timeline_records_nothing(void **state)
{
    (void)state;
    timeline_span(NULL, &(struct timeline_span){.operation = TIMELINE_FIXED});
    timeline_counter(NULL, 0, 0, 0);
    timeline_mark(NULL, 0, "pressure");
    timeline_free(NULL);
}

static void recording_allocates_nothing(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct timeline *t = fresh(100);
    uint32_t id = lane(t, "compute"), track;
    assert_ok(timeline_track(&track, t, "cache", "bytes", 0, &dg));
    size_t before = allocations_count();
    for (uint64_t i = 0; i < 100; i++) {
        timeline_span(t, &(struct timeline_span){.lane = id, .operation = TIMELINE_FIXED});
        timeline_counter(t, track, i, i);
        timeline_mark(t, i, "pressure");
    }
    assert_int_equal(allocations_count(), before);
    assert_int_equal(timeline_dropped(t), 200);
    timeline_free(t);
}

static enum status build_and_save(const char *path)
{
    struct timeline *t;
    uint32_t id = 0;
    enum status status = timeline_new(&t, 2, &dg);
    if (status != ST_OK)
        return status;
    status = timeline_lane(&id, t, "compute", &dg);
    if (status == ST_OK)
        status = timeline_track(&id, t, "cache", "bytes", 0, &dg);
    if (status == ST_OK)
        status = timeline_note(t, "model", "small", &dg);
    if (status == ST_OK) {
        timeline_counter(t, 0, 0, 1);
        status = timeline_save(t, path, &dg);
    }
    timeline_free(t);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const char *path = temp_path("fails.json");
    size_t failed = 0;
    for (;; failed++) {
        allocations_fail_at(failed + 1);
        enum status status = build_and_save(path);
        allocations_fail_at(0);
        if (status == ST_OK)
            break;
        assert_true(status == ST_NO_MEMORY || status == ST_IO); /* the stream's buffer */
    }
    assert_true(failed >= 15);
}

static void a_full_disk_is_reported(void **state)
{
    (void)state;
    struct timeline *t = fresh(1);
    assert_int_equal(timeline_save(t, "/dev/full", &dg), ST_IO);
    assert_int_equal(timeline_save(t, temp_path("no/such/folder.json"), &dg), ST_IO);
    timeline_free(t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_comes_back_with_all_its_fields),
        cmocka_unit_test(nanoseconds_survive_a_month),
        cmocka_unit_test(events_stand_in_order_of_time_then_of_recording),
        cmocka_unit_test(overlapping_spans_of_a_lane_get_rows_of_their_own),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(counters_are_written_where_they_change),
        cmocka_unit_test(a_full_timeline_keeps_the_beginning_and_says_what_it_left_out),
        cmocka_unit_test(an_empty_timeline_is_a_file_with_its_lanes),
        cmocka_unit_test(no_timeline_records_nothing),
        cmocka_unit_test(recording_allocates_nothing),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(a_full_disk_is_reported),
    };
    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
