/* evq.h -- the event queue, and the only clock in the simulator.
 *
 * Events fire in (when_ns, priority, order) order, where `order` counts the calls that scheduled
 * one. That order is total, so two events at one instant and of one priority fire in the order in
 * which they were scheduled: on every machine, with every compiler, always. Nothing else (no
 * pointer, no hash order, no wall clock) takes part in the decision.
 *
 * Time is whole nanoseconds in 64 bits: 584 years. Set-up allocates (evq_new, evq_reserve),
 * stepping does not. A running fingerprint covers the fields of every event fired, so that two runs
 * that print the same one did the same things at the same times.
 *
 *     struct evq *q;
 *     if (evq_new(&q, 100) != ST_OK) ...
 *     evq_at(q, 250, arrive, &customer);
 *     while (evq_step(q))
 *         ;
 */
#ifndef SIM_CORE_EVQ_H
#define SIM_CORE_EVQ_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lower numbers fire first within an instant. What must see the whole instant (the flows' solver)
 * takes EVQ_LAST. */
#define EVQ_FIRST  0u
#define EVQ_NORMAL 8u
#define EVQ_LAST   15u

#define EVQ_CAPACITY_MAX ((size_t)1 << 20)         /* events pending at once */
#define EVQ_ORDER_MAX    ((UINT64_C(1) << 40) - 1) /* events scheduled in a queue's life */

struct evq;
/* Called with the clock already at the event's instant; may schedule and cancel. */
typedef void evq_fn(struct evq *q, void *self);

/* An empty queue at instant 0 with room for `capacity` pending events (0 is allowed: see
 * evq_reserve). ST_NO_MEMORY, or ST_RANGE above EVQ_CAPACITY_MAX. */
MUST_CHECK enum status evq_new(struct evq **out, size_t capacity);
void evq_free(struct evq *q); /* NULL is allowed */
/* Room for `more` pending events beyond what there is. Whoever schedules calls it at set-up for the
 * events that it may have pending at once, so that nobody has to add up the needs of others. */
MUST_CHECK enum status evq_reserve(struct evq *q, size_t more);

uint64_t evq_now_ns(const struct evq *q);
/* Schedules fn(q, self) at when_ns, which must not lie in the past, with EVQ_NORMAL.
 * ST_NO_MEMORY: no room is left. ST_RANGE: EVQ_ORDER_MAX events were scheduled already. */
MUST_CHECK enum status evq_at(struct evq *q, uint64_t when_ns, evq_fn *fn, void *self);
/* The same with a priority (EVQ_FIRST..EVQ_LAST) and a ticket to cancel it with; `ticket` may be
 * NULL. A ticket is never 0 and never given out twice. */
MUST_CHECK enum status evq_at_priority(struct evq *q, uint64_t when_ns, unsigned priority,
                                       evq_fn *fn, void *self, uint64_t *ticket);
/* Takes an event out of the queue; false if it has fired or was cancelled before. */
bool evq_cancel(struct evq *q, uint64_t ticket);
/* Moves the clock to the next event and fires it; false when none is left:
 * `while (evq_step(q)) ;` Not to be called by an event. */
bool evq_step(struct evq *q);

size_t evq_pending(const struct evq *q);   /* the event being fired is no longer pending */
uint64_t evq_next_ns(const struct evq *q); /* NEVER_NS (UINT64_MAX) if nothing is pending; not
                                            * to be called by an event */
uint64_t evq_fired(const struct evq *q);
/* Covers when_ns, priority and order of all events fired, and what was noted, in this order. */
uint64_t evq_fingerprint(const struct evq *q);
/* Adds a field of the caller's to the fingerprint: which job, how many bytes. */
void evq_note(struct evq *q, uint64_t field);

#endif
