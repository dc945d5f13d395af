/* test_yaml.c -- description files: what is read, and the line of reason for everything else. */
#include "tests/support.h"

#include "base/hash.h"
#include "base/yaml.h"
#include "tests/allocations.h"

#include <sys/stat.h>

struct part {
    const char *name;
    struct value latency, bandwidth, depth, share;
    uint64_t capacity;
};

struct machine {
    const char *source;
    uint64_t threads;
    bool shared;
    int class_of;
    struct part board;
    struct yaml_list storage, sizes;
    yaml_node sweep;
};

static const char *const classes[] = {"phone", "laptop", "server", NULL};

#define FIELD(of, name, kind) .key = #name, .type = kind, .offset = offsetof(struct of, name)

static const struct yaml_field part_fields[] = {
    {FIELD(part, name, YAML_TYPE_TEXT), .required = true},
    {FIELD(part, latency, YAML_TYPE_VALUE), .dim = DIM_TIME, .min = 10, .max = 1000000000},
    {FIELD(part, bandwidth, YAML_TYPE_VALUE), .dim = DIM_RATE},
    {FIELD(part, depth, YAML_TYPE_VALUE), .dim = DIM_COUNT},
    {FIELD(part, share, YAML_TYPE_VALUE), .dim = DIM_RATIO},
    {FIELD(part, capacity, YAML_TYPE_QUANTITY), .dim = DIM_SIZE},
    {0},
};

static const struct yaml_field machine_fields[] = {
    {FIELD(machine, source, YAML_TYPE_TEXT), .required = true},
    {FIELD(machine, threads, YAML_TYPE_COUNT), .min = 1, .max = 64},
    {FIELD(machine, shared, YAML_TYPE_FLAG)},
    {.key = "class",
     .type = YAML_TYPE_CHOICE,
     .offset = offsetof(struct machine, class_of),
     .choices = classes},
    {FIELD(machine, board, YAML_TYPE_MAP), .fields = part_fields},
    {FIELD(machine, storage, YAML_TYPE_LIST), .fields = part_fields,
     .item_bytes = sizeof(struct part)},
    {FIELD(machine, sizes, YAML_TYPE_COUNT_LIST), .min = 1},
    {FIELD(machine, sweep, YAML_TYPE_NODE)},
    {0},
};

static const char sample[] = "# a machine\n"
                             "source: \"me: myself\"\n"
                             "threads: 8\n"
                             "shared: true\n"
                             "class: laptop\n"
                             "sizes: [1, 2, 64]\n"
                             "storage:\n"
                             "  - name: inner\n"
                             "    latency:   [65 us, measured, \"fio, by hand\", 4 %]\n"
                             "    bandwidth: [7.0 GB/s, datasheet, product sheet]\n"
                             "  - name: outer\n"
                             "    depth: [64, assumed, a guess]\n"
                             "    share: [71 %, derived, a division]\n"
                             "    capacity: 1 TiB\n"
                             "board: {name: plain}\n"
                             "sweep:\n"
                             "  storage.0.bandwidth: [1.6 GB/s, 20 GB/s]\n"
                             "  policy: [lru, sieve]\n";

static struct diag dg;

/* What is read from `text` after an override (path NULL: none). */
struct loaded {
    struct yaml_doc *doc;
    struct arena arena;
    struct machine m;
};

static enum status load(struct loaded *l, const char *text, const char *path, const char *value)
{
    memset(l, 0, sizeof *l);
    enum status status = yaml_open_text(&l->doc, "x.yaml", text, strlen(text), &dg);
    if (status == ST_OK && path)
        status = yaml_set(l->doc, path, value, &dg);
    if (status == ST_OK)
        status = yaml_read(l->doc, yaml_root(l->doc), machine_fields, &l->m, &l->arena, &dg);
    return status;
}

static void unload(struct loaded *l)
{
    yaml_close(l->doc);
    arena_free(&l->arena);
}

static void expect_refusal_set(const char *text, const char *path, const char *value,
                               const char *reason)
{
    struct loaded l;
    enum status status = load(&l, text, path, value);
    unload(&l);
    if (status == ST_OK)
        fail_msg("accepted, instead of: %s", reason);
    assert_string_equal(dg.text, reason);
    assert_int_equal(dg.status, status);
}

static void expect_refusal(const char *text, const char *reason)
{
    expect_refusal_set(text, NULL, NULL, reason);
}

static const struct part *storage(const struct loaded *l, size_t i)
{
    assert_true(i < l->m.storage.count);
    return (const struct part *)l->m.storage.items + i;
}

static void every_type_of_field_is_read(void **state)
{
    struct loaded l;
    (void)state;
    assert_ok(load(&l, sample, NULL, NULL));
    yaml_close(l.doc); /* what was read outlasts the document */
    l.doc = NULL;
    assert_string_equal(l.m.source, "me: myself");
    assert_int_equal(l.m.threads, 8);
    assert_true(l.m.shared);
    assert_int_equal(l.m.class_of, 1);
    assert_string_equal(l.m.board.name, "plain");
    assert_int_equal(l.m.sizes.count, 3);
    assert_int_equal(((uint64_t *)l.m.sizes.items)[2], 64);
    assert_int_equal(l.m.storage.count, 2);
    const struct value *latency = &storage(&l, 0)->latency;
    assert_int_equal(latency->amount, 65000);
    assert_int_equal(latency->kind, KIND_MEASURED);
    assert_int_equal(latency->dim, DIM_TIME);
    assert_true(latency->given && latency->spread_given);
    assert_int_equal(value_spread(latency), 40000000);
    assert_string_equal(latency->source, "fio, by hand");
    const struct value *bandwidth = &storage(&l, 0)->bandwidth;
    assert_int_equal(bandwidth->amount, 7000000000);
    assert_false(bandwidth->spread_given);
    assert_int_equal(value_spread(bandwidth), 120000000);
    assert_string_equal(storage(&l, 1)->name, "outer");
    assert_int_equal(storage(&l, 1)->depth.amount, 64);
    assert_int_equal(storage(&l, 1)->share.amount, 710000000);
    assert_int_equal(storage(&l, 1)->capacity, UINT64_C(1) << 40);
    assert_false(storage(&l, 1)->latency.given);
    unload(&l);
}

static void maps_with_free_keys_are_walked_by_hand(void **state)
{
    struct loaded l;
    (void)state;
    assert_ok(load(&l, sample, NULL, NULL));
    assert_int_equal(yaml_kind(l.doc, l.m.sweep), YAML_MAP);
    assert_int_equal(yaml_count(l.doc, l.m.sweep), 2);
    assert_string_equal(yaml_key_at(l.doc, l.m.sweep, 0), "storage.0.bandwidth");
    yaml_node list = yaml_value_at(l.doc, l.m.sweep, 0);
    assert_int_equal(yaml_kind(l.doc, list), YAML_LIST);
    assert_string_equal(yaml_text(l.doc, yaml_item(l.doc, list, 1)), "20 GB/s");
    assert_int_equal(yaml_line(l.doc, list), 17);
    assert_int_equal(yaml_find(l.doc, l.m.sweep, "policy"), yaml_value_at(l.doc, l.m.sweep, 1));
    assert_int_equal(yaml_find(l.doc, l.m.sweep, "absent"), 0);
    assert_int_equal(yaml_find(l.doc, list, "no map"), 0);
    assert_null(yaml_text(l.doc, list));
    assert_string_equal(yaml_name(l.doc), "x.yaml");
    unload(&l);
}

static void keys_that_are_unknown_missing_or_repeated_have_their_line(void **state)
{
    (void)state;
    expect_refusal("source: a\nthread: 3\n",
                   "x.yaml:2: unknown key 'thread' (did you mean 'threads'?)");
    expect_refusal("source: a\ncolour: red\n", "x.yaml:2: unknown key 'colour'");
    expect_refusal("source: a\nboard:\n  name: b\n  bandwith: 3\n",
                   "x.yaml:4: unknown key 'bandwith' (did you mean 'bandwidth'?)");
    expect_refusal("\n\nthreads: 3\n", "x.yaml:3: key 'source' is missing");
    expect_refusal("source: a\nstorage:\n  - name: b\n  - capacity: 1 GB\n",
                   "x.yaml:4: storage.1: key 'name' is missing");
    expect_refusal("source: a\nthreads: 1\n\nsource: b\n",
                   "x.yaml:4: key 'source' is given twice, first in line 1");
    expect_refusal("source: a\nsweep:\n  k: 1\n  j: 1\n  k: 2\n",
                   "x.yaml:5: key 'k' is given twice, first in line 3");
    expect_refusal("? [a, b]\n: c\n", "x.yaml:1: a key is expected to be a text");
}

static void numbers_that_do_not_fit_have_line_and_path(void **state)
{
    (void)state;
    expect_refusal("source: a\nthreads: 65\n", "x.yaml:2: threads: '65': 1 to 64 is expected");
    expect_refusal("source: a\nthreads: 0\n", "x.yaml:2: threads: '0': 1 to 64 is expected");
    expect_refusal("source: a\nthreads: -1\n",
                   "x.yaml:2: threads: '-1': a number without a sign is expected");
    expect_refusal("source: a\nthreads: [1]\n",
                   "x.yaml:2: threads: a whole number is expected, not a list");
    expect_refusal("source: a\nsizes: [1,\n  0]\n",
                   "x.yaml:3: sizes.1: '0': at least 1 is expected");
    expect_refusal("source: a\nsizes: 3\n", "x.yaml:2: sizes: a list is expected");
    expect_refusal("source: a\nboard: {name: b, capacity: 5}\n",
                   "x.yaml:2: board.capacity: '5': a unit is required "
                   "(B kB MB GB TB KiB MiB GiB TiB)");
}

#define STORAGE "source: a\nstorage:\n  - name: b\n    "

static void values_need_a_unit_a_kind_and_a_source(void **state)
{
    (void)state;
    expect_refusal(STORAGE "latency: [65, measured, x]",
                   "x.yaml:4: storage.0.latency: '65': a unit is required (ns us ms s min h)");
    expect_refusal(STORAGE "latency: [2 s, measured, x]",
                   "x.yaml:4: storage.0.latency: '2 s': 10 ns to 1 s is expected");
    expect_refusal(STORAGE "latency: [65 us, measurd, x]",
                   "x.yaml:4: storage.0.latency: 'measurd': unknown kind "
                   "(datasheet measured fitted assumed derived)");
    expect_refusal(STORAGE "latency: [65 us, measured, \"\"]",
                   "x.yaml:4: storage.0.latency: a source is expected, nothing is here");
    expect_refusal(STORAGE "latency: [65 us, measured, \"  \"]",
                   "x.yaml:4: storage.0.latency: a source is expected, nothing is here");
    expect_refusal(STORAGE "latency: [65 us, measured, x, 4]",
                   "x.yaml:4: storage.0.latency: '4': 0 % to 100 % is expected");
    expect_refusal(STORAGE "latency: [65 us, measured, by me, by hand]",
                   "x.yaml:4: storage.0.latency: 'by hand': a number is expected");
    expect_refusal(STORAGE "latency: [[65 us], measured, x]",
                   "x.yaml:4: storage.0.latency: time is expected, not a list");
#define NO_VALUE                                                                                   \
    "x.yaml:4: storage.0.latency: [amount, kind, source] or [amount, kind, source, spread] is "    \
    "expected; a source with a comma needs quotes"
    expect_refusal(STORAGE "latency: 65 us", NO_VALUE);
    expect_refusal(STORAGE "latency: [65 us, measured]", NO_VALUE);
    expect_refusal(STORAGE "latency: [65 us, measured, a, b, c]", NO_VALUE);
}

static void other_types_are_checked_too(void **state)
{
    (void)state;
    expect_refusal("source:\n", "x.yaml:1: source: a text is expected, nothing is here");
    expect_refusal("source: null\n", "x.yaml:1: source: a text is expected, nothing is here");
    expect_refusal("source: {a: b}\n", "x.yaml:1: source: a text is expected, not a map");
    expect_refusal("source: a\nshared: yes\n",
                   "x.yaml:2: shared: 'yes': true or false is expected");
    expect_refusal("source: a\nclass: phoney\n",
                   "x.yaml:2: class: 'phoney': one of phone laptop server is expected "
                   "(did you mean 'phone'?)");
    expect_refusal("source: a\nboard: [1]\n", "x.yaml:2: board: a map (key: value) is expected");
    expect_refusal("- source\n", "x.yaml:1: a map (key: value) is expected");
}

static void yaml_that_hides_something_is_refused(void **state)
{
    (void)state;
    expect_refusal("source: a\nboard: &b {name: c}\n",
                   "x.yaml:2: anchors and aliases are not allowed, write the value out");
    expect_refusal("source: a\nboard: *b\n",
                   "x.yaml:2: anchors and aliases are not allowed, write the value out");
    expect_refusal("source: !!str a\n", "x.yaml:1: tags (!...) are not allowed");
    expect_refusal("source: a\n---\nsource: b\n",
                   "x.yaml:2: one document is expected, here begins another");
    expect_refusal("source: \"a\\0b\"\n", "x.yaml:1: a text may not contain a NUL character");
    expect_refusal("", "x.yaml:1: keys and values are expected, nothing is here");
    expect_refusal("# only a comment\n", "x.yaml:1: keys and values are expected, nothing is here");
    expect_refusal("source: [a\nthreads: 3\n",
                   "x.yaml:2: not valid YAML: did not find expected ',' or ']', "
                   "while parsing a flow sequence that begins in line 1");
    expect_refusal("source: a\nthreads: \xff\n",
                   "x.yaml:2: UTF-8 text is expected (invalid leading UTF-8 octet)");
    expect_refusal("\xff\xfes\n", "x.yaml:1: UTF-8 text is expected (invalid leading UTF-8 octet)");
}

static void nesting_ends_at_32_levels(void **state)
{
    char text[256];
    struct loaded l;
    (void)state;
    strcpy(text, "source: a\nsweep: ");
    for (int i = 0; i < 31; i++)
        strcat(text, "[");
    for (int i = 0; i < 31; i++)
        strcat(text, "]");
    assert_ok(load(&l, text, NULL, NULL));
    unload(&l);
    strcpy(text, "source: a\nsweep: ");
    for (int i = 0; i < 32; i++)
        strcat(text, "[");
    expect_refusal(text, "x.yaml:2: nested too deeply (more than 32 levels)");
}

static void only_a_regular_file_of_at_most_4_mib_is_read(void **state)
{
    struct yaml_doc *doc;
    const char *path = temp_path("big.yaml");
    (void)state;
    char *text = malloc((4 << 20) + 2);
    memset(text, '#', (4 << 20) + 1);
    memcpy(text, "a: b\n", 5);
    text[4 << 20] = 0;
    write_file(path, text);
    assert_ok(yaml_open(&doc, path, &dg));
    yaml_close(doc);
    strcat(text, "#");
    write_file(path, text);
    free(text);
    assert_int_equal(yaml_open(&doc, path, &dg), ST_PARSE);
    assert_null(doc);
    assert_non_null(strstr(dg.text, "big.yaml: at most 4 MiB are expected"));
    assert_int_equal(yaml_open(&doc, temp_path(""), &dg), ST_IO);
    assert_non_null(strstr(dg.text, ": a regular file is expected"));
    assert_int_equal(yaml_open(&doc, "/dev/zero", &dg), ST_IO);
    assert_string_equal(dg.text, "/dev/zero: a regular file is expected");
    path = temp_path("pipe.yaml");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(yaml_open(&doc, path, &dg), ST_IO);
    assert_int_equal(yaml_open(&doc, "no/such.yaml", &dg), ST_IO);
    assert_string_equal(dg.text, "no/such.yaml: cannot be opened: No such file or directory");
}

static void a_text_is_one_line_without_control_characters(void **state)
{
    struct loaded l;
    (void)state;
    assert_ok(load(&l, "source: |\n  one\n  two\tthree\n", NULL, NULL));
    assert_string_equal(l.m.source, "one two three");
    unload(&l);
    static const char *const bad[] = {"source: \"a\\x1b[31m\"\n", "source: \"a\\u009bm\"\n",
                                      "source: \"a\\rb\"\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(load(&l, bad[i], NULL, NULL), ST_PARSE);
        assert_string_equal(dg.text,
                            "x.yaml:1: source: a text without control characters is expected");
        unload(&l);
    }
    assert_int_equal(load(&l, sample, "source", "a\x1b[31m"), ST_PARSE);
    unload(&l);
}

static void null_in_quotes_is_a_text(void **state)
{
    struct loaded l;
    (void)state;
    assert_int_equal(load(&l, "source: null\n", NULL, NULL), ST_PARSE);
    unload(&l);
    assert_ok(load(&l, "source: \"null\"\n", NULL, NULL));
    assert_string_equal(l.m.source, "null");
    unload(&l);
}

static void any_text_that_is_written_can_be_read(void **state)
{
    (void)state;
    static const struct {
        const char *written, *read;
    } cases[] = {{"plain", "plain"},
                 {"a: \"b\" \\ {c} # d", "a: \"b\" \\ {c} # d"},
                 {"null", "null"},
                 {"one\ntwo\x1b[0m\xc2\x9b", "one two [0m "},
                 {"caf\xc3\xa9 caf\xe9", "caf\xc3\xa9 caf\xef\xbf\xbd"},
                 {"\xef\xbb\xbfmark\xef\xbf\xbf", "\xef\xbf\xbdmark\xef\xbf\xbd"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded l;
        char *text;
        size_t bytes;
        FILE *f = open_memstream(&text, &bytes);
        fputs("source: ", f);
        yaml_write_text(f, cases[i].written);
        fputc('\n', f);
        fclose(f);
        assert_ok(load(&l, text, NULL, NULL));
        assert_string_equal(l.m.source, cases[i].read);
        unload(&l);
        free(text);
    }
}

static void an_override_replaces_a_value_and_owns_up_to_it(void **state)
{
    struct loaded l;
    (void)state;
    assert_ok(load(&l, sample, "storage.0.latency", "80us"));
    const struct value *v = &storage(&l, 0)->latency;
    assert_int_equal(v->amount, 80000);
    assert_int_equal(v->kind, KIND_ASSUMED);
    assert_string_equal(v->source, "--set");
    assert_false(v->spread_given);
    assert_int_equal(storage(&l, 0)->bandwidth.amount, 7000000000);
    unload(&l);
    assert_ok(load(&l, sample, "storage.1.latency", "80us")); /* was not there */
    assert_int_equal(storage(&l, 1)->latency.amount, 80000);
    assert_int_equal(storage(&l, 1)->latency.kind, KIND_ASSUMED);
    unload(&l);
    assert_ok(load(&l, sample, "threads", "4"));
    assert_int_equal(l.m.threads, 4);
    unload(&l);
    assert_ok(load(&l, sample, "sizes.1", "9"));
    assert_int_equal(((uint64_t *)l.m.sizes.items)[1], 9);
    unload(&l);
}

static void the_last_of_several_overrides_holds(void **state)
{
    struct loaded l;
    (void)state;
    assert_int_equal(load(&l, sample, "threads", "99"), ST_RANGE);
    assert_ok(yaml_set(l.doc, "threads", "5", &dg));
    assert_ok(yaml_set(l.doc, "storage.0.latency", "80us", &dg));
    assert_ok(yaml_set(l.doc, "storage.0.latency", "90us", &dg));
    assert_ok(yaml_set(l.doc, "board.latency", "1us", &dg));
    assert_ok(yaml_set(l.doc, "board.latency", "2us", &dg));
    assert_ok(yaml_read(l.doc, yaml_root(l.doc), machine_fields, &l.m, &l.arena, &dg));
    assert_int_equal(l.m.threads, 5);
    assert_int_equal(storage(&l, 0)->latency.amount, 90000);
    assert_int_equal(l.m.board.latency.amount, 2000);
    assert_ok(yaml_set(l.doc, "threads", "77", &dg));
    assert_int_equal(yaml_read(l.doc, yaml_root(l.doc), machine_fields, &l.m, &l.arena, &dg),
                     ST_RANGE);
    assert_string_equal(dg.text, "x.yaml: --set threads=77: threads: '77': 1 to 64 is expected");
    unload(&l);
}

static void an_override_passes_the_checks_of_the_file(void **state)
{
    (void)state;
    expect_refusal_set(sample, "storage.0.latency", "65",
                       "x.yaml: --set storage.0.latency=65: storage.0.latency: '65': "
                       "a unit is required (ns us ms s min h)");
    expect_refusal_set(sample, "storage.0.latenzy", "65 us",
                       "x.yaml: --set storage.0.latenzy=65 us: unknown key 'latenzy' "
                       "(did you mean 'latency'?)");
    expect_refusal_set(sample, "threads", "65",
                       "x.yaml: --set threads=65: threads: '65': 1 to 64 is expected");
    expect_refusal_set(sample, "source", "",
                       "x.yaml: --set source=: source: a text is expected, nothing is here");
    expect_refusal_set(sample, "source", "\xff",
                       "x.yaml: --set: the text is not UTF-8, or out of memory");
}

static void an_override_of_a_wrong_path_is_refused(void **state)
{
    (void)state;
    expect_refusal_set(sample, "storge.0.latency", "1us",
                       "x.yaml: --set storge.0.latency=1us: no key 'storge' "
                       "(did you mean 'storage'?)");
    expect_refusal_set(sample, "storage.2.latency", "1us",
                       "x.yaml: --set storage.2.latency=1us: item 2 does not exist, "
                       "the list has 2");
    expect_refusal_set(sample, "storage.first.latency", "1us",
                       "x.yaml: --set storage.first.latency=1us: 'first' should be the number "
                       "of a list item, from 0");
    expect_refusal_set(sample, "storage.-1.name", "b",
                       "x.yaml: --set storage.-1.name=b: '-1' should be the number of a list "
                       "item, from 0");
    expect_refusal_set(sample, "threads.x", "1",
                       "x.yaml: --set threads.x=1: 'x' has nothing above it that could hold it");
    expect_refusal_set(sample, "board", "1",
                       "x.yaml: --set board=1: 'board' is a map or a list, only a single value "
                       "can be set");
    expect_refusal_set(sample, "sizes", "1",
                       "x.yaml: --set sizes=1: 'sizes' is a map or a list, only a single value "
                       "can be set");
    expect_refusal_set(sample, "storage.0.latency.0", "1us",
                       "x.yaml: --set storage.0.latency.0=1us: '0' is a part of a value, set "
                       "the value itself");
    expect_refusal_set(sample, "", "1",
                       "x.yaml: --set =1: '=1' is not a path: keys and numbers joined by dots");
    expect_refusal_set(sample, "board.", "1",
                       "x.yaml: --set board.=1: 'board.=1' is not a path: keys and numbers joined "
                       "by dots");
}

static void damaged_files_are_read_or_refused_with_one_line(void **state)
{
    char text[sizeof sample];
    struct loaded l;
    size_t accepted = 0;
    (void)state;
    for (uint64_t round = 0; round < 4000; round++) {
        static const char bytes[] = "[]{}:,-#\"'&*!|>%@\n\t \\0x?\x80";
        memcpy(text, sample, sizeof sample);
        for (uint64_t i = 0; i <= round % 3; i++) {
            uint64_t chance = hash_add(hash_add(HASH_SEED, round), i);
            text[chance % (sizeof sample - 1)] = bytes[(chance >> 32) % (sizeof bytes - 1)];
        }
        if (load(&l, text, NULL, NULL) == ST_OK) {
            accepted++;
        } else {
            assert_memory_equal(dg.text, "x.yaml", 6);
            assert_null(strchr(dg.text, '\n'));
        }
        unload(&l);
    }
    assert_in_range(accepted, 100, 3000); /* neither always refused nor never */
}

static void any_allocation_may_fail(void **state)
{
    struct loaded l;
    (void)state;
    NEED_ALLOCATIONS();
    size_t before = allocations_count(), survived = 0;
    assert_ok(load(&l, sample, "storage.0.latency", "80us"));
    size_t calls = allocations_count() - before;
    unload(&l);
    for (size_t n = 1; n <= calls; n++) {
        allocations_fail_at(n);
        enum status status = load(&l, sample, "storage.0.latency", "80us");
        allocations_fail_at(0);
        if (status == ST_OK) { /* asprintf can do without shrinking its text */
            survived++;
            assert_int_equal(storage(&l, 0)->latency.amount, 80000);
            assert_int_equal(storage(&l, 1)->capacity, UINT64_C(1) << 40);
        } else if (status != ST_NO_MEMORY) {
            assert_non_null(strstr(dg.text, "out of memory"));
        }
        unload(&l);
    }
    assert_true(survived <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_field_is_read),
        cmocka_unit_test(maps_with_free_keys_are_walked_by_hand),
        cmocka_unit_test(keys_that_are_unknown_missing_or_repeated_have_their_line),
        cmocka_unit_test(numbers_that_do_not_fit_have_line_and_path),
        cmocka_unit_test(values_need_a_unit_a_kind_and_a_source),
        cmocka_unit_test(other_types_are_checked_too),
        cmocka_unit_test(yaml_that_hides_something_is_refused),
        cmocka_unit_test(nesting_ends_at_32_levels),
        cmocka_unit_test(only_a_regular_file_of_at_most_4_mib_is_read),
        cmocka_unit_test(a_text_is_one_line_without_control_characters),
        cmocka_unit_test(null_in_quotes_is_a_text),
        cmocka_unit_test(any_text_that_is_written_can_be_read),
        cmocka_unit_test(an_override_replaces_a_value_and_owns_up_to_it),
        cmocka_unit_test(the_last_of_several_overrides_holds),
        cmocka_unit_test(an_override_passes_the_checks_of_the_file),
        cmocka_unit_test(an_override_of_a_wrong_path_is_refused),
        cmocka_unit_test(damaged_files_are_read_or_refused_with_one_line),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
