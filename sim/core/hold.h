/* hold.h -- the hold model: the standard load to time an event queue with.
 *
 * A constant number of events is pending; each one that fires schedules its successor at now plus a
 * random increment (Vaucher and Duval, CACM 18(4), 1975; Jones, CACM 29(4), 1986). Increments are
 * uniform in 0..2^20-1 ns, from a PCG stream of (seed, "hold"). Whoever calls reads the clock
 * before and after.
 */
#ifndef SIM_CORE_HOLD_H
#define SIM_CORE_HOLD_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct hold;

/* `pending` events, 1..EVQ_CAPACITY_MAX, at random instants. */
MUST_CHECK enum status hold_new(struct hold **out, size_t pending, uint64_t seed, struct diag *dg);
void hold_free(struct hold *h);
/* Fires so many events. The fingerprint of all events fired since hold_new, so that a faster queue
 * can show that it is the same queue. */
uint64_t hold_run(struct hold *h, uint64_t events);

#endif
