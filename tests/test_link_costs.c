/* test_link_costs.c -- what a token costs besides the reads and kernels of its experts: links to a unit with
 * memory of its own, hops of hidden states, threads that are woken, state, dense weights that are streamed. Each law is a difference of two runs that differ
 * in one key, so it fails if that key stops mattering. */
#include "tests/scene.h"

#include "models/state.h"

enum { TOKENS = 4 };

/* Seconds of TOKENS tokens of the scene with one more override, and no hits or all. */
static double seconds(const struct scene *of, const char *set, uint64_t hit_ratio)
{
    struct scene s = *of;
    size_t n = 0;
    while (s.set[n])
        n++;
    s.set[n] = set;
    struct world w = world_open(&s);
    world_set_cache(&w, 8 * GB);
    w.setup.overlap = OVERLAP_SERIAL;
    w.setup.prefetch = NULL;
    w.setup.hit_ratio = hit_ratio;
    w.setup.tokens = TOKENS;
    struct pipeline_result x = world_run(&w);
    world_close(&w);
    return (double)x.decode_ns / 1e9;
}

static double layers_of(const char *model, double *token_bytes)
{
    struct diag dg;
    struct model *m;
    assert_ok(model_load(&m, model, "models/desc", NULL, 0, &dg));
    double layers = (double)model_moe_layers(m);
    *token_bytes = (double)model_token_cycle_bytes(m);
    model_free(m);
    return layers;
}

#define MODEL "gpt-oss-120b"
#define PC    "rtx-4090-pc"

static void experts_that_the_memory_keeps_cross_the_link_for_every_token(void **state)
{
    (void)state;
    double bytes, layers = layers_of(MODEL, &bytes);
    struct scene s = {.model = MODEL,
                      .device = PC,
                      .profile = "generic",
                      .set = {"profile site=gpu", "profile copy=pinned",
                              "device compute.1.link_bandwidth=32GB/s"}};
    double slow = seconds(&s, "profile copy_rate=25%", RATIO_ONE),
           fast = seconds(&s, "profile copy_rate=50%", RATIO_ONE);
    double more = TOKENS * bytes * (1 / 8e9 - 1 / 16e9);
    assert_close(slow - fast, more, 0.001 * more);
    s.set[3] = "profile copy_rate=50%";
    double waiting = seconds(&s, "profile copy_sync=100us", RATIO_ONE) -
                     seconds(&s, "profile copy_sync=0us", RATIO_ONE);
    assert_close(waiting, TOKENS * layers * 100e-6, 1e-6);
}

static void experts_that_the_cards_memory_keeps_cross_it_once_when_read(void **state)
{
    (void)state;
    double bytes;
    layers_of(MODEL, &bytes);
    struct scene s = {.model = MODEL,
                      .device = PC,
                      .profile = "sglang-pack",
                      .set = {"profile lanes=1", "device compute.1.link_bandwidth=32GB/s"}};
    double more = TOKENS * bytes * (1 / 8e9 - 1 / 16e9);
    assert_close(seconds(&s, "profile copy_rate=25%", 0) - seconds(&s, "profile copy_rate=50%", 0),
                 more, 0.001 * more);
    assert_close(seconds(&s, "profile copy_rate=25%", RATIO_ONE),
                 seconds(&s, "profile copy_rate=50%", RATIO_ONE), 1e-9);
}

static void experts_on_the_processor_take_a_hop_there_and_back_a_layer(void **state)
{
    (void)state;
    double bytes, layers = layers_of(MODEL, &bytes);
    struct scene s = {.model = MODEL, .device = PC, .profile = "generic"};
    double more = seconds(&s, "profile copy_sync=50us", RATIO_ONE) -
                  seconds(&s, "profile copy_sync=0us", RATIO_ONE);
    assert_close(more, TOKENS * layers * 2 * 50e-6, 1e-6);
}

static void a_layer_that_waits_wakes_a_lane_and_then_a_kernel(void **state)
{
    (void)state;
    double bytes, layers = layers_of(MODEL, &bytes);
    struct scene s = {.model = MODEL,
                      .device = PC,
                      .profile = "generic",
                      .set = {"profile lanes=1", "profile loader_shares_cores=false"}};
    double more = seconds(&s, "profile wake=100us", 0) - seconds(&s, "profile wake=0us", 0);
    assert_close(more, TOKENS * layers * 2 * 100e-6, 1e-6);
    assert_close(seconds(&s, "profile wake=100us", RATIO_ONE),
                 seconds(&s, "profile wake=0us", RATIO_ONE), 1e-9);
}

static void state_is_read_for_every_token(void **state)
{
    (void)state;
    static const uint64_t context[] = {0, 20000};
    double at[2];
    struct world w = world_open(&(struct scene){.model = "qwen3-30b-a3b",
                                                .quant = "q4_k_m",
                                                .device = PC,
                                                .profile = "ds4",
                                                .set = {"profile kernel_efficiency=100%"}});
    w.setup.hit_ratio = RATIO_ONE;
    w.setup.tokens = TOKENS;
    for (size_t i = 0; i < 2; i++) {
        w.setup.context = context[i];
        at[i] = (double)world_run(&w).decode_ns / 1e9;
    }
    /* Full attention on a card of 1.008 TB/s, of which kernels reach 0.7 to all. */
    double least = TOKENS * (double)state_bytes(w.model, context[1], STATE_BITS_F16) / 1.008e12;
    assert_in_range((uint64_t)((at[1] - at[0]) * 1e9), (uint64_t)(least * 1e9),
                    (uint64_t)(least / 0.7 * 1e9));
    world_close(&w);
}

static void dense_weights_that_do_not_stay_are_read_for_every_token(void **state)
{
    (void)state;
    static const uint64_t kept[] = {400000000, 800000000};
    double bytes[2], at[2];
    struct world w = world_open(&(struct scene){.model = "qwen3-30b-a3b",
                                                .quant = "q4_k_m",
                                                .device = "oneplus-15r",
                                                .profile = "generic",
                                                .set = {"profile dense=streamed"}});
    w.setup.hit_ratio = RATIO_ONE;
    for (size_t i = 0; i < 2; i++) {
        w.setup.dense_bytes = kept[i];
        struct pipeline_result x = world_run(&w);
        bytes[i] = bytes_per_token(&x);
        at[i] = 1 / rate(&x);
    }
    assert_close(bytes[0] - bytes[1], 400e6, 4e6);
    assert_true(at[0] - at[1] > 400e6 / 2.326e9 * 0.5);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_that_the_memory_keeps_cross_the_link_for_every_token),
        cmocka_unit_test(experts_that_the_cards_memory_keeps_cross_it_once_when_read),
        cmocka_unit_test(experts_on_the_processor_take_a_hop_there_and_back_a_layer),
        cmocka_unit_test(a_layer_that_waits_wakes_a_lane_and_then_a_kernel),
        cmocka_unit_test(state_is_read_for_every_token),
        cmocka_unit_test(dense_weights_that_do_not_stay_are_read_for_every_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
