/* heat.h -- how warm a device gets, and how much slower that makes it.
 *
 * A node with heat capacity C behind a thermal resistance R follows C dT/dt = P - (T - Ta)/R (SYSTEMS 1.10), of
 * which the step under constant power is exact: T' = Ta + R*P + (T - Ta - R*P)*exp(-dt/(R*C)). Temperatures are
 * kept in femtokelvin and exp in 63 bits, all integers, so how a span of constant power is cut into steps
 * changes nothing that can be seen. A chain chip -> skin -> ambient is the sum of two single nodes with their
 * own R and C (Foster's form of the network), stepped by the same formula.
 *
 * The governor lowers speed linearly from 1 at throttle_start to a floor at throttle_full, at once as the chip
 * warms; it raises it again only after the chip has cooled by HEAT_HYSTERESIS_mK, so it does not hunt. Compute
 * and each drive have their own floor but one governor. It sees the temperature at the end of a step: take
 * steps no longer than heat_period_ns.
 *
 * Where a device has no thermal values there is no model: every speed is 1000, every temperature 0. */
#ifndef SIM_PIPELINE_HEAT_H
#define SIM_PIPELINE_HEAT_H

#include "devices/device.h"

/* Not part of a device description. 2 K is the customary hysteresis of a trip point in the device trees
 * of phones and boards. */
#define HEAT_HYSTERESIS_mK 2000

/* Limits as in a device description. */
struct heat_setup {
    uint64_t resistance_mK_per_W; /* chip to ambient, or to the skin if there is one; 0: no model */
    uint64_t capacity_mJ_per_K;   /* of the chip, with what is as warm as it */
    uint64_t skin_resistance_mK_per_W; /* skin to ambient; 0: no skin */
    uint64_t skin_capacity_mJ_per_K;
    uint64_t ambient_mC;
    bool governed;
    uint64_t throttle_start_mC, throttle_full_mC; /* start <= full */
    uint64_t throttle_floor_e9;                   /* of compute */
};

/* A first-order part of the temperature; private. */
struct heat_mode {
    uint64_t tau_ns;
    int64_t chip_nK_per_W, skin_nK_per_W; /* steady rise per watt there */
    int64_t rise_fK;                      /* of the chip, now */
};

struct heat {
    struct heat_setup setup;
    struct heat_mode mode[2];
    uint32_t modes;      /* 0: no model */
    int64_t governed_fK; /* the temperature that the governor goes by */
};

/* Takes the thermal values of a device (one node: a description gives no skin). False if it has no heat
 * model. `missing` is the first key that a model or, if true is returned, the governor lacks; NULL if none. */
bool heat_setup_from_device(struct heat_setup *out, const struct device *d, const char **missing);

/* At ambient temperature. */
void heat_init(struct heat *h, const struct heat_setup *setup);
/* Goes to the steady state under a constant power: a device that idled long before. */
void heat_settle(struct heat *h, uint64_t power_uW);
/* Time passes under constant power. Rises saturate at 4000 K. */
void heat_step(struct heat *h, uint64_t dt_ns, uint64_t power_uW);

/* Rounded to the nearest millikelvin above 0 C. Without a skin it is as warm as the chip. */
uint64_t heat_chip_mC(const struct heat *h);
uint64_t heat_skin_mC(const struct heat *h);

/* Parts per 1000 of full speed, never 0: of compute, and of the drive, whose floor is hot_bandwidth/bandwidth (1000
 * where either is not given). */
uint32_t heat_compute_e3(const struct heat *h);
uint32_t heat_flash_e3(const struct heat *h, const struct storage *s);

/* A hundredth of the shortest time constant: the longest step in which the governor lags by less than 1 % of
 * the way to the steady state. UINT64_MAX without a model. */
uint64_t heat_period_ns(const struct heat *h);

#endif
