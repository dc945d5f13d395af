/* heat.c -- see heat.h. */
#include "sim/pipeline/heat.h"

#include "base/fixed.h"
#include "sim/core/wide.h"

#include <assert.h>

typedef __int128 wide_signed;

#define FK_PER_MK      INT64_C(1000000000000)
#define RISE_FK_MAX    (4000000 * FK_PER_MK)
#define RATIO_ONE      UINT64_C(1000000000)
#define RESISTANCE_MAX UINT64_C(1000000)    /* mK per W */
#define CAPACITY_MAX   UINT64_C(1000000000) /* mJ per K */
#define HEAT_MAX_MC    UINT64_C(200000)
#define LOG2_E_Q63     UINT64_C(0xb8aa3b295c17f0bc)
#define LN_2_Q32       UINT64_C(0xb17217f8)

/* ---- set-up ---- */

bool heat_setup_from_device(struct heat_setup *out, const struct device *d, const char **missing)
{
    *out = (struct heat_setup){0};
    *missing = !d->thermal_resistance.given ? "thermal_resistance_mK_per_W"
               : !d->heat_capacity.given    ? "heat_capacity_mJ_per_K"
               : !d->ambient.given          ? "ambient"
                                            : NULL;
    if (*missing)
        return false;
    out->resistance_mK_per_W = d->thermal_resistance.amount;
    out->capacity_mJ_per_K = d->heat_capacity.amount;
    out->ambient_mC = d->ambient.amount;
    *missing = !d->throttle_start.given   ? "throttle_start"
               : !d->throttle_full.given  ? "throttle_full"
               : !d->throttle_floor.given ? "throttle_floor"
                                          : NULL;
    if (*missing)
        return true;
    out->governed = true;
    out->throttle_start_mC = d->throttle_start.amount;
    out->throttle_full_mC = d->throttle_full.amount;
    out->throttle_floor_e9 = d->throttle_floor.amount;
    return true;
}

/* Floor of the square root of a number below 2^126. */
static uint64_t square_root(wide x)
{
    wide root = 0;
    for (wide bit = (wide)1 << 124; bit; bit >>= 2) {
        if (x >= root + bit) {
            x -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return (uint64_t)root;
}

/* Two nodes in a chain. With t1 = R1*C1, t2 = R2*C2, t21 = R2*C1 the time constants are the roots of
 * t^2 - (t1 + t2 + t21)*t + t1*t2 = 0. A chip that starts to heat rises by P/C1, its skin not at all, and at the
 * end they have risen by (R1 + R2)*P and R2*P: that gives each mode's share of the resistance. */
static void chain_modes(struct heat *h)
{
    const struct heat_setup *s = &h->setup;
    wide r1 = s->resistance_mK_per_W, c1 = s->capacity_mJ_per_K;
    wide r2 = s->skin_resistance_mK_per_W, c2 = s->skin_capacity_mJ_per_K;
    wide t1 = r1 * c1 * 1000, t2 = r2 * c2 * 1000, sum = t1 + t2 + r2 * c1 * 1000;
    uint64_t apart = square_root(sum * sum - 4 * t1 * t2); /* slow - fast */
    uint64_t slow = (uint64_t)((sum + apart) / 2), fast = (uint64_t)(t1 * t2 / slow);
    wide whole = (r1 + r2) * 1000000, early = (wide)fast * 1000 / c1;
    wide chip = early < whole ? (whole - early) * slow / apart : 0;
    if (chip > whole)
        chip = whole;
    wide skin = r2 * 1000000 * slow / apart;
    h->modes = 2;
    h->mode[0] = (struct heat_mode){
        .tau_ns = slow, .chip_nK_per_W = (int64_t)chip, .skin_nK_per_W = (int64_t)skin};
    h->mode[1] = (struct heat_mode){.tau_ns = fast ? fast : 1,
                                    .chip_nK_per_W = (int64_t)(whole - chip),
                                    .skin_nK_per_W = (int64_t)(r2 * 1000000) - (int64_t)skin};
}

static int64_t chip_fK(const struct heat *h)
{
    int64_t t = (int64_t)h->setup.ambient_mC * FK_PER_MK;
    for (uint32_t i = 0; i < h->modes; i++)
        t += h->mode[i].rise_fK;
    return t;
}

void heat_init(struct heat *h, const struct heat_setup *setup)
{
    *h = (struct heat){.setup = *setup};
    if (setup->resistance_mK_per_W == 0)
        return;
    assert(setup->resistance_mK_per_W <= RESISTANCE_MAX && setup->capacity_mJ_per_K >= 1 &&
           setup->capacity_mJ_per_K <= CAPACITY_MAX && setup->ambient_mC <= HEAT_MAX_MC);
    assert(!setup->governed ||
           (setup->throttle_start_mC <= setup->throttle_full_mC &&
            setup->throttle_full_mC <= HEAT_MAX_MC && setup->throttle_floor_e9 <= RATIO_ONE));
    if (setup->skin_resistance_mK_per_W > 0) {
        assert(setup->skin_resistance_mK_per_W <= RESISTANCE_MAX &&
               setup->skin_capacity_mJ_per_K >= 1 && setup->skin_capacity_mJ_per_K <= CAPACITY_MAX);
        chain_modes(h);
    } else {
        int64_t nK_per_W = (int64_t)setup->resistance_mK_per_W * 1000000;
        h->modes = 1;
        h->mode[0] = (struct heat_mode){.tau_ns = setup->resistance_mK_per_W *
                                                  setup->capacity_mJ_per_K * 1000,
                                        .chip_nK_per_W = nK_per_W,
                                        .skin_nK_per_W = nK_per_W};
    }
    h->governed_fK = chip_fK(h);
}

/* ---- stepping ---- */

/* exp(-dt/tau) in Q63, as 2^-(whole + rest): what the exponent of fixed_exp2_q32 cannot hold is below 2^-32, and
 * there 2^-rest = 1 - rest*ln 2 up to 2^-65. */
static uint64_t decay_q63(uint64_t dt_ns, uint64_t tau_ns)
{
    wide x_q57 = (((wide)dt_ns << 57) + tau_ns / 2) / tau_ns;
    if (x_q57 >> 63)
        return 0; /* exp(-64) */
    uint64_t y_q57 = (uint64_t)((x_q57 * LOG2_E_Q63) >> 63);
    uint64_t rest_q57 = y_q57 & ((UINT64_C(1) << 25) - 1);
    uint64_t power_q63 = fixed_exp2_q32(31 * FIXED_ONE - (int64_t)(y_q57 >> 25));
    return power_q63 - (uint64_t)(((wide)power_q63 * (rest_q57 * LN_2_Q32)) >> 89);
}

/* R*P: nK per W times uW is fK. */
static int64_t steady_fK(const struct heat_mode *m, uint64_t power_uW)
{
    wide rise = (wide)m->chip_nK_per_W * power_uW;
    return rise > (wide)RISE_FK_MAX ? RISE_FK_MAX : (int64_t)rise;
}

/* The governor's temperature follows the chip's upwards at once, downwards at a distance. */
static void govern(struct heat *h)
{
    int64_t now = chip_fK(h), slack = HEAT_HYSTERESIS_mK * FK_PER_MK;
    if (now > h->governed_fK)
        h->governed_fK = now;
    else if (now + slack < h->governed_fK)
        h->governed_fK = now + slack;
}

void heat_settle(struct heat *h, uint64_t power_uW)
{
    for (uint32_t i = 0; i < h->modes; i++)
        h->mode[i].rise_fK = steady_fK(&h->mode[i], power_uW);
    h->governed_fK = chip_fK(h);
}

void heat_step(struct heat *h, uint64_t dt_ns, uint64_t power_uW)
{
    for (uint32_t i = 0; i < h->modes; i++) {
        struct heat_mode *m = &h->mode[i];
        int64_t steady = steady_fK(m, power_uW);
        wide_signed left = (wide_signed)(m->rise_fK - steady) * decay_q63(dt_ns, m->tau_ns);
        wide_signed half = (wide_signed)1 << 62;
        left = left < 0 ? -((half - left) >> 63) : (left + half) >> 63;
        m->rise_fK = steady + (int64_t)left;
    }
    if (h->modes > 0)
        govern(h);
}

/* ---- reading ---- */

static uint64_t rounded_mC(int64_t t_fK)
{
    return t_fK < 0 ? 0 : (uint64_t)((t_fK + FK_PER_MK / 2) / FK_PER_MK);
}

uint64_t heat_chip_mC(const struct heat *h)
{
    return h->modes > 0 ? rounded_mC(chip_fK(h)) : 0;
}

uint64_t heat_skin_mC(const struct heat *h)
{
    if (h->modes == 0)
        return 0;
    int64_t t = (int64_t)h->setup.ambient_mC * FK_PER_MK;
    for (uint32_t i = 0; i < h->modes; i++) {
        const struct heat_mode *m = &h->mode[i];
        if (m->chip_nK_per_W > 0)
            t += (int64_t)((wide_signed)m->rise_fK * m->skin_nK_per_W / m->chip_nK_per_W);
    }
    return rounded_mC(t);
}

/* 1 - k*(T - T1), k = (1 - floor)/(T2 - T1), between T1 and T2. */
static uint32_t speed_e3(const struct heat *h, uint64_t floor_e9)
{
    if (h->modes == 0 || !h->setup.governed)
        return 1000;
    int64_t start = (int64_t)h->setup.throttle_start_mC * FK_PER_MK;
    int64_t full = (int64_t)h->setup.throttle_full_mC * FK_PER_MK;
    uint64_t lost_e9 = RATIO_ONE - floor_e9;
    if (h->governed_fK <= start)
        lost_e9 = 0;
    else if (h->governed_fK < full)
        lost_e9 =
            fixed_mul_div(lost_e9, (uint64_t)(h->governed_fK - start), (uint64_t)(full - start));
    uint32_t speed = (uint32_t)((RATIO_ONE - lost_e9 + 500000) / 1000000);
    return speed > 0 ? speed : 1; /* what is slowed still moves */
}

uint32_t heat_compute_e3(const struct heat *h)
{
    return speed_e3(h, h->setup.throttle_floor_e9);
}

uint32_t heat_flash_e3(const struct heat *h, const struct storage *s)
{
    if (!s->hot_bandwidth.given || !s->bandwidth.given ||
        s->hot_bandwidth.amount >= s->bandwidth.amount)
        return 1000;
    return speed_e3(h, fixed_mul_div(s->hot_bandwidth.amount, RATIO_ONE, s->bandwidth.amount));
}

uint64_t heat_period_ns(const struct heat *h)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < h->modes; i++)
        least = h->mode[i].tau_ns < least ? h->mode[i].tau_ns : least;
    return h->modes == 0 ? least : least / 100 + (least < 100);
}
