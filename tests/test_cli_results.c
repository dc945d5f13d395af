/* test_cli_results.c -- the exact bytes that commands print for a case small enough to work out by hand, and
 * the columns and keys that other tools rely on. */
#include "tests/cli_expect.h"

#include "base/hash.h"
#include "base/json.h"
#include "sim/policy/decide.h"

#include <inttypes.h>

/* `pattern` has '@' where the path goes. */
static struct run run_on(const char *pattern, const char *path)
{
    char arguments[ARGUMENTS_MAX];
    fill_path(arguments, pattern, path);
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s: exit %d: %s", arguments, r.exit_code, r.err);
    return r;
}

static void expect_on(const char *pattern, const char *path, const char *text)
{
    struct run r = run_on(pattern, path);
    assert_string_equal(r.out, text);
    run_free(&r);
}

/* ---- replay ---- */

/* Of 13 lookups 5 are the first of their layer's pass 0; six slots of 100 bytes evict A1 and B3 while
 * decoding, which never come again; four slots evict what comes again. */
static void replay_prints_a_table_for_people(void **state)
{
    (void)state;
    expect_on(
        "replay --trace @ --policy lru,belady --cache 400,600", small_trace_path(),
        "policy  scope   cache_bytes  lookups  hits  hit_ratio  decode_hit_ratio  read_bytes\n"
        "lru     global          400       13     4     0.3077            0.5000         900\n"
        "belady  global          400       13     5     0.3846            0.6250         800\n"
        "lru     global          600       13     5     0.3846            0.6250         800\n"
        "belady  global          600       13     5     0.3846            0.6250         800\n");
}

static void replay_prints_csv_with_the_agreed_columns_first(void **state)
{
    (void)state;
    struct run r =
        run_on("replay --trace @ --policy lru --cache 600 --format csv", small_trace_path());
    static const char header[] =
        "policy,scope,cache_bytes,lookups,hits,hit_ratio,decode_lookups,decode_hits,"
        "decode_hit_ratio,read_bytes,decode_read_bytes,";
    static const char row[] = "lru,global,600,13,5,0.384615385,8,5,0.625000000,800,300,";
    assert_memory_equal(r.out, header, sizeof header - 1);
    assert_memory_equal(strchr(r.out, '\n') + 1, row, sizeof row - 1);
    run_free(&r);
    expect_on("replay --trace @ --policy none,lru --cache 300 --scope global --format csv",
              small_trace_path(),
              "policy,scope,cache_bytes,lookups,hits,hit_ratio,decode_lookups,decode_hits,"
              "decode_hit_ratio,read_bytes,decode_read_bytes,evict,prefetch,prefetches,"
              "prefetch_used,prefetch_wasted,pollution,evictions,peak_bytes,command_hash\n"
              "none,global,300,13,0,0.000000000,8,0,0.000000000,1300,800,before,none,0,0,0,0,13,"
              "300,88f19e389c8a9e33\n"
              "lru,global,300,13,4,0.307692308,8,4,0.500000000,900,400,before,none,0,0,0,0,6,"
              "300,a9033cc3b3a08566\n");
}

static void replay_prints_json_with_the_same_values(void **state)
{
    (void)state;
    expect_on(
        "replay --trace @ --policy lru --cache 600 --format json", small_trace_path(),
        "[{\"policy\": \"lru\", \"scope\": \"global\", \"cache_bytes\": 600, \"lookups\": 13, "
        "\"hits\": 5, \"hit_ratio\": 0.384615385, \"decode_lookups\": 8, \"decode_hits\": 5, "
        "\"decode_hit_ratio\": 0.625000000, \"read_bytes\": 800, \"decode_read_bytes\": 300, "
        "\"evict\": \"before\", \"prefetch\": \"none\", \"prefetches\": 0, "
        "\"prefetch_used\": 0, \"prefetch_wasted\": 0, \"pollution\": 0, \"evictions\": 2, "
        "\"peak_bytes\": 600, \"command_hash\": \"53fd7070b91475d8\"}]\n");
}

/* docs/formats.md, "Decision commands": with room for all eight, each miss is a load into the next slot. */
static void the_command_hash_is_the_documented_one(void **state)
{
    (void)state;
    static const uint32_t missed[] = {0, 1, 2, 4, 7, 5, 3, 6}; /* layer * 4 + expert */
    uint64_t hash = HASH_SEED;
    char wanted[64];
    for (uint32_t slot = 0; slot < 8; slot++) {
        hash = hash_mix(hash ^ ((uint64_t)slot << 32 | missed[slot]));
        hash = hash_mix(hash ^ ((uint64_t)COMMAND_DEMAND << 32 | NO_KEY));
    }
    snprintf(wanted, sizeof wanted, ",0,800,%016" PRIx64 "\n", hash);
    struct run r =
        run_on("replay --trace @ --policy lru --cache 800 --format csv", small_trace_path());
    assert_non_null(strstr(r.out, wanted));
    run_free(&r);
}

static void a_policy_list_all_is_one_row_a_policy_in_the_order_of_the_help(void **state)
{
    (void)state;
    static const char *const names[] = {"none", "pinned",      "fifo",   "lru",   "clock",
                                        "lfu",  "lfu-aged",    "slru",   "sieve", "s3fifo",
                                        "arc",  "least-stale", "random", "belady"};
    struct run r =
        run_on("replay --trace @ --policy all --cache 600 --format csv", small_trace_path());
    const char *line = strchr(r.out, '\n') + 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++, line = strchr(line, '\n') + 1) {
        assert_memory_equal(line, names[i], strlen(names[i]));
        assert_int_equal(line[strlen(names[i])], ',');
    }
    assert_string_equal(line, "");
    run_free(&r);
}

static void a_prediction_of_the_trace_turns_a_miss_into_a_hit(void **state)
{
    (void)state;
    struct run r = run_on("replay --trace @ --policy lru --cache 600 --prefetch gate "
                          "--prefetch-experts 1 --format csv",
                          small_trace_path());
    /* The only prediction names expert 1 of layer 1 in pass 1, which is a miss without it. */
    assert_non_null(strstr(r.out, "lru,global,600,13,6,0.461538462,8,6,0.750000000,800,300,before,"
                                  "gate,1,1,0,"));
    run_free(&r);
}

static void a_size_may_be_written_with_units_or_as_bytes(void **state)
{
    (void)state;
    struct run a = run_on("replay --trace @ --cache 1KiB,2kB", small_trace_path());
    struct run b = run_on("replay --trace @ --cache 1024,2000", small_trace_path());
    struct run c = run_on("replay --trace=@ --cache='1 KiB,2 kB' --seed 7", small_trace_path());
    assert_string_equal(a.out, b.out);
    assert_string_equal(a.out, c.out);
    run_free(&a);
    run_free(&b);
    run_free(&c);
}

/* ---- trace ---- */

static void converting_a_trace_to_its_own_format_changes_no_byte(void **state)
{
    (void)state;
    expect_on("trace convert @", small_trace_path(), small_trace);
    char *text = read_whole(large_trace_path(), NULL);
    expect_on("trace convert @ --to memwall --out -", large_trace_path(), text);
    free(text);
}

static void converting_can_give_every_expert_another_size(void **state)
{
    (void)state;
    struct run r = run_on("trace convert @ --expert-bytes 1MiB", small_trace_path());
    assert_non_null(strstr(r.out, "# layer=1 expert_bytes=1048576 dense_bytes=10\n"));
    run_free(&r);
}

/* Clock, object, size and the next request of the object, packed, little-endian; -1 is never. */
static void check_request(const unsigned char *r, uint64_t clock, uint64_t object, int64_t next)
{
    unsigned char wanted[24] = {0};
    for (int i = 0; i < 8; i++) {
        wanted[i & 3] = (unsigned char)(clock >> (8 * (i & 3)));
        wanted[4 + i] = (unsigned char)(object >> (8 * i));
        wanted[16 + i] = (unsigned char)((uint64_t)next >> (8 * i));
    }
    wanted[12] = 100;
    assert_memory_equal(r, wanted, sizeof wanted);
}

static void oracle_general_is_one_record_a_lookup_with_its_next_use(void **state)
{
    (void)state;
    struct run r = run_on("trace convert @ --to oracle-general", small_trace_path());
    assert_int_equal(r.out_bytes, 13 * 24);
    const unsigned char *out = (const unsigned char *)r.out;
    check_request(out, 0, 0, 6);          /* expert 0 of layer 0 comes again as the sixth request */
    check_request(out + 24, 0, 1, -1);    /* expert 1 of layer 0 never again */
    check_request(out + 3 * 24, 0, 4, 8); /* expert 0 of layer 1 */
    check_request(out + 12 * 24, 2, 6, -1); /* the last one */
    run_free(&r);
}

static void the_miss_ratio_curve_is_exact_at_every_size(void **state)
{
    (void)state;
    expect_on("trace mrc @ --points 0 --format csv", small_trace_path(),
              "policy,scope,slots,cache_bytes,lookups,hits,hit_ratio,decode_lookups,decode_hits,"
              "decode_hit_ratio,exact\n"
              "lru,global,1,100,13,0,0.000000000,8,0,0.000000000,yes\n"
              "belady,global,1,100,13,0,0.000000000,8,0,0.000000000,yes\n"
              "lru,global,2,200,13,0,0.000000000,8,0,0.000000000,yes\n"
              "belady,global,2,200,13,0,0.000000000,8,0,0.000000000,yes\n"
              "lru,global,3,300,13,4,0.307692308,8,4,0.500000000,yes\n"
              "belady,global,3,300,13,4,0.307692308,8,4,0.500000000,yes\n"
              "lru,global,4,400,13,4,0.307692308,8,4,0.500000000,yes\n"
              "belady,global,4,400,13,5,0.384615385,8,5,0.625000000,yes\n"
              "lru,global,5,500,13,5,0.384615385,8,5,0.625000000,yes\n"
              "belady,global,5,500,13,5,0.384615385,8,5,0.625000000,yes\n"
              "lru,global,6,600,13,5,0.384615385,8,5,0.625000000,yes\n"
              "belady,global,6,600,13,5,0.384615385,8,5,0.625000000,yes\n"
              "lru,global,7,700,13,5,0.384615385,8,5,0.625000000,yes\n"
              "belady,global,7,700,13,5,0.384615385,8,5,0.625000000,yes\n"
              "lru,global,8,800,13,5,0.384615385,8,5,0.625000000,yes\n"
              "belady,global,8,800,13,5,0.384615385,8,5,0.625000000,yes\n");
}

static void
the_printed_sizes_of_a_curve_rise_to_the_last_and_are_about_as_many_as_wanted(void **state)
{
    (void)state;
    struct run r = run_on("trace mrc @ --points 12 --no-belady --format csv", large_trace_path());
    unsigned long last = 0, count = 0;
    for (const char *line = strchr(r.out, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        unsigned long slots;
        assert_int_equal(sscanf(line, "lru,global,%lu,", &slots), 1);
        assert_true(slots > last);
        last = slots;
        count++;
    }
    assert_int_equal(last, 8 * 32);
    assert_true(count >= 6 && count <= 24);
    run_free(&r);
}

static void trace_info_counts_what_the_file_holds(void **state)
{
    (void)state;
    struct run r = run_on("trace info @", small_trace_path());
    static const char head[] =
        "small: 2 layers (2 routed) x 4 experts, top 2\n"
        "1 turns, 3 passes, 2 prefill and 2 decode tokens, 16 routing rows, 1 predictions\n";
    assert_memory_equal(r.out, head, sizeof head - 1);
    /* Layer 0 decodes {0,2} then {2,3}: one of two again; layer 1 {0,1} then {1,2} as well. */
    assert_non_null(strstr(r.out, "\noverlap_lag1     0.5000   0.5000   0.5000\n"));
    run_free(&r);
}

static void generating_gives_the_same_bytes_for_a_seed_and_others_for_another(void **state)
{
    (void)state;
    struct run a = run_memwall("trace generate --preset tiny --tokens 20 --out - --seed 3");
    struct run b = run_memwall("trace generate --preset tiny --tokens 20 --out - --seed 3");
    struct run c = run_memwall("trace generate --preset tiny --tokens 20 --out - --seed 4");
    assert_int_equal(a.exit_code + b.exit_code + c.exit_code, 0);
    assert_string_equal(a.out, b.out);
    assert_string_not_equal(a.out, c.out);
    run_free(&a);
    run_free(&b);
    run_free(&c);
}

/* ---- model, device ---- */

static struct json_doc *json_of(const char *arguments)
{
    struct diag dg;
    struct json_doc *doc;
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s: exit %d: %s", arguments, r.exit_code, r.err);
    const char *path = temp_path("shown.json");
    write_file(path, r.out);
    run_free(&r);
    assert_ok(json_open(&doc, path, &dg));
    return doc;
}

static uint64_t number(const struct json_doc *doc, const char *key)
{
    uint64_t n;
    if (!json_u64(json_get(json_root(doc), key), &n))
        fail_msg("%s: a whole number expected", key);
    return n;
}

static void model_show_has_the_keys_that_other_tools_rely_on(void **state)
{
    (void)state;
    struct json_doc *doc = json_of("model show qwen3-30b-a3b --format json");
    assert_string_equal(json_text(json_get(json_root(doc), "name")), "qwen3-30b-a3b");
    assert_int_equal(number(doc, "layers"), 48);
    assert_int_equal(number(doc, "moe_layers"), 48);
    assert_int_equal(number(doc, "experts"), 128);
    assert_int_equal(number(doc, "top_k"), 8);
    assert_int_equal(number(doc, "expert_params"), 3 * 2048 * 768);
    assert_int_equal(number(doc, "expert_bytes"), 3 * 2048 * 768 * 2); /* bf16 */
    assert_int_equal(number(doc, "params_total"), UINT64_C(30532122624));
    assert_int_equal(number(doc, "weight_bytes"), UINT64_C(30532122624) * 2);
    /* Less 120 of 128 experts in 48 layers and the untied input embedding. */
    assert_int_equal(number(doc, "params_active"), UINT64_C(30532122624) -
                                                       UINT64_C(48) * 120 * 3 * 2048 * 768 -
                                                       UINT64_C(151936) * 2048);
    assert_int_equal(number(doc, "kv_bytes_per_token"), 48 * 2 * 4 * 128 * 2);
    assert_int_equal(number(doc, "state_bytes_fixed"), 0);
    json_close(doc);
}

static void set_changes_what_model_show_counts(void **state)
{
    (void)state;
    struct json_doc *doc = json_of("model show qwen3-30b-a3b --format json --set ffn.0.top_k=4 "
                                   "--set attention.0.kv_heads=8");
    assert_int_equal(number(doc, "top_k"), 4);
    assert_int_equal(number(doc, "kv_bytes_per_token"), 48 * 2 * 8 * 128 * 2);
    json_close(doc);
}

static const json_node *row_of(const struct json_doc *doc, const char *path)
{
    for (size_t i = 0; i < json_count(json_root(doc)); i++) {
        const json_node *row = json_at(json_root(doc), i);
        if (strcmp(json_text(json_get(row, "path")), path) == 0)
            return row;
    }
    fail_msg("no row %s", path);
    return NULL;
}

static void device_show_gives_each_value_with_kind_and_source(void **state)
{
    (void)state;
    uint64_t amount;
    struct json_doc *doc = json_of("device show oneplus-15r --format json "
                                   "--set storage.0.bandwidth=15GB/s");
    const json_node *depth = row_of(doc, "storage.0.queue_depth");
    assert_true(json_u64(json_get(depth, "amount"), &amount) && amount == 32);
    assert_string_equal(json_text(json_get(depth, "kind")), "datasheet");
    assert_true(strlen(json_text(json_get(depth, "source"))) > 0);
    const json_node *rate = row_of(doc, "storage.0.bandwidth");
    assert_true(json_u64(json_get(rate, "amount"), &amount) && amount == UINT64_C(15000000000));
    assert_string_equal(json_text(json_get(rate, "value")), "15 GB/s");
    assert_string_equal(json_text(json_get(rate, "kind")), "assumed");
    assert_string_equal(json_text(json_get(rate, "source")), "--set");
    json_close(doc);
}

static void check_list(const char *arguments, size_t least, const char *name)
{
    struct json_doc *doc = json_of(arguments);
    bool found = false;
    assert_true(json_count(json_root(doc)) >= least);
    for (size_t i = 0; i < json_count(json_root(doc)); i++)
        found |= strcmp(json_text(json_get(json_at(json_root(doc), i), "name")), name) == 0;
    assert_true(found);
    json_close(doc);
}

static void the_catalogue_lists_35_models_and_30_devices_at_least(void **state)
{
    (void)state;
    check_list("model list --format json", 35, "qwen3.5-397b-a17b");
    check_list("device list --format json", 30, "mac-mini-m4-pro-24gb");
    check_list("device list --class phone --format json", 3, "iphone-17-pro");
}

static void an_imported_model_shows_as_its_own_file(void **state)
{
    (void)state;
    char path[160];
    strcpy(path, temp_path("imported.yaml"));
    expect_on("model import tests/data/tiny/config.json --out @", path, "");
    struct run shown = run_on("model show @ --format csv", path);
    assert_non_null(strstr(shown.out, "\nimported,"));
    run_free(&shown);
}

/* ---- plan, roofline ---- */

static void plan_says_on_one_screen_what_binds_and_what_would_help(void **state)
{
    (void)state;
    static const char *const labels[] = {"fits",       "where",     "decode",
                                         "bound by",   "per token", "cache size",
                                         "would help", "measured",  "assumed"};
    struct run r =
        run_memwall("plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB");
    assert_int_equal(r.exit_code, 0);
    size_t lines = 0;
    for (const char *c = r.out; *c; c++)
        lines += *c == '\n';
    assert_true(lines <= 24);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char start[32];
        snprintf(start, sizeof start, "\n  %s ", labels[i]);
        if (!strstr(r.out, start))
            fail_msg("no line '%s' in\n%s", labels[i], r.out);
    }
    run_free(&r);
}

static double real(const struct json_doc *doc, const char *key)
{
    double x;
    if (!json_double(json_get(json_root(doc), key), &x))
        fail_msg("%s: a number expected", key);
    return x;
}

static void a_plan_in_json_has_its_rate_within_its_interval(void **state)
{
    (void)state;
    struct json_doc *doc =
        json_of("plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB --format json");
    double rate = real(doc, "decode_tok_per_s");
    assert_true(real(doc, "decode_tok_per_s_low") <= rate);
    assert_true(rate <= real(doc, "decode_tok_per_s_high"));
    assert_true(real(doc, "hit_ratio") > 0 && real(doc, "hit_ratio") < 1);
    assert_true(strlen(json_text(json_get(json_root(doc), "assumed"))) > 0);
    json_close(doc);
}

static void a_faster_drive_never_slows_a_plan(void **state)
{
    (void)state;
    double last = 0;
    for (int rate = 1; rate <= 16; rate *= 2) {
        char arguments[240];
        snprintf(arguments, sizeof arguments,
                 "plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB --format json "
                 "--set storage.0.bandwidth=%dGB/s --set storage.0.lane_bandwidth=%dGB/s",
                 rate, rate);
        struct json_doc *doc = json_of(arguments);
        assert_true(real(doc, "decode_tok_per_s") >= last);
        last = real(doc, "decode_tok_per_s");
        json_close(doc);
    }
}

static void the_configuration_of_a_run_has_every_choice_it_was_made_of(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "\"hit_ratio\": 0.250000000",  "\"tokens\": 3",        "\"lanes\": 7",
        "\"cache_bytes\": 1073741824", "\"io\": \"buffered\"", "\"loader_shares_cores\": \"true\"",
        "\"readahead\": [\"4 MiB\""};
    struct run r = run_on("sim --model qwen3-30b-a3b --quant q4_k_m --device oneplus-15r --profile "
                          "bigmoeonedge --routing fixed:0.25 --cache 1GiB --tokens 3 --prompt 0 "
                          "--draws 0 --lanes 7 --set profile.io=buffered --set "
                          "profile.readahead=4MiB --config-out @",
                          temp_path("config.json"));
    run_free(&r);
    size_t bytes;
    char *text = read_whole(temp_path("config.json"), &bytes);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("%s is not in %s", parts[i], text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_prints_a_table_for_people),
        cmocka_unit_test(replay_prints_csv_with_the_agreed_columns_first),
        cmocka_unit_test(replay_prints_json_with_the_same_values),
        cmocka_unit_test(the_command_hash_is_the_documented_one),
        cmocka_unit_test(a_policy_list_all_is_one_row_a_policy_in_the_order_of_the_help),
        cmocka_unit_test(a_prediction_of_the_trace_turns_a_miss_into_a_hit),
        cmocka_unit_test(a_size_may_be_written_with_units_or_as_bytes),
        cmocka_unit_test(converting_a_trace_to_its_own_format_changes_no_byte),
        cmocka_unit_test(converting_can_give_every_expert_another_size),
        cmocka_unit_test(oracle_general_is_one_record_a_lookup_with_its_next_use),
        cmocka_unit_test(the_miss_ratio_curve_is_exact_at_every_size),
        cmocka_unit_test(
            the_printed_sizes_of_a_curve_rise_to_the_last_and_are_about_as_many_as_wanted),
        cmocka_unit_test(trace_info_counts_what_the_file_holds),
        cmocka_unit_test(generating_gives_the_same_bytes_for_a_seed_and_others_for_another),
        cmocka_unit_test(model_show_has_the_keys_that_other_tools_rely_on),
        cmocka_unit_test(set_changes_what_model_show_counts),
        cmocka_unit_test(device_show_gives_each_value_with_kind_and_source),
        cmocka_unit_test(the_catalogue_lists_35_models_and_30_devices_at_least),
        cmocka_unit_test(an_imported_model_shows_as_its_own_file),
        cmocka_unit_test(plan_says_on_one_screen_what_binds_and_what_would_help),
        cmocka_unit_test(a_plan_in_json_has_its_rate_within_its_interval),
        cmocka_unit_test(a_faster_drive_never_slows_a_plan),
        cmocka_unit_test(the_configuration_of_a_run_has_every_choice_it_was_made_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
