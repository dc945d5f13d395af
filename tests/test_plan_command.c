/* test_plan_command.c -- `memwall plan` as a user runs it: what the screen says of overrides, units, wishes
 * and measured runs. */
#include "tests/cli_expect.h"
#include "tests/support.h"

#include <string.h>

static void expect_not(const char *arguments, const char *text)
{
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    if (strstr(r.out, text))
        fail_msg("%s: '%s' in\n%s", arguments, text, r.out);
    run_free(&r);
}

#define PHONE "plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB"
#define CARD  "plan gpt-oss-120b --device rtx-4090-pc"

static void overrides_stand_under_the_title(void **state)
{
    (void)state;
    expect_holds(PHONE " --set storage.0.bandwidth=15GB/s --set top_k=4", 0,
                 "\nwith storage.0.bandwidth=15GB/s, top_k=4\n", NULL);
    expect_holds(PHONE " --set storage.0.part=ufs-5.0 --want 5tok/s", 0,
                 "\nwith storage.0.part=ufs-5.0\n", NULL);
    expect_not(PHONE, "\nwith ");
}

static void the_unit_and_what_could_be_instead_are_named(void **state)
{
    (void)state;
    expect_holds(CARD, 0, "\n  run as       gpu+cpu, ", NULL);
    expect_holds(CARD, 0, "instead: cpu ", NULL);
    expect_holds(CARD, 0, "-> nothing streams", NULL);
    expect_holds(CARD " --unit gpu", 0, "GB over the link", NULL);
    expect_holds(CARD " --unit gpu", 0, "2x link", NULL);
    expect_holds(CARD " --unit gpu --want 15tok/s", 0, "link rate", NULL);
    expect_not(CARD " --unit gpu", "stream from flash");
    expect_holds(PHONE, 0, "\n  run as       cpu, ", NULL);
}

static void a_wish_tells_how_far_each_resource_leads(void **state)
{
    (void)state;
    expect_holds(PHONE " --want 8tok/s", 0, "not by this alone: the most of it gives 4.7", NULL);
    expect_holds(PHONE " --want 8tok/s", 0, "not by both together: the most of both gives 5.1",
                 NULL);
    expect_holds(PHONE " --want 4.5tok/s", 0, " times both: ", NULL);
    expect_holds(PHONE " --want 0.01tok/s", 0, "not needed", NULL);
    expect_not(PHONE " --want 0.01tok/s", " 1 B");
}

static void a_run_of_the_same_device_outside_the_interval_is_named(void **state)
{
    (void)state;
    expect_holds(PHONE " --set storage.0.bandwidth=0.2GB/s --set storage.0.lane_bandwidth=0.2GB/s",
                 0, "outside the interval: ", NULL);
    expect_holds(PHONE, 0, "\n  measured     B4 3.12 tok/s, BigMoeOnEdge | cache 4.19 GB\n", NULL);
    /* A model twenty times as large says nothing about this one, though the machine is the same. */
    expect_not("plan glm-4.5-air --device m5-pro-64gb", "kimi-k3");
}

static void long_waits_are_hours_with_their_reason(void **state)
{
    (void)state;
    expect_holds("plan kimi-k3 --device m5-pro-64gb --dense stream --prompt 4096", 0,
                 "in chunks of one token, no more fit the cache", NULL);
    expect_holds("plan kimi-k3 --device m5-pro-64gb --dense stream --prompt 4096", 0, " h  [",
                 NULL);
    expect_not(PHONE " --prompt 8", "in chunks");
}

static void explained_inputs_are_rows_for_machines(void **state)
{
    (void)state;
    expect_holds(PHONE " --explain --format csv", 0, "path,amount,unit,kind,spread,source\n", NULL);
    expect_holds(PHONE " --explain --format json", 0, "{\"path\": \"storage.0.bandwidth\", ", NULL);
    expect_holds(PHONE " --explain --format csv", 0, "rule: a quarter of the peak", NULL);
}

static void plan_and_sim_say_what_context_and_prompt_they_are_for(void **state)
{
    (void)state;
    expect_holds(PHONE " --format json", 0,
                 "\"context\": 4096, \"prompt_tokens\": 512, \"unit\": \"cpu\"", NULL);
    expect_holds(
        "sim --model qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --tokens 1 --prompt 3 "
        "--context 7 --draws 0 --format json",
        0, "\"context\": 7, \"prompt_tokens\": 3", NULL);
}

static void a_dense_model_that_does_not_fit_gets_the_hint_to_fewer_bits(void **state)
{
    (void)state;
    expect_holds("plan llama-3.1-70b --device oneplus-15r", 1, NULL, "--quant with fewer bits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrides_stand_under_the_title),
        cmocka_unit_test(the_unit_and_what_could_be_instead_are_named),
        cmocka_unit_test(a_wish_tells_how_far_each_resource_leads),
        cmocka_unit_test(a_run_of_the_same_device_outside_the_interval_is_named),
        cmocka_unit_test(long_waits_are_hours_with_their_reason),
        cmocka_unit_test(explained_inputs_are_rows_for_machines),
        cmocka_unit_test(plan_and_sim_say_what_context_and_prompt_they_are_for),
        cmocka_unit_test(a_dense_model_that_does_not_fit_gets_the_hint_to_fewer_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
