/* test_estimate.c -- the estimator on figures small enough to work out by hand: two equal layers, two experts
 * a token, round rates. Laws on real models are in test_roofline.c. */
#include "tests/support.h"

#include "sim/roofline/estimate.h"
#include "sim/roofline/ridge.h"

#define US UINT64_C(1000)

static struct diag dg;

static struct value given(uint64_t amount)
{
    return (struct value){.amount = amount, .kind = KIND_ASSUMED, .given = true};
}

/* Reads of 100 us, 1 GB/s each, 2 GB/s together; memory of 10 GB/s; 10^12 operations/s; 5 us a call. */
static struct machine toy_machine(void)
{
    return (struct machine){.flash = {.latency = given(100 * US),
                                      .lane_bandwidth = given(1000000000),
                                      .bandwidth = given(2000000000)},
                            .flash_given = true,
                            .dram_Bps = 10000000000,
                            .memory_Bps = 10000000000,
                            .peak_ops = 1000000000000,
                            .reached_ops = 1000000000000,
                            .call_ns = 5 * US,
                            .cards = 1};
}

/* Of each layer 1 us or 500 us for what is fixed, 800 us or 200 us for two experts of 1 MB; then 1 us or
 * 100 us for the head: operations or bytes. */
static struct workload toy_load(struct layer_class *c)
{
    *c = (struct layer_class){.layers = 2,
                              .unique_e3 = 2000,
                              .expert_size = 1000000,
                              .expert_ops = 800000000,
                              .expert_read_bytes = 2000000,
                              .fixed_ops = 1000000,
                              .fixed_bytes = 5000000,
                              .trunk_bytes = 4000000,
                              .calls = 7};
    struct workload l = {
        .tokens = 1, .class_count = 1, .classes = c, .ends_ops = 1000000, .ends_bytes = 1000000};
    l.total.ops[GROUP_EXPERT] = 2 * c->expert_ops;
    l.total.ops[GROUP_ATTENTION] = 2 * c->fixed_ops;
    l.total.ops[GROUP_HEAD] = l.ends_ops;
    return l;
}

/* Half of the look-ups hit; two reads an expert, four at a time; each byte is copied once. */
static const struct regime half = {
    .hit_ratio = RATIO_ONE / 2, .lanes = 4, .pieces = 2, .copies = 1};

static void bytes_of_every_tier_are_counted_as_the_equations_say(void **state)
{
    (void)state;
    struct machine m = toy_machine();
    struct layer_class c;
    struct workload l = toy_load(&c);
    struct tally y;
    estimate_tally(&y, &l, &m, &half);
    assert_int_equal(y.expert_bytes, 4000000);
    assert_int_equal(y.flash_bytes, 2000000);
    assert_int_equal(y.reads, 4); /* 2 layers, 2 experts, 2 pieces, half of them */
    /* fixed and experts of two layers, the head, and what is read: written once, copied out and in */
    assert_int_equal(y.memory_bytes, 14000000 + 1000000 + 3 * 2000000);
    assert_int_equal(y.dram_bytes, y.memory_bytes);
    assert_int_equal(y.link_bytes, 0);
    assert_int_equal(y.ops, 1603000000);
}

static void a_unit_with_memory_of_its_own_gets_experts_over_the_link(void **state)
{
    (void)state;
    struct machine m = toy_machine();
    struct layer_class c;
    struct workload l = toy_load(&c);
    struct regime r = half;
    struct tally y;
    m.own_memory = true;
    m.link_Bps = 4000000000;
    estimate_tally(&y, &l, &m, &r);
    assert_int_equal(y.link_bytes, 4000000); /* cached experts lie in the DRAM: all of them cross */
    assert_int_equal(y.dram_bytes, 3 * 2000000 + 4000000);
    assert_int_equal(y.memory_bytes, 14000000 + 1000000 + 4000000);
    r.experts_on_unit = true;
    estimate_tally(&y, &l, &m, &r);
    assert_int_equal(y.link_bytes, 2000000);
}

/* One miss is a round of 100 + 500 us; two are 100 us and 2 MB at 2 GB/s. The odds are 1/2 and 1/4. */
#define LAYER_READ (600 * US / 2 + 1100 * US / 4)

static void serial_time_is_the_sum_of_its_parts(void **state)
{
    (void)state;
    struct machine m = toy_machine();
    struct layer_class c;
    struct workload l = toy_load(&c);
    struct timing t;
    estimate_timing(&t, &l, &m, &half);
    assert_int_equal(t.flash_ns, 2 * LAYER_READ);
    assert_int_equal(t.compute_ns, 2 * 800 * US);
    assert_int_equal(t.memory_ns, 2 * 500 * US + 100 * US);
    assert_int_equal(t.overhead_ns, (2 * 7 + 1) * 5 * US);
    assert_int_equal(t.total_ns, 3925 * US);
}

/* The last of two experts takes 400 us more if there was a miss at all, in 3 of 4 cases; 800 us hide it. */
static void reads_beside_experts_show_only_what_sticks_out(void **state)
{
    (void)state;
    struct machine m = toy_machine();
    struct layer_class c;
    struct workload l = toy_load(&c);
    struct regime r = half;
    struct timing t;
    r.profile = PROFILE_OVERLAP;
    estimate_timing(&t, &l, &m, &r);
    assert_int_equal(t.flash_ns, 2 * (LAYER_READ + 300 * US - 800 * US));
    assert_int_equal(t.total_ns, 2925 * US);
    r.profile = PROFILE_PERFECT;
    estimate_timing(&t, &l, &m, &r);
    assert_int_equal(t.flash_ns, 0);
    assert_int_equal(t.total_ns, 2775 * US);
}

static void a_broken_number_of_misses_lies_between_its_neighbours(void **state)
{
    (void)state;
    struct machine m = toy_machine();
    struct layer_class c;
    struct workload l = toy_load(&c);
    struct timing t;
    c.unique_e3 = 2500; /* 1.25 misses: a quarter of the way from 600 to 1100 us */
    c.expert_read_bytes = 2500000;
    estimate_timing(&t, &l, &m, &half);
    assert_int_equal(t.flash_ns, 2 * 725 * US);
}

static void bounds_are_the_slowest_resource_and_the_sum(void **state)
{
    (void)state;
    struct machine m = toy_machine();
    struct layer_class c;
    struct workload l = toy_load(&c);
    struct bounds b;
    estimate_bounds(&b, &l, &m, &half);
    assert_int_equal(b.flash_ns, 1000 * US);
    assert_int_equal(b.memory_ns, 2100 * US);
    assert_int_equal(b.compute_ns, 1603 * US);
    assert_int_equal(b.lower_ns, 2100 * US);
    assert_string_equal(b.binds, "DRAM");
    /* and one nanosecond for each of eight terms a layer, the ends being one */
    assert_int_equal(b.upper_ns, 2 * LAYER_READ + (1603 + 2100 + 75) * US + 24);
}

static void intensity_is_operations_a_byte_and_crossover_a_proportion(void **state)
{
    (void)state;
    struct machine m = toy_machine();
    struct tally y = {.ops = 3000, .flash_bytes = 100, .memory_bytes = 2000};
    assert_int_equal(intensity_e3(&y, TIER_FLASH), 30000);
    assert_int_equal(intensity_e3(&y, TIER_DRAM), 1500);
    assert_int_equal(intensity_e3(&y, TIER_LINK), 0);
    assert_int_equal(ridge_e3(&m, TIER_DRAM), 100000);
    assert_int_equal(crossover_Bps(100, 2000, 10000000000), 500000000);
}

static void a_layer_starts_one_kernel_a_group_and_one_for_its_state(void **state)
{
    (void)state;
    struct model *m;
    struct workload l;
    struct workload_request r = {
        .sequences = 1, .tokens = 1, .context = 100, .logits = 1, .state_bits = 256};
    assert_ok(model_load(&m, "qwen3-30b-a3b", "models/desc", NULL, 0, &dg));
    assert_ok(workload_init(&l, m, &r, &dg));
    /* attention, router, experts, norms; and the attention over the state */
    for (size_t i = 0; i < l.class_count; i++)
        assert_int_equal(l.classes[i].calls, 5);
    workload_free(&l);
    model_free(m);
}

/* ---- rules for what a description leaves out ----------------------------------------------- */

static struct device toy_device(struct compute *c)
{
    *c = (struct compute){.name = "cpu", .f32 = given(1000000000000)};
    return (struct device){
        .name = "toy",
        .origin = "toy",
        .dram = {.capacity = given(8000000000), .bandwidth = given(100000000000)},
        .compute_count = 1,
        .compute = c};
}

static struct machine machine_of(const struct device *d, enum rates rates, uint64_t cards)
{
    struct machine m;
    struct machine_choice choice = {.cards = cards, .rates = rates};
    assert_ok(machine_init(&m, d, &choice, &dg));
    return m;
}

static void what_is_not_stated_is_half_the_peak_and_four_fifths_of_the_rate(void **state)
{
    (void)state;
    struct compute c;
    struct device d = toy_device(&c);
    struct machine m = machine_of(&d, RATES_REACHED, 1);
    assert_int_equal(m.peak_ops, 1000000000000);
    assert_int_equal(m.reached_ops, 500000000000);
    assert_true(m.input[INPUT_EFFICIENCY].by_rule);
    assert_int_equal(m.dram_Bps, 80000000000);
    assert_int_equal(m.call_ns, 0);
    m = machine_of(&d, RATES_PEAK, 1);
    assert_int_equal(m.reached_ops, 1000000000000);
    assert_int_equal(m.dram_Bps, 100000000000);
    c.memory = (struct memory){.capacity = given(24000000000), .bandwidth = given(1000000000000)};
    m = machine_of(&d, RATES_REACHED, 1);
    assert_true(m.own_memory);
    assert_int_equal(m.memory_Bps, 800000000000);
    assert_int_equal(m.dram_Bps, 80000000000);
}

static void cards_multiply_capacity_bandwidth_and_operations(void **state)
{
    (void)state;
    struct compute c;
    struct device d = toy_device(&c);
    struct machine m = machine_of(&d, RATES_PEAK, 4);
    assert_int_equal(m.peak_ops, 4000000000000);
    assert_int_equal(m.dram_Bps, 400000000000);
    assert_int_equal(m.memory_Bps, 400000000000);
    assert_int_equal(m.memory_bytes, 32000000000);
    assert_int_equal(m.dram_bytes, 32000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_every_tier_are_counted_as_the_equations_say),
        cmocka_unit_test(a_unit_with_memory_of_its_own_gets_experts_over_the_link),
        cmocka_unit_test(serial_time_is_the_sum_of_its_parts),
        cmocka_unit_test(reads_beside_experts_show_only_what_sticks_out),
        cmocka_unit_test(a_broken_number_of_misses_lies_between_its_neighbours),
        cmocka_unit_test(bounds_are_the_slowest_resource_and_the_sum),
        cmocka_unit_test(intensity_is_operations_a_byte_and_crossover_a_proportion),
        cmocka_unit_test(a_layer_starts_one_kernel_a_group_and_one_for_its_state),
        cmocka_unit_test(what_is_not_stated_is_half_the_peak_and_four_fifths_of_the_rate),
        cmocka_unit_test(cards_multiply_capacity_bandwidth_and_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
