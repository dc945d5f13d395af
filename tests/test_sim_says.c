/* test_sim_says.c -- what `memwall sim` says about options and profiles that the machine or the trace cannot
 * follow, and how it ends when the memory runs out. */
#include "tests/cli_expect.h"

#define SIM   "sim --model qwen3-30b-a3b --quant q4_k_m --tokens 2 --format csv "
#define PHONE SIM "--draws 0 --device oneplus-15r "

static void one_draw_is_no_interval(void **state)
{
    (void)state;
    expect_refusal(SIM "--device oneplus-15r --draws 1", EXIT_MISUSE, "one draw spans no interval");
    expect_refusal("validate published --draws 1", EXIT_MISUSE, "one draw spans no interval");
}

static void a_key_of_profiles_without_its_prefix_is_told_the_prefix(void **state)
{
    (void)state;
    expect_refusal(PHONE "--set wake=1us", EXIT_MISUSE, "perhaps profile.wake=1us is meant");
    expect_refusal(PHONE "--set lanes=3", EXIT_MISUSE, "perhaps profile.lanes=3 is meant");
}

static void a_peak_beside_a_memory_that_was_only_measured_is_refused(void **state)
{
    (void)state;
    expect_refusal(PHONE "--set dram.bandwidth=20GB/s", EXIT_MISUSE, "set dram.measured_bandwidth");
    expect_holds(PHONE "--set dram.bandwidth=20GB/s --set dram.measured_bandwidth=18GB/s", 0,
                 "oneplus-15r", NULL);
}

static void a_profile_for_a_gpu_says_where_there_is_none(void **state)
{
    (void)state;
    expect_holds(PHONE "--profile flash-moe", 0, NULL, "computes on a GPU, oneplus-15r has none");
    expect_holds(PHONE "--set profile.kernel_efficiency=0.5", 0, NULL,
                 "kernel_efficiency matters only where memory is slower");
}

static void a_gate_on_a_trace_without_predictions_is_said_to_do_nothing(void **state)
{
    (void)state;
    NEED_SHARED();
    expect_holds(PHONE "--prefetch gate --trace " SHARED "bmoe/qwen.route.csv", 0, NULL,
                 "prefetch gate has no effect: the trace has no predictions");
}

static void memory_that_runs_out_names_who_asked_and_who_holds_it(void **state)
{
    (void)state;
    static const char *const when[] = {"0ns", "1ms"};
    for (size_t i = 0; i < 2; i++) {
        char command[256];
        snprintf(command, sizeof command, PHONE "--pressure 40GiB@%s", when[i]);
        struct run r = run_memwall(command);
        assert_int_equal(r.exit_code, EXIT_FAILED);
        if (!strstr(r.err, "pressure of 42.9 GB lacks") || !strstr(r.err, "reserve 6.08 GB"))
            fail_msg("%s", r.err);
        run_free(&r);
    }
}

/* The energy of a token, the cell after six others at the end of the row's times. */
static double joules(const char *arguments)
{
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    const char *head = strstr(r.out, "energy_j_per_token"), *row = strchr(r.out, '\n');
    for (const char *c = r.out; c < head; c++)
        if (*c == ',')
            row = strchr(row + 1, ',');
    double x = strtod(row + 1, NULL);
    run_free(&r);
    return x;
}

static void a_drive_and_idle_time_cost_energy(void **state)
{
    (void)state;
    double all = joules(PHONE), no_drive = joules(PHONE "--set storage.0.read_power=1mW"),
           neither = joules(PHONE "--set storage.0.read_power=1mW --set idle_power=1mW");
    assert_true(neither > 0.1);
    assert_true(no_drive > 1.02 * neither);
    assert_true(all > 1.02 * no_drive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_draw_is_no_interval),
        cmocka_unit_test(a_key_of_profiles_without_its_prefix_is_told_the_prefix),
        cmocka_unit_test(a_peak_beside_a_memory_that_was_only_measured_is_refused),
        cmocka_unit_test(a_profile_for_a_gpu_says_where_there_is_none),
        cmocka_unit_test(a_gate_on_a_trace_without_predictions_is_said_to_do_nothing),
        cmocka_unit_test(memory_that_runs_out_names_who_asked_and_who_holds_it),
        cmocka_unit_test(a_drive_and_idle_time_cost_energy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
