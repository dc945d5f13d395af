/* The event queue: one total order, whatever is scheduled, cancelled or grown, and no allocation.
 */
#include "tests/support.h"

#include "base/pcg.h"
#include "sim/core/evq.h"
#include "sim/core/hold.h"
#include "tests/allocations.h"

enum { LOG_MAX = 1 << 16 };
static uint64_t log_when[LOG_MAX];
static uintptr_t log_self[LOG_MAX];
static size_t log_count;

static void record(struct evq *q, void *self)
{
    log_when[log_count] = evq_now_ns(q);
    log_self[log_count++] = (uintptr_t)self;
}

static void *number(uintptr_t n)
{
    return (void *)n;
}

static struct evq *queue(size_t capacity)
{
    struct evq *q = NULL;
    assert_int_equal(evq_new(&q, capacity), ST_OK);
    log_count = 0;
    return q;
}

static void at(struct evq *q, uint64_t when_ns, evq_fn *fn, uintptr_t self)
{
    assert_int_equal(evq_at(q, when_ns, fn, number(self)), ST_OK);
}

static uint64_t at_priority(struct evq *q, uint64_t when_ns, unsigned priority, uintptr_t self)
{
    uint64_t ticket = 0;
    assert_int_equal(evq_at_priority(q, when_ns, priority, record, number(self), &ticket), ST_OK);
    return ticket;
}

static void drain(struct evq *q)
{
    while (evq_step(q))
        ;
}

static void an_empty_queue_does_not_step(void **state)
{
    (void)state;
    struct evq *q = queue(0);
    assert_false(evq_step(q));
    assert_int_equal(evq_now_ns(q), 0);
    assert_true(evq_next_ns(q) == UINT64_MAX);
    assert_int_equal(evq_at(q, 0, record, NULL), ST_NO_MEMORY);
    evq_free(q);
    evq_free(NULL);
}

static void events_fire_in_order_of_time(void **state)
{
    (void)state;
    struct evq *q = queue(4);
    const uint64_t when[] = {30, 10, UINT64_MAX - 1, 20};
    for (size_t i = 0; i < 4; i++)
        at(q, when[i], record, i);
    assert_int_equal(evq_next_ns(q), 10);
    drain(q);
    const uintptr_t expected[] = {1, 3, 0, 2};
    assert_memory_equal(log_self, expected, sizeof expected);
    assert_true(log_when[3] == UINT64_MAX - 1);
    assert_int_equal(evq_fired(q), 4);
    evq_free(q);
}

static void events_at_one_instant_fire_in_schedule_order(void **state)
{
    (void)state;
    struct evq *q = queue(1000);
    for (uintptr_t i = 0; i < 1000; i++)
        at(q, 7, record, i);
    drain(q);
    for (uintptr_t i = 0; i < 1000; i++)
        assert_int_equal(log_self[i], i);
    evq_free(q);
}

static void priority_goes_before_schedule_order_and_time_before_priority(void **state)
{
    (void)state;
    struct evq *q = queue(6);
    at_priority(q, 5, EVQ_LAST, 0);
    at_priority(q, 5, EVQ_NORMAL, 1);
    at_priority(q, 5, EVQ_FIRST, 2);
    at_priority(q, 4, EVQ_LAST, 3);
    at_priority(q, 5, EVQ_NORMAL, 4);
    at_priority(q, 6, EVQ_FIRST, 5);
    drain(q);
    const uintptr_t expected[] = {3, 2, 1, 4, 0, 5};
    assert_memory_equal(log_self, expected, sizeof expected);
    evq_free(q);
}

static void schedule_more(struct evq *q, void *self)
{
    uint64_t now = evq_now_ns(q);
    record(q, self);
    at_priority(q, now, EVQ_LAST, 10);
    at_priority(q, now, EVQ_NORMAL, 11);
    at_priority(q, now, EVQ_FIRST, 12);
}

static void what_an_event_schedules_for_its_own_instant_fires_in_that_instant(void **state)
{
    (void)state;
    struct evq *q = queue(8);
    at(q, 3, schedule_more, 0);
    at(q, 3, record, 1);
    at(q, 4, record, 2);
    drain(q);
    const uintptr_t expected[] = {0, 12, 1, 11, 10, 2};
    assert_int_equal(log_count, 6);
    assert_memory_equal(log_self, expected, sizeof expected);
    assert_int_equal(log_when[4], 3);
    evq_free(q);
}

static void a_cancelled_event_does_not_fire_and_cancels_only_once(void **state)
{
    (void)state;
    struct evq *q = queue(3);
    uint64_t a = at_priority(q, 1, EVQ_NORMAL, 0);
    uint64_t b = at_priority(q, 2, EVQ_NORMAL, 1);
    uint64_t c = at_priority(q, 3, EVQ_NORMAL, 2);
    assert_true(evq_cancel(q, b));
    assert_false(evq_cancel(q, b));
    assert_false(evq_cancel(q, 0));
    assert_false(evq_cancel(q, UINT64_MAX));
    uint64_t d = at_priority(q, 2, EVQ_NORMAL, 3); /* takes b's place, but is not b */
    assert_false(evq_cancel(q, b));
    assert_true(evq_step(q));
    assert_false(evq_cancel(q, a));
    assert_int_equal(evq_pending(q), 2);
    drain(q);
    assert_false(evq_cancel(q, c) || evq_cancel(q, d));
    const uintptr_t expected[] = {0, 3, 2};
    assert_int_equal(log_count, 3);
    assert_memory_equal(log_self, expected, sizeof expected);
    evq_free(q);
}

static uint64_t other_ticket, own_ticket;

static void cancel_other(struct evq *q, void *self)
{
    record(q, self);
    assert_false(evq_cancel(q, own_ticket));
    assert_true(evq_cancel(q, other_ticket));
    assert_int_equal(evq_pending(q), 1);
}

static void an_event_may_cancel_others_but_is_itself_no_longer_pending(void **state)
{
    (void)state;
    struct evq *q = queue(3);
    assert_int_equal(evq_at_priority(q, 1, 3, cancel_other, number(0), &own_ticket), ST_OK);
    other_ticket = at_priority(q, 2, EVQ_NORMAL, 1);
    at(q, 3, record, 2);
    drain(q);
    const uintptr_t expected[] = {0, 2};
    assert_int_equal(log_count, 2);
    assert_memory_equal(log_self, expected, sizeof expected);
    evq_free(q);
}

static void capacity_is_a_limit_that_reserve_raises(void **state)
{
    (void)state;
    struct evq *q = queue(2);
    at(q, 9, record, 0);
    at(q, 8, record, 1);
    assert_int_equal(evq_at(q, 7, record, number(2)), ST_NO_MEMORY);
    assert_int_equal(evq_reserve(q, 5), ST_OK);
    for (uintptr_t i = 2; i < 7; i++)
        at(q, 9 - i, record, i);
    assert_int_equal(evq_at(q, 7, record, NULL), ST_NO_MEMORY);
    assert_int_equal(evq_reserve(q, EVQ_CAPACITY_MAX), ST_RANGE);
    drain(q);
    for (uintptr_t i = 0; i < 7; i++)
        assert_int_equal(log_self[i], 6 - i);
    struct evq *none;
    assert_int_equal(evq_new(&none, EVQ_CAPACITY_MAX + 1), ST_RANGE);
    evq_free(q);
}

static uint64_t fingerprint_of(const uint64_t when[3], unsigned priority, bool note)
{
    struct evq *q = queue(3);
    for (uintptr_t i = 0; i < 3; i++)
        at_priority(q, when[i], priority, i);
    evq_step(q);
    if (note)
        evq_note(q, 0);
    drain(q);
    uint64_t fingerprint = evq_fingerprint(q);
    evq_free(q);
    return fingerprint;
}

static void the_fingerprint_covers_time_priority_order_and_notes(void **state)
{
    (void)state;
    const uint64_t a[] = {1, 2, 3}, late[] = {1, 2, 4}, swapped[] = {2, 1, 3};
    uint64_t base = fingerprint_of(a, EVQ_NORMAL, false);
    assert_true(base == fingerprint_of(a, EVQ_NORMAL, false));
    assert_true(base != fingerprint_of(late, EVQ_NORMAL, false));
    assert_true(base != fingerprint_of(swapped, EVQ_NORMAL, false));
    assert_true(base != fingerprint_of(a, EVQ_FIRST, false));
    assert_true(base != fingerprint_of(a, EVQ_NORMAL, true));
}

static void the_fingerprint_of_a_fixed_run_is_these_bytes(void **state)
{
    (void)state;
    const uint64_t a[] = {1, 2, 3};
    assert_true(fingerprint_of(a, EVQ_NORMAL, true) == UINT64_C(0xdd86c1c49869b1eb));
}

/* A queue so simple that it is right: a list kept sorted by insertion. */
struct naive_event {
    uint64_t when, order, ticket;
    unsigned priority;
    uintptr_t self;
};
static struct naive_event naive[512];
static size_t naive_count;
static struct pcg chance;
static uintptr_t next_self;

static bool naive_before(const struct naive_event *a, const struct naive_event *b)
{
    if (a->when != b->when)
        return a->when < b->when;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->order < b->order;
}

static void naive_remove(size_t i)
{
    memmove(naive + i, naive + i + 1, (--naive_count - i) * sizeof *naive);
}

static void fuzz_event(struct evq *q, void *self);

static void fuzz_schedule(struct evq *q)
{
    struct naive_event e = {.when = evq_now_ns(q) + pcg_below(&chance, 20) * pcg_below(&chance, 3),
                            .order = next_self,
                            .priority = pcg_below(&chance, 16),
                            .self = next_self};
    enum status status =
        evq_at_priority(q, e.when, e.priority, fuzz_event, number(e.self), &e.ticket);
    assert_int_equal(status, naive_count < 300 ? ST_OK : ST_NO_MEMORY);
    if (status != ST_OK)
        return;
    next_self++;
    size_t i = naive_count++;
    for (; i > 0 && naive_before(&e, &naive[i - 1]); i--)
        naive[i] = naive[i - 1];
    naive[i] = e;
}

static void fuzz_operations(struct evq *q, uint32_t most)
{
    for (uint32_t n = pcg_below(&chance, most + 1); n > 0; n--) {
        if (pcg_below(&chance, 4) || !naive_count) {
            fuzz_schedule(q);
            continue;
        }
        size_t i = pcg_below(&chance, (uint32_t)naive_count);
        assert_true(evq_cancel(q, naive[i].ticket));
        assert_false(evq_cancel(q, naive[i].ticket));
        naive_remove(i);
    }
    assert_int_equal(evq_pending(q), naive_count);
}

static void fuzz_event(struct evq *q, void *self)
{
    assert_true(naive_count > 0);
    assert_int_equal((uintptr_t)self, naive[0].self);
    assert_int_equal(evq_now_ns(q), naive[0].when);
    assert_false(evq_cancel(q, naive[0].ticket));
    naive_remove(0);
    fuzz_operations(q, 3);
}

static void random_operations_match_a_sorted_list(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pcg_seed(&chance, seed, 1);
        struct evq *q = queue(0);
        for (size_t part = 0; part < 3; part++)
            assert_int_equal(evq_reserve(q, 100), ST_OK);
        naive_count = 0, next_self = 0;
        for (int round = 0; round < 5000; round++) {
            fuzz_operations(q, 4 + 4 * (seed % 2));
            for (uint32_t n = pcg_below(&chance, 6); n > 0 && evq_step(q); n--)
                ;
        }
        while (naive_count > 0 && evq_cancel(q, naive[naive_count - 1].ticket))
            naive_count--;
        assert_false(evq_step(q));
        evq_free(q);
    }
}

static void hold(struct evq *q, void *self)
{
    at(q, evq_now_ns(q) + pcg_below(&chance, 1 << 20), hold, (uintptr_t)self);
}

static void stepping_allocates_nothing(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    pcg_seed(&chance, 1, 1);
    struct evq *q = queue(1000);
    for (uintptr_t i = 0; i < 1000; i++)
        at(q, pcg_below(&chance, 1 << 20), hold, i);
    size_t before = allocations_count();
    for (int i = 0; i < 100000; i++)
        evq_step(q);
    assert_int_equal(allocations_count(), before);
    evq_free(q);
}

static uint64_t hold_fingerprint(uint64_t seed, uint64_t parts)
{
    struct diag dg;
    struct hold *h = NULL;
    uint64_t fingerprint = 0;
    assert_ok(hold_new(&h, 1000, seed, &dg));
    for (uint64_t i = 0; i < parts; i++)
        fingerprint = hold_run(h, 12000 / parts);
    hold_free(h);
    return fingerprint;
}

static void the_hold_model_repeats_itself_for_a_seed(void **state)
{
    (void)state;
    assert_true(hold_fingerprint(1, 1) == hold_fingerprint(1, 3));
    assert_true(hold_fingerprint(1, 1) != hold_fingerprint(2, 1));
    struct diag dg;
    struct hold *h;
    assert_int_equal(hold_new(&h, 0, 1, &dg), ST_RANGE);
    assert_int_equal(hold_new(&h, EVQ_CAPACITY_MAX + 1, 1, &dg), ST_RANGE);
}

static void an_allocation_that_fails_leaves_the_queue_as_it_was(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct evq *q = queue(2);
    at(q, 1, record, 0);
    for (size_t n = 1; n <= 3; n++) {
        allocations_fail_at(n);
        assert_int_equal(evq_reserve(q, 1), ST_NO_MEMORY);
    }
    for (size_t n = 1; n <= 4; n++) {
        struct evq *none = NULL;
        allocations_fail_at(n);
        assert_int_equal(evq_new(&none, 1), ST_NO_MEMORY);
        assert_null(none);
    }
    allocations_fail_at(0);
    at(q, 0, record, 1);
    assert_int_equal(evq_at(q, 2, record, NULL), ST_NO_MEMORY);
    drain(q);
    assert_int_equal(log_count, 2);
    assert_int_equal(log_self[0], 1);
    evq_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_queue_does_not_step),
        cmocka_unit_test(events_fire_in_order_of_time),
        cmocka_unit_test(events_at_one_instant_fire_in_schedule_order),
        cmocka_unit_test(priority_goes_before_schedule_order_and_time_before_priority),
        cmocka_unit_test(what_an_event_schedules_for_its_own_instant_fires_in_that_instant),
        cmocka_unit_test(a_cancelled_event_does_not_fire_and_cancels_only_once),
        cmocka_unit_test(an_event_may_cancel_others_but_is_itself_no_longer_pending),
        cmocka_unit_test(capacity_is_a_limit_that_reserve_raises),
        cmocka_unit_test(the_fingerprint_covers_time_priority_order_and_notes),
        cmocka_unit_test(the_fingerprint_of_a_fixed_run_is_these_bytes),
        cmocka_unit_test(random_operations_match_a_sorted_list),
        cmocka_unit_test(stepping_allocates_nothing),
        cmocka_unit_test(the_hold_model_repeats_itself_for_a_seed),
        cmocka_unit_test(an_allocation_that_fails_leaves_the_queue_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
