/* Heat: against the closed forms of an RC network and against plain numerical integration. */
#include "tests/support.h"

#include "base/pcg.h"
#include "sim/pipeline/heat.h"

#include <math.h>

#define S  UINT64_C(1000000000)
#define MW UINT64_C(1000) /* in uW */

/* 10 K/W and 12 J/K: a time constant of 120 s. */
static const struct heat_setup phone = {.resistance_mK_per_W = 10000,
                                        .capacity_mJ_per_K = 12000,
                                        .ambient_mC = 25000,
                                        .governed = true,
                                        .throttle_start_mC = 45000,
                                        .throttle_full_mC = 85000,
                                        .throttle_floor_e9 = 400000000};

static const struct heat_setup chain = {.resistance_mK_per_W = 4000,
                                        .capacity_mJ_per_K = 3000,
                                        .skin_resistance_mK_per_W = 9000,
                                        .skin_capacity_mJ_per_K = 80000,
                                        .ambient_mC = 22000};

static void one_node_follows_its_exponential(void **state)
{
    (void)state;
    static const double seconds[] = {1e-9, 1e-3, 1, 17, 120, 500, 5000, 1e9};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        struct heat h;
        heat_init(&h, &phone);
        heat_step(&h, (uint64_t)(seconds[i] * 1e9 + 0.5), 4000 * MW);
        double rise_K = 40.0 * -expm1(-seconds[i] / 120.0);
        assert_close((double)h.mode[0].rise_fK * 1e-15, rise_K, 1e-12 + rise_K * 1e-7);
        assert_close((double)heat_chip_mC(&h), 25000 + rise_K * 1000, 0.51);
        heat_step(&h, 60 * S, 0);
        assert_close((double)heat_chip_mC(&h), 25000 + rise_K * 1000 * exp(-0.5), 0.51);
    }
}

/* The same spans of power, once as they are and once cut at random, down to microseconds. */
static void how_a_span_is_cut_makes_no_difference(void **state)
{
    (void)state;
    static const struct heat_setup *const setups[] = {&phone, &chain};
    for (size_t k = 0; k < 2; k++) {
        struct pcg chance;
        struct heat whole, cut;
        pcg_seed(&chance, 7, k);
        heat_init(&whole, setups[k]);
        heat_init(&cut, setups[k]);
        for (int span = 0; span < 40; span++) {
            uint64_t power_uW = pcg_below(&chance, 8000) * MW;
            uint64_t left = 1 + pcg_u64(&chance) % (30 * S);
            heat_step(&whole, left, power_uW);
            for (int piece = 0; left > 0; piece++) {
                uint64_t dt = 1 + pcg_u64(&chance) % (piece % 2 ? S / 100 : S / 1000000);
                dt = dt < left ? dt : left;
                heat_step(&cut, dt, power_uW);
                left -= dt;
            }
            for (uint32_t i = 0; i < whole.modes; i++) /* within 10 nK */
                assert_close((double)cut.mode[i].rise_fK, (double)whole.mode[i].rise_fK, 1e7);
        }
    }
}

static void steps_of_a_microsecond_still_reach_the_steady_state(void **state)
{
    (void)state;
    struct heat h;
    struct heat_setup quick = phone;
    quick.capacity_mJ_per_K = 1; /* 10 ms */
    quick.governed = false;
    heat_init(&h, &quick);
    for (int i = 0; i < 300000; i++)
        heat_step(&h, 1000, 3000 * MW);
    assert_int_equal(heat_chip_mC(&h), 55000);
}

/* T* = [Ta + R*(P_idle + dP*(1 + k*T1))] / (1 + R*dP*k), in degrees Celsius. */
static double closed_steady_C(const struct heat_setup *s, double idle_W, double active_W)
{
    double start = (double)s->throttle_start_mC / 1000, full = (double)s->throttle_full_mC / 1000;
    double k = (1 - (double)s->throttle_floor_e9 / 1e9) / (full - start);
    double r = (double)s->resistance_mK_per_W / 1000, more = active_W - idle_W;
    return ((double)s->ambient_mC / 1000 + r * (idle_W + more * (1 + k * start))) /
           (1 + r * more * k);
}

static void run_governed(struct heat *h, uint64_t seconds, uint64_t idle_uW, uint64_t active_uW)
{
    for (uint64_t i = 0; i < seconds; i++)
        heat_step(h, S, idle_uW + (active_uW - idle_uW) * heat_compute_e3(h) / 1000);
}

static void the_governed_steady_state_is_the_closed_form_of_the_fact_sheet(void **state)
{
    (void)state;
    static const uint64_t active_mW[] = {3000, 4000, 5000, 6500, 8000};
    static const uint64_t floors_e9[] = {200000000, 400000000, 830000000};
    int throttled = 0;
    for (size_t p = 0; p < 5; p++)
        for (size_t f = 0; f < 3; f++) {
            struct heat_setup s = phone;
            struct heat h;
            s.throttle_floor_e9 = floors_e9[f];
            double steady_C = closed_steady_C(&s, 1, (double)active_mW[p] / 1000);
            if (steady_C < 45 || steady_C > 85)
                continue;
            heat_init(&h, &s);
            heat_settle(&h, 1000 * MW);
            run_governed(&h, 4000, 1000 * MW, active_mW[p] * MW);
            double chip_C = (double)heat_chip_mC(&h) / 1000;
            assert_close(chip_C / steady_C, 1, 0.005);
            double speed = 1 - (1 - (double)floors_e9[f] / 1e9) * (steady_C - 45) / 40;
            assert_close((double)heat_compute_e3(&h) / 1000, speed, 0.002);
            throttled++;
        }
    assert_true(throttled >= 12);
}

/* Coming from above it stays within the hysteresis, on the cool side. */
static void a_governor_that_was_hotter_ends_at_most_the_hysteresis_cooler(void **state)
{
    (void)state;
    struct heat h;
    double steady_C = closed_steady_C(&phone, 1, 6.5);
    heat_init(&h, &phone);
    heat_settle(&h, 6000 * MW);
    assert_int_equal(heat_compute_e3(&h), 400);
    run_governed(&h, 4000, 1000 * MW, 6500 * MW);
    double chip_C = (double)heat_chip_mC(&h) / 1000;
    assert_true(chip_C <= steady_C + 0.05 && chip_C >= steady_C - 2);
}

static void speed_is_full_below_start_and_at_its_floor_above_full(void **state)
{
    (void)state;
    struct heat h;
    heat_init(&h, &phone);
    heat_settle(&h, 2000 * MW); /* 45 C */
    assert_int_equal(heat_compute_e3(&h), 1000);
    heat_settle(&h, 4000 * MW); /* 65 C, half way */
    assert_int_equal(heat_compute_e3(&h), 700);
    heat_settle(&h, 6000 * MW); /* 85 C */
    assert_int_equal(heat_compute_e3(&h), 400);
    heat_settle(&h, 60000 * MW);
    assert_int_equal(heat_compute_e3(&h), 400);
    struct heat_setup nothing_left = phone;
    nothing_left.throttle_floor_e9 = 1;
    heat_init(&h, &nothing_left);
    heat_settle(&h, 60000 * MW);
    assert_int_equal(heat_compute_e3(&h), 1); /* never 0: what is slowed still ends */
}

static void a_threshold_without_width_switches(void **state)
{
    (void)state;
    struct heat_setup s = phone;
    struct heat h;
    s.throttle_full_mC = s.throttle_start_mC;
    heat_init(&h, &s);
    heat_settle(&h, 2000 * MW);
    assert_int_equal(heat_compute_e3(&h), 1000);
    heat_settle(&h, 2001 * MW);
    assert_int_equal(heat_compute_e3(&h), 400);
}

static void speed_returns_only_after_the_hysteresis(void **state)
{
    (void)state;
    struct heat h;
    heat_init(&h, &phone);
    heat_settle(&h, 4000 * MW);
    uint64_t warm_mC = heat_chip_mC(&h);
    while (heat_chip_mC(&h) > warm_mC - HEAT_HYSTERESIS_mK + 20) {
        assert_int_equal(heat_compute_e3(&h), 700);
        heat_step(&h, S / 20, 3000 * MW);
    }
    heat_step(&h, 2 * S, 3000 * MW);
    assert_true(heat_compute_e3(&h) > 700);
    uint32_t speed = heat_compute_e3(&h), changes = 0;
    for (int i = 0; i < 1000; i++) { /* power that flickers about 65 C */
        heat_step(&h, S, (i % 2 ? 3700 : 3900) * MW);
        changes += heat_compute_e3(&h) != speed;
        speed = heat_compute_e3(&h);
    }
    assert_true(changes < 5);
    for (int i = 0; i < 1000; i++)
        heat_step(&h, S, 0);
    assert_int_equal(heat_compute_e3(&h), 1000);
}

/* A UFS falls from 2460 to 1645 MiB/s when hot (SYSTEMS F8). */
static void a_hot_drive_falls_to_its_own_floor(void **state)
{
    (void)state;
    struct storage ufs = {.bandwidth = {.amount = 2460, .given = true},
                          .hot_bandwidth = {.amount = 1645, .given = true}};
    struct storage plain = {.bandwidth = {.amount = 2460, .given = true}};
    struct heat h;
    heat_init(&h, &phone);
    assert_int_equal(heat_flash_e3(&h, &ufs), 1000);
    heat_settle(&h, 4000 * MW);
    assert_int_equal(heat_flash_e3(&h, &ufs), 834);
    heat_settle(&h, 9000 * MW);
    assert_int_equal(heat_flash_e3(&h, &ufs), 669);
    assert_int_equal(heat_flash_e3(&h, &plain), 1000);
    assert_int_equal(heat_compute_e3(&h), 400);
}

/* Classical Runge-Kutta on the two equations, in steps far below the time constants. */
static void integrate(double *chip, double *skin, double seconds, double watts)
{
    const double c1 = 3, c2 = 80, r1 = 4, r2 = 9, dt = 0.01;
    for (double t = 0; t < seconds - dt / 2; t += dt) {
        double k1[4], k2[4], x = *chip, y = *skin;
        for (int i = 0; i < 4; i++) {
            k1[i] = (watts - (x - y) / r1) / c1;
            k2[i] = ((x - y) / r1 - y / r2) / c2;
            double h = i < 2 ? dt / 2 : dt;
            x = *chip + h * k1[i];
            y = *skin + h * k2[i];
        }
        *chip += dt / 6 * (k1[0] + 2 * k1[1] + 2 * k1[2] + k1[3]);
        *skin += dt / 6 * (k2[0] + 2 * k2[1] + 2 * k2[2] + k2[3]);
    }
}

static void a_chain_of_two_follows_its_differential_equations(void **state)
{
    (void)state;
    static const uint64_t power_mW[] = {5000, 0, 2000, 7000, 300};
    struct heat h;
    double chip = 0, skin = 0;
    heat_init(&h, &chain);
    for (int i = 0; i < 60; i++) {
        heat_step(&h, 5 * S, power_mW[i / 5 % 5] * MW);
        integrate(&chip, &skin, 5, (double)power_mW[i / 5 % 5] / 1000);
        assert_close((double)heat_chip_mC(&h), 22000 + chip * 1000, 1);
        assert_close((double)heat_skin_mC(&h), 22000 + skin * 1000, 1);
    }
}

static void a_chain_settles_at_the_sum_of_its_resistances(void **state)
{
    (void)state;
    struct heat h;
    heat_init(&h, &chain);
    assert_int_equal(heat_skin_mC(&h), 22000);
    heat_step(&h, 100000 * S, 3000 * MW);
    assert_int_equal(heat_chip_mC(&h), 22000 + 13 * 3000);
    assert_int_equal(heat_skin_mC(&h), 22000 + 9 * 3000);
    heat_settle(&h, 1000 * MW);
    assert_int_equal(heat_chip_mC(&h), 22000 + 13 * 1000);
    assert_int_equal(heat_skin_mC(&h), 22000 + 9 * 1000);
}

static void a_step_of_the_advised_period_moves_at_most_a_hundredth_of_the_way(void **state)
{
    (void)state;
    struct heat h;
    heat_init(&h, &phone);
    assert_int_equal(heat_period_ns(&h), 1200000000);
    heat_step(&h, heat_period_ns(&h), 1000 * MW);
    assert_int_equal(heat_chip_mC(&h), 25100); /* 0.995 % of 10 K, rounded */
    heat_init(&h, &chain);
    assert_true(heat_period_ns(&h) < 4 * 3 * S / 100);
}

static struct value amount(uint64_t n)
{
    return (struct value){.amount = n, .given = true};
}

static void a_device_without_thermal_values_is_never_slowed(void **state)
{
    (void)state;
    struct storage ufs = {.bandwidth = amount(2460), .hot_bandwidth = amount(1645)};
    struct device d = {.storage = &ufs, .storage_count = 1};
    struct heat_setup s;
    struct heat h;
    const char *missing;
    assert_false(heat_setup_from_device(&s, &d, &missing));
    assert_string_equal(missing, "thermal_resistance_mK_per_W");
    heat_init(&h, &s);
    heat_settle(&h, 100000 * MW);
    heat_step(&h, 1000 * S, 100000 * MW);
    assert_int_equal(heat_compute_e3(&h), 1000);
    assert_int_equal(heat_flash_e3(&h, &ufs), 1000);
    assert_int_equal(heat_chip_mC(&h), 0);
    assert_int_equal(heat_period_ns(&h), UINT64_MAX);
}

static void a_device_without_thresholds_warms_but_is_not_slowed(void **state)
{
    (void)state;
    struct device d = {.thermal_resistance = amount(10000),
                       .heat_capacity = amount(12000),
                       .ambient = amount(25000),
                       .throttle_start = amount(45000)};
    struct heat_setup s;
    struct heat h;
    const char *missing;
    assert_true(heat_setup_from_device(&s, &d, &missing));
    assert_string_equal(missing, "throttle_full");
    heat_init(&h, &s);
    heat_settle(&h, 9000 * MW);
    assert_int_equal(heat_chip_mC(&h), 115000);
    assert_int_equal(heat_compute_e3(&h), 1000);
    d.throttle_full = amount(85000);
    d.throttle_floor = amount(400000000);
    assert_true(heat_setup_from_device(&s, &d, &missing));
    assert_null(missing);
    assert_memory_equal(&s, &phone, sizeof s);
}

static void the_limits_of_a_description_overflow_nothing(void **state)
{
    (void)state;
    struct heat_setup s = {.resistance_mK_per_W = 1000000,
                           .capacity_mJ_per_K = 1000000000,
                           .skin_resistance_mK_per_W = 1000000,
                           .skin_capacity_mJ_per_K = 1000000000,
                           .ambient_mC = 200000};
    struct heat h;
    for (int i = 0; i < 16; i++) {
        struct heat_setup t = s;
        t.resistance_mK_per_W = i & 1 ? 1 : s.resistance_mK_per_W;
        t.capacity_mJ_per_K = i & 2 ? 1 : s.capacity_mJ_per_K;
        t.skin_resistance_mK_per_W = i & 4 ? 1 : s.skin_resistance_mK_per_W;
        t.skin_capacity_mJ_per_K = i & 8 ? 1 : s.skin_capacity_mJ_per_K;
        heat_init(&h, &t);
        heat_step(&h, 1, UINT64_MAX);
        assert_true(heat_chip_mC(&h) >= 200000);
        heat_step(&h, UINT64_MAX, 1000000);
        heat_step(&h, UINT64_MAX, 1000000); /* 1 W, longer than any time constant here */
        uint64_t whole_mK = t.resistance_mK_per_W + t.skin_resistance_mK_per_W;
        double reached = 1 - exp(-2 * 18446744073.0 / ((double)h.mode[0].tau_ns * 1e-9));
        if (reached > 0.9999999)
            assert_close((double)heat_chip_mC(&h), 200000 + (double)whole_mK, 1);
    }
}

/* Integers only: the same digits from every compiler. */
static void the_digits_are_always_the_same(void **state)
{
    (void)state;
    struct heat h;
    heat_init(&h, &chain);
    for (uint64_t i = 0; i < 1000; i++)
        heat_step(&h, 123456789 + i * 997, i * i % 7001 * MW);
    assert_int_equal(h.mode[0].rise_fK, INT64_C(4794354832707178));
    assert_int_equal(h.mode[1].rise_fK, INT64_C(13092238307833882));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_follows_its_exponential),
        cmocka_unit_test(how_a_span_is_cut_makes_no_difference),
        cmocka_unit_test(steps_of_a_microsecond_still_reach_the_steady_state),
        cmocka_unit_test(the_governed_steady_state_is_the_closed_form_of_the_fact_sheet),
        cmocka_unit_test(a_governor_that_was_hotter_ends_at_most_the_hysteresis_cooler),
        cmocka_unit_test(speed_is_full_below_start_and_at_its_floor_above_full),
        cmocka_unit_test(a_threshold_without_width_switches),
        cmocka_unit_test(speed_returns_only_after_the_hysteresis),
        cmocka_unit_test(a_hot_drive_falls_to_its_own_floor),
        cmocka_unit_test(a_chain_of_two_follows_its_differential_equations),
        cmocka_unit_test(a_chain_settles_at_the_sum_of_its_resistances),
        cmocka_unit_test(a_step_of_the_advised_period_moves_at_most_a_hundredth_of_the_way),
        cmocka_unit_test(a_device_without_thermal_values_is_never_slowed),
        cmocka_unit_test(a_device_without_thresholds_warms_but_is_not_slowed),
        cmocka_unit_test(the_limits_of_a_description_overflow_nothing),
        cmocka_unit_test(the_digits_are_always_the_same),
    };
    return cmocka_run_group_tests_name("heat", tests, NULL, NULL);
}
