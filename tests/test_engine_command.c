/* test_engine_command.c -- `memwall engine run` on the bundled model: the text it writes, the figures and files it
 * leaves, what replay and simulator make of its trace (tier E1, by the command line), and what it refuses. */
#include "tests/cli_expect.h"

#include <fcntl.h>
#include <unistd.h>

#define MODEL  "models/tiny/tiny-q4_0.gguf"
#define RUN    "engine run " MODEL " --prompt 'In the beginning' "
#define PROMPT 16 /* its bytes, which are its tokens */
#define VOCAB  256

static const char text[] = " of the LORD thy God in the sea of the LORD thy God, and the LOR";
#define TEXT 64

/* ---- reading results ---- */

/* The cell of the first row under this heading. */
static void cell(char out[512], const char *csv, const char *column)
{
    const char *head = csv, *row = strchr(csv, '\n');
    size_t n = strlen(column);
    assert_non_null(row++);
    while (strncmp(head, column, n) != 0 || (head[n] != ',' && head[n] != '\n')) {
        head = strchr(head, ',');
        row = strchr(row, ',');
        if (!head || !row)
            fail_msg("no column %s in: %s", column, csv);
        head++, row++;
    }
    snprintf(out, 512, "%.*s", (int)strcspn(row, ",\n"), row);
}

static uint64_t count(const char *csv, const char *column)
{
    char value[512], *end;
    cell(value, csv, column);
    uint64_t n = strtoull(value, &end, 10);
    if (end == value || *end)
        fail_msg("%s: a count is expected, not '%s'", column, value);
    return n;
}

static struct run good_run(const char *arguments)
{
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s: exit %d: %s", arguments, r.exit_code, r.err);
    return r;
}

static size_t lines(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

/* ---- text ---- */

static void a_prompt_goes_on_with_the_likeliest_text(void **state)
{
    (void)state;
    char want[TEXT + 2];
    assert_int_equal(strlen(text), TEXT);
    snprintf(want, sizeof want, "%s\n", text);
    expect_stdout(RUN "--cache 4MiB", want);
    expect_stdout(RUN, want); /* all experts in memory */
    expect_stdout(RUN "--cache 222kB --policy none --threads 1 --io threads --direct off --depth 1 "
                      "--overlap serial --chunk 5 --isa scalar",
                  want);
    expect_stdout(RUN "--cache 1MB --policy s3fifo --prefetch gate --prefetch-distance 2", want);
    expect_stdout(RUN "--cache 4MiB --generate 0", "");
}

static void the_prompt_may_come_as_ids_or_from_a_file(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX];
    char path[160];
    strcpy(path, temp_path("prompt.txt"));
    write_file(path, "In the beginning");
    fill_path(arguments, "engine run " MODEL " --generate 12 --cache 4MiB --prompt-file @", path);
    expect_stdout(arguments, " of the LORD\n");
    expect_stdout("engine run " MODEL " --generate 12 --cache 4MiB --tokens "
                  "73,110,32,116,104,101,32,98,101,103,105,110,110,105,110,103",
                  " of the LORD\n");
}

static void drawn_text_depends_on_the_seed_alone(void **state)
{
    (void)state;
    static const char *const draws[] = {
        RUN "--cache 4MiB --temperature 0.8 --top-p 0.95 --seed 1",
        RUN "--cache 300kB --threads 1 --temperature 0.8 --top-p 0.95 --seed 1",
        RUN "--cache 4MiB --temperature 0.8 --top-p 0.95 --seed 2",
        RUN "--cache 4MiB --temperature 0.8 --sample-k 1 --seed 3"};
    struct run r[4];
    for (size_t i = 0; i < 4; i++)
        r[i] = good_run(draws[i]);
    assert_string_equal(r[0].out, r[1].out);
    assert_string_not_equal(r[0].out, r[2].out);
    assert_memory_equal(r[3].out, text, TEXT); /* of one token the likeliest is drawn */
    for (size_t i = 0; i < 4; i++)
        run_free(&r[i]);
}

/* ---- figures and files ---- */

static void figures_are_one_row_and_add_up(void **state)
{
    (void)state;
    static const char columns[] =
        "model,policy,prefetch,cache_bytes,prompt_tokens,tokens,decode_tok_per_s,ttft_s,token_s_"
        "p50,"
        "token_s_p99,lookups,hits,misses,hit_ratio,decode_lookups,decode_hits,decode_hit_ratio,"
        "late_hits,prefetches,prefetch_used,prefetch_wasted,evictions,read_bytes,device_bytes,"
        "compute_s_per_token,io_wait_s_per_token,dense_bytes,arena_bytes,state_bytes,peak_rss_"
        "bytes,"
        "command_hash,io,isa,threads,token_ids,prefetch_wasted_bytes\n";
    char ids[512], *id = ids;
    struct run r = good_run(RUN "--cache 4MiB --threads 1 --io threads --format csv");
    assert_memory_equal(r.out, columns, sizeof columns - 1);
    assert_int_equal(lines(r.out), 2);
    assert_int_equal(count(r.out, "cache_bytes"), 4 << 20);
    assert_int_equal(count(r.out, "prompt_tokens"), PROMPT);
    assert_int_equal(count(r.out, "tokens"), TEXT);
    assert_int_equal(count(r.out, "hits") + count(r.out, "misses"), count(r.out, "lookups"));
    /* Each decoded token looks up top 4 in 8 layers; what the last one is followed by is not asked. */
    assert_int_equal(count(r.out, "decode_lookups"), 4 * 8 * (TEXT - 1));
    assert_int_equal(count(r.out, "read_bytes"), count(r.out, "misses") * 55296);
    assert_true(count(r.out, "device_bytes") >= count(r.out, "read_bytes"));
    cell(ids, r.out, "token_ids");
    for (size_t i = 0; i < TEXT; i++)
        assert_int_equal(strtoul(id, &id, 10), text[i]);
    assert_int_equal(*id, 0);
    run_free(&r);
}

static void a_run_without_decoding_has_no_rate(void **state)
{
    (void)state;
    char rate[512];
    struct run r = good_run(RUN "--cache 4MiB --generate 0 --format csv");
    cell(rate, r.out, "decode_tok_per_s");
    assert_string_equal(rate, "");
    assert_int_equal(count(r.out, "tokens"), 0);
    run_free(&r);
    r = good_run(RUN "--cache 4MiB --generate 0");
    assert_null(strstr(r.err, "nan"));
    run_free(&r);
}

static size_t likeliest(const float *logits)
{
    size_t best = 0;
    for (size_t v = 1; v < VOCAB; v++)
        if (logits[v] > logits[best])
            best = v;
    return best;
}

static void logits_are_a_row_for_each_byte_of_the_prompt(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX];
    size_t bytes[2];
    char *whole[2];
    static const char *const runs[] = {RUN "--cache 4MiB --generate 1 --logits-out @",
                                       RUN "--cache 4MiB --generate 0 --chunk 3 --logits-out @"};
    for (size_t i = 0; i < 2; i++) {
        char path[160];
        strcpy(path, temp_path("logits.f32"));
        struct run r = good_run(fill_path(arguments, runs[i], path));
        run_free(&r);
        whole[i] = read_whole(path, &bytes[i]);
        assert_int_equal(bytes[i], PROMPT * VOCAB * sizeof(float));
    }
    assert_memory_equal(whole[0], whole[1], bytes[0]);
    float last[VOCAB];
    memcpy(last, whole[0] + (PROMPT - 1) * sizeof last, sizeof last);
    assert_int_equal(likeliest(last), text[0]);
    free(whole[0]);
    free(whole[1]);
}

static void a_row_is_written_for_each_pass(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX];
    char path[160];
    strcpy(path, temp_path("passes.csv"));
    struct run r = good_run(
        fill_path(arguments, RUN "--cache 4MiB --chunk 8 --generate 5 --tokens-out @", path));
    run_free(&r);
    char *rows = read_whole(path, NULL);
    assert_int_equal(lines(rows), 1 + PROMPT / 8 + 4);
    assert_int_equal(count(rows, "tokens"), 8);
    free(rows);
}

static size_t times(const char *all, const char *word)
{
    size_t n = 0;
    for (const char *at = strstr(all, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

static void a_timeline_has_every_operation_and_every_read(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX], path[160];
    strcpy(path, temp_path("timeline.json"));
    struct run r = good_run(fill_path(
        arguments,
        RUN "--cache 1MB --chunk 2 --generate 5 --prefetch gate --format csv --timeline @", path));
    char *spans = read_whole(path, NULL);
    size_t passes = PROMPT / 2 + 4;
    assert_int_equal(times(spans, "\"name\":\"fixed\""), 2 * 8 * passes); /* attention, router */
    assert_int_equal(times(spans, "\"name\":\"head\""), 5);
    assert_true(times(spans, "\"name\":\"expert\"") >= 8 * passes);
    assert_int_equal(times(spans, "\"name\":\"read\""), count(r.out, "misses"));
    size_t prefetched = times(spans, "\"name\":\"prefetch\"");
    assert_true(prefetched > 0 && prefetched <= count(r.out, "prefetches"));
    free(spans);
    run_free(&r);
}

/* What was read ahead and evicted unused, of experts of one size; the rows of the passes add up to it. */
static void wasted_reads_are_told_in_bytes(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX], path[160];
    uint64_t sum = 0;
    strcpy(path, temp_path("wasted.csv"));
    struct run r = good_run(fill_path(
        arguments, RUN "--cache 1MB --generate 9 --prefetch gate --format csv --tokens-out @",
        path));
    uint64_t wasted = count(r.out, "prefetch_wasted_bytes");
    assert_true(wasted > 0);
    assert_int_equal(wasted, count(r.out, "prefetch_wasted") * 55296);
    char *rows = read_whole(path, NULL);
    for (char *row = strchr(rows, '\n') + 1; *row; row = strchr(row, '\n') + 1) {
        char *end = strchr(row, '\n'), *last = end;
        while (last[-1] != ',')
            last--;
        sum += strtoull(last, NULL, 10);
    }
    assert_int_equal(sum, wasted);
    free(rows);
    run_free(&r);
}

/* ---- a terminal ---- */

/* What a command, its standard error a terminal, writes there. */
static void on_terminal(const char *arguments, char *written, size_t size)
{
    char command[ARGUMENTS_MAX + 200];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int held =
        open(ptsname(master), O_RDWR | O_NOCTTY); /* or what was written goes with its writer */
    assert_true(held >= 0);
    snprintf(command, sizeof command, "$MEMWALL %s 2>%s", arguments, ptsname(master));
    struct run r = run_shell(command);
    assert_int_equal(r.exit_code, 0);
    assert_null(strchr(r.out, '\r')); /* results are not mixed with it */
    run_free(&r);
    assert_int_equal(fcntl(master, F_SETFL, O_NONBLOCK), 0);
    ssize_t n = read(master, written, size - 1);
    written[n > 0 ? n : 0] = 0;
    close(held);
    close(master);
}

static void a_terminal_sees_how_far_prompt_and_text_have_come(void **state)
{
    (void)state;
    char written[4000];
    on_terminal(RUN "--cache 1MB --chunk 1 --generate 12 --limit-rate 40MB/s --format csv", written,
                sizeof written);
    if (!strstr(written, "prompt ") || !strstr(written, "tokens ") || !strstr(written, " s left"))
        fail_msg("no progress: '%s'", written);
    struct run r = good_run(RUN "--cache 1MB --chunk 1 --generate 12 --limit-rate 40MB/s");
    assert_null(strstr(r.err, " s left"));
    run_free(&r);
}

/* ---- tier E1 by the command line ---- */

static void replay_and_simulator_decide_as_the_run_did(void **state)
{
    (void)state;
    static const char *const choices[] = {
        "--policy lru --cache 1MB",
        "--policy s3fifo --cache 2MB --prefetch gate --prefetch-distance 2",
        "--policy sieve --cache 4MB --prefetch previous-token --scope layer",
        "--policy lfu-aged --cache 1500kB --prefetch co-activation --prefetch-experts 2",
        "--policy least-stale --cache 2MiB --evict after",
        "--policy random --cache 4MiB --prefetch frequency --seed 5",
        "--policy arc --cache 1MiB --prefetch gate --prefetch-experts 1 --prefetch-budget 60kB",
    };
    static const char *const same[] = {
        "lookups",         "hits",      "prefetches", "prefetch_used",
        "prefetch_wasted", "evictions", "read_bytes"};
    char path[160];
    strcpy(path, temp_path("run.trace.csv")); /* runs use temp_path() too */
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        char arguments[ARGUMENTS_MAX], hash[3][512];
        snprintf(arguments, sizeof arguments, RUN "--generate 12 --format csv --trace-out %s %s",
                 path, choices[i]);
        struct run engine = good_run(arguments);
        snprintf(arguments, sizeof arguments, "replay --format csv --trace %s %s", path,
                 choices[i]);
        struct run replay = good_run(arguments);
        snprintf(arguments, sizeof arguments,
                 "sim --model tiny --device oneplus-15r --profile memwall --tokens 11 --draws 0 "
                 "--format csv --trace %s %s",
                 path, choices[i]);
        struct run sim = good_run(arguments);
        cell(hash[0], engine.out, "command_hash");
        cell(hash[1], replay.out, "command_hash");
        cell(hash[2], sim.out, "command_hash");
        if (strcmp(hash[0], hash[1]) != 0 || strcmp(hash[0], hash[2]) != 0)
            fail_msg("%s: engine %s, replay %s, sim %s", choices[i], hash[0], hash[1], hash[2]);
        for (size_t c = 0; c < sizeof same / sizeof *same; c++)
            assert_int_equal(count(engine.out, same[c]), count(replay.out, same[c]));
        run_free(&engine);
        run_free(&replay);
        run_free(&sim);
    }
}

static void a_forced_trace_is_followed(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX], first[512], again[512];
    char path[160];
    strcpy(path, temp_path("forced.trace.csv"));
    struct run r = good_run(
        fill_path(arguments, RUN "--generate 9 --cache 1MB --format csv --trace-out @", path));
    cell(first, r.out, "command_hash");
    run_free(&r);
    r = good_run(
        fill_path(arguments, "engine run " MODEL " --cache 1MB --format csv --route @", path));
    cell(again, r.out, "command_hash");
    assert_string_equal(first, again);
    run_free(&r);
}

/* ---- refusals ---- */

/* Tokens enough for a minute: it ends with its first reader. */
static void a_run_that_nobody_reads_stops(void **state)
{
    (void)state;
    expect_shell_refusal("bash -c 'timeout 20 $MEMWALL engine run " MODEL
                         " --prompt hi --ignore-eos "
                         "--generate 200 --limit-rate 5MB/s --cache 2MiB | head -c 1 >/dev/null; "
                         "exit ${PIPESTATUS[0]}'",
                         EXIT_FAILED, "standard output: cannot be written: Broken pipe");
}

static void the_text_ends_its_line_before_anything_is_said(void **state)
{
    (void)state;
    struct run r = run_shell("$MEMWALL " RUN "--generate 8 --cache 4MiB 2>&1");
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, "\nmemwall: prompt 16 tokens"));
    run_free(&r);
}

static void a_context_beyond_the_models_is_told_in_one_line(void **state)
{
    (void)state;
    struct run r = good_run(RUN "--generate 2 --cache 4MiB --context 257");
    assert_non_null(
        strstr(r.err, "memwall: a context of 257 tokens is beyond the 256 of the model"));
    run_free(&r);
    r = good_run(RUN "--generate 2 --cache 4MiB --context 256");
    assert_null(strstr(r.err, "beyond"));
    run_free(&r);
}

static void what_cannot_be_run_is_refused(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"", EXIT_MISUSE, "one of --prompt, --prompt-file, --tokens or --route"},
        {"--prompt a --tokens 1", EXIT_MISUSE, "one of --prompt, --prompt-file, --tokens"},
        {"--prompt a --cache 4MiB --memory 1GB", EXIT_MISUSE, "--cache and --memory exclude"},
        {"--prompt a --policy lruu", EXIT_MISUSE, "unknown policy 'lruu' (did you mean lru?)"},
        {"--prompt a --policy belady", EXIT_MISUSE, "which only a run with --route has"},
        {"--prompt a --policy lru,lfu", EXIT_MISUSE, "one policy a run"},
        {"--prompt a --cache 100kB", EXIT_FAILED, "one batch needs 221 kB (221184 bytes)"},
        {"--prompt a --cache 221183B", EXIT_FAILED, "(221184 bytes)"},
        {"--prompt a --memory 20MB", EXIT_FAILED, "memory of 20 MB is too small"},
        {"--tokens 1,256 --cache 4MiB", EXIT_FAILED, "token 256: the model's vocabulary has 256"},
        {"--tokens 1,a", EXIT_MISUSE, "token ids separated by commas, not 'a'"},
        {"--prompt a --adapter ''", EXIT_MISUSE, "--adapter"},
        {"--prompt a --adapter a,,b", EXIT_MISUSE, "--adapter: a name in the list is empty"},
        {"--prompt abcdefgh --cache 4MiB --generate 0 --logits-out /dev/full", EXIT_FAILED,
         "/dev/full: cannot be written: No space left on device"},
        {"--prompt a --temperature warm", EXIT_MISUSE, "--temperature: a number"},
        {"--prompt a --isa mmx --cache 4MiB", EXIT_FAILED, "mmx"},
        {"--prompt abcd --context 3 --cache 4MiB", EXIT_FAILED, "the context of 3 tokens is full"},
        {"--prompt a --cache 4MiB --logits-out /nowhere/x", EXIT_FAILED, "/nowhere/x"},
        {"--prompt a --cache 4MiB --prefetch gate --prefetch-distance 8", EXIT_FAILED,
         "--prefetch-distance: 8 layers ahead are none of the model's 8"},
        {"--prompt a --cache 4MiB --prefetch gate --prefetch-budget 1B", EXIT_FAILED,
         "--prefetch-budget: 1 bytes hold no expert"},
        {"--prompt-file /nowhere/x", EXIT_FAILED, "/nowhere/x"},
        {"--prompt a --route /nowhere/x --cache 4MiB", EXIT_FAILED, "/nowhere/x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[ARGUMENTS_MAX];
        snprintf(arguments, sizeof arguments, "engine run " MODEL " %s", cases[i].arguments);
        expect_refusal(arguments, cases[i].exit_code, cases[i].reason);
    }
    expect_refusal("engine run README.md --prompt a", EXIT_FAILED, "README.md");
}

/* ---- the catalogue ---- */

/* The lines of `model show` that tell the shape. */
static void shape_of(char out[1024], const char *model)
{
    static const char *const heads[] = {"\n  8 layers", "\n  attention ", "\n  feed-forward ",
                                        "\n  parameters "};
    char arguments[128];
    snprintf(arguments, sizeof arguments, "model show %s", model);
    struct run r = good_run(arguments);
    *out = 0;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *line = strstr(r.out, heads[i]);
        assert_non_null(line);
        size_t length = strlen(out);
        snprintf(out + length, 1024 - length, "%.*s", (int)strcspn(line + 1, "\n") + 1, line);
    }
    run_free(&r);
}

static void the_catalogue_describes_the_bundled_file(void **state)
{
    (void)state;
    char described[1024], stored[1024];
    shape_of(described, "tiny");
    shape_of(stored, MODEL);
    assert_string_equal(described, stored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_goes_on_with_the_likeliest_text),
        cmocka_unit_test(the_prompt_may_come_as_ids_or_from_a_file),
        cmocka_unit_test(drawn_text_depends_on_the_seed_alone),
        cmocka_unit_test(figures_are_one_row_and_add_up),
        cmocka_unit_test(a_run_without_decoding_has_no_rate),
        cmocka_unit_test(logits_are_a_row_for_each_byte_of_the_prompt),
        cmocka_unit_test(a_row_is_written_for_each_pass),
        cmocka_unit_test(a_timeline_has_every_operation_and_every_read),
        cmocka_unit_test(wasted_reads_are_told_in_bytes),
        cmocka_unit_test(a_terminal_sees_how_far_prompt_and_text_have_come),
        cmocka_unit_test(replay_and_simulator_decide_as_the_run_did),
        cmocka_unit_test(a_forced_trace_is_followed),
        cmocka_unit_test(a_run_that_nobody_reads_stops),
        cmocka_unit_test(the_text_ends_its_line_before_anything_is_said),
        cmocka_unit_test(a_context_beyond_the_models_is_told_in_one_line),
        cmocka_unit_test(what_cannot_be_run_is_refused),
        cmocka_unit_test(the_catalogue_describes_the_bundled_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
