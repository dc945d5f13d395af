/* ledger.h -- who holds the memory: named accounts that together never exceed the capacity.
 *
 *   dense + cache + state + activations + buffers + reserve + applications + page cache <= capacity   (SYSTEMS 1.11)
 *
 * Every change is checked at the instant it happens. Where something does not fit, the page cache gives way first
 * (it is what nobody else needs), then the expert cache if the account's policy or an application's pressure says
 * so; what still does not fit is refused or spilled, as the policy says, and an application that cannot be served
 * has the process killed. Each of these is an event: nothing is cut short silently.
 *
 * The ledger keeps accounts, not memory: whoever owns a cache shrinks it when asked, and says by how much.
 * Nothing is allocated; the struct is open so that its owner can embed it, to be read through the functions. */
#ifndef SIM_PIPELINE_LEDGER_H
#define SIM_PIPELINE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

enum ledger_account {
    LEDGER_DENSE, /* resident weights */
    LEDGER_CACHE, /* expert cache */
    LEDGER_STATE, /* KV and recurrent state */
    LEDGER_ACTIVATIONS,
    LEDGER_BUFFERS,      /* of the loader */
    LEDGER_RESERVE,      /* what the system and its applications hold from the start */
    LEDGER_APPLICATIONS, /* what came by pressure */
    LEDGER_PAGE_CACHE,
    LEDGER_ACCOUNTS
};

/* What becomes of a growth that does not fit. */
enum ledger_overflow {
    LEDGER_REFUSE, /* nothing of it is held */
    LEDGER_SPILL   /* what fits is held, the rest lives on the drive and is counted there */
};

struct ledger_policy {
    enum ledger_overflow overflow;
    bool shrinks_cache; /* the expert cache is asked before that */
};

enum ledger_event_kind {
    LEDGER_PRESSURE,     /* an application asks for `bytes` */
    LEDGER_CACHE_SHRANK, /* the expert cache gave `bytes` */
    LEDGER_SPILLED,      /* `bytes` of the account went to the drive */
    LEDGER_REFUSED,      /* `bytes` were asked for the account, and none given */
    LEDGER_KILLED,       /* `bytes` were still lacking for an application */
    LEDGER_EVENT_KINDS
};

struct ledger_event {
    enum ledger_event_kind kind;
    enum ledger_account account; /* whom it is about */
    uint64_t when_ns, bytes;
};

/* Asks the owner of the expert cache or the page cache to give up `bytes`. Returns what it gave, which may be
 * more (whole experts) or less, but not more than the account holds. Must not call the ledger. */
typedef uint64_t ledger_give_fn(void *self, enum ledger_account account, uint64_t bytes);
typedef void ledger_event_fn(void *self, const struct ledger_event *event);

struct ledger_setup {
    uint64_t capacity_bytes;
    struct ledger_policy policy[LEDGER_ACCOUNTS]; /* that of the page cache is not used */
    ledger_give_fn
        *give; /* NULL: the page cache gives all that is asked, the expert cache nothing */
    ledger_event_fn *event; /* NULL: events are only counted */
    void *self;             /* of both */
};

struct ledger {
    struct ledger_setup setup;
    uint64_t held[LEDGER_ACCOUNTS], spilled[LEDGER_ACCOUNTS], peak[LEDGER_ACCOUNTS];
    uint64_t total, total_peak, process_peak;
    uint64_t events[LEDGER_EVENT_KINDS];
    bool asking; /* give() is being called */
};

void ledger_init(struct ledger *l, const struct ledger_setup *setup);

/* Asks for `bytes` more. Returns how many of them are held from now on: all; or by the account's policy none, or
 * a part with the rest spilled. The page cache takes what is free, which is no event. */
uint64_t ledger_grow(struct ledger *l, uint64_t when_ns, enum ledger_account account,
                     uint64_t bytes);
/* Gives back `bytes`, of what was spilled first; the account must have that much. Returns how many of
 * them were held. */
uint64_t ledger_shrink(struct ledger *l, enum ledger_account account, uint64_t bytes);
/* An application takes `bytes`. The page cache gives, then the expert cache; false if that is not enough: the
 * process is killed, and nothing is booked. It ends by ledger_shrink(LEDGER_APPLICATIONS). */
bool ledger_pressure(struct ledger *l, uint64_t when_ns, uint64_t bytes);

uint64_t ledger_held(const struct ledger *l, enum ledger_account account);
uint64_t ledger_spilled(const struct ledger *l, enum ledger_account account);
uint64_t ledger_peak(const struct ledger *l, enum ledger_account account); /* largest ever held */
uint64_t ledger_free(const struct ledger *l);
/* All the page cache may hold now: what it holds and what is free. */
uint64_t ledger_page_cache_room(const struct ledger *l);
uint64_t ledger_total_peak(const struct ledger *l);
/* Largest sum of dense, cache, state, activations and buffers: what the process allocates. */
uint64_t ledger_process_peak(const struct ledger *l);
uint64_t ledger_events(const struct ledger *l, enum ledger_event_kind kind);

/* Static texts, fit for results and for marks of a timeline. */
const char *ledger_account_name(enum ledger_account account);
const char *ledger_event_name(enum ledger_event_kind kind);

#endif
