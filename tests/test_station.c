/* Stations: order of service, exact ends under changing speed, Little's law to the last bit, and
 * the queueing theory that has closed forms. */
#include "tests/support.h"

#include <math.h>

#include "base/fixed.h"
#include "base/pcg.h"
#include "sim/core/station.h"
#include "tests/allocations.h"

#define MS UINT64_C(1000000)

static struct diag dg;
static struct evq *q;
static struct station *st;
static struct pcg chance;

enum { MARKS = 4096 };
struct mark {
    uint64_t submitted, started, done, ticket;
};
static struct mark marks[MARKS];
static uintptr_t done_order[MARKS];
static size_t done_count;

static void open_station(uint32_t servers, uint64_t speed_per_s, uint32_t levels, uint32_t jobs_max)
{
    const struct station_setup s = {servers, speed_per_s, levels, jobs_max};
    assert_int_equal(evq_new(&q, 2000), ST_OK);
    assert_ok(station_new(&st, q, &s, &dg));
    memset(marks, 0xff, sizeof marks);
    done_count = 0;
}

static void close_station(void)
{
    station_free(st);
    evq_free(q);
}

static void mark_start(struct evq *queue, void *self)
{
    marks[(uintptr_t)self].started = evq_now_ns(queue);
}

static void mark_done(struct evq *queue, void *self)
{
    marks[(uintptr_t)self].done = evq_now_ns(queue);
    done_order[done_count++] = (uintptr_t)self;
}

static void submit(uintptr_t number, uint64_t work, uint32_t level)
{
    const struct station_job job = {.work = work,
                                    .level = level,
                                    .tag = number,
                                    .start = mark_start,
                                    .done = mark_done,
                                    .self = (void *)number};
    marks[number].submitted = evq_now_ns(q);
    assert_int_equal(station_submit(st, &job, &marks[number].ticket), ST_OK);
}

static void at(uint64_t when_ns, evq_fn *fn, uintptr_t self)
{
    assert_int_equal(evq_at(q, when_ns, fn, (void *)self), ST_OK);
}

static void drain(void)
{
    while (evq_step(q))
        ;
}

static void assert_done_order(const uintptr_t *expected, size_t count)
{
    assert_int_equal(done_count, count);
    assert_memory_equal(done_order, expected, count * sizeof *expected);
}

static void a_job_alone_takes_its_work_at_the_servers_speed_rounded_up(void **state)
{
    (void)state;
    const uint64_t cases[][3] = {{1000, NS_PER_S, 1000},
                                 {1, 3, 333333334},
                                 {0, 5, 0},
                                 {7, 7 * NS_PER_S, 1},
                                 {8, 7 * NS_PER_S, 2},
                                 {1u << 30, 1u << 31, 500000000},
                                 {UINT64_MAX - 1, UINT64_MAX - 1, NS_PER_S}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_station(1, cases[i][1], 1, 1);
        submit(0, cases[i][0], 0);
        drain();
        assert_int_equal(marks[0].done, cases[i][2]);
        close_station();
    }
}

static void submit_now(struct evq *queue, void *self)
{
    (void)queue;
    uintptr_t number = (uintptr_t)self;
    submit(number, 100, number >= 100);
}

static void demand_overtakes_prefetch_that_waits_but_not_what_has_started(void **state)
{
    (void)state;
    open_station(1, NS_PER_S, 2, 8);
    submit(100, 100, 1); /* starts at once */
    submit(101, 100, 1);
    submit(102, 100, 1);
    at(50, submit_now, 1);
    at(60, submit_now, 2);
    drain();
    const uintptr_t expected[] = {100, 1, 2, 101, 102};
    assert_done_order(expected, 5);
    assert_int_equal(marks[1].started, 100);
    assert_int_equal(marks[102].done, 500);
    assert_int_equal(station_level(st, 0)->wait_ns_max, 140);
    assert_true(station_level(st, 0)->wait_ns == 50 + 140);
    assert_true(station_level(st, 1)->wait_ns == 0 + 300 + 400);
    close_station();
}

static void submit_chain(struct evq *queue, void *self)
{
    mark_done(queue, self);
    submit(1, 100, 0);
}

static void what_a_job_submits_at_its_end_competes_by_level(void **state)
{
    (void)state;
    open_station(1, NS_PER_S, 2, 3);
    const struct station_job first = {.work = 10, .done = submit_chain};
    assert_int_equal(station_submit(st, &first, NULL), ST_OK);
    submit(2, 100, 1);
    submit(3, 100, 0);
    assert_int_equal(station_submit(st, &first, NULL), ST_RANGE);
    drain();
    const uintptr_t expected[] = {0, 3, 1, 2};
    assert_done_order(expected, 4);
    close_station();
}

static void promote_100(struct evq *queue, void *self)
{
    (void)queue, (void)self;
    assert_false(station_promote(st, marks[0].ticket, 1)); /* in service */
    assert_true(station_promote(st, marks[102].ticket, 0));
    assert_true(station_withdraw(st, marks[101].ticket));
    assert_false(station_withdraw(st, marks[101].ticket));
    assert_false(station_withdraw(st, marks[0].ticket));
    assert_false(station_withdraw(st, 0));
    assert_int_equal(station_waiting(st, 0), 2);
    assert_int_equal(station_waiting(st, 1), 1);
}

static void
a_promoted_job_goes_to_the_end_of_its_new_level_and_a_withdrawn_one_nowhere(void **state)
{
    (void)state;
    open_station(1, NS_PER_S, 2, 8);
    submit(0, 100, 0);
    submit(100, 100, 1);
    submit(101, 100, 1);
    submit(102, 100, 1);
    submit(1, 100, 0);
    at(10, promote_100, 0);
    drain();
    const uintptr_t expected[] = {0, 1, 102, 100};
    assert_done_order(expected, 4);
    assert_int_equal(station_level(st, 1)->withdrawn, 1);
    struct station_little little = station_little(st);
    assert_true(little.area_waiting + little.area_serving == little.sojourn_left);
    assert_true(little.sojourn_present == 0);
    close_station();
}

static void finish_held(struct evq *queue, void *self)
{
    (void)queue;
    assert_true(station_finish(st, marks[(uintptr_t)self].ticket));
    assert_false(station_finish(st, marks[(uintptr_t)self].ticket));
}

static void a_held_place_is_kept_until_it_is_given_back(void **state)
{
    (void)state;
    open_station(2, NS_PER_S, 1, 8);
    submit(0, STATION_HELD, 0);
    submit(1, STATION_HELD, 0);
    submit(2, 5, 0);
    assert_false(station_finish(st, marks[2].ticket));
    at(70, finish_held, 1);
    at(90, finish_held, 0);
    drain();
    assert_int_equal(marks[2].started, 70);
    assert_int_equal(marks[2].done, 75);
    assert_int_equal(marks[0].done, 90);
    assert_int_equal(station_serving(st), 0);
    assert_true(station_meter_serving(st)->passed_units == 5);
    assert_int_equal(station_meter_serving(st)->passed_count, 3);
    close_station();
}

static void set_servers(struct evq *queue, void *self)
{
    (void)queue;
    station_set_servers(st, (uint32_t)(uintptr_t)self);
}

static void fewer_servers_finish_what_runs_and_more_start_what_waits(void **state)
{
    (void)state;
    open_station(2, NS_PER_S, 1, 8);
    for (uintptr_t i = 0; i < 6; i++)
        submit(i, 100, 0);
    at(50, set_servers, 0);
    at(250, set_servers, 3);
    drain();
    const uint64_t started[] = {0, 0, 250, 250, 250, 350};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(marks[i].started, started[i]);
    assert_int_equal(meter_busy_ns(station_meter_serving(st), 450), 300);
    assert_int_equal(meter_idle_ns(station_meter_serving(st), 450), 150);
    close_station();
}

static void set_speed(struct evq *queue, void *self)
{
    (void)queue;
    station_set_speed(st, (uint64_t)(uintptr_t)self);
}

static void a_job_under_changing_speed_ends_when_its_work_is_done_and_no_sooner(void **state)
{
    (void)state;
    pcg_seed(&chance, 5, 5);
    for (int run = 0; run < 500; run++) {
        uint64_t speed = pcg_below(&chance, 5), when[51] = {0}, speeds[51] = {speed};
        uint64_t work = 1 + pcg_below(&chance, 400);
        open_station(1, speed * NS_PER_S / 3, 1, 1);
        submit(0, work, 0);
        for (size_t i = 1; i <= 50; i++) {
            when[i] = when[i - 1] + pcg_below(&chance, 9);
            speeds[i] = i == 50 ? 1 : pcg_below(&chance, 5);
            at(when[i], set_speed, speeds[i] * NS_PER_S / 3);
        }
        drain();
        /* One nanosecond at a time, in nano-units. */
        unsigned __int128 left = (unsigned __int128)work * NS_PER_S;
        uint64_t now = 0;
        for (size_t i = 0; left > 0; now++) {
            while (i < 50 && when[i + 1] <= now)
                i++;
            uint64_t pace = speeds[i] * NS_PER_S / 3;
            left -= left < pace ? left : pace;
        }
        assert_int_equal(marks[0].done, now);
        close_station();
    }
}

static void check_little(void)
{
    struct station_little l = station_little(st);
    assert_true(l.area_waiting + l.area_serving == l.sojourn_left + l.sojourn_present);
    uint64_t now = evq_now_ns(q);
    const struct meter *m = station_meter_serving(st);
    assert_int_equal(meter_busy_ns(m, now) + meter_idle_ns(m, now), now);
}

static void stir(struct evq *queue, void *self)
{
    uintptr_t number = (uintptr_t)self;
    check_little();
    if (number + 1 < MARKS)
        at(evq_now_ns(queue) + pcg_below(&chance, 60), stir, number + 1);
    if (station_waiting(st, 0) + station_waiting(st, 1) + station_serving(st) < 100)
        submit(number, pcg_below(&chance, 300), pcg_below(&chance, 2));
    uint64_t other = marks[pcg_below(&chance, (uint32_t)number + 1)].ticket;
    switch (pcg_below(&chance, 10)) {
    case 0:
        (void)station_promote(st, other, 0);
        break;
    case 1:
        (void)station_withdraw(st, other);
        break;
    case 2:
        station_set_servers(st, pcg_below(&chance, 6));
        break;
    case 3:
        station_set_speed(st, pcg_below(&chance, 4) * NS_PER_S / 2);
        break;
    default:
        break;
    }
}

static void littles_law_holds_exactly_at_every_instant(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pcg_seed(&chance, seed, 3);
        open_station(2, NS_PER_S, 2, 100);
        at(3, stir, 0);
        while (evq_step(q))
            check_little();
        station_set_speed(st, NS_PER_S);
        station_set_servers(st, 2);
        drain();
        struct station_little l = station_little(st);
        assert_true(l.sojourn_present == 0);
        assert_true(l.sojourn_left > 0);
        check_little();
        uint64_t submitted = 0, gone = 0;
        for (uint32_t level = 0; level < 2; level++) {
            submitted += station_level(st, level)->submitted;
            gone += station_level(st, level)->finished + station_level(st, level)->withdrawn;
        }
        assert_int_equal(submitted, gone);
        close_station();
    }
}

/* Service in order of arrival by k servers, as a recursion on the instants at which they get free.
 */
static uint64_t recursion_end(uint64_t *free_at, size_t servers, uint64_t arrival, uint64_t service)
{
    size_t least = 0;
    for (size_t i = 1; i < servers; i++)
        if (free_at[i] < free_at[least])
            least = i;
    uint64_t start = arrival > free_at[least] ? arrival : free_at[least];
    return free_at[least] = start + service;
}

static uint64_t fixed_arrival[MARKS], fixed_work[MARKS];

static void submit_fixed(struct evq *queue, void *self)
{
    (void)queue;
    submit((uintptr_t)self, fixed_work[(uintptr_t)self], 0);
}

static void run_fixed(uint32_t servers, uint64_t speed_per_s)
{
    open_station(servers, speed_per_s, 1, MARKS);
    for (uintptr_t i = 0; i < 1000; i++)
        at(fixed_arrival[i], submit_fixed, i);
    drain();
    close_station();
}

static void draw_fixed(uint32_t servers)
{
    for (size_t i = 0; i < 1000; i++) {
        fixed_arrival[i] = (i ? fixed_arrival[i - 1] : 0) + pcg_below(&chance, 100);
        fixed_work[i] = pcg_below(&chance, 95 * servers);
    }
}

static void ends_equal_the_recursion_of_first_come_first_served(void **state)
{
    (void)state;
    pcg_seed(&chance, 11, 3);
    for (uint32_t servers = 1; servers <= 5; servers++) {
        uint64_t free_at[5] = {0};
        draw_fixed(servers);
        run_fixed(servers, NS_PER_S);
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(marks[i].done,
                             recursion_end(free_at, servers, fixed_arrival[i], fixed_work[i]));
    }
}

static void doubling_the_speed_never_slows_a_job(void **state)
{
    (void)state;
    pcg_seed(&chance, 12, 3);
    static struct mark slow[MARKS];
    for (uint32_t run = 0; run < 50; run++) {
        uint32_t servers = 1 + run % 5;
        uint64_t speed = NS_PER_S / 2 + pcg_below(&chance, 1000000000);
        draw_fixed(servers);
        run_fixed(servers, speed);
        memcpy(slow, marks, sizeof slow);
        run_fixed(servers, 2 * speed);
        for (size_t i = 0; i < 1000; i++)
            assert_true(marks[i].done <= slow[i].done);
    }
}

/* -mean ln(u) from integers: u uniform in 1..2^63 over 2^63. */
static uint64_t exponential(uint64_t mean)
{
    const uint64_t ln2_q32 = 2977044472;
    uint64_t u = (pcg_u64(&chance) >> 1) + 1;
    uint64_t e_q32 = (uint64_t)63 * FIXED_ONE - (uint64_t)fixed_log2_q32(u);
    uint64_t nats_q32 = (uint64_t)((unsigned __int128)e_q32 * ln2_q32 >> 32);
    return (uint64_t)((unsigned __int128)mean * nats_q32 >> 32);
}

enum { BATCHES = 40, ROOM = 1 << 16 };
struct theory {
    uint32_t servers;
    double load;
    bool fixed_service;
    uint64_t gap_ns, batch, customers, arrived, started;
    uint64_t arrival_ns[ROOM];
    double batch_wait[BATCHES];
};
static struct theory th;

static void customer_starts(struct evq *queue, void *self)
{
    (void)self;
    uint64_t wait = evq_now_ns(queue) - th.arrival_ns[th.started % ROOM];
    uint64_t batch = th.started++ / th.batch;
    if (batch > 0) /* the first is the warm-up */
        th.batch_wait[batch - 1] += (double)wait / (double)th.batch;
}

static void customer_arrives(struct evq *queue, void *self)
{
    (void)self;
    uint64_t now = evq_now_ns(queue);
    const struct station_job job = {.work = th.fixed_service ? MS : exponential(MS),
                                    .start = customer_starts};
    th.arrival_ns[th.arrived++ % ROOM] = now;
    assert_int_equal(station_submit(st, &job, NULL), ST_OK);
    if (th.arrived < th.customers)
        at(now + exponential(th.gap_ns), customer_arrives, 0);
}

/* Erlang C: the chance to wait with c servers under a = c * load (Erlang 1917; Kleinrock vol. 1,
 * eq. 3.40), by the recursion of Erlang B. */
static double erlang_c(uint32_t servers, double load)
{
    double a = servers * load, b = 1;
    for (uint32_t k = 1; k <= servers; k++)
        b = a * b / (k + a * b);
    return b / (1 - load * (1 - b));
}

/* Pollaczek-Khinchine for fixed service, Erlang C for exponential. */
static double expected_wait_ns(void)
{
    double service = (double)MS, c = th.servers;
    if (th.fixed_service)
        return th.load * service / (2 * (1 - th.load));
    return erlang_c(th.servers, th.load) * service / (c * (1 - th.load));
}

static void check_mean_wait(uint32_t servers, unsigned load_percent, bool fixed_service)
{
    memset(&th, 0, sizeof th);
    th.servers = servers;
    th.load = load_percent / 100.0;
    th.fixed_service = fixed_service;
    th.gap_ns = MS * 100 / load_percent / servers;
    th.batch = load_percent > 80 ? 25000 : 5000;
    th.customers = th.batch * (BATCHES + 1);
    open_station(servers, NS_PER_S, 1, ROOM);
    at(0, customer_arrives, 0);
    drain();
    close_station();
    double sum = 0, squares = 0;
    for (size_t i = 0; i < BATCHES; i++)
        sum += th.batch_wait[i];
    double mean = sum / BATCHES;
    for (size_t i = 0; i < BATCHES; i++)
        squares += (th.batch_wait[i] - mean) * (th.batch_wait[i] - mean);
    double error = sqrt(squares / (BATCHES - 1) / BATCHES), expected = expected_wait_ns();
    /* A test that could not see a quarter would prove nothing. */
    if (expected > 0.01 * (double)MS)
        assert_true(4 * error < 0.25 * expected);
    if (fabs(mean - expected) > 4 * error)
        fail_msg("c = %u, load %u %%: mean wait %.0f ns, theory %.0f, standard error %.0f", servers,
                 load_percent, mean, expected, error);
}

static const unsigned loads[] = {10, 30, 50, 70, 90, 95};

static void mean_waits_of_md1_follow_pollaczek_khinchine(void **state)
{
    (void)state;
    pcg_stream(&chance, 1, "md1");
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        check_mean_wait(1, loads[i], true);
}

static void mean_waits_of_mmc_follow_erlang_c(void **state)
{
    (void)state;
    pcg_stream(&chance, 1, "mmc");
    const uint32_t servers[] = {1, 2, 5};
    for (size_t c = 0; c < sizeof servers / sizeof *servers; c++)
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
            check_mean_wait(servers[c], loads[i], false);
}

static void a_wrong_setup_is_refused_with_its_reason(void **state)
{
    (void)state;
    const struct station_setup wrong[] = {
        {1, 1, 0, 1}, {1, 1, STATION_LEVELS_MAX + 1, 1}, {1, 1, 1, 0}, {1, 1, 1, (1 << 20) + 1}};
    assert_int_equal(evq_new(&q, 2000), ST_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        dg.text[0] = 0;
        assert_int_equal(station_new(&st, q, &wrong[i], &dg), ST_RANGE);
        assert_non_null(strstr(dg.text, i < 2 ? "levels" : "jobs_max"));
    }
    evq_free(q);
}

static void set_up_survives_every_failed_allocation_and_stepping_makes_none(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const struct station_setup s = {1, NS_PER_S, 1, 10};
    assert_int_equal(evq_new(&q, 2000), ST_OK);
    for (size_t n = 1; n <= 4; n++) {
        allocations_fail_at(n);
        assert_int_equal(station_new(&st, q, &s, &dg), ST_NO_MEMORY);
    }
    allocations_fail_at(0);
    evq_free(q);
    pcg_seed(&chance, 2, 2);
    open_station(2, NS_PER_S, 2, 100);
    at(0, stir, 0);
    size_t before = allocations_count();
    drain();
    assert_int_equal(allocations_count(), before);
    close_station();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_alone_takes_its_work_at_the_servers_speed_rounded_up),
        cmocka_unit_test(demand_overtakes_prefetch_that_waits_but_not_what_has_started),
        cmocka_unit_test(what_a_job_submits_at_its_end_competes_by_level),
        cmocka_unit_test(
            a_promoted_job_goes_to_the_end_of_its_new_level_and_a_withdrawn_one_nowhere),
        cmocka_unit_test(a_held_place_is_kept_until_it_is_given_back),
        cmocka_unit_test(fewer_servers_finish_what_runs_and_more_start_what_waits),
        cmocka_unit_test(a_job_under_changing_speed_ends_when_its_work_is_done_and_no_sooner),
        cmocka_unit_test(littles_law_holds_exactly_at_every_instant),
        cmocka_unit_test(ends_equal_the_recursion_of_first_come_first_served),
        cmocka_unit_test(doubling_the_speed_never_slows_a_job),
        cmocka_unit_test(mean_waits_of_md1_follow_pollaczek_khinchine),
        cmocka_unit_test(mean_waits_of_mmc_follow_erlang_c),
        cmocka_unit_test(a_wrong_setup_is_refused_with_its_reason),
        cmocka_unit_test(set_up_survives_every_failed_allocation_and_stepping_makes_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
