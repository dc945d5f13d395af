/* ledger.c -- see ledger.h. */
#include "sim/pipeline/ledger.h"

#include <assert.h>

static void check(const struct ledger *l)
{
    uint64_t sum = 0;
    for (int i = 0; i < LEDGER_ACCOUNTS; i++)
        sum += l->held[i];
    assert(sum == l->total && sum <= l->setup.capacity_bytes);
    (void)sum;
}

void ledger_init(struct ledger *l, const struct ledger_setup *setup)
{
    *l = (struct ledger){.setup = *setup};
}

static void report(struct ledger *l, enum ledger_event_kind kind, enum ledger_account account,
                   uint64_t when_ns, uint64_t bytes)
{
    l->events[kind]++;
    if (l->setup.event)
        l->setup.event(l->setup.self,
                       &(struct ledger_event){
                           .kind = kind, .account = account, .when_ns = when_ns, .bytes = bytes});
}

static uint64_t process_bytes(const struct ledger *l)
{
    return l->held[LEDGER_DENSE] + l->held[LEDGER_CACHE] + l->held[LEDGER_STATE] +
           l->held[LEDGER_ACTIVATIONS] + l->held[LEDGER_BUFFERS];
}

static void raise_to(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

static void book(struct ledger *l, enum ledger_account account, uint64_t bytes)
{
    l->held[account] += bytes;
    l->total += bytes;
    check(l);
    raise_to(&l->peak[account], l->held[account]);
    raise_to(&l->total_peak, l->total);
    raise_to(&l->process_peak, process_bytes(l));
}

static void unbook(struct ledger *l, enum ledger_account account, uint64_t bytes)
{
    assert(bytes <= l->held[account]);
    l->held[account] -= bytes;
    l->total -= bytes;
    check(l);
}

/* Has an account give what is lacking, as far as it can. */
static uint64_t ask(struct ledger *l, enum ledger_account account, uint64_t wanted)
{
    uint64_t free = ledger_free(l), held = l->held[account];
    uint64_t lacking = wanted > free ? wanted - free : 0;
    if (lacking > held)
        lacking = held;
    if (lacking == 0)
        return 0;
    uint64_t given = account == LEDGER_PAGE_CACHE ? lacking : 0;
    if (l->setup.give) {
        l->asking = true;
        given = l->setup.give(l->setup.self, account, lacking);
        l->asking = false;
    }
    unbook(l, account, given);
    return given;
}

static void make_room(struct ledger *l, uint64_t when_ns, uint64_t wanted, bool shrinks_cache)
{
    ask(l, LEDGER_PAGE_CACHE, wanted);
    if (!shrinks_cache)
        return;
    uint64_t given = ask(l, LEDGER_CACHE, wanted);
    if (given > 0)
        report(l, LEDGER_CACHE_SHRANK, LEDGER_CACHE, when_ns, given);
}

uint64_t ledger_grow(struct ledger *l, uint64_t when_ns, enum ledger_account account,
                     uint64_t bytes)
{
    assert(!l->asking && account < LEDGER_ACCOUNTS);
    const struct ledger_policy *policy = &l->setup.policy[account];
    bool pages = account == LEDGER_PAGE_CACHE;
    if (!pages)
        make_room(l, when_ns, bytes, policy->shrinks_cache && account != LEDGER_CACHE);
    uint64_t free = ledger_free(l), fits = bytes < free ? bytes : free;
    if (fits < bytes && !pages) {
        bool spills = policy->overflow == LEDGER_SPILL;
        if (!spills)
            fits = 0;
        else
            l->spilled[account] += bytes - fits;
        report(l, spills ? LEDGER_SPILLED : LEDGER_REFUSED, account, when_ns, bytes - fits);
    }
    book(l, account, fits);
    return fits;
}

uint64_t ledger_shrink(struct ledger *l, enum ledger_account account, uint64_t bytes)
{
    assert(!l->asking && account < LEDGER_ACCOUNTS);
    uint64_t elsewhere = bytes < l->spilled[account] ? bytes : l->spilled[account];
    l->spilled[account] -= elsewhere;
    unbook(l, account, bytes - elsewhere);
    return bytes - elsewhere;
}

bool ledger_pressure(struct ledger *l, uint64_t when_ns, uint64_t bytes)
{
    assert(!l->asking);
    report(l, LEDGER_PRESSURE, LEDGER_APPLICATIONS, when_ns, bytes);
    make_room(l, when_ns, bytes, true);
    uint64_t free = ledger_free(l);
    if (bytes > free) {
        report(l, LEDGER_KILLED, LEDGER_APPLICATIONS, when_ns, bytes - free);
        return false;
    }
    book(l, LEDGER_APPLICATIONS, bytes);
    return true;
}

/* ---- reading ---- */

uint64_t ledger_held(const struct ledger *l, enum ledger_account account)
{
    return l->held[account];
}

uint64_t ledger_spilled(const struct ledger *l, enum ledger_account account)
{
    return l->spilled[account];
}

uint64_t ledger_peak(const struct ledger *l, enum ledger_account account)
{
    return l->peak[account];
}

uint64_t ledger_free(const struct ledger *l)
{
    return l->setup.capacity_bytes - l->total;
}

uint64_t ledger_page_cache_room(const struct ledger *l)
{
    return ledger_free(l) + l->held[LEDGER_PAGE_CACHE];
}

uint64_t ledger_total_peak(const struct ledger *l)
{
    return l->total_peak;
}

uint64_t ledger_process_peak(const struct ledger *l)
{
    return l->process_peak;
}

uint64_t ledger_events(const struct ledger *l, enum ledger_event_kind kind)
{
    return l->events[kind];
}

const char *ledger_account_name(enum ledger_account account)
{
    static const char *const names[LEDGER_ACCOUNTS] = {"dense",        "cache",     "state",
                                                       "activations",  "buffers",   "reserve",
                                                       "applications", "page_cache"};
    return names[account];
}

const char *ledger_event_name(enum ledger_event_kind kind)
{
    static const char *const names[LEDGER_EVENT_KINDS] = {"pressure", "cache shrank", "spilled",
                                                          "refused", "killed"};
    return names[kind];
}
