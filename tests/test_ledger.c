/* The memory ledger: never above its capacity, and never silent about what did not fit. Lists of pressure. */
#include "tests/support.h"

#include "base/pcg.h"
#include "sim/pipeline/ledger.h"
#include "sim/pipeline/pressure.h"
#include "tests/allocations.h"

#define GIB (UINT64_C(1) << 30)

static struct diag dg;

/* Owner of both caches: gives as much as is asked, rounded up to whole experts, up to a limit. */
struct owner {
    struct ledger ledger;
    uint64_t expert_bytes, cache_floor;
    uint64_t asked[LEDGER_ACCOUNTS];
    enum ledger_account order[16];
    size_t asked_count;
    struct ledger_event event[16];
    size_t event_count;
};

static uint64_t give(void *self, enum ledger_account account, uint64_t bytes)
{
    struct owner *o = self;
    o->asked[account] += bytes;
    if (o->asked_count < 16)
        o->order[o->asked_count++] = account;
    uint64_t whole = (bytes + o->expert_bytes - 1) / o->expert_bytes * o->expert_bytes;
    uint64_t floor = account == LEDGER_CACHE ? o->cache_floor : 0;
    uint64_t most = ledger_held(&o->ledger, account);
    most = most > floor ? most - floor : 0;
    return whole < most ? whole : most;
}

static void note(void *self, const struct ledger_event *event)
{
    struct owner *o = self;
    if (o->event_count < 16)
        o->event[o->event_count++] = *event;
}

/* 16 of capacity: 4 dense, 6 cache, 2 reserve; 4 are free. */
static struct ledger *start(struct owner *o, struct ledger_policy state_policy)
{
    struct ledger_setup setup = {.capacity_bytes = 16, .give = give, .event = note, .self = o};
    *o = (struct owner){.expert_bytes = 2};
    setup.policy[LEDGER_STATE] = state_policy;
    ledger_init(&o->ledger, &setup);
    assert_int_equal(ledger_grow(&o->ledger, 0, LEDGER_DENSE, 4), 4);
    assert_int_equal(ledger_grow(&o->ledger, 0, LEDGER_CACHE, 6), 6);
    assert_int_equal(ledger_grow(&o->ledger, 0, LEDGER_RESERVE, 2), 2);
    return &o->ledger;
}

static const struct ledger_policy refuse = {LEDGER_REFUSE, false};
static const struct ledger_policy spill = {LEDGER_SPILL, false};
static const struct ledger_policy shrink_then_refuse = {LEDGER_REFUSE, true};

static void expect_event(const struct owner *o, size_t i, enum ledger_event_kind kind,
                         enum ledger_account account, uint64_t when_ns, uint64_t bytes)
{
    assert_true(i < o->event_count);
    assert_int_equal(o->event[i].kind, kind);
    assert_int_equal(o->event[i].account, account);
    assert_int_equal(o->event[i].when_ns, when_ns);
    assert_int_equal(o->event[i].bytes, bytes);
}

static void the_page_cache_takes_what_is_free_and_no_more(void **state)
{
    (void)state;
    struct owner o;
    struct ledger *l = start(&o, refuse);
    assert_int_equal(ledger_grow(l, 1, LEDGER_PAGE_CACHE, 3), 3);
    assert_int_equal(ledger_page_cache_room(l), 4);
    assert_int_equal(ledger_grow(l, 1, LEDGER_PAGE_CACHE, 3), 1);
    assert_int_equal(ledger_grow(l, 1, LEDGER_PAGE_CACHE, 3), 0);
    assert_int_equal(ledger_free(l), 0);
    assert_int_equal(o.event_count, 0);
    assert_int_equal(o.asked_count, 0);
}

static void the_page_cache_gives_way_first(void **state)
{
    (void)state;
    struct owner o;
    struct ledger *l = start(&o, shrink_then_refuse);
    ledger_grow(l, 1, LEDGER_PAGE_CACHE, 3);
    assert_int_equal(ledger_grow(l, 2, LEDGER_STATE, 1), 1); /* fits: nobody is asked */
    assert_int_equal(o.asked_count, 0);
    assert_int_equal(ledger_grow(l, 3, LEDGER_STATE, 2), 2);
    assert_int_equal(o.asked_count, 1);
    assert_int_equal(o.order[0], LEDGER_PAGE_CACHE);
    assert_int_equal(o.asked[LEDGER_PAGE_CACHE], 2);
    assert_int_equal(ledger_held(l, LEDGER_PAGE_CACHE), 1);
    assert_int_equal(ledger_grow(l, 4, LEDGER_STATE, 2),
                     2); /* 1 of the page cache, 1 of the cache */
    assert_int_equal(o.order[1], LEDGER_PAGE_CACHE);
    assert_int_equal(o.order[2], LEDGER_CACHE);
    assert_int_equal(o.asked[LEDGER_CACHE], 1);
    assert_int_equal(ledger_held(l, LEDGER_CACHE), 4); /* whole experts */
    assert_int_equal(o.event_count, 1);
    expect_event(&o, 0, LEDGER_CACHE_SHRANK, LEDGER_CACHE, 4, 2);
}

static void what_does_not_fit_is_refused_whole(void **state)
{
    (void)state;
    struct owner o;
    struct ledger *l = start(&o, refuse);
    assert_int_equal(ledger_grow(l, 7, LEDGER_STATE, 5), 0);
    assert_int_equal(ledger_held(l, LEDGER_STATE), 0);
    assert_int_equal(ledger_spilled(l, LEDGER_STATE), 0);
    assert_int_equal(ledger_held(l, LEDGER_CACHE), 6); /* never asked */
    assert_int_equal(o.event_count, 1);
    expect_event(&o, 0, LEDGER_REFUSED, LEDGER_STATE, 7, 5);
    assert_int_equal(ledger_grow(l, 8, LEDGER_STATE, 4), 4);
    assert_int_equal(ledger_grow(l, 9, LEDGER_STATE, UINT64_MAX), 0);
    assert_int_equal(ledger_events(l, LEDGER_REFUSED), 2);
}

static void what_does_not_fit_is_spilled_and_counted(void **state)
{
    (void)state;
    struct owner o;
    struct ledger *l = start(&o, spill);
    assert_int_equal(ledger_grow(l, 7, LEDGER_STATE, 9), 4);
    assert_int_equal(ledger_held(l, LEDGER_STATE), 4);
    assert_int_equal(ledger_spilled(l, LEDGER_STATE), 5);
    expect_event(&o, 0, LEDGER_SPILLED, LEDGER_STATE, 7, 5);
    assert_int_equal(ledger_shrink(l, LEDGER_STATE, 3), 0); /* of what lies on the drive */
    assert_int_equal(ledger_spilled(l, LEDGER_STATE), 2);
    assert_int_equal(ledger_shrink(l, LEDGER_STATE, 3), 1);
    assert_int_equal(ledger_held(l, LEDGER_STATE), 3);
    assert_int_equal(ledger_free(l), 1);
}

static void an_application_takes_page_cache_then_cache(void **state)
{
    (void)state;
    struct owner o;
    struct ledger *l = start(&o, refuse); /* the policy of others does not count */
    ledger_grow(l, 1, LEDGER_PAGE_CACHE, 4);
    assert_true(ledger_pressure(l, 5, 7));
    assert_int_equal(ledger_held(l, LEDGER_APPLICATIONS), 7);
    assert_int_equal(ledger_held(l, LEDGER_PAGE_CACHE), 0);
    assert_int_equal(ledger_held(l, LEDGER_CACHE), 2);
    assert_int_equal(ledger_page_cache_room(l), 1);
    assert_int_equal(o.event_count, 2);
    expect_event(&o, 0, LEDGER_PRESSURE, LEDGER_APPLICATIONS, 5, 7);
    expect_event(&o, 1, LEDGER_CACHE_SHRANK, LEDGER_CACHE, 5, 4);
    assert_int_equal(ledger_shrink(l, LEDGER_APPLICATIONS, 7), 7);
    assert_int_equal(ledger_page_cache_room(l), 8);
}

static void an_application_that_cannot_be_served_kills(void **state)
{
    (void)state;
    struct owner o;
    struct ledger *l = start(&o, refuse);
    o.cache_floor = 4;
    assert_false(ledger_pressure(l, 5, 8));
    assert_int_equal(ledger_held(l, LEDGER_APPLICATIONS), 0);
    assert_int_equal(ledger_held(l, LEDGER_CACHE), 4);
    assert_int_equal(o.event_count, 3);
    expect_event(&o, 2, LEDGER_KILLED, LEDGER_APPLICATIONS, 5, 2);
    assert_int_equal(ledger_events(l, LEDGER_KILLED), 1);
    assert_false(ledger_pressure(l, 6, UINT64_MAX));
}

static void without_an_owner_only_the_page_cache_gives(void **state)
{
    (void)state;
    struct ledger l;
    ledger_init(&l, &(struct ledger_setup){.capacity_bytes = 10});
    ledger_grow(&l, 0, LEDGER_CACHE, 5);
    ledger_grow(&l, 0, LEDGER_PAGE_CACHE, 5);
    assert_true(ledger_pressure(&l, 1, 3));
    assert_int_equal(ledger_held(&l, LEDGER_PAGE_CACHE), 2);
    assert_false(ledger_pressure(&l, 2, 3));
    assert_int_equal(ledger_held(&l, LEDGER_CACHE), 5);
    assert_int_equal(ledger_events(&l, LEDGER_PRESSURE), 2);
}

static void peaks_are_those_of_the_worst_instant(void **state)
{
    (void)state;
    struct ledger l;
    ledger_init(&l, &(struct ledger_setup){.capacity_bytes = 100});
    ledger_grow(&l, 0, LEDGER_RESERVE, 10);
    ledger_grow(&l, 0, LEDGER_ACTIVATIONS, 30);
    ledger_grow(&l, 0, LEDGER_PAGE_CACHE, 40);
    ledger_shrink(&l, LEDGER_ACTIVATIONS, 30);
    ledger_grow(&l, 0, LEDGER_BUFFERS, 20);
    assert_int_equal(ledger_peak(&l, LEDGER_ACTIVATIONS), 30);
    assert_int_equal(ledger_peak(&l, LEDGER_BUFFERS), 20);
    assert_int_equal(ledger_peak(&l, LEDGER_PAGE_CACHE), 40);
    assert_int_equal(ledger_total_peak(&l), 80);
    assert_int_equal(ledger_process_peak(&l), 30);
    ledger_grow(&l, 0, LEDGER_DENSE, 30);
    ledger_shrink(&l, LEDGER_PAGE_CACHE, 40);
    assert_int_equal(ledger_total_peak(&l), 100);
    assert_int_equal(ledger_process_peak(&l), 50);
}

/* Any sequence: the sum stays within the capacity, every byte asked is held, spilled, refused or killed, and
 * events tell which. */
static void no_sequence_exceeds_the_capacity_or_loses_a_byte(void **state)
{
    (void)state;
    struct pcg chance;
    pcg_seed(&chance, 11, 1);
    for (int run = 0; run < 200; run++) {
        struct owner o = {.expert_bytes = 1 + pcg_below(&chance, 50)};
        struct ledger_setup setup = {
            .capacity_bytes = 1000, .give = give, .event = note, .self = &o};
        for (int i = 0; i < LEDGER_ACCOUNTS; i++) {
            setup.policy[i].overflow = pcg_below(&chance, 2) ? LEDGER_SPILL : LEDGER_REFUSE;
            setup.policy[i].shrinks_cache = pcg_below(&chance, 2);
        }
        ledger_init(&o.ledger, &setup);
        for (int step = 0; step < 300; step++) {
            enum ledger_account account = pcg_below(&chance, LEDGER_ACCOUNTS);
            uint64_t bytes = pcg_below(&chance, 300), spilled = o.ledger.spilled[account];
            uint64_t refused = o.ledger.events[LEDGER_REFUSED], total = 0;
            if (pcg_below(&chance, 3) == 0) {
                uint64_t has = o.ledger.held[account] + spilled;
                ledger_shrink(&o.ledger, account, bytes < has ? bytes : has);
            } else if (account == LEDGER_APPLICATIONS) {
                ledger_pressure(&o.ledger, 0, bytes);
            } else {
                uint64_t held = ledger_grow(&o.ledger, 0, account, bytes);
                bool refused_now = o.ledger.events[LEDGER_REFUSED] > refused;
                if (account != LEDGER_PAGE_CACHE && !refused_now)
                    assert_int_equal(held + o.ledger.spilled[account] - spilled, bytes);
                assert_true(!refused_now || held == 0);
            }
            for (int i = 0; i < LEDGER_ACCOUNTS; i++)
                total += ledger_held(&o.ledger, i);
            assert_true(total <= 1000);
            assert_int_equal(total + ledger_free(&o.ledger), 1000);
        }
        assert_true(ledger_total_peak(&o.ledger) <= 1000);
        assert_true(ledger_process_peak(&o.ledger) <= ledger_total_peak(&o.ledger));
    }
}

static void every_account_and_event_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < LEDGER_ACCOUNTS; i++)
        assert_true(strlen(ledger_account_name(i)) > 0);
    for (int i = 0; i < LEDGER_EVENT_KINDS; i++)
        assert_true(strlen(ledger_event_name(i)) > 0);
    assert_string_equal(ledger_account_name(LEDGER_PAGE_CACHE), "page_cache");
    assert_string_equal(ledger_event_name(LEDGER_KILLED), "killed");
}

/* ---- lists of pressure ---- */

static void a_list_of_pressure_is_read_and_put_in_order(void **state)
{
    (void)state;
    struct pressure *list;
    size_t count;
    assert_ok(pressure_parse(&list, &count, "2GiB@5s", &dg));
    assert_int_equal(count, 1);
    assert_int_equal(list[0].bytes, 2 * GIB);
    assert_int_equal(list[0].when_ns, UINT64_C(5000000000));
    free(list);
    assert_ok(pressure_parse(&list, &count, "1 GiB@1 min,2GiB@0s,300@90ms,4GB@60s", &dg));
    assert_int_equal(count, 4);
    static const uint64_t bytes[] = {2 * GIB, 300, GIB, UINT64_C(4000000000)};
    static const uint64_t when_ms[] = {0, 90, 60000, 60000};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(list[i].bytes, bytes[i]);
        assert_int_equal(list[i].when_ns, when_ms[i] * 1000000);
    }
    free(list);
}

static void a_wrong_list_of_pressure_is_refused_with_its_entry(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
        enum status status;
    } wrong[] = {
        {"", "'': expected SIZE@TIME, as in 2GiB@5s", ST_PARSE},
        {"2GiB", "'2GiB': expected SIZE@TIME, as in 2GiB@5s", ST_PARSE},
        {"2GiB@5s,", "'': expected SIZE@TIME, as in 2GiB@5s", ST_PARSE},
        {"2GiB@5s,1GiB", "'1GiB': expected SIZE@TIME, as in 2GiB@5s", ST_PARSE},
        {"0@5s", "'0': expected more than no memory", ST_RANGE},
        {"2GiB@5", "'5'", ST_PARSE},
        {"2Gib@5s", "'2Gib'", ST_PARSE},
        {"2GiB@5s@6s", "'5s@6s'", ST_PARSE},
        {"-1GiB@5s", "'-1GiB'", ST_RANGE},
        {"@5s", "''", ST_PARSE},
        {"1GiB@", "''", ST_PARSE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct pressure *list = NULL;
        size_t count;
        enum status status = pressure_parse(&list, &count, wrong[i].text, &dg);
        if (status != wrong[i].status ||
            strncmp(dg.text, wrong[i].reason, strlen(wrong[i].reason)) != 0)
            fail_msg("'%s': status %d, %s", wrong[i].text, status, dg.text);
        assert_null(list);
    }
}

static void a_list_of_pressure_survives_failed_allocations(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (size_t n = 1; n <= 2; n++) {
        struct pressure *list;
        size_t count;
        allocations_fail_at(n);
        enum status status = pressure_parse(&list, &count, "1GiB@1s", &dg);
        allocations_fail_at(0);
        assert_int_equal(status, ST_NO_MEMORY);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_cache_takes_what_is_free_and_no_more),
        cmocka_unit_test(the_page_cache_gives_way_first),
        cmocka_unit_test(what_does_not_fit_is_refused_whole),
        cmocka_unit_test(what_does_not_fit_is_spilled_and_counted),
        cmocka_unit_test(an_application_takes_page_cache_then_cache),
        cmocka_unit_test(an_application_that_cannot_be_served_kills),
        cmocka_unit_test(without_an_owner_only_the_page_cache_gives),
        cmocka_unit_test(peaks_are_those_of_the_worst_instant),
        cmocka_unit_test(no_sequence_exceeds_the_capacity_or_loses_a_byte),
        cmocka_unit_test(every_account_and_event_has_a_name),
        cmocka_unit_test(a_list_of_pressure_is_read_and_put_in_order),
        cmocka_unit_test(a_wrong_list_of_pressure_is_refused_with_its_entry),
        cmocka_unit_test(a_list_of_pressure_survives_failed_allocations),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
