/* test_pipeline.c -- tokens as events: the laws that every run must obey. */
#include "tests/support.h"

#include "sim/pipeline/pipeline.h"
#include "sim/replay/replay_run.h"
#include "sim/trace/preset.h"

struct fixture {
    struct model *model;
    struct device *device;
    struct engine_profile *profile;
    struct preset *preset;
    struct trace *trace;
};

static struct fixture load(const char *model, const char *device, const char *profile)
{
    struct diag dg;
    struct fixture f = {0};
    assert_ok(model_load(&f.model, model, "models/desc", NULL, 0, &dg));
    assert_ok(device_load(&f.device, device, "devices/desc", NULL, 0, &dg));
    assert_ok(profile_load(&f.profile, profile, "sim/pipeline/profiles", NULL, 0, &dg));
    assert_ok(preset_load(&f.preset, "qwen3", "sim/trace/presets", NULL, 0, &dg));
    assert_ok(model_requantise(f.model, "q4_k_m", &dg));
    return f;
}

static void unload(struct fixture *f)
{
    model_free(f->model);
    device_free(f->device);
    profile_free(f->profile);
    preset_free(f->preset);
    trace_free(f->trace);
}

static struct pipeline_setup setup(const struct fixture *f)
{
    return (struct pipeline_setup){
        .model = f->model,
        .device = f->device,
        .profile = f->profile,
        .params = f->trace ? NULL : &f->preset->params,
        .trace = f->trace,
        .tokens = 6,
        .prompt_tokens = f->trace ? 0 : 8,
        .policy = cache_policy_find("lru"),
        .cache_bytes = UINT64_C(600) << 20,
        .cache_given = true,
        .overlap = -1,
        .state_bits = 256,
        .seed = 3,
    };
}

static struct pipeline_result run(const struct pipeline_setup *s)
{
    struct diag dg;
    struct pipeline_result x;
    assert_ok(pipeline_run(&x, s, &dg));
    return x;
}

static const char *const ordered[] = {NULL,   "previous-token", "frequency", "co-activation",
                                      "gate", "oracle"};

static void every_run_lies_between_its_roofline_and_its_serial_sum(void **state)
{
    (void)state;
    static const char *const profiles[] = {"memwall",   "generic",       "bigmoeonedge",
                                           "flash-moe", "colibri",       "slotstream",
                                           "ds4",       "llama.cpp-mmap"};
    for (size_t p = 0; p < sizeof profiles / sizeof *profiles; p++) {
        struct fixture f = load("olmoe-1b-7b", "oneplus-15r", profiles[p]);
        for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++)
            for (int overlap = OVERLAP_SERIAL; overlap <= OVERLAP_EXPERT; overlap++) {
                struct pipeline_setup s = setup(&f);
                s.overlap = overlap;
                s.prefetch = ordered[i] ? prefetch_policy_find(ordered[i]) : NULL;
                struct pipeline_result x = run(&s);
                assert_int_equal(x.tokens, 6);
                assert_true(x.lower_ns > 0);
                assert_true(x.lower_ns <= x.end_ns);
                assert_true(x.end_ns <= x.upper_ns);
                assert_int_equal(x.decode_ns + x.prefill_ns, x.end_ns);
                assert_true(x.compute_ns + x.stall_ns <= x.decode_ns);
            }
        unload(&f);
    }
}

static void flash_bytes_are_the_misses_and_the_prefetches(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
    for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++) {
        struct pipeline_setup s = setup(&f);
        s.prefetch = ordered[i] ? prefetch_policy_find(ordered[i]) : NULL;
        struct pipeline_result x = run(&s);
        assert_int_equal(x.read_bytes, x.counts.demand_bytes + x.counts.prefetch_bytes);
        if (!ordered[i] == (x.counts.prefetches != 0))
            fail_msg("%s: %d prefetches", ordered[i], (int)x.counts.prefetches);
    }
    unload(&f);
}

static void commands_and_their_hash_equal_replay(void **state)
{
    (void)state;
    struct diag dg;
    struct fixture f = load("qwen3-30b-a3b", "oneplus-15r", "bigmoeonedge");
    assert_ok(trace_load(&f.trace, "tests/data/demo.trace.csv", &dg));
    for (const struct cache_policy *const *p = cache_policies; *p; p++)
        for (int scope = SCOPE_GLOBAL; scope <= SCOPE_LAYER; scope++)
            for (int evict = EVICT_BEFORE; evict <= EVICT_AFTER; evict++) {
                struct pipeline_setup s = setup(&f);
                s.policy = *p;
                s.scope = (enum scope)scope;
                s.evict = (enum evict_when)evict;
                s.cache_bytes = UINT64_C(3) << 30;
                s.tokens = 100000;
                struct pipeline_result x = run(&s);
                struct replay_result r;
                struct replay_setup q = {.policy = *p,
                                         .scope = (enum scope)scope,
                                         .evict = (enum evict_when)evict,
                                         .budget_bytes = (*p)->keeps_nothing ? 0 : s.cache_bytes,
                                         .seed = s.seed};
                assert_ok(replay_run(&r, f.trace, &q, &dg));
                assert_int_equal(x.counts.command_hash, r.counts.command_hash);
                assert_int_equal(x.counts.hits, r.counts.hits);
                assert_int_equal(x.hits, r.decode_hits);
                assert_int_equal(x.counts.evictions, r.counts.evictions);
                assert_int_equal(x.read_bytes, r.read_bytes);
            }
    unload(&f);
}

static void prefetching_commands_equal_replay_too(void **state)
{
    (void)state;
    struct diag dg;
    struct fixture f = load("qwen3-30b-a3b", "oneplus-15r", "bigmoeonedge");
    assert_ok(trace_load(&f.trace, "tests/data/demo.trace.csv", &dg));
    for (size_t i = 1; i < sizeof ordered / sizeof *ordered; i++) {
        struct pipeline_setup s = setup(&f);
        s.prefetch = prefetch_policy_find(ordered[i]);
        if (s.prefetch->from_outside && !s.prefetch->needs_future && f.trace->guess_count == 0)
            continue;
        s.cache_bytes = UINT64_C(2) << 30;
        s.tokens = 100000;
        s.prefetch_distance = 1;
        s.prefetch_experts_max = 4;
        struct pipeline_result x = run(&s);
        struct replay_result r;
        struct replay_setup q = {.policy = s.policy,
                                 .prefetch = s.prefetch,
                                 .budget_bytes = s.cache_bytes,
                                 .prefetch_distance = 1,
                                 .prefetch_experts_max = 4,
                                 .seed = s.seed};
        assert_ok(replay_run(&r, f.trace, &q, &dg));
        assert_int_equal(x.counts.command_hash, r.counts.command_hash);
        assert_int_equal(x.counts.prefetches, r.counts.prefetches);
        assert_int_equal(x.counts.prefetch_wasted, r.counts.prefetch_wasted);
        assert_int_equal(x.read_bytes, r.read_bytes);
    }
    unload(&f);
}

static void a_prefetch_of_nothing_is_no_prefetch(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
    struct pipeline_setup s = setup(&f);
    struct pipeline_result none = run(&s);
    s.prefetch = prefetch_policy_find("oracle");
    s.prefetch_bytes_max = 1;
    struct pipeline_result x = run(&s);
    assert_int_equal(x.counts.prefetches, 0);
    assert_int_equal(x.fingerprint, none.fingerprint);
    assert_int_equal(x.end_ns, none.end_ns);
    unload(&f);
}

/* The same fixture under an engine profile with one more override. */
static void reload_profile(struct fixture *f, const char *profile, const char *set)
{
    struct diag dg;
    profile_free(f->profile);
    assert_ok(profile_load(&f->profile, profile, "sim/pipeline/profiles", &set, 1, &dg));
}

static void an_early_router_takes_its_time_from_the_kernels(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "generic");
    uint64_t compute_ns[2], oracle_ns[2];
    static const char *const cost[] = {"predict=0ns", "predict=1ms"};
    for (size_t i = 0; i < 2; i++) {
        reload_profile(&f, "generic", cost[i]);
        struct pipeline_setup s = setup(&f);
        s.prompt_tokens = 0;
        s.prefetch = prefetch_policy_find("gate");
        compute_ns[i] = run(&s).compute_ns;
        s.prefetch = prefetch_policy_find("oracle"); /* knows without computing */
        oracle_ns[i] = run(&s).compute_ns;
    }
    assert_int_equal(oracle_ns[0], oracle_ns[1]);
    /* Six tokens, sixteen layers of which the last has none to predict; some wake-ups fall away. */
    assert_close((double)(compute_ns[1] - compute_ns[0]) / 1e6, 6 * 15, 3);
    unload(&f);
}

static void pages_that_are_mapped_are_there_at_once(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "llama.cpp-mmap");
    struct pipeline_setup s = setup(&f);
    s.params = NULL;
    s.prompt_tokens = 0;
    s.policy = cache_policy_find("none");
    s.hit_ratio = 1000000000;
    s.warmup = 1; /* reads the dense weights */
    struct pipeline_result x = run(&s);
    assert_int_equal(x.flash_bytes, 0);
    assert_int_equal(x.stall_ns, 0);
    assert_int_equal(x.late_hits, 0);
    assert_true(x.copied_bytes > 0);
    unload(&f);
}

static void faults_bring_little_once_a_mapping_misses_more_than_it_hits(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "llama.cpp-mmap");
    uint64_t io_ns[3];
    static const char *const bytes[] = {"fault_bytes=0B", "fault_bytes=128KiB",
                                        "fault_bytes=16KiB"};
    static const uint64_t hits[] = {0, 900000000};
    for (size_t h = 0; h < 2; h++) {
        for (size_t i = 0; i < 3; i++) {
            reload_profile(&f, "llama.cpp-mmap", bytes[i]);
            struct pipeline_setup s = setup(&f);
            s.params = NULL;
            s.prompt_tokens = 0;
            s.policy = cache_policy_find("none");
            s.hit_ratio = hits[h];
            io_ns[i] = run(&s).io_ns;
        }
        assert_int_equal(io_ns[0], io_ns[1]);
        if (h == 0)
            assert_true(io_ns[2] > 3 * io_ns[1]);
        else
            assert_int_equal(io_ns[2], io_ns[1]);
    }
    unload(&f);
}

static void a_drive_that_weighs_on_the_memory_keeps_the_bounds(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "m3-max-48gb", "generic");
    assert_int_equal(f.device->storage->dram_inflation.amount, 32);
    for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++) {
        struct pipeline_setup s = setup(&f);
        s.prefetch = ordered[i] ? prefetch_policy_find(ordered[i]) : NULL;
        struct pipeline_result x = run(&s);
        assert_true(x.lower_ns <= x.end_ns && x.end_ns <= x.upper_ns);
    }
    unload(&f);
}

static void the_same_run_is_the_same_events(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "memwall");
    struct pipeline_setup s = setup(&f);
    s.jitter_e3 = 200;
    struct pipeline_result a = run(&s), b = run(&s);
    assert_int_equal(a.fingerprint, b.fingerprint);
    s.seed++;
    assert_int_not_equal(run(&s).fingerprint, a.fingerprint);
    unload(&f);
}

static void renaming_experts_changes_no_time(void **state)
{
    (void)state;
    struct diag dg;
    struct fixture f = load("qwen3-30b-a3b", "oneplus-15r", "bigmoeonedge");
    assert_ok(trace_load(&f.trace, "tests/data/demo.trace.csv", &dg));
    struct pipeline_setup s = setup(&f);
    s.tokens = 24;
    s.cache_bytes = UINT64_C(2) << 30;
    struct pipeline_result a = run(&s);
    for (size_t i = 0; i < f.trace->row_count; i++)
        f.trace->expert[i] = (uint16_t)((f.trace->expert[i] * 37 + 11) % 128);
    struct pipeline_result b = run(&s);
    assert_int_equal(a.end_ns, b.end_ns);
    assert_int_equal(a.events, b.events);
    assert_int_equal(a.hits, b.hits);
    unload(&f);
}

/* One resource: no cache, no overlap, kernels that cost nothing beside it. */
static void a_drive_twice_as_fast_never_slows_a_fixed_order(void **state)
{
    (void)state;
    struct diag dg;
    uint64_t before = UINT64_MAX;
    static const char *const rate[] = {"storage.0.bandwidth=1 GB/s", "storage.0.bandwidth=2 GB/s",
                                       "storage.0.bandwidth=4 GB/s", "storage.0.bandwidth=8 GB/s"};
    for (size_t i = 0; i < 4; i++) {
        struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
        device_free(f.device);
        const char *set[] = {rate[i], "storage.0.lane_bandwidth=8 GB/s"};
        assert_ok(device_load(&f.device, "oneplus-15r", "devices/desc", set, 2, &dg));
        struct pipeline_setup s = setup(&f);
        s.policy = cache_policy_find("none");
        struct pipeline_result x = run(&s);
        assert_true(x.end_ns < before);
        before = x.end_ns;
        unload(&f);
    }
}

static void a_fixed_hit_ratio_is_kept_in_the_long_run(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
    for (uint64_t h = 0; h <= 1000000000; h += 250000000) {
        struct pipeline_setup s = setup(&f);
        s.params = NULL;
        s.hit_ratio = h;
        s.tokens = 200;
        s.prompt_tokens = 0;
        struct pipeline_result x = run(&s);
        double ratio = (double)x.hits / (double)x.lookups;
        assert_close(ratio, (double)h / 1e9, 4 * 0.5 / 160); /* 25600 look-ups */
    }
    unload(&f);
}

static void given_times_add_up_when_serial(void **state)
{
    (void)state;
    struct fixture f = load("qwen3-30b-a3b", "oneplus-15r", "bigmoeonedge");
    struct pipeline_setup s = setup(&f);
    s.params = NULL;
    s.policy = cache_policy_find("none");
    s.prompt_tokens = 0;
    s.given_compute_ns = 123000000;
    s.given_io_ns = 462000000; /* row B1: 0.123 s and 0.462 s gave 1.71 tok/s */
    struct pipeline_result x = run(&s);
    assert_close((double)x.decode_ns / 6e9, 0.585, 0.003);
    unload(&f);
}

static void waiting_and_computing_fill_a_serial_token(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
    struct pipeline_setup s = setup(&f);
    s.overlap = OVERLAP_SERIAL;
    struct pipeline_result x = run(&s);
    assert_int_equal(x.compute_ns + x.stall_ns, x.decode_ns); /* busy + idle = makespan */
    unload(&f);
}

static void what_does_not_belong_together_is_refused(void **state)
{
    (void)state;
    struct diag dg;
    struct pipeline_result x;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
    struct pipeline_setup s = setup(&f);
    s.cache_bytes = 1000;
    assert_int_equal(pipeline_run(&x, &s, &dg), ST_MISFIT);
    s = setup(&f);
    s.memory_bytes = UINT64_C(800) << 20; /* dense weights and this cache need more */
    assert_int_equal(pipeline_run(&x, &s, &dg), ST_MISFIT);
    s = setup(&f);
    s.policy = cache_policy_find("belady"); /* nobody knows a generator's future */
    assert_int_equal(pipeline_run(&x, &s, &dg), ST_UNSUPPORTED);
    assert_ok(trace_load(&f.trace, "tests/data/demo.trace.csv", &dg)); /* another model's */
    s = setup(&f);
    assert_int_equal(pipeline_run(&x, &s, &dg), ST_MISFIT);
    assert_non_null(strstr(dg.text, "layers"));
    unload(&f);
}

static void batches_share_what_they_read(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
    struct pipeline_setup s = setup(&f);
    s.policy = cache_policy_find("none");
    s.tokens = 32;
    s.prompt_tokens = 0;
    uint64_t before = UINT64_MAX;
    for (uint32_t batch = 1; batch <= 8; batch *= 2) {
        s.batch = batch;
        struct pipeline_result x = run(&s);
        assert_int_equal(x.tokens, 32);
        assert_true(x.flash_bytes < before); /* the union of a batch is smaller than its sum */
        before = x.flash_bytes;
    }
    unload(&f);
}

static void a_draft_yields_its_accepted_tokens_and_one(void **state)
{
    (void)state;
    struct fixture f = load("olmoe-1b-7b", "oneplus-15r", "bigmoeonedge");
    struct pipeline_setup s = setup(&f);
    s.tokens = 400;
    s.draft = 3;
    s.acceptance = 600000000;
    struct pipeline_result x = run(&s);
    /* (1 - a^4) / (1 - a) = 2.176 tokens a pass: look-ups of a pass follow from the union, passes from the tokens */
    uint64_t passes = 0;
    for (uint64_t t = x.tokens; t > 0; t = t > 4 ? t - 4 : 0)
        passes++;
    assert_true(x.tokens >= 400 && x.tokens < 404 && passes >= 100);
    s.acceptance = 0;
    assert_int_equal(run(&s).tokens, 400);
    s.acceptance = 1000000000;
    assert_int_equal(run(&s).tokens, 400);
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_run_lies_between_its_roofline_and_its_serial_sum),
        cmocka_unit_test(flash_bytes_are_the_misses_and_the_prefetches),
        cmocka_unit_test(commands_and_their_hash_equal_replay),
        cmocka_unit_test(prefetching_commands_equal_replay_too),
        cmocka_unit_test(a_prefetch_of_nothing_is_no_prefetch),
        cmocka_unit_test(an_early_router_takes_its_time_from_the_kernels),
        cmocka_unit_test(pages_that_are_mapped_are_there_at_once),
        cmocka_unit_test(faults_bring_little_once_a_mapping_misses_more_than_it_hits),
        cmocka_unit_test(a_drive_that_weighs_on_the_memory_keeps_the_bounds),
        cmocka_unit_test(the_same_run_is_the_same_events),
        cmocka_unit_test(renaming_experts_changes_no_time),
        cmocka_unit_test(a_drive_twice_as_fast_never_slows_a_fixed_order),
        cmocka_unit_test(a_fixed_hit_ratio_is_kept_in_the_long_run),
        cmocka_unit_test(given_times_add_up_when_serial),
        cmocka_unit_test(waiting_and_computing_fill_a_serial_token),
        cmocka_unit_test(what_does_not_belong_together_is_refused),
        cmocka_unit_test(batches_share_what_they_read),
        cmocka_unit_test(a_draft_yields_its_accepted_tokens_and_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
