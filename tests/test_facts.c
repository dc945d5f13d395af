/* test_facts.c -- what is publicly known of running models from flash, F1, F2 and F5 to F8: the token cycle,
 * caches that starve, lanes, crossover, speculation, heat. F3 and F4 are test_facts_prefetch.c, the others
 * test_facts_memory.c.
 *
 * Each fact is one or more sentences that are true of runs with the program's own models, machines, engine profiles
 * and routing. A test names the public figure that it answers and asks for its sign, or for its size as
 * far as the published inputs allow. Sources stand in the descriptions and profiles, and beside the rows of
 * validate/data/published.csv. */
#include "tests/scene.h"

#include "base/csv.h"
#include "sim/trace/trace_stats.h"

/* ---- F1: global LRU visits layers in a cycle ---- */

static uint64_t cycle_bytes(const struct trace *t)
{
    uint64_t bytes = 0;
    for (uint32_t l = 0; l < t->layers; l++)
        bytes += t->top_k * t->layer[l].expert_bytes;
    return bytes;
}

static double lag_1_overlap(const struct trace *t)
{
    struct diag dg;
    struct trace_stats *s;
    assert_ok(trace_stats_new(&s, t, &dg));
    double overlap = part_ratio(s->overall.overlap[0]);
    trace_stats_free(s);
    return overlap;
}

/* Nothing up to T - K*b, part of it within one layer's share of T, and from T on what two tokens share. */
static void check_cliff(const struct trace *t, uint64_t layer_share)
{
    uint64_t cycle = cycle_bytes(t);
    double overlap = lag_1_overlap(t), before = 0;
    for (int i = 1; i <= 4; i++) {
        struct replay_result x = replay_lru(t, SCOPE_GLOBAL, (cycle - layer_share) * i / 4);
        assert_int_equal(x.decode_hits, 0);
    }
    for (int i = 1; i <= 3; i++) {
        struct replay_result x =
            replay_lru(t, SCOPE_GLOBAL, cycle - layer_share + layer_share * i / 4);
        assert_true(decode_hits(&x) >= before && decode_hits(&x) < overlap);
        before = decode_hits(&x);
    }
    struct replay_result at = replay_lru(t, SCOPE_GLOBAL, cycle + cycle / 8);
    assert_true(before > 0);
    assert_close(decode_hits(&at), overlap, 0.02);
}

static void a_global_lru_below_one_token_cycle_hits_nothing(void **state)
{
    (void)state;
    static const char *const preset[] = {"qwen3", "gpt-oss", "skewed"};
    for (size_t i = 0; i < 3; i++) {
        struct trace *t = made_up(preset[i], 24, 128, 4, 80);
        check_cliff(t, 4 * MIB);
        trace_free(t);
    }
}

static void the_cliff_of_the_recorded_traces_lies_at_their_cycle(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    static const char *const name[] = {SHARED "bmoe/qwen.route.csv", SHARED "bmoe/gemma.route.csv"};
    static const double cycle_mib[] = {785, 676}, overlap[] = {0.380, 0.357};
    for (size_t i = 0; i < 2; i++) {
        struct trace *t;
        assert_ok(trace_load(&t, name[i], &dg));
        uint64_t cycle = cycle_bytes(t), share = 0;
        for (uint32_t l = 0; l < t->layers; l++)
            if (t->top_k * t->layer[l].expert_bytes > share)
                share = t->top_k * t->layer[l].expert_bytes;
        assert_close((double)cycle / (double)MIB, cycle_mib[i], 1);
        assert_int_equal(replay_lru(t, SCOPE_GLOBAL, cycle - share).counts.hits, 0);
        struct replay_result x = replay_lru(t, SCOPE_GLOBAL, 1000 * MIB);
        assert_close(lag_1_overlap(t), overlap[i], 0.002);
        assert_close(decode_hits(&x), overlap[i], 0.005);
        trace_free(t);
    }
}

static void an_lru_of_one_batch_a_layer_hits_what_two_tokens_share(void **state)
{
    (void)state;
    struct trace *t = made_up("deepseek-v2-lite", 26, 64, 6, 200);
    struct replay_result x = replay_lru(t, SCOPE_LAYER, 26 * 6 * MIB);
    assert_close(decode_hits(&x), lag_1_overlap(t), 0.01);
    trace_free(t);
}

static void a_simulated_phone_below_the_cycle_is_as_slow_as_without_a_cache(void **state)
{
    (void)state;
    struct world w = world_open(&(struct scene){.model = "gpt-oss-120b",
                                                .device = "oneplus-15r",
                                                .profile = "bigmoeonedge",
                                                .routing = "gpt-oss"});
    world_set_top_k(&w, 2); /* T is 908 MiB */
    world_set_cache(&w, 0);
    double none = world_rate(&w);
    w.setup.policy = cache_policy_find("lru");
    world_set_cache(&w, 500 * MIB);
    struct pipeline_result below = world_run(&w);
    world_set_cache(&w, 1000 * MIB);
    struct pipeline_result above = world_run(&w);
    assert_int_equal(below.hits, 0);
    assert_close(rate(&below), none, none * 0.001);
    assert_close(hit_ratio(&above), 0.176, 0.05);
    assert_true(rate(&above) > 1.05 * none);
    world_close(&w);
}

/* ---- F2: a bigger cache can be slower ---- */

static void a_cache_that_starves_the_page_cache_of_dense_weights_is_slower(void **state)
{
    (void)state;
    struct world w = world_open(&(struct scene){.model = "qwen3-30b-a3b",
                                                .quant = "q4_k_m",
                                                .device = "oneplus-15r",
                                                .profile = "memwall",
                                                .routing = "qwen3",
                                                .set = {"profile dense=page-cache"}});
    w.setup.memory_bytes = UINT64_C(8) << 30;
    w.setup.warmup = 64;
    world_set_cache(&w, 6000 * MIB);
    double small = world_rate(&w);
    world_set_cache(&w, 7600 * MIB);
    struct pipeline_result x = world_run(&w);
    world_set_cache(&w, 7800 * MIB);
    struct pipeline_result y = world_run(&w);
    assert_true(hit_ratio(&y) >= hit_ratio(&x));
    assert_true(rate(&x) >= small);
    assert_true(rate(&y) < 0.5 * rate(&x));
    world_close(&w);
}

static void a_cache_over_the_page_cache_hits_more_and_is_slower_when_it_starves_it(void **state)
{
    (void)state;
    /* ds4 copies out of the page cache into a cache of its own. M5 Pro, 64 GB, 8, 16 and 32 GB of it: 11.37, 11.71 and
     * 8.1 to 9.5 tok/s (of a format half as large). Two caches in a row know less together than one of both. */
    struct world w = world_open(&(struct scene){.model = "deepseek-v4-flash",
                                                .device = "m5-pro-64gb",
                                                .profile = "ds4",
                                                .routing = "deepseek-v2-lite"});
    static const uint64_t cache_gb[] = {8, 24, 32};
    struct pipeline_result x[3];
    w.setup.policy = cache_policy_find("lru");
    w.setup.warmup = 150;
    for (size_t i = 0; i < 3; i++) {
        world_set_cache(&w, cache_gb[i] * GB);
        x[i] = world_run(&w);
    }
    assert_true(hit_ratio(&x[1]) > hit_ratio(&x[0]) && rate(&x[1]) > 1.05 * rate(&x[0]));
    assert_true(hit_ratio(&x[2]) > hit_ratio(&x[1]) && rate(&x[2]) < 0.99 * rate(&x[1]));
    assert_true(bytes_per_token(&x[2]) > 1.1 * bytes_per_token(&x[1]));
    world_close(&w);
}

/* ---- F5: lanes saturate ---- */

struct sweep {
    const struct storage *storage;
    double squares, worst;
    size_t rows;
};

static enum status compare_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct sweep *w = self;
    uint64_t bytes = 0, lanes = 0;
    double mib = 0;
    (void)line, (void)dg;
    bool numbers = csv_u64(f[0], &bytes) && csv_u64(f[1], &lanes) && csv_double(f[2], &mib);
    assert_true(numbers);
    double error = bench_Bps(w->storage, bytes, (uint32_t)lanes) / (mib * (double)MIB) - 1;
    w->squares += error * error;
    w->worst = error > w->worst ? error : -error > w->worst ? -error : w->worst;
    w->rows++;
    return ST_OK;
}

static void the_phone_saturates_at_two_lanes_as_its_sweep_did(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct device *d;
    static const struct csv_column columns[] = {
        {"read_bytes", true}, {"lanes", true}, {"MiB_per_s", true}};
    assert_ok(device_load(&d, "oneplus-15r", "devices/desc", NULL, 0, &dg));
    struct sweep w = {.storage = d->storage};
    assert_ok(csv_read(SHARED "bmoe/iobench.csv", columns, 3, true, compare_row, NULL, &w, &dg));
    assert_int_equal(w.rows, 29);
    assert_true(w.squares < 29 * 0.10 * 0.10);
    assert_true(w.worst < 0.30);
    double two = bench_Bps(d->storage, 4 * MIB, 2), thirty_two = bench_Bps(d->storage, 4 * MIB, 32);
    assert_true(bench_Bps(d->storage, 4 * MIB, 1) < 0.95 * two);
    assert_close(thirty_two, two, 0.05 * two);
    device_free(d);
}

static void an_apple_drive_saturates_at_four_large_reads_and_never_at_small_ones(void **state)
{
    (void)state;
    struct diag dg;
    struct device *d;
    static const struct {
        uint64_t bytes;
        uint32_t lanes;
        double GBps;
    } row[] = {{2764800, 1, 9.46}, {2764800, 4, 16.95}, {2764800, 8, 17.25}, {2764800, 32, 17.30},
               {16384, 1, 0.27},   {16384, 8, 2.04},    {16384, 32, 4.54}};
    assert_ok(device_load(&d, "apple-ap2048z", "devices/desc", NULL, 0, &dg));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_close(bench_Bps(d->storage, row[i].bytes, row[i].lanes) / 1e9, row[i].GBps,
                     0.05 * row[i].GBps);
    device_free(d);
}

static void few_misses_a_layer_leave_the_drive_below_its_rate(void **state)
{
    (void)state;
    /* The phone fell from 2275 to 1482 MiB/s as its cache grew. */
    struct world w = world_open(&(struct scene){.model = "qwen3-30b-a3b",
                                                .quant = "q4_k_m",
                                                .device = "oneplus-15r",
                                                .profile = "bigmoeonedge",
                                                .routing = "qwen3"});
    double Bps[3];
    static const uint64_t cache_mib[] = {0, 2000, 4000};
    w.setup.warmup = 32;
    for (size_t i = 0; i < 3; i++) {
        w.setup.policy = cache_policy_find("lru");
        world_set_cache(&w, cache_mib[i] * MIB);
        struct pipeline_result x = world_run(&w);
        Bps[i] = (double)x.flash_bytes * 1e9 / (double)x.io_ns;
    }
    assert_true(Bps[1] < 0.97 * Bps[0]);
    assert_true(Bps[2] < 0.97 * Bps[1]);
    world_close(&w);
}

/* ---- F6: compute and I/O cross over ---- */

static void nearly_six_times_the_disk_gives_nearly_three_times_the_tokens(void **state)
{
    (void)state;
    /* colibri#31, GLM-5.2, one box: 1.51 -> 8.81 GB/s took 0.10 to 0.28 tok/s, from 66 % disk to 32 %. */
    static const char *const device[] = {"ryzen-9950x-p3", "ryzen-9950x-9100-pro"};
    static const uint64_t hits[] = {530000000, 570000000};
    struct pipeline_result x[2];
    for (size_t i = 0; i < 2; i++) {
        struct world w = world_open(&(struct scene){
            .model = "glm-5.2", .quant = "mlx4-g64", .device = device[i], .profile = "colibri"});
        w.setup.hit_ratio = hits[i];
        w.setup.tokens = 4;
        x[i] = world_run(&w);
        world_close(&w);
    }
    double gain = rate(&x[1]) / rate(&x[0]);
    assert_close(gain, 2.8, 0.25 * 2.8);
    assert_true(x[0].stall_ns > 2 * x[0].compute_ns);
    assert_true(x[1].stall_ns < 1.2 * x[1].compute_ns);
}

static void serial_tokens_take_their_compute_and_their_reads(void **state)
{
    (void)state;
    static const struct {
        double compute_s, io_s, tok_per_s;
    } row[] = {{0.123, 0.462, 1.71}, {0.187, 0.312, 2.01}, {0.181, 0.241, 2.37},
               {0.159, 0.161, 3.12}, {0.161, 0.127, 3.47}, {0.127, 0.121, 4.03},
               {0.106, 0.093, 5.01}};
    struct world w = world_open(&(struct scene){.model = "qwen3-30b-a3b",
                                                .quant = "q4_k_m",
                                                .device = "oneplus-15r",
                                                .profile = "bigmoeonedge"});
    world_set_cache(&w, 0);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        w.setup.given_compute_ns = (uint64_t)(row[i].compute_s * 1e9);
        w.setup.given_io_ns = (uint64_t)(row[i].io_s * 1e9);
        assert_close(world_rate(&w), row[i].tok_per_s, 0.005 * row[i].tok_per_s);
    }
    world_close(&w);
}

/* ---- F7: speculation ---- */

static double drafting_gain(const char *device, uint64_t hits, uint32_t draft, double *loads)
{
    struct world w = world_open(&(struct scene){.model = "qwen3.8-flash-next",
                                                .quant = "mlx4-g64",
                                                .device = device,
                                                .profile = "slotstream"});
    w.setup.hit_ratio = hits;
    w.setup.acceptance = 700000000;
    w.setup.tokens = 24;
    struct pipeline_result plain = world_run(&w);
    w.setup.draft = draft;
    struct pipeline_result drafted = world_run(&w);
    if (loads)
        *loads = bytes_per_token(&drafted) / bytes_per_token(&plain);
    world_close(&w);
    return rate(&drafted) / rate(&plain);
}

static void drafts_lose_where_the_disk_binds_and_win_where_hits_are_high(void **state)
{
    (void)state;
    double loads;
    /* slotstream with high hits: 1.24 to 1.32; ds4 on 1.5 GB/s: 2.65, 2.66, 1.25, 0.99 tok/s with 0 to 3 drafts. */
    assert_close(drafting_gain("m5-pro-48gb", 800000000, 1, NULL), 1.28, 0.1);
    assert_true(drafting_gain("m5-pro-48gb", 950000000, 3, NULL) > 1.15);
    assert_true(drafting_gain("m4-max-64gb-usb", 500000000, 1, &loads) < 0.95);
    assert_true(loads > 1.15);
    assert_true(drafting_gain("m4-max-64gb-usb", 500000000, 3, &loads) < 0.75);
    assert_true(loads > 1.5); /* colibri: 600 -> 1062 and 597 -> 1032 */
}

/* ---- F8: heat ---- */

static struct pipeline_result phone_at(const char *ambient)
{
    struct world w = world_open(&(struct scene){
        .model = "qwen3-30b-a3b",
        .quant = "q4_k_m",
        .device = "oneplus-15r",
        .profile = "bigmoeonedge",
        .routing = "qwen3",
        .set = {"device thermal_resistance_mK_per_W=10000", "device heat_capacity_mJ_per_K=300",
                "device throttle_start=45 C", "device throttle_full=70 C",
                "device throttle_floor=0.6", ambient}});
    world_set_cache(&w, 2000 * MIB);
    w.setup.tokens = 40;
    w.setup.warmup = 8;
    struct pipeline_result x = world_run(&w);
    world_close(&w);
    return x;
}

static void heat_lowers_the_rate_and_changes_no_count(void **state)
{
    (void)state;
    /* The phone: flash -33 %, processor -17 to -40 %, the same bytes; 1.300 tok/s became 0.998. */
    struct pipeline_result cool = phone_at("device ambient=5 C"),
                           warm = phone_at("device ambient=35 C"),
                           hot = phone_at("device ambient=70 C");
    assert_true(rate(&warm) < rate(&cool));
    assert_true(rate(&hot) < rate(&warm));
    assert_close(rate(&hot) / rate(&cool), 0.65, 0.06);
    assert_int_equal(hot.lookups, cool.lookups);
    assert_int_equal(hot.hits, cool.hits);
    assert_int_equal(hot.flash_bytes, cool.flash_bytes);
    assert_int_equal(hot.read_bytes, cool.read_bytes);
    assert_int_equal(hot.counts.command_hash, cool.counts.command_hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_global_lru_below_one_token_cycle_hits_nothing),
        cmocka_unit_test(the_cliff_of_the_recorded_traces_lies_at_their_cycle),
        cmocka_unit_test(an_lru_of_one_batch_a_layer_hits_what_two_tokens_share),
        cmocka_unit_test(a_simulated_phone_below_the_cycle_is_as_slow_as_without_a_cache),
        cmocka_unit_test(a_cache_that_starves_the_page_cache_of_dense_weights_is_slower),
        cmocka_unit_test(a_cache_over_the_page_cache_hits_more_and_is_slower_when_it_starves_it),
        cmocka_unit_test(the_phone_saturates_at_two_lanes_as_its_sweep_did),
        cmocka_unit_test(an_apple_drive_saturates_at_four_large_reads_and_never_at_small_ones),
        cmocka_unit_test(few_misses_a_layer_leave_the_drive_below_its_rate),
        cmocka_unit_test(nearly_six_times_the_disk_gives_nearly_three_times_the_tokens),
        cmocka_unit_test(serial_tokens_take_their_compute_and_their_reads),
        cmocka_unit_test(drafts_lose_where_the_disk_binds_and_win_where_hits_are_high),
        cmocka_unit_test(heat_lowers_the_rate_and_changes_no_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
