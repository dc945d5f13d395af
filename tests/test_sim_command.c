/* test_sim_command.c -- what `memwall sim` shares with the other commands and what its options reach: the time
 * of a prompt, units, drives, and edits of the profile. */
#include "tests/cli_expect.h"
#include "tests/scene.h"

#include <malloc.h>

#define PHONE "--device oneplus-15r --quant q4_k_m --cache 4GiB --format csv "
#define SIM   "sim --model qwen3-30b-a3b --tokens 4 --draws 0 " PHONE

/* The cell of the only row under this heading. */
static double number(const char *arguments, const char *column)
{
    struct run r = run_memwall(arguments);
    if (r.exit_code != 0)
        fail_msg("%s: exit %d: %s", arguments, r.exit_code, r.err);
    const char *head = r.out, *row = strchr(r.out, '\n') + 1;
    for (size_t n = strlen(column);
         strncmp(head, column, n) || (head[n] != ',' && head[n] != '\n');) {
        head = strchr(head, ',');
        row = strchr(row, ',');
        if (!head || !row)
            fail_msg("%s: no column %s", arguments, column);
        head++, row++;
    }
    double x = strtod(row, NULL);
    run_free(&r);
    return x;
}

static void a_prompt_takes_what_the_plan_says(void **state)
{
    (void)state;
    static const char *const tokens[] = {"32", "512"};
    for (size_t i = 0; i < 2; i++) {
        char sim[256], plan[256];
        snprintf(sim, sizeof sim, SIM "--profile bigmoeonedge --prompt %s", tokens[i]);
        snprintf(plan, sizeof plan, "plan qwen3-30b-a3b " PHONE "--prompt %s", tokens[i]);
        double simulated = number(sim, "ttft_s");
        assert_close(number(plan, "ttft_s"), simulated, 0.25 * simulated);
    }
}

static void short_options_are_edits_of_the_profile(void **state)
{
    (void)state;
    static const char *const same[][2] = {{"--copies 3", "--set profile.copies=3"},
                                          {"--dense stream", "--set profile.dense=streamed"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char a[256], b[256];
        snprintf(a, sizeof a, SIM "%s", same[i][0]);
        snprintf(b, sizeof b, SIM "%s", same[i][1]);
        assert_true(number(a, "decode_tok_per_s") == number(b, "decode_tok_per_s"));
    }
    assert_true(number(SIM "--copies 16", "decode_tok_per_s") <
                number(SIM "--copies 0", "decode_tok_per_s"));
}

static void experts_may_be_computed_beside_a_unit_of_its_own_memory(void **state)
{
    (void)state;
    struct run r =
        run_memwall("sim --model qwen3-30b-a3b --quant q4_k_m --device rtx-4090-pc --tokens "
                    "2 --prompt 0 --draws 0 --cache 4GiB --unit gpu+cpu --resources-out -");
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, "\ngpu,"));
    assert_non_null(strstr(r.out, "\nexperts,"));
    run_free(&r);
}

static void what_cannot_be_run_is_refused(void **state)
{
    (void)state;
    expect_refusal(SIM "--given-compute 1000000000s", EXIT_MISUSE, "at most a day");
    expect_refusal(SIM "--given-io 0s", EXIT_MISUSE, "above 0");
    expect_refusal(SIM "--set dram.measured_bandwidth=1B/s", EXIT_FAILED, "comes to no end");
    expect_refusal(SIM "--layers-out x.csv --tokens-out x.csv", EXIT_MISUSE, "same file");
}

/* ---- two drives ---- */

static double rate_of_two_drives(struct world *w, enum array_layout layout, uint64_t lanes)
{
    w->setup.drives = layout;
    w->setup.lanes = lanes;
    return world_rate(w);
}

/* One read at a time is faster shared among the drives; with many under way both keep both drives busy. */
static void mirrored_drives_need_reads_under_way_at_once(void **state)
{
    (void)state;
    struct world w = world_open(&(struct scene){.model = "qwen3-30b-a3b",
                                                .quant = "q4_k_m",
                                                .device = "oneplus-15r",
                                                .profile = "generic"});
    struct storage two[2] = {w.device->storage[0], w.device->storage[0]}, *own = w.device->storage;
    world_set_cache(&w, 4 * GB);
    w.setup.overlap = OVERLAP_SERIAL;
    double one = rate_of_two_drives(&w, ARRAY_STRIPED, 8);
    w.device->storage = two;
    w.device->storage_count = 2;
    double striped = rate_of_two_drives(&w, ARRAY_STRIPED, 1),
           mirrored = rate_of_two_drives(&w, ARRAY_MIRRORED, 1);
    double many_striped = rate_of_two_drives(&w, ARRAY_STRIPED, 8),
           many_mirrored = rate_of_two_drives(&w, ARRAY_MIRRORED, 8);
    w.device->storage = own;
    w.device->storage_count = 1;
    world_close(&w);
    assert_true(striped > 1.2 * mirrored);
    assert_true(many_mirrored > 1.2 * one);
    assert_close(many_mirrored, many_striped, 0.15 * many_striped);
}

/* ---- anomalies ---- */

/* With several resources and guesses a faster drive may slow a run: events change their order. That is printed,
 * and stays small. */
static void a_faster_drive_hardly_ever_slows(void **state)
{
    (void)state;
    static const char *const prefetch[] = {"none", "previous-token", "co-activation", "gate"};
    static const char *const policy[] = {"lru", "lfu", "s3fifo"};
    for (size_t p = 0; p < 4; p++)
        for (size_t c = 0; c < 3; c++)
            for (int overlap = 0; overlap < 2; overlap++) {
                double seconds[2];
                for (int fast = 0; fast < 2; fast++) {
                    struct world w = world_open(
                        &(struct scene){.model = "qwen3-30b-a3b",
                                        .quant = "q4_k_m",
                                        .device = "oneplus-15r",
                                        .profile = "generic",
                                        .routing = "qwen3",
                                        .set = {fast ? "device storage.0.lane_bandwidth=2GB/s"
                                                     : "device storage.0.lane_bandwidth=1GB/s",
                                                fast ? "device storage.0.bandwidth=4GB/s"
                                                     : "device storage.0.bandwidth=2GB/s"}});
                    world_set_cache(&w, 4 * GB);
                    w.setup.policy = cache_policy_find(policy[c]);
                    world_set_prefetch(&w, p ? prefetch[p] : NULL, 4);
                    w.setup.overlap = overlap ? OVERLAP_EXPERT : OVERLAP_SERIAL;
                    w.setup.tokens = 8;
                    seconds[fast] = (double)world_run(&w).decode_ns / 1e9;
                    world_close(&w);
                }
                if (seconds[1] > seconds[0])
                    print_message("anomaly: %s, %s, %s: twice the drive takes %.4f s, not %.4f\n",
                                  policy[c], prefetch[p], overlap ? "expert" : "serial", seconds[1],
                                  seconds[0]);
                assert_true(seconds[1] < 1.05 * seconds[0]);
            }
}

/* ---- memory ---- */

static void note_memory(void *self, const struct pipeline_token *t)
{
    size_t *used = self;
    struct mallinfo2 now = mallinfo2();
    used[1] = now.uordblks + now.hblkhd;
    if (t->index == 0)
        used[0] = used[1];
}

/* Neither what the set-up takes nor what a run holds at its end depends on how many tokens it has; the
 * quantiles of more passes than are kept are those of the run. */
static void memory_does_not_grow_with_tokens(void **state)
{
    (void)state;
    static const uint64_t tokens[] = {100, 70000};
    size_t used[2][2];
    struct pipeline_result x[2];
    for (size_t i = 0; i < 2; i++) {
        struct world w = world_open(&(struct scene){
            .model = "tiny", .device = "oneplus-15r", .profile = "generic", .routing = "tiny"});
        w.setup.tokens = tokens[i];
        w.setup.token = note_memory;
        w.setup.token_self = used[i];
        x[i] = world_run(&w);
        world_close(&w);
        assert_int_equal(x[i].tokens, tokens[i]);
    }
    assert_true(used[0][1] <= used[0][0] + 65536);
    assert_true(used[1][1] <= used[1][0] + 65536);
    assert_true(used[1][0] <= used[0][0] + 65536);
    double mean = (double)x[1].decode_ns / (double)x[1].tokens; /* the state grows evenly */
    assert_close((double)x[1].token_ns_p50, mean, 0.05 * mean);
}

/* A predictor of recall 1 is the oracle itself; the less it is right, the more is read and the slower it gets. */
static void a_prefetcher_of_less_recall_reads_more_and_is_slower(void **state)
{
    (void)state;
    static const char *const recall[] = {"", "--prefetch-recall 1", "--prefetch-recall 0.8",
                                         "--prefetch-recall 0.4"};
    double rate[4], bytes[4];
    for (size_t i = 0; i < 4; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "sim --model qwen3-30b-a3b --quant q4_k_m --device m5-pro-64gb --cache 4GiB "
                 "--tokens 16 --draws 0 --prefetch oracle %s --format csv",
                 recall[i]);
        struct run r = run_memwall(line);
        char *cell = strchr(r.out, '\n') + 1;
        for (int c = 0; c < 7; c++)
            cell = strchr(cell, ',') + 1;
        rate[i] = strtod(cell, &cell);
        for (int c = 0; c < 5; c++)
            cell = strchr(cell, ',') + 1;
        bytes[i] = strtod(cell, NULL);
        run_free(&r);
    }
    assert_true(rate[0] == rate[1] && bytes[0] == bytes[1]);
    assert_true(rate[1] > rate[2] && rate[2] > rate[3]);
    assert_true(bytes[1] < bytes[2] && bytes[2] < bytes[3]);
    expect_refusal("sim --model qwen3-30b-a3b --device m5-pro-64gb --prefetch oracle "
                   "--prefetch-recall 0",
                   EXIT_MISUSE, "--prefetch-recall: above 0, not '0'");
    expect_refusal("sim --model qwen3-30b-a3b --device m5-pro-64gb --prefetch gate "
                   "--prefetch-recall 0.5",
                   EXIT_MISUSE, "--prefetch-recall needs --prefetch oracle");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_takes_what_the_plan_says),
        cmocka_unit_test(short_options_are_edits_of_the_profile),
        cmocka_unit_test(experts_may_be_computed_beside_a_unit_of_its_own_memory),
        cmocka_unit_test(what_cannot_be_run_is_refused),
        cmocka_unit_test(mirrored_drives_need_reads_under_way_at_once),
        cmocka_unit_test(a_faster_drive_hardly_ever_slows),
        cmocka_unit_test(memory_does_not_grow_with_tokens),
        cmocka_unit_test(a_prefetcher_of_less_recall_reads_more_and_is_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
