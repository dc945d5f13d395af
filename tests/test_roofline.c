/* test_roofline.c -- the estimator against published identities, through the program's own model and
 * device files, and against its laws. V numbers: SYSTEMS section 5. */
#include "models/state.h"
#include "sim/roofline/op_table.h"
#include "sim/roofline/ridge.h"
#include "tests/cli_expect.h"
#include "tests/support.h"

static struct diag dg;

static struct model *model_of(const char *name, const char *quant, const char *override)
{
    struct model *m;
    assert_ok(model_load(&m, name, "models/desc", &override, override != NULL, &dg));
    if (quant)
        assert_ok(model_requantise(m, quant, &dg));
    return m;
}

static struct device *device_of(const char *name, const char *override)
{
    struct device *d;
    assert_ok(device_load(&d, name, "devices/desc", &override, override != NULL, &dg));
    return d;
}

static void set_top_k(struct model *m, uint64_t k)
{
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].ffn.experts)
            m->layers[i].ffn.top_k = k;
}

static struct machine machine_of(const struct device *d, enum rates rates)
{
    struct machine m;
    struct machine_choice c = {.cards = 1, .rates = rates, .eight_bit = false};
    assert_ok(machine_init(&m, d, &c, &dg));
    return m;
}

static struct workload decode_of(const struct model *m, uint64_t context)
{
    struct workload l;
    struct workload_request r = {
        .sequences = 1, .tokens = 1, .context = context, .logits = 1, .state_bits = STATE_BITS_F16};
    assert_ok(workload_init(&l, m, &r, &dg));
    return l;
}

static const struct regime no_cache = {.lanes = 4, .pieces = 3};

/* ---- identities ---------------------------------------------------------------------------- */

static void kimi_k3_routes_25_83_gb_a_token_in_92_layers(void **state) /* V01, V02 */
{
    (void)state;
    struct model *m = model_of("kimi-k3", NULL, NULL);
    struct workload l = decode_of(m, 0);
    uint64_t layers = 0;
    for (size_t i = 0; i < l.class_count; i++)
        if (l.classes[i].unique_e3) {
            layers += l.classes[i].layers;
            assert_close((double)l.classes[i].expert_size / 1e6, 17.547, 17.547 * 0.01);
        }
    assert_int_equal(layers, 92);
    assert_close((double)workload_expert_bytes(&l) / 1e9, 25.83, 25.83 * 0.01);
    workload_free(&l);
    model_free(m);
}

static void an_engine_that_streams_everything_moves_139_gb_a_token(void **state) /* V03, I-1 */
{
    (void)state;
    struct model *m = model_of("kimi-k3", NULL, NULL);
    struct device *d = device_of("rtx-6000-ada-48gb", NULL);
    struct machine machine = machine_of(d, RATES_PEAK);
    struct workload l = decode_of(m, 0);
    struct regime r = {.lanes = 1,
                       .pieces = 3,
                       .stream_trunk = RATIO_ONE,
                       .stream_bytes = m->bytes_embedding + m->bytes_head};
    struct tally y;
    estimate_tally(&y, &l, &machine, &r);
    assert_close((double)y.flash_bytes / 1e9, 139.3, 139.3 * 0.02);
    workload_free(&l);
    device_free(d);
    model_free(m);
}

static uint64_t flash_ns(uint64_t bytes, const char *bandwidth)
{
    struct device *d = device_of("ryzen-9950x-9100-pro", bandwidth);
    struct machine m = machine_of(d, RATES_PEAK);
    uint64_t ns = time_for(bytes, tier_rate(&m, TIER_FLASH));
    device_free(d);
    return ns;
}

static void essay_bytes_over_nvme_take_4_17_to_6_25_s_and_a_terabyte_200_s(void **state)
{
    (void)state; /* V06, V07 */
    assert_close((double)flash_ns(25000000000, "storage.0.bandwidth=6GB/s") / 1e9, 4.17, 0.0417);
    assert_close((double)flash_ns(25000000000, "storage.0.bandwidth=4GB/s") / 1e9, 6.25, 0.0625);
    assert_close((double)flash_ns(1000000000000, "storage.0.bandwidth=5GB/s") / 1e9, 200.0, 2.0);
}

static void the_ladder_of_llm_in_a_flash_follows_from_bytes_and_the_closed_form(void **state)
{
    (void)state; /* V20a-e: GB, read size, published ms */
    static const struct {
        double gb;
        uint64_t bytes;
        double ms;
    } step[] = {{13.4, 1 << 20, 2196},
                {6.7, 1 << 20, 1090},
                {0.9, 8192, 738},
                {0.2, 8192, 164},
                {0.2, 16384, 87}};
    struct device *d = device_of("apple-m1-max-llm-in-a-flash", NULL);
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        uint64_t rate = storage_closed_rate_Bps(&d->storage[0], step[i].bytes, 32);
        double ms = (double)time_for((uint64_t)(step[i].gb * 1e9), rate) / 1e6;
        assert_close(ms, step[i].ms, step[i].ms * 0.05);
    }
    device_free(d);
}

static void hbf_draws_5_78_times_the_power_of_on_package_lpddr(void **state) /* V26 */
{
    (void)state;
    struct device *hbf = device_of("hbf-gen1", NULL);
    struct device *lpddr = device_of("on-package-lpddr", NULL);
    double stacks = 8; /* of one GPU, as H3 places them */
    double ratio =
        stacks * (double)hbf->storage[0].read_power.amount / (double)lpddr->load_power.amount;
    assert_close(ratio, 5.78, 0.0578);
    device_free(hbf);
    device_free(lpddr);
}

static void one_h100_would_use_a_third_of_a_percent_of_its_peak_for_one_user(void **state)
{
    (void)state; /* V29, V30 */
    struct model *m = model_of("llama-3.1-70b", NULL, NULL);
    struct device *d = device_of("h100-sxm", NULL);
    struct machine machine = machine_of(d, RATES_PEAK);
    struct workload l = decode_of(m, 0);
    struct regime r = {.hit_ratio = RATIO_ONE, .lanes = 1, .pieces = 1};
    struct bounds b;
    estimate_bounds(&b, &l, &machine, &r);
    assert_close((double)ridge_e3(&machine, TIER_DRAM) / 1000.0, 295.2, 2.952);
    assert_close(100.0 * (double)b.compute_ns / (double)b.lower_ns, 0.34, 0.017);
    assert_close((double)b.lower_ns / 1e6, 41.8, 0.6);
    assert_close(1e9 / (double)b.lower_ns, 23.9, 0.36);
    assert_string_equal(b.binds, "DRAM");
    workload_free(&l);
    device_free(d);
    model_free(m);
}

static void a_70b_model_at_4_5_bits_is_bound_to_15_5_tokens_on_614_gb_s(void **state) /* V24 */
{
    (void)state;
    struct model *m = model_of("llama-3.1-70b", "q4_0", NULL);
    struct device *d = device_of("m5-max-48gb", NULL);
    struct machine machine = machine_of(d, RATES_PEAK);
    struct workload l = decode_of(m, 0);
    struct regime r = {.hit_ratio = RATIO_ONE, .lanes = 1, .pieces = 1};
    struct bounds b;
    assert_close((double)model_weight_bytes(m) / 1e9, 39.7, 0.397);
    estimate_bounds(&b, &l, &machine, &r);
    assert_close(1e9 / (double)b.lower_ns, 15.5, 0.31);
    assert_close(12.6 * (double)b.lower_ns / 1e9, 0.81, 0.0162);
    workload_free(&l);
    device_free(d);
    model_free(m);
}

/* SYSTEMS 2(b): I/O-only rates at 1.6, 2.5 and 4 GB/s, what-ifs at 15 and 20, crossovers. */
struct phone_row {
    uint64_t top_k;
    const char *format;
    double io[3], serial[2], overlap[2], crossover, crossover_80;
};

static void check_phone_row(const struct phone_row *row)
{
    char set[64];
    snprintf(set, sizeof set, "formats.expert=%s", row->format);
    const char *overrides[] = {"formats.default=mlx4-g64", set};
    struct model *m;
    assert_ok(model_load(&m, "qwen3.5-397b-a17b", "models/desc", overrides, 2, &dg));
    set_top_k(m, row->top_k);
    struct device *d = device_of("iphone-17-pro", NULL);
    struct machine machine = machine_of(d, RATES_PEAK);
    struct workload l = decode_of(m, 0);
    struct tally y;
    struct weights_only w;
    estimate_tally(&y, &l, &machine, &no_cache);
    uint64_t trunk = model_weight_bytes(m) - model_experts_bytes(m), dram = machine.memory_Bps;
    static const uint64_t slow[3] = {1600000000, 2500000000, 4000000000};
    static const uint64_t fast[2] = {15000000000, 20000000000};
    for (int i = 0; i < 3; i++) {
        weights_only(&w, &y, trunk, slow[i], dram);
        assert_close(1e9 / (double)w.flash_ns, row->io[i], 0.006);
    }
    for (int i = 0; i < 2; i++) {
        weights_only(&w, &y, trunk, fast[i], dram);
        assert_close(1e9 / (double)w.serial_ns, row->serial[i], 0.06);
        assert_close(1e9 / (double)w.overlap_ns, row->overlap[i], row->overlap[i] * 0.01);
    }
    assert_close((double)w.crossover_Bps / 1e9, row->crossover, row->crossover * 0.01);
    weights_only(&w, &y, trunk, slow[0], dram / 10 * 8);
    assert_close((double)w.crossover_Bps / 1e9, row->crossover_80, row->crossover_80 * 0.01);
    workload_free(&l);
    device_free(d);
    model_free(m);
}

static void phone_flash_bounds_and_crossovers_are_those_of_the_published_table(void **state)
{
    (void)state;
    static const struct phone_row rows[] = {
        {4, "mlx4-g64", {0.94, 1.47, 2.35}, {4.8, 5.6}, {8.8, 10.7}, 18.1, 14.5},
        {4, "mlx2-g64", {1.70, 2.65, 4.24}, {6.8, 7.6}, {11.9, 11.9}, 11.2, 9.0},
        {10, "mlx4-g64", {0.38, 0.59, 0.94}, {2.4, 3.0}, {3.5, 4.7}, 33.5, 26.8},
        {10, "mlx2-g64", {0.68, 1.06, 1.70}, {3.9, 4.5}, {6.4, 8.5}, 23.1, 18.4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_phone_row(&rows[i]);
}

static void a_mixture_of_hits_and_misses_is_what_flash_moe_measured(void **state) /* V15 */
{
    (void)state;
    uint64_t q[2];
    miss_distribution(q, 1, 710000000);
    double ms = (1.0 * (double)q[0] + 5.8 * (double)q[1]) / 4294967296.0;
    assert_close(ms, 2.39, 0.005);
}

/* ---- laws ---------------------------------------------------------------------------------- */

static void the_miss_distribution_is_binomial(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 22; n += 3)
        for (uint64_t h = 0; h <= RATIO_ONE; h += RATIO_ONE / 8) {
            uint64_t q[65], sum = 0;
            double mean = 0, none = 1;
            miss_distribution(q, n, h);
            for (uint64_t j = 0; j <= n; j++) {
                sum += q[j];
                mean += (double)j * (double)q[j] / 4294967296.0;
            }
            for (uint64_t j = 0; j < n; j++)
                none *= (double)h / 1e9;
            assert_int_equal(sum, UINT64_C(1) << 32);
            assert_close(mean, (double)n * (1.0 - (double)h / 1e9), 1e-6);
            assert_close((double)q[0] / 4294967296.0, none, 1e-7);
        }
}

static const char *const some_models[] = {"qwen3-30b-a3b", "kimi-k3", "gpt-oss-120b",
                                          "llama-3.1-8b", "deepseek-v4-flash"};
static const char *const some_devices[] = {"oneplus-15r", "m5-max-128gb", "raspberry-pi-5-8gb",
                                           "rtx-4090-pc", "h100-sxm"};
#define EACH(i, list) for (size_t i = 0; i < sizeof list / sizeof *list; i++)

typedef void check_fn(const struct workload *l, const struct machine *m, const struct regime *r);

static void for_many(check_fn *check)
{
    EACH(i, some_models)
    {
        struct model *m = model_of(some_models[i], NULL, NULL);
        struct workload l = decode_of(m, 4096);
        EACH(j, some_devices)
        {
            struct device *d = device_of(some_devices[j], NULL);
            struct machine machine = machine_of(d, RATES_REACHED);
            for (uint64_t h = 0; h <= 4; h++) {
                struct regime r = {.hit_ratio = h * RATIO_ONE / 4,
                                   .lanes = 1 + h,
                                   .pieces = 1 + h,
                                   .copies = h % 2,
                                   .stream_trunk = h == 1 ? RATIO_ONE / 3 : 0};
                check(&l, &machine, &r);
            }
            device_free(d);
        }
        workload_free(&l);
        model_free(m);
    }
}

static uint64_t total_ns(const struct workload *l, const struct machine *m, struct regime r,
                         enum profile profile)
{
    struct timing t;
    r.profile = profile;
    estimate_timing(&t, l, m, &r);
    assert_int_equal(t.total_ns,
                     t.flash_ns + t.link_ns + t.compute_ns + t.memory_ns + t.overhead_ns);
    return t.total_ns;
}

static void check_order(const struct workload *l, const struct machine *m, const struct regime *r)
{
    struct bounds b;
    uint64_t perfect = total_ns(l, m, *r, PROFILE_PERFECT);
    uint64_t overlap = total_ns(l, m, *r, PROFILE_OVERLAP);
    uint64_t serial = total_ns(l, m, *r, PROFILE_SERIAL);
    estimate_bounds(&b, l, m, r);
    assert_true(b.lower_ns <= perfect);
    assert_true(perfect <= overlap);
    assert_true(overlap <= serial);
    assert_true(serial <= b.upper_ns);
}

static void bound_perfect_overlap_serial_and_sum_stand_in_this_order(void **state)
{
    (void)state;
    for_many(check_order);
}

static void check_doubling(const struct workload *l, const struct machine *m,
                           const struct regime *r)
{
    for (int p = PROFILE_SERIAL; p <= PROFILE_PERFECT; p++) {
        uint64_t before = total_ns(l, m, *r, (enum profile)p);
        for (int i = 0; i < INPUT_COUNT; i++) {
            struct machine faster = *m;
            if (i == INPUT_FLASH_LATENCY || i == INPUT_CALL || i == INPUT_EFFICIENCY)
                continue;
            machine_scale(&faster, (enum input_id)i, 2 * RATIO_ONE);
            assert_true(total_ns(l, &faster, *r, (enum profile)p) <= before);
        }
        struct machine faster = *m;
        machine_scale_flash(&faster, 2 * RATIO_ONE);
        assert_true(total_ns(l, &faster, *r, (enum profile)p) <= before);
    }
}

static void doubling_a_rate_never_slows_a_pass(void **state)
{
    (void)state;
    for_many(check_doubling);
}

static void flash_twice_as_fast_halves_what_it_alone_decides(void **state)
{
    (void)state;
    struct model *m = model_of("kimi-k3", NULL, NULL);
    struct device *d = device_of("oneplus-15r", "storage.0.latency=1ns");
    struct machine machine = machine_of(d, RATES_REACHED);
    struct workload l = decode_of(m, 0);
    struct timing before, after;
    estimate_timing(&before, &l, &machine, &no_cache);
    machine_scale_flash(&machine, 2 * RATIO_ONE);
    estimate_timing(&after, &l, &machine, &no_cache);
    assert_close((double)after.flash_ns / (double)before.flash_ns, 0.5, 1e-5);
    assert_int_equal(after.compute_ns, before.compute_ns);
    workload_free(&l);
    device_free(d);
    model_free(m);
}

static void check_rows(const struct workload *l, const struct machine *m, const struct regime *r)
{
    struct op_row rows[OP_ROWS], sum = {0};
    struct tally y;
    size_t count = op_table(rows, l, m, r);
    estimate_tally(&y, l, m, r);
    for (size_t i = 0; i < count; i++) {
        sum.ops += rows[i].ops;
        sum.flash_bytes += rows[i].flash_bytes;
        sum.dram_bytes += rows[i].dram_bytes;
        sum.link_bytes += rows[i].link_bytes;
        assert_true(rows[i].bound_ns >= rows[i].compute_ns && rows[i].bound_ns >= rows[i].dram_ns);
    }
    assert_int_equal(sum.ops, y.ops);
    assert_close((double)sum.flash_bytes, (double)y.flash_bytes, 2000);
    assert_close((double)sum.link_bytes, (double)y.link_bytes, 2000);
    assert_close((double)sum.dram_bytes, (double)y.memory_bytes, 6000);
}

static void the_rows_of_the_table_add_up_to_the_pass(void **state)
{
    (void)state;
    for_many(check_rows);
}

static void dram_sees_a_read_byte_once_a_copied_one_three_times(void **state) /* SYSTEMS 1.2 */
{
    (void)state;
    struct model *m = model_of("qwen3-30b-a3b", NULL, NULL);
    struct device *d = device_of("oneplus-15r", NULL);
    struct machine machine = machine_of(d, RATES_REACHED);
    struct workload l = decode_of(m, 1000);
    struct regime r = {.hit_ratio = RATIO_ONE, .lanes = 4, .pieces = 3};
    struct tally none, read, copied;
    estimate_tally(&none, &l, &machine, &r);
    r.hit_ratio = RATIO_ONE / 2;
    estimate_tally(&read, &l, &machine, &r);
    r.copies = 1;
    estimate_tally(&copied, &l, &machine, &r);
    assert_int_equal(none.flash_bytes, 0);
    assert_int_equal(none.dram_bytes, work_weight_bytes_total(&l.total) + l.total.state_read_bytes +
                                          l.total.state_write_bytes);
    assert_int_equal(read.dram_bytes, none.dram_bytes + read.flash_bytes);
    assert_int_equal(copied.dram_bytes, none.dram_bytes + 3 * read.flash_bytes);
    workload_free(&l);
    device_free(d);
    model_free(m);
}

static void a_batch_unites_its_experts_and_keeps_its_states_apart(void **state) /* SYSTEMS 1.7 */
{
    (void)state;
    struct model *m = model_of("qwen3-30b-a3b", NULL, NULL);
    struct workload one = decode_of(m, 1000), two;
    struct workload_request r = {
        .sequences = 2, .tokens = 1, .context = 1000, .logits = 2, .state_bits = STATE_BITS_F16};
    assert_ok(workload_init(&two, m, &r, &dg));
    double united = 128.0 * (1 - (1 - 8.0 / 128) * (1 - 8.0 / 128)) / 8;
    assert_close((double)workload_expert_bytes(&two) / (double)workload_expert_bytes(&one), united,
                 0.001);
    assert_int_equal(two.total.state_read_bytes, 2 * one.total.state_read_bytes);
    assert_int_equal(two.total.attention_ops, 2 * one.total.attention_ops);
    assert_int_equal(two.total.weight_bytes[GROUP_ATTENTION],
                     one.total.weight_bytes[GROUP_ATTENTION]);
    workload_free(&one);
    workload_free(&two);
    model_free(m);
}

static void the_least_rate_is_enough_and_one_less_is_not(void **state)
{
    (void)state;
    struct model *m = model_of("qwen3-30b-a3b", NULL, NULL);
    struct device *d = device_of("m5-max-128gb", NULL);
    struct machine machine = machine_of(d, RATES_PEAK), changed;
    struct workload l = decode_of(m, 0);
    struct bounds b;
    uint64_t rate, wanted = 200000000;
    assert_true(tier_need(&rate, TIER_FLASH, false, &l, &machine, &no_cache, wanted));
    changed = machine;
    changed.flash.bandwidth.amount = rate;
    estimate_bounds(&b, &l, &changed, &no_cache);
    assert_true(b.lower_ns <= wanted);
    changed.flash.bandwidth.amount = rate - 1;
    estimate_bounds(&b, &l, &changed, &no_cache);
    assert_true(b.lower_ns > wanted);
    assert_false(tier_need(&rate, TIER_FLASH, false, &l, &machine, &no_cache, 1000));
    workload_free(&l);
    device_free(d);
    model_free(m);
}

static void above_the_crossover_dram_binds_and_below_it_flash_does(void **state)
{
    (void)state;
    struct model *m = model_of("qwen3.5-397b-a17b", "mlx4-g64", NULL);
    struct device *d = device_of("iphone-17-pro", NULL);
    struct machine machine = machine_of(d, RATES_PEAK);
    struct workload l = decode_of(m, 0);
    struct tally y;
    struct bounds b;
    estimate_tally(&y, &l, &machine, &no_cache);
    uint64_t at = crossover_Bps(y.flash_bytes, y.memory_bytes, machine.memory_Bps);
    machine.flash.bandwidth.amount = at - 1000000;
    estimate_bounds(&b, &l, &machine, &no_cache);
    assert_string_equal(b.binds, "flash");
    machine.flash.bandwidth.amount = at + 1000000;
    estimate_bounds(&b, &l, &machine, &no_cache);
    assert_string_equal(b.binds, "DRAM");
    workload_free(&l);
    device_free(d);
    model_free(m);
}

static void an_efficiency_above_one_is_refused(void **state)
{
    (void)state;
    struct device *d = device_of("oneplus-15r", NULL);
    struct machine m;
    struct machine_choice c = {.cards = 1, .rates = RATES_REACHED};
    d->compute[0].efficiency.amount = RATIO_ONE + 1;
    assert_int_equal(machine_init(&m, d, &c, &dg), ST_RANGE);
    device_free(d);
}

/* ---- the command --------------------------------------------------------------------------- */

static void a_model_that_does_not_fit_one_card_is_refused(void **state) /* I-14 */
{
    (void)state;
    expect_holds("roofline llama-3.1-70b --device h100-sxm", 1, NULL, "does not fit");
    expect_holds("roofline llama-3.1-70b --device h100-sxm --hypothetical", 0, "total",
                 "hypothetical");
    expect_holds("roofline llama-3.1-70b --device h100-sxm --tp 2", 0, "total", NULL);
}

static void a_bound_of_a_model_with_experts_does_not_need_its_dense_weights_to_fit(void **state)
{
    (void)state;
    expect_holds("roofline qwen3.5-397b-a17b --device iphone-17-pro", 0, "total", "does not fit");
    expect_holds("roofline qwen3.5-397b-a17b --device iphone-17-pro --dense resident", 1, NULL,
                 "does not fit");
    struct run a = run_memwall("roofline qwen3.5-397b-a17b --device iphone-17-pro --format csv"),
               b = run_memwall("roofline qwen3.5-397b-a17b --device iphone-17-pro --format csv "
                               "--dense stream");
    assert_string_equal(a.out, b.out);
    assert_int_equal(b.err_bytes, 0);
    run_free(&a);
    run_free(&b);
}

static void figures_for_people_have_three_digits_and_a_unit(void **state)
{
    (void)state;
    expect_holds(
        "roofline qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --cache 4GiB --want 10tok/s "
        "--summary",
        0, "\nlower_bound                     114 ms ", NULL);
    expect_holds(
        "roofline qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --cache 4GiB --want 10tok/s "
        "--summary",
        0, "\nneed_compute_serial             not by this alone ", NULL);
    expect_holds(
        "roofline qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --cache 4GiB --format csv "
        "--summary",
        0, "\nlower_bound,0.114474,s,", NULL);
}

static void a_rate_above_the_bound_is_an_error(void **state) /* I-9 */
{
    (void)state;
    expect_holds("roofline llama-3.1-70b --device m5-max-48gb --quant q4_0 --measured 12.6tok/s "
                 "--format csv",
                 0, "efficiency,0.80", NULL);
    expect_holds(
        "roofline llama-3.1-70b --device m5-max-48gb --quant q4_0 --measured 18tok/s --format csv",
        1, NULL, "efficiency above 1");
}

static void misuse_of_the_command_exits_with_2_and_one_line(void **state)
{
    (void)state;
    expect_holds("roofline", 2, NULL, "memwall:");
    expect_holds("roofline qwen3-30b-a3b", 2, NULL, "--device");
    expect_holds("roofline qwen3-30b-a3b --device oneplus-15r --hit-ratio 1.5", 2, NULL,
                 "at most 1");
    expect_holds("roofline qwen3-30b-a3b --device oneplus-15r --want 5", 2, NULL, "--want");
    expect_holds("roofline qwen3-30b-a3b --device oneplus-15r --batch 2 --prefill 8", 2, NULL,
                 "exclude");
    expect_holds(
        "roofline qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --cache 2GiB --batch 2", 2,
        NULL, "--hit-ratio");
    expect_holds("roofline qwen3-30b-a3b --device oneplus-15r --top-k 200", 1, NULL,
                 "only 128 experts");
    expect_holds("roofline qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --cache 2GiB "
                 "--hit-ratio 0.5",
                 2, NULL, "--hit-ratio");
    expect_holds("roofline llama-3.1-8b --device oneplus-15r --top-k 4", 2, NULL,
                 "no routed experts");
    expect_holds("roofline llama-3.1-8b --device oneplus-15r --expert-quant q4_k", 2, NULL,
                 "no routed experts");
    expect_holds("roofline qwen3-30b-a3b --device oneplus-15r --expert-quant q4_k_m", 2, NULL,
                 "experts take one, as q4_k");
    expect_holds("roofline qwen3-30b-a3b --device oneplus-15r --unit gpu", 1, NULL, "it has cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kimi_k3_routes_25_83_gb_a_token_in_92_layers),
        cmocka_unit_test(an_engine_that_streams_everything_moves_139_gb_a_token),
        cmocka_unit_test(essay_bytes_over_nvme_take_4_17_to_6_25_s_and_a_terabyte_200_s),
        cmocka_unit_test(the_ladder_of_llm_in_a_flash_follows_from_bytes_and_the_closed_form),
        cmocka_unit_test(hbf_draws_5_78_times_the_power_of_on_package_lpddr),
        cmocka_unit_test(one_h100_would_use_a_third_of_a_percent_of_its_peak_for_one_user),
        cmocka_unit_test(a_70b_model_at_4_5_bits_is_bound_to_15_5_tokens_on_614_gb_s),
        cmocka_unit_test(phone_flash_bounds_and_crossovers_are_those_of_the_published_table),
        cmocka_unit_test(a_mixture_of_hits_and_misses_is_what_flash_moe_measured),
        cmocka_unit_test(the_miss_distribution_is_binomial),
        cmocka_unit_test(bound_perfect_overlap_serial_and_sum_stand_in_this_order),
        cmocka_unit_test(doubling_a_rate_never_slows_a_pass),
        cmocka_unit_test(flash_twice_as_fast_halves_what_it_alone_decides),
        cmocka_unit_test(the_rows_of_the_table_add_up_to_the_pass),
        cmocka_unit_test(dram_sees_a_read_byte_once_a_copied_one_three_times),
        cmocka_unit_test(a_batch_unites_its_experts_and_keeps_its_states_apart),
        cmocka_unit_test(the_least_rate_is_enough_and_one_less_is_not),
        cmocka_unit_test(above_the_crossover_dram_binds_and_below_it_flash_does),
        cmocka_unit_test(an_efficiency_above_one_is_refused),
        cmocka_unit_test(a_model_that_does_not_fit_one_card_is_refused),
        cmocka_unit_test(a_bound_of_a_model_with_experts_does_not_need_its_dense_weights_to_fit),
        cmocka_unit_test(figures_for_people_have_three_digits_and_a_unit),
        cmocka_unit_test(a_rate_above_the_bound_is_an_error),
        cmocka_unit_test(misuse_of_the_command_exits_with_2_and_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
