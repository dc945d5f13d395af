/* test_facts_memory.c -- what is publicly known of running models from flash, F9 to F12: balanced routers, layout,
 * mmap, and one DRAM for all.
 *
 * Each fact is one or more sentences that are true of runs with the program's own models, machines, engine profiles
 * and routing. A test names the public figure that it answers and asks for its sign, or for its size as
 * far as the published inputs allow. Sources stand in the descriptions and profiles, and beside the rows of
 * validate/data/published.csv. */
#include "tests/scene.h"

/* ---- F9: balanced routers ---- */

static double layer_hits(const struct trace *t, const char *policy, uint32_t slots)
{
    struct diag dg;
    struct replay_result x;
    const struct replay_setup s = {.policy = cache_policy_find(policy),
                                   .scope = SCOPE_LAYER,
                                   .evict = EVICT_AFTER,
                                   .budget_bytes = (uint64_t)slots * t->layers * MIB};
    assert_ok(replay_run(&x, t, &s, &dg));
    return decode_hits(&x);
}

/* Is `key` among the `slots` hottest experts of its layer? */
static bool is_favourite(const uint32_t *rank, uint32_t key, uint32_t experts, uint32_t slots)
{
    uint32_t hotter = 0, first = key - key % experts;
    for (uint32_t other = first; other < first + experts; other++)
        hotter += rank[other] < rank[key];
    return hotter < slots;
}

static double share_of(const struct trace *t, const bool *pinned)
{
    size_t served = 0;
    for (size_t i = 0; i < t->batch_count; i++)
        for (size_t row = 0; row < t->batch[i].row_count; row++)
            served +=
                pinned[t->batch[i].layer * t->experts + t->expert[t->batch[i].first_row + row]];
    return (double)served / (double)t->row_count;
}

/* The share of the choices of forty short texts that falls on the favourites of forty others: what experts
 * pinned at the start serve. */
static double pinned_share(const char *preset, uint32_t experts, uint32_t top_k, uint32_t slots)
{
    enum { LAYERS = 3 };
    struct diag dg;
    struct trace *past = made_up_turns(preset, LAYERS, experts, top_k, 40, 12, 6),
                 *now = made_up_turns(preset, LAYERS, experts, top_k, 40, 12, 5);
    struct feed *f;
    uint32_t *rank = calloc((size_t)LAYERS * experts, sizeof *rank);
    bool *pinned = calloc((size_t)LAYERS * experts, sizeof *pinned);
    assert_non_null(rank);
    assert_non_null(pinned);
    assert_ok(feed_new(&f, past, UINT64_MAX, &dg));
    assert_ok(feed_rank(f, rank, &dg));
    for (uint32_t key = 0; key < LAYERS * experts; key++)
        pinned[key] = is_favourite(rank, key, experts, slots);
    double share = share_of(now, pinned);
    feed_free(f);
    free(rank);
    free(pinned);
    trace_free(past);
    trace_free(now);
    return share;
}

static void
pinned_experts_get_their_share_of_a_balanced_router_and_more_of_a_skewed_one(void **state)
{
    (void)state;
    double balanced = pinned_share("balanced", 896, 16, 112),
           skewed = pinned_share("skewed", 512, 4, 64);
    assert_close(balanced, 0.125, 0.04);
    assert_true(skewed > 2 * balanced);
}

static void a_balanced_router_defeats_a_global_lru_up_to_its_long_cycle(void **state)
{
    (void)state;
    /* Kimi K3: 0.0 % from 28 to 1344 of the 1472 slots of a token; 36.2 % above; Belady 39.4 to 61.7 %. */
    struct trace *t = made_up("balanced", 92, 896, 16, 12);
    static const uint64_t slots[] = {28, 336, 1344, 1456};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(replay_lru(t, SCOPE_GLOBAL, slots[i] * MIB).counts.hits, 0);
    struct replay_result above = replay_lru(t, SCOPE_GLOBAL, 1600 * MIB);
    assert_close(decode_hits(&above), 0.362, 0.06);
    trace_free(t);
}

static void a_skewed_router_fills_a_small_cache_with_hits(void **state)
{
    (void)state;
    /* Qwen3.5-397B at k 4: 16, 32, 64, 128 of 512 slots a layer hit 49, 59, 68, 71 %. */
    struct trace *t = made_up("skewed", 12, 512, 4, 128);
    static const double published[] = {0.49, 0.59, 0.68, 0.71};
    for (uint32_t i = 0; i < 4; i++)
        assert_close(layer_hits(t, "lru", 16u << i), published[i], 0.08);
    struct trace *even = made_up("uniform", 12, 512, 4, 128);
    assert_true(layer_hits(even, "lru", 16) < 0.06);
    trace_free(t);
    trace_free(even);
}

static void clairvoyance_is_far_ahead_of_every_online_policy(void **state)
{
    (void)state;
    /* Online policies lie within 5 points of LRU, Belady 8 to 23 above the best of them. */
    struct trace *t = made_up("qwen3", 12, 128, 6, 160);
    double lru = layer_hits(t, "lru", 16), best = 0;
    static const char *const online[] = {"lru", "clock", "slru", "sieve", "s3fifo", "arc"};
    for (size_t i = 0; i < sizeof online / sizeof *online; i++) {
        double hits = layer_hits(t, online[i], 16);
        assert_close(hits, lru, 0.08);
        best = hits > best ? hits : best;
    }
    assert_true(layer_hits(t, "belady", 16) > best + 0.08);
    trace_free(t);
}

/* ---- F10: layout ---- */

static double in_pieces(const struct storage *s, uint64_t expert_bytes, uint32_t pieces)
{
    struct diag dg;
    uint64_t last;
    const struct drive_run run = {.bytes = expert_bytes / pieces, .lanes = 4};
    assert_ok(drive_run_burst(&last, NULL, s, &run, 4 * pieces, &dg));
    return 4.0 * (double)expert_bytes / (double)last;
}

static void one_record_gains_nothing_for_large_experts_and_much_for_small_ones(void **state)
{
    (void)state;
    /* flash-moe: 0 % at 7 MB; LLM in a Flash: 8 -> 16 KiB chunks give 1.25 -> 2.25 GB/s. Four experts at once. */
    struct diag dg;
    struct device *d;
    static const char *const drive[] = {"apple-m3-max-1tb", "oneplus-15r", "apple-ap2048z"};
    for (size_t i = 0; i < 3; i++) {
        assert_ok(device_load(&d, drive[i], "devices/desc", NULL, 0, &dg));
        const struct storage *s = d->storage;
        assert_true(in_pieces(s, 7077888, 1) < 1.05 * in_pieces(s, 7077888, 3));
        for (uint64_t kib = 4; kib <= 64; kib *= 4) {
            double one = in_pieces(s, 9 * kib << 10, 1), three = in_pieces(s, 9 * kib << 10, 3),
                   nine = in_pieces(s, 9 * kib << 10, 9);
            assert_true(kib == 64 || one > 1.3 * three);
            assert_true(one > 1.8 * nine);
        }
        device_free(d);
    }
}

static void a_run_of_large_experts_is_the_same_in_one_piece_or_three(void **state)
{
    (void)state;
    double tok_per_s[3];
    static const uint64_t pieces[] = {1, 3, 9};
    for (size_t i = 0; i < 3; i++) {
        struct world w = world_open(&(struct scene){
            .model = "qwen3.5-397b-a17b",
            .quant = "mlx4-g64",
            .device = "m3-max-48gb",
            .profile = "flash-moe",
            .set = {"profile io=direct", "profile copies=0", "profile request_max=0 B"}});
        world_set_top_k(&w, 4);
        w.setup.pieces = pieces[i];
        tok_per_s[i] = world_rate(&w);
        world_close(&w);
    }
    assert_close(tok_per_s[1], tok_per_s[0], 0.05 * tok_per_s[0]);
}

static double lfm2_on_a_phone(const char *ceiling, uint64_t pieces)
{
    struct world w = world_open(&(struct scene){.model = "lfm2-8b-a1b",
                                                .quant = "q5_k_m",
                                                .device = "oneplus-15r",
                                                .profile = "bigmoeonedge",
                                                .routing = "qwen3",
                                                .set = {ceiling}});
    world_set_cache(&w, 0);
    w.setup.pieces = pieces;
    double r = world_rate(&w);
    world_close(&w);
    return r;
}

static void one_record_gains_what_the_drive_gives_reads_of_its_size(void **state)
{
    (void)state;
    /* LFM2.5-8B, three reads of 2.6 MiB against one of 7.7: 2.53 -> 2.93 tok/s (+15.7 %). The drive's own sweep with
     * four lanes: 2155 MiB/s at 2 MiB, 2558 at 8 MiB. Its curve, which has one ceiling, does not know that. */
    double three = lfm2_on_a_phone("device storage.0.bandwidth=2155 MiB/s", 3),
           one = lfm2_on_a_phone("device storage.0.bandwidth=2558 MiB/s", 1);
    assert_close(three, 2.53, 0.1 * 2.53);
    assert_true(one > 1.05 * three && one < 1.16 * three);
}

static void a_run_of_tiny_experts_pays_for_every_piece(void **state)
{
    (void)state;
    double tok_per_s[2];
    static const uint64_t pieces[] = {1, 9};
    for (size_t i = 0; i < 2; i++) {
        struct world w = world_open(&(struct scene){.model = "granite-3-1b-a400m",
                                                    .quant = "q4_0",
                                                    .device = "oneplus-15r",
                                                    .profile = "generic",
                                                    .routing = "qwen3"});
        world_set_cache(&w, 0);
        w.setup.pieces = pieces[i];
        tok_per_s[i] = world_rate(&w);
        world_close(&w);
    }
    assert_true(tok_per_s[1] < 0.75 * tok_per_s[0]);
}

/* ---- F11: mmap ---- */

static void one_thread_that_faults_sees_a_fortieth_of_the_drive(void **state)
{
    (void)state;
    /* flash-moe, M3 Max: 0.12 GB/s by cold mmap, 5.5 by parallel pread. A page of macOS is 16 KiB. */
    struct diag dg;
    struct device *d;
    uint64_t Bps;
    assert_ok(device_load(&d, "apple-m3-max-1tb", "devices/desc", NULL, 0, &dg));
    const struct drive_run fault = {.bytes = 16384, .lanes = 1, .extra_ns = 25000};
    assert_ok(drive_run_benchmark(&Bps, d->storage, &fault, 200, &dg));
    assert_close((double)Bps / 1e9, 0.12, 0.02);
    assert_close(bench_Bps(d->storage, 3932160, 4) / 1e9, 5.5, 0.3);
    device_free(d);
}

static void faults_are_several_times_slower_than_reads_of_a_model_far_beyond_memory(void **state)
{
    (void)state;
    /* flash-moe: 0.56 tok/s with mapped experts, about 4 with pread. */
    struct scene s = {.model = "qwen3.5-397b-a17b",
                      .quant = "mlx4-g64",
                      .device = "m3-max-48gb",
                      .profile = "flash-moe",
                      .routing = "skewed"};
    struct world w = world_open(&s);
    world_set_top_k(&w, 4);
    double reads = world_rate(&w);
    world_close(&w);
    s.profile = "macos-mmap";
    w = world_open(&s);
    world_set_top_k(&w, 4);
    double faults = world_rate(&w);
    world_close(&w);
    assert_true(reads > 3 * faults);
    assert_true(faults > 0.28 && faults < 1.12);
    assert_true(reads > 2 && reads < 8);
}

/* A run of the phone as it was measured: from its prompt, whose 34 tokens fill the page cache, on. */
static struct pipeline_result mapped_on_a_phone(const struct scene *s, uint64_t top_k,
                                                uint64_t tokens)
{
    struct world w = world_open(s);
    if (top_k)
        world_set_top_k(&w, top_k);
    w.setup.prompt_tokens = 34;
    w.setup.tokens = tokens;
    struct pipeline_result x = world_run(&w);
    world_close(&w);
    return x;
}

static void a_phone_faults_at_a_tenth_of_its_streaming_rate(void **state)
{
    (void)state;
    /* gpt-oss-120b on the phone: k 2 0.089 mapped (24 tokens), 2.19 streamed; k 4 0.075 and 1.30. */
    static const double published[] = {0.089, 0.075};
    for (uint64_t top_k = 2; top_k <= 4; top_k += 2) {
        struct scene s = {.model = "gpt-oss-120b",
                          .device = "oneplus-15r",
                          .profile = "llama.cpp-mmap",
                          .routing = "gpt-oss"};
        struct pipeline_result mapped = mapped_on_a_phone(&s, top_k, 24);
        s.profile = "bigmoeonedge";
        struct world w = world_open(&s);
        world_set_top_k(&w, top_k);
        world_set_cache(&w, 1500 * MIB);
        w.setup.overlap = OVERLAP_EXPERT;
        struct pipeline_result streamed = world_run(&w);
        world_close(&w);
        double expected = published[top_k / 2 - 1];
        assert_true(rate(&mapped) > 0.5 * expected && rate(&mapped) < 2 * expected);
        assert_true(rate(&streamed) > 10 * rate(&mapped));
        assert_true((double)mapped.flash_bytes < 0.1 * (double)mapped.io_ns); /* GB/s */
    }
}

static void a_mapping_of_which_most_fits_beats_streaming_without_a_cache(void **state)
{
    (void)state;
    /* Qwen3-30B on the phone: 2.00 mapped, 1.71 streamed without a cache. */
    struct scene s = {.model = "qwen3-30b-a3b",
                      .quant = "q4_k_m",
                      .device = "oneplus-15r",
                      .profile = "llama.cpp-mmap",
                      .routing = "qwen3"};
    struct pipeline_result mapped = mapped_on_a_phone(&s, 0, 256);
    s.profile = "bigmoeonedge";
    struct world w = world_open(&s);
    world_set_cache(&w, 0);
    struct pipeline_result streamed = world_run(&w);
    world_close(&w);
    assert_true(rate(&mapped) > rate(&streamed));
    assert_close(rate(&mapped), 2.00, 1.00);
    assert_close(rate(&streamed), 1.71, 0.17 * 1.71);
}

/* ---- F12: DRAM is one resource ---- */

static double run_scene(const struct scene *s)
{
    struct world w = world_open(s);
    double r = world_rate(&w);
    world_close(&w);
    return r;
}

static double with_copies(const char *copies)
{
    return run_scene(&(struct scene){.model = "qwen3.5-397b-a17b",
                                     .quant = "mlx4-g64",
                                     .device = "m3-max-48gb",
                                     .profile = "flash-moe",
                                     .routing = "skewed",
                                     .set = {"profile io=direct", copies}});
}

static void every_copy_of_what_is_read_costs_time(void **state)
{
    (void)state;
    double none = with_copies("profile copies=0"), one = with_copies("profile copies=1"),
           two = with_copies("profile copies=2");
    assert_true(one < none);
    assert_true(two < one);
    assert_true(two < 0.99 * none);
}

static struct pipeline_result with_dram(const char *measured)
{
    struct world w = world_open(&(struct scene){.model = "qwen3-30b-a3b",
                                                .quant = "q4_k_m",
                                                .device = "m5-pro-48gb",
                                                .profile = "generic",
                                                .routing = "qwen3",
                                                .set = {measured}});
    world_set_cache(&w, 0);
    struct pipeline_result x = world_run(&w);
    world_close(&w);
    return x;
}

static void a_memory_of_a_tenth_slows_kernels_and_reads_together(void **state)
{
    (void)state;
    struct pipeline_result full = with_dram("device dram.measured_bandwidth=276 GB/s"),
                           half = with_dram("device dram.measured_bandwidth=138 GB/s"),
                           slow = with_dram("device dram.measured_bandwidth=14 GB/s");
    assert_true(half.compute_ns > full.compute_ns);
    assert_true(rate(&half) < rate(&full));
    assert_true(slow.io_ns > 1.2 * full.io_ns); /* reads of 17 GB/s beside kernels */
    assert_int_equal(slow.flash_bytes, full.flash_bytes);
}

static void a_drive_is_slowed_by_kernels_that_leave_it_too_little_memory(void **state)
{
    (void)state;
    /* A DDR4 laptop's drive fell from 900 to 330 MiB/s while it computed; here reads of 2 GB/s in half of 3. */
    struct pipeline_result free_memory, tight;
    struct scene s = {
        .model = "qwen3-30b-a3b",
        .quant = "q4_k_m",
        .device = "oneplus-15r",
        .profile = "generic",
        .routing = "qwen3",
        .set = {"profile kernel_efficiency=1", "device dram.measured_bandwidth=59 GB/s"}};
    struct world w = world_open(&s);
    world_set_cache(&w, 0);
    free_memory = world_run(&w);
    world_close(&w);
    s.set[1] = "device dram.measured_bandwidth=4 GB/s";
    w = world_open(&s);
    world_set_cache(&w, 0);
    tight = world_run(&w);
    world_close(&w);
    assert_true(tight.io_ns > 1.2 * free_memory.io_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            pinned_experts_get_their_share_of_a_balanced_router_and_more_of_a_skewed_one),
        cmocka_unit_test(a_balanced_router_defeats_a_global_lru_up_to_its_long_cycle),
        cmocka_unit_test(a_skewed_router_fills_a_small_cache_with_hits),
        cmocka_unit_test(clairvoyance_is_far_ahead_of_every_online_policy),
        cmocka_unit_test(one_record_gains_nothing_for_large_experts_and_much_for_small_ones),
        cmocka_unit_test(a_run_of_large_experts_is_the_same_in_one_piece_or_three),
        cmocka_unit_test(one_record_gains_what_the_drive_gives_reads_of_its_size),
        cmocka_unit_test(a_run_of_tiny_experts_pays_for_every_piece),
        cmocka_unit_test(one_thread_that_faults_sees_a_fortieth_of_the_drive),
        cmocka_unit_test(faults_are_several_times_slower_than_reads_of_a_model_far_beyond_memory),
        cmocka_unit_test(a_phone_faults_at_a_tenth_of_its_streaming_rate),
        cmocka_unit_test(a_mapping_of_which_most_fits_beats_streaming_without_a_cache),
        cmocka_unit_test(every_copy_of_what_is_read_costs_time),
        cmocka_unit_test(a_memory_of_a_tenth_slows_kernels_and_reads_together),
        cmocka_unit_test(a_drive_is_slowed_by_kernels_that_leave_it_too_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
