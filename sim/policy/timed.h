/* timed.h -- a prefetcher that looks at the device: it loads a guess only while no lane has anything else to do,
 * and drops guesses whose layer has passed. Its decisions depend on time, so they are marked `timed` in
 * every result and equal no replay (DESIGN, "Decisions", tier E2). */
#ifndef SIM_POLICY_TIMED_H
#define SIM_POLICY_TIMED_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timed_guess {
    uint32_t pass, made_at, target;
    uint16_t expert;
};

/* A ring of guesses, best first; the oldest are dropped when it is full. */
struct timed_queue {
    struct timed_guess *ring;
    uint32_t room, first, count;
    uint64_t dropped; /* stale, or no room */
};

MUST_CHECK enum status timed_init(struct timed_queue *q, uint32_t room, struct diag *dg);
void timed_free(struct timed_queue *q);
void timed_add(struct timed_queue *q, const struct timed_guess *g);
/* The next guess that is not stale: its target layer still lies ahead at (pass, layer), in this pass or, if it is not
 * above the layer it was made at, in the next. False if there is none. */
bool timed_take(struct timed_queue *q, uint32_t pass, uint32_t layer, struct timed_guess *out);

#endif
