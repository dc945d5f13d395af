/* maxmin.h -- weighted max-min fair rates by progressive filling, in integers.
 *
 * Flows that share resources get rates such that no flow's share (rate / weight) can be raised
 * without lowering one that is as small or smaller, and none exceeds its own cap (Bertsekas and
 * Gallager, Data Networks, 2nd ed., section 6.5.2). A water level rises for all flows together; the
 * first resource to fill up fixes the flows that cross it, a cap reached before that fixes its own
 * flows, and the rest goes on rising.
 *
 * Arithmetic: the share a resource can still offer is left / open weight, two 64-bit integers;
 * shares are compared by cross-multiplication in 128 bits, equal ones go by resource index. A rate
 * is floor(weight x left / open weight), whole bytes per second, so that the rates through a
 * resource never sum to more than its capacity, and the resource that fixed n flows has less than n
 * bytes/s left. The result depends on neither the order of the classes nor on how equal flows are
 * split among classes.
 */
#ifndef SIM_CORE_MAXMIN_H
#define SIM_CORE_MAXMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAXMIN_NO_CAP UINT64_MAX

struct maxmin_resource {
    uint64_t capacity_Bps;
    uint64_t left_Bps;    /* result: capacity - sum of the rates through it */
    uint64_t open_weight; /* scratch: weight of the flows that are not fixed yet */
};

/* `flows` equal flows, each crossing the same resources with the same weight and cap. */
struct maxmin_class {
    uint64_t cap_Bps;                    /* of each flow, or MAXMIN_NO_CAP */
    uint32_t weight;                     /* of each flow, >= 1 */
    uint32_t flows;                      /* below 2^31 over all classes together */
    uint32_t first_member, member_count; /* its resources, each once: member[first ...], >= 1 */
    uint64_t rate_Bps;                   /* result: of each flow */
    bool fixed;                          /* scratch */
};

struct maxmin {
    struct maxmin_resource *resource;
    struct maxmin_class *classes;
    const uint32_t *member; /* resource indices */
};

/* Solves for the listed classes over the listed resources, ascending, which must include all that
 * the classes cross. Classes without flows get the rate 0. */
void maxmin_solve(const struct maxmin *p, const uint32_t *resources, size_t resource_count,
                  const uint32_t *classes, size_t class_count);

#endif
