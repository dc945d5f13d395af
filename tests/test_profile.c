/* test_profile.c -- engine profiles: the catalogue, the strictness of the format, overrides. */
#include "tests/support.h"

#include "tests/allocations.h"

#include "sim/pipeline/profile.h"
#include "sim/policy/cache_policy.h"
#include "sim/policy/decide.h"

#define CATALOGUE "sim/pipeline/profiles"

static const char *const engines[] = {
    "airllm",       "bigmoeonedge",     "colibri",         "ds4",
    "edge0",        "flash-moe-anemll", "flash-moe",       "generic",
    "kimi-k3-in-c", "llama.cpp-mmap",   "macos-mmap",      "memwall",
    "sglang-pack",  "slotstream",       "turbo-fieldfare", "warp"};
#define ENGINES (sizeof engines / sizeof *engines)

static struct engine_profile *loaded(const char *name, const char *const *overrides, size_t count)
{
    struct diag dg = {0};
    struct engine_profile *p = NULL;
    assert_ok(profile_load(&p, name, CATALOGUE, overrides, count, &dg));
    return p;
}

/* The profile `generic` with every line that begins with `key` replaced by `line` ("" removes it). */
static const char *generic_with(const char *key, const char *line)
{
    static char path[200];
    size_t bytes;
    char *text = read_whole(CATALOGUE "/generic.yaml", &bytes), *changed = calloc(1, bytes + 1000);
    assert_non_null(changed);
    strcpy(path, temp_path("profile.yaml"));
    for (char *l = strtok(text, "\n"); l; l = strtok(NULL, "\n"))
        if (strncmp(l, key, strlen(key)) != 0)
            strcat(strcat(changed, l), "\n");
    strcat(changed, line);
    write_file(path, changed);
    free(changed);
    free(text);
    return path;
}

static void refused(const char *path, const char *const *overrides, size_t count,
                    enum status expected, const char *reason)
{
    struct diag dg = {0};
    struct engine_profile *p = NULL;
    assert_int_equal(profile_load(&p, path, CATALOGUE, overrides, count, &dg), expected);
    if (!strstr(dg.text, reason))
        fail_msg("'%s' does not say '%s'", dg.text, reason);
}

static void check_source(void *self, const char *key, struct value *v)
{
    size_t *values = self;
    ++*values;
    if (!v->source || strlen(v->source) < 10)
        fail_msg("%s has no basis", key);
}

static void every_profile_of_the_catalogue_loads_and_says_where_each_value_is_from(void **state)
{
    (void)state;
    struct diag dg = {0};
    struct arena arena = {0};
    const char *const *names;
    size_t count;
    assert_ok(profile_names(&arena, CATALOGUE, &names, &count, &dg));
    assert_int_equal(count, ENGINES);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(names[i], engines[i]);
        struct engine_profile *p = loaded(names[i], NULL, 0);
        size_t values = 0;
        assert_string_equal(p->name, names[i]);
        assert_true(strlen(p->title) > 0 && strlen(p->source) > 0);
        profile_each_value(p, check_source, &values);
        assert_int_equal(values, 24);
        assert_non_null(cache_policy_find(p->policy));
        profile_free(p);
    }
    arena_free(&arena);
}

static void profiles_behave_as_their_engines_do(void **state)
{
    (void)state;
    struct engine_profile *p = loaded("slotstream", NULL, 0);
    assert_int_equal(p->pieces.amount, 9);
    assert_string_equal(p->policy, "clock");
    assert_int_equal(p->site, SITE_GPU);
    profile_free(p);
    p = loaded("colibri", NULL, 0);
    assert_int_equal(p->scope, SCOPE_LAYER);
    profile_free(p);
    p = loaded("airllm", NULL, 0);
    assert_int_equal(p->dense, DENSE_STREAMED);
    assert_true(p->embed_streamed && p->expand_experts);
    assert_int_equal(p->lanes.amount, 1);
    profile_free(p);
    p = loaded("bigmoeonedge", NULL, 0);
    assert_int_equal(p->evict, EVICT_AFTER);
    assert_int_equal(p->pieces.amount, 3);
    assert_int_equal(p->overlap, OVERLAP_SERIAL);
    profile_free(p);
    p = loaded("llama.cpp-mmap", NULL, 0);
    assert_int_equal(p->io, IO_MMAP);
    assert_int_equal(p->dense, DENSE_PAGE_CACHE);
    assert_int_equal(p->readahead.amount, 128 * 1024);
    profile_free(p);
    p = loaded("sglang-pack", NULL, 0);
    assert_int_equal(p->cache_home, HOME_VRAM);
    assert_int_equal(p->copy, COPY_PINNED);
    profile_free(p);
}

static void an_override_replaces_a_value_a_choice_and_a_flag(void **state)
{
    (void)state;
    const char *const set[] = {"lanes=7",         "overlap=serial", "policy=sieve",
                               "wake_busy=1.5ms", "threads=3",      "loader_shares_cores=true"};
    struct engine_profile *p = loaded("generic", set, 6);
    assert_int_equal(p->lanes.amount, 7);
    assert_int_equal(p->lanes.kind, KIND_ASSUMED);
    assert_string_equal(p->lanes.source, "--set");
    assert_int_equal(p->overlap, OVERLAP_SERIAL);
    assert_string_equal(p->policy, "sieve");
    assert_int_equal(p->wake_busy.amount, 1500000);
    assert_true(p->threads.given && p->threads.amount == 3);
    assert_true(p->loader_shares_cores);
    profile_free(p);
}

static void without_threads_the_device_decides(void **state)
{
    (void)state;
    struct engine_profile *p = loaded("generic", NULL, 0);
    assert_false(p->threads.given);
    profile_free(p);
}

static void a_misspelt_name_gets_the_nearest_as_a_hint(void **state)
{
    (void)state;
    refused("colibry", NULL, 0, ST_MISSING, "nearest is 'colibri'");
    refused("../generic", NULL, 0, ST_MISSING, "no engine profile");
    refused("/nowhere/else.yaml", NULL, 0, ST_IO, "/nowhere/else.yaml");
}

static void unknown_missing_and_wrong_keys_are_refused_with_their_line(void **state)
{
    (void)state;
    refused(generic_with("lanes:", ""), NULL, 0, ST_PARSE, "lanes");
    refused(generic_with("lanes:", "lane: [4, assumed, test]\n"), NULL, 0, ST_PARSE, "lane");
    refused(generic_with("lanes:", "lanes: [4, assumed]\n"), NULL, 0, ST_PARSE, "lanes");
    refused(generic_with("lanes:", "lanes: [0, assumed, test]\n"), NULL, 0, ST_RANGE, "lanes");
    refused(generic_with("wake:", "wake: [30, assumed, test]\n"), NULL, 0, ST_PARSE, "wake");
    refused(generic_with("policy:", "policy: most-recent\n"), NULL, 0, ST_PARSE,
            "no cache policy 'most-recent'");
    refused(generic_with("prefetch: ", "prefetch: guess\n"), NULL, 0, ST_PARSE,
            "no prefetcher 'guess'");
    refused(generic_with("overlap:", "overlap: layer\n"), NULL, 0, ST_PARSE, "overlap");
}

static void an_override_passes_the_same_checks_as_the_file(void **state)
{
    (void)state;
    const char *const unknown[] = {"lame=4"}, *const zero[] = {"pieces=0"},
                      *const bare[] = {"lanes"}, *const policy[] = {"policy=lro"};
    refused("generic", unknown, 1, ST_PARSE, "lame");
    refused("generic", zero, 1, ST_RANGE, "pieces");
    refused("generic", bare, 1, ST_USAGE, "PATH=VALUE");
    refused("generic", policy, 1, ST_PARSE, "lro");
}

static void what_contradicts_itself_is_refused(void **state)
{
    (void)state;
    const char *const vram[] = {"cache_home=vram"}, *const rate[] = {"copy=pinned"},
                      *const window[] = {"io=mmap"};
    refused("generic", vram, 1, ST_PARSE, "pinned or pageable");
    refused("generic", rate, 1, ST_PARSE, "copy_rate");
    refused("generic", window, 1, ST_PARSE, "readahead");
}

static void a_load_survives_the_failure_of_any_allocation(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const char *const set[] = {"lanes=7"};
    enum status st = ST_NO_MEMORY;
    for (size_t n = 1; st != ST_OK; n++) {
        struct diag dg = {0};
        struct engine_profile *p = NULL;
        assert_true(n < 10000);
        allocations_fail_at(n);
        st = profile_load(&p, "bigmoeonedge", CATALOGUE, set, 1, &dg);
        allocations_fail_at(0);
        if (st != ST_OK && st != ST_NO_MEMORY)
            fail_msg("allocation %zu: status %d, %s", n, (int)st, dg.text);
        profile_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile_of_the_catalogue_loads_and_says_where_each_value_is_from),
        cmocka_unit_test(profiles_behave_as_their_engines_do),
        cmocka_unit_test(an_override_replaces_a_value_a_choice_and_a_flag),
        cmocka_unit_test(without_threads_the_device_decides),
        cmocka_unit_test(a_misspelt_name_gets_the_nearest_as_a_hint),
        cmocka_unit_test(unknown_missing_and_wrong_keys_are_refused_with_their_line),
        cmocka_unit_test(an_override_passes_the_same_checks_as_the_file),
        cmocka_unit_test(what_contradicts_itself_is_refused),
        cmocka_unit_test(a_load_survives_the_failure_of_any_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
