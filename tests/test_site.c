/* test_site.c -- where the kernels of a plan run: a unit with memory of its own, its link, the host that
 * computes the experts beside it; the rules for rates that descriptions leave out. */
#include "models/state.h"
#include "sim/plan/planner.h"
#include "tests/plan_bench.h"
#include "tests/support.h"

static struct diag dg;

static struct bench bench_on(const char *model, const char *device, const char *quant,
                             const char *unit)
{
    struct bench b = bench_of(model, device, quant);
    b.r.unit = unit;
    return b;
}

static struct machine machine_of(const struct bench *b, enum rates rates)
{
    struct machine m;
    struct machine_choice c = {.cards = 1, .rates = rates, .unit = b->r.unit};
    assert_ok(machine_init(&m, b->d, &c, &dg));
    return m;
}

/* Each site by itself gives the time that the choice lists for it, and the first is the least. */
static void the_fastest_site_is_taken_and_the_others_are_listed(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt-oss-120b", "qwen3-235b-a22b"};
    for (size_t i = 0; i < 2; i++) {
        struct bench b = bench_on(models[i], "rtx-4090-pc", "mxfp4", NULL);
        struct plan *p = plan_of(&b);
        assert_int_equal(p->site_count, 3);
        for (size_t s = 0; s < p->site_count; s++) {
            b.r.unit = p->site[s].name;
            struct plan *q = plan_of(&b);
            assert_int_equal(q->timing.total_ns, p->site[s].token_ns);
            assert_true(p->timing.total_ns <= q->timing.total_ns);
            plan_free(q);
        }
        assert_string_equal(p->site[0].name, "gpu+cpu");
        plan_free(p);
        bench_free(&b);
    }
}

static void experts_computed_by_the_host_do_not_cross_the_link(void **state)
{
    (void)state;
    struct bench b = bench_on("gpt-oss-120b", "rtx-4090-pc", NULL, "gpu+cpu");
    struct plan *p = plan_of(&b);
    assert_int_equal(p->tally.link_bytes, 0);
    assert_true(p->tally.dram_bytes >= p->tally.expert_bytes);
    assert_true(p->timing.host_memory_ns >= time_for(p->tally.expert_bytes, p->machine.dram_Bps));
    uint64_t split = p->tally.memory_bytes;
    plan_free(p);
    b.r.unit = "gpu";
    p = plan_of(&b);
    assert_int_equal(p->tally.link_bytes, p->tally.expert_bytes);
    assert_int_equal(p->tally.memory_bytes, split + 2 * p->tally.expert_bytes);
    plan_free(p);
    bench_free(&b);
}

static void a_token_on_two_units_lies_between_its_bounds(void **state)
{
    (void)state;
    struct bench b = bench_on("qwen3-235b-a22b", "rtx-4090-pc", "q4_k_m", "gpu+cpu");
    for (int profile = PROFILE_SERIAL; profile <= PROFILE_PERFECT; profile++) {
        b.r.profile = (enum profile)profile;
        struct plan *p = plan_of(&b);
        const struct timing *t = &p->timing;
        assert_true(p->bounds.lower_ns <= t->total_ns && t->total_ns <= p->bounds.upper_ns);
        assert_int_equal(t->flash_ns + t->link_ns + t->compute_ns + t->memory_ns + t->overhead_ns +
                             t->host_memory_ns,
                         t->total_ns);
        assert_int_equal(t->link_ns, 0); /* dense weights lie in the unit's memory */
        plan_free(p);
    }
    bench_free(&b);
}

static void a_model_that_fits_the_card_has_no_other_site(void **state)
{
    (void)state;
    struct bench b = bench_on("qwen3-30b-a3b", "rtx-4090-pc", "q4_k_m", NULL);
    struct plan *p = plan_of(&b);
    assert_int_equal(p->site_count, 1);
    assert_string_equal(p->site[0].name, "gpu");
    assert_true(p->place.experts_on_unit && p->place.fits);
    plan_free(p);
    bench_free(&b);
}

static void a_faster_link_helps_who_copies_experts_over_it(void **state)
{
    (void)state;
    struct bench b = bench_on("gpt-oss-120b", "rtx-4090-pc", NULL, "gpu");
    struct plan *p = plan_of(&b);
    struct answer a[WISH_COUNT];
    struct plan_case c;
    struct timing t;
    for (size_t i = 0; i < p->what_if_count; i++)
        if (strcmp(p->what_if[i].key, "link_2x") == 0)
            assert_true(p->what_if[i].factor.mid > RATIO_ONE * 5 / 4);
    uint64_t wanted = p->timing.total_ns / 10 * 8;
    plan_want(a, p, wanted);
    assert_true(a[WISH_LINK].reachable && a[WISH_LINK].need > a[WISH_LINK].now);
    plan_base_case(&c, p);
    c.machine.link_Bps = a[WISH_LINK].need - 1;
    plan_token(&t, p, &c);
    assert_true(t.total_ns > wanted);
    plan_free(p);
    bench_free(&b);
}

static void a_unit_that_cannot_be_a_host_is_refused(void **state)
{
    (void)state;
    static const char *const units[] = {"gpu+gpu", "cpu+cpu", "gpu+npu", "tpu"};
    for (size_t i = 0; i < 4; i++) {
        struct bench b = bench_on("gpt-oss-120b", "rtx-4090-pc", NULL, units[i]);
        struct plan *p;
        assert_int_equal(plan_new(&p, b.m, b.d, &b.r, &dg), ST_MISSING);
        assert_null(p);
        bench_free(&b);
    }
    assert_non_null(strstr(dg.text, "it has cpu, gpu"));
}

static void a_link_reaches_085_of_the_raw_rate_and_a_bound_takes_all_of_it(void **state)
{
    (void)state;
    struct bench b = bench_on("gpt-oss-120b", "rtx-4090-pc", NULL, "gpu");
    struct machine m = machine_of(&b, RATES_REACHED);
    assert_int_equal(m.link_Bps, 27200000000);
    assert_int_equal(m.input[INPUT_LINK].value.kind, KIND_ASSUMED);
    m = machine_of(&b, RATES_PEAK);
    assert_int_equal(m.link_Bps, 32000000000);
    b.d->compute[1].link_bandwidth.kind = KIND_MEASURED;
    m = machine_of(&b, RATES_REACHED);
    assert_int_equal(m.link_Bps, 32000000000);
    bench_free(&b);
}

/* One token reaches the stated share; many come near a quarter of the peak, never above it. */
static void the_share_of_the_peak_grows_with_the_tokens_of_a_product(void **state)
{
    (void)state;
    struct bench b = bench_on("qwen3-30b-a3b", "oneplus-15r", "q4_k_m", NULL);
    struct machine m = machine_of(&b, RATES_REACHED);
    assert_int_equal(machine_ops(&m, 1000), m.reached_ops);
    assert_int_equal(m.gemm_ops, m.peak_ops / 4);
    assert_int_equal(m.input[INPUT_GEMM].value.kind, KIND_ASSUMED);
    uint64_t last = 0;
    for (uint64_t rows = 1000; rows < 10000000; rows *= 2) {
        uint64_t now = machine_ops(&m, rows);
        assert_true(now > last && now <= m.gemm_ops);
        assert_true(now / (rows / 1000) <= m.reached_ops);
        last = now;
    }
    assert_close((double)last / (double)m.gemm_ops, 1.0, 0.01);
    m = machine_of(&b, RATES_PEAK);
    assert_int_equal(machine_ops(&m, 64000), m.peak_ops);
    bench_free(&b);
}

static void with_both_flash_and_memory_less_of_each_is_needed(void **state)
{
    (void)state;
    struct bench b = bench_on("qwen3-30b-a3b", "oneplus-15r", "q4_k_m", NULL);
    b.r.place.memory = 6ull << 30;
    struct plan *p = plan_of(&b);
    struct answer a[WISH_COUNT];
    struct together both;
    uint64_t wanted = p->timing.total_ns / 10 * 8;
    plan_want(a, p, wanted);
    plan_want_together(&both, p, wanted);
    assert_true(both.reachable && both.factor > RATIO_ONE);
    assert_true(both.flash < a[WISH_FLASH].need && both.memory < a[WISH_MEMORY].need);
    assert_true(a[WISH_FLASH].need_low <= a[WISH_FLASH].need);
    assert_true(a[WISH_FLASH].need <= a[WISH_FLASH].need_high);
    assert_true(a[WISH_FLASH].best_ns <= wanted);
    plan_want_together(&both, p, 1);
    assert_false(both.reachable);
    assert_true(both.best_ns > 1 && both.best_ns < p->timing.total_ns);
    plan_free(p);
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_site_is_taken_and_the_others_are_listed),
        cmocka_unit_test(experts_computed_by_the_host_do_not_cross_the_link),
        cmocka_unit_test(a_token_on_two_units_lies_between_its_bounds),
        cmocka_unit_test(a_model_that_fits_the_card_has_no_other_site),
        cmocka_unit_test(a_faster_link_helps_who_copies_experts_over_it),
        cmocka_unit_test(a_unit_that_cannot_be_a_host_is_refused),
        cmocka_unit_test(a_link_reaches_085_of_the_raw_rate_and_a_bound_takes_all_of_it),
        cmocka_unit_test(the_share_of_the_peak_grows_with_the_tokens_of_a_product),
        cmocka_unit_test(with_both_flash_and_memory_less_of_each_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
