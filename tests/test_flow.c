/* Flows: rates against an oracle in rational arithmetic, ends against a clock that ticks every
 * nanosecond, and laws of conservation, order and monotony. */
#include "tests/support.h"

#include "base/pcg.h"
#include "sim/core/flow.h"
#include "tests/allocations.h"

typedef __int128 big;

enum { RESOURCES = 6, CLASSES = 8, FLOWS = 64, MEMBERS = 4 };

static struct diag dg;
static struct evq *q;
static struct flow_net *net;
static struct pcg chance;

/* A random world: what the library is told by classes, the oracles know flow by flow. */
struct world {
    uint32_t resources, classes, flows;
    uint64_t capacity[RESOURCES];
    struct flow_class class_of[CLASSES];
    uint32_t member[CLASSES][MEMBERS];
    uint32_t kind[FLOWS]; /* a flow's class */
    uint64_t bytes[FLOWS], start_ns[FLOWS], end_ns[FLOWS];
};
static struct world world;

static void shuffle(uint32_t *a, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = pcg_below(&chance, i), t = a[i - 1];
        a[i - 1] = a[j];
        a[j] = t;
    }
}

static void draw_world(uint64_t capacity_below)
{
    memset(&world, 0, sizeof world);
    world.resources = 1 + pcg_below(&chance, RESOURCES);
    world.classes = 1 + pcg_below(&chance, CLASSES);
    world.flows = 1 + pcg_below(&chance, 24);
    for (uint32_t r = 0; r < world.resources; r++)
        world.capacity[r] = pcg_below(&chance, 8) ? pcg_u64(&chance) % capacity_below
                                                  : capacity_below / 2; /* ties */
    for (uint32_t k = 0; k < world.classes; k++) {
        uint32_t all[RESOURCES] = {0, 1, 2, 3, 4, 5};
        uint32_t most = world.resources < MEMBERS ? world.resources : MEMBERS;
        shuffle(all, world.resources);
        memcpy(world.member[k], all, sizeof world.member[k]);
        world.class_of[k] = (struct flow_class){
            .resources = world.member[k],
            .resource_count = 1 + pcg_below(&chance, most),
            .cap_Bps =
                pcg_below(&chance, 2) ? FLOW_NO_CAP : pcg_u64(&chance) % (capacity_below / 4),
            .weight = 1 + pcg_below(&chance, 3) * pcg_below(&chance, 4)};
    }
    for (uint32_t f = 0; f < world.flows; f++)
        world.kind[f] = pcg_below(&chance, world.classes);
}

static bool flow_crosses(uint32_t f, uint32_t r)
{
    const struct flow_class *c = &world.class_of[world.kind[f]];
    for (uint32_t i = 0; i < c->resource_count; i++)
        if (c->resources[i] == r)
            return true;
    return false;
}

/* Class k of the world is class place[k] of the net. */
static uint32_t place[CLASSES];

static void build(const uint32_t *class_order)
{
    assert_int_equal(evq_new(&q, FLOWS + RESOURCES), ST_OK);
    assert_ok(flow_net_new(&net, q, FLOWS, &dg));
    uint32_t index;
    for (uint32_t r = 0; r < world.resources; r++) {
        assert_ok(flow_resource_add(net, world.capacity[r], &index, &dg));
        assert_int_equal(index, r);
    }
    for (uint32_t i = 0; i < world.classes; i++) {
        uint32_t k = class_order ? class_order[i] : i;
        assert_ok(flow_class_add(net, &world.class_of[k], &place[k], &dg));
        assert_int_equal(place[k], i);
    }
}

static void demolish(void)
{
    flow_net_free(net);
    evq_free(q);
}

static void ended(struct evq *queue, void *self)
{
    *(uint64_t *)self = evq_now_ns(queue);
}

static void start(uint32_t k, uint64_t bytes, uint64_t *end_ns)
{
    *end_ns = UINT64_MAX;
    const struct flow f = {.bytes = bytes, .tag = bytes, .done = ended, .self = end_ns};
    assert_int_equal(flow_start(net, place[k], &f), ST_OK);
}

static void drain(void)
{
    while (evq_step(q))
        ;
}

/* ---- rates ---- */

struct ratio {
    big n, d; /* reduced, d > 0 */
};

static struct ratio ratio(big n, big d)
{
    big a = n < 0 ? -n : n, b = d;
    while (b) {
        big t = a % b;
        a = b;
        b = t;
    }
    return (struct ratio){n / a, d / a};
}

static struct ratio ratio_minus(struct ratio a, struct ratio b)
{
    return ratio(a.n * b.d - b.n * a.d, a.d * b.d);
}

static bool ratio_less(struct ratio a, struct ratio b)
{
    return a.n * b.d < b.n * a.d;
}

/* The textbook: raise the level until a flow's cap or a resource stops somebody, exactly. Flow by
 * flow, without classes, from the definition: the share of a resource is (capacity - what its fixed
 * flows take) / (weight of its other flows). */
static void oracle_rates(struct ratio *rate)
{
    bool fixed[FLOWS] = {false};
    for (uint32_t open = world.flows; open > 0;) {
        struct ratio level = {0, 0};
        struct ratio stop[FLOWS];
        for (uint32_t f = 0; f < world.flows; f++) {
            if (fixed[f])
                continue;
            const struct flow_class *c = &world.class_of[world.kind[f]];
            stop[f] = c->cap_Bps == FLOW_NO_CAP ? (struct ratio){(big)1 << 62, 1}
                                                : ratio((big)c->cap_Bps, c->weight);
            for (uint32_t r = 0; r < world.resources; r++) {
                if (!flow_crosses(f, r))
                    continue;
                struct ratio left = {(big)world.capacity[r], 1};
                big weight = 0;
                for (uint32_t g = 0; g < world.flows; g++) {
                    if (flow_crosses(g, r) && fixed[g])
                        left = ratio_minus(left, rate[g]);
                    else if (flow_crosses(g, r))
                        weight += world.class_of[world.kind[g]].weight;
                }
                struct ratio share = ratio(left.n, left.d * weight);
                if (ratio_less(share, stop[f]))
                    stop[f] = share;
            }
            if (level.d == 0 || ratio_less(stop[f], level))
                level = stop[f];
        }
        bool stops[FLOWS];
        for (uint32_t f = 0; f < world.flows; f++)
            stops[f] = !fixed[f] && !ratio_less(level, stop[f]);
        for (uint32_t f = 0; f < world.flows; f++)
            if (stops[f]) {
                fixed[f] = true;
                rate[f] = ratio(level.n * world.class_of[world.kind[f]].weight, level.d);
                open--;
            }
    }
}

static uint64_t rate_of(uint32_t f)
{
    return flow_rate_Bps(net, place[world.kind[f]]);
}

static void start_all(const uint32_t *order)
{
    for (uint32_t i = 0; i < world.flows; i++) {
        uint32_t f = order ? order[i] : i;
        start(world.kind[f], UINT32_MAX, &world.end_ns[f]);
    }
    assert_true(evq_step(q)); /* solves */
    assert_int_equal(evq_now_ns(q), 0);
}

static void rates_agree_with_rational_arithmetic(void **state)
{
    (void)state;
    const uint64_t capacity = 10000000000;
    pcg_stream(&chance, 1, "oracle");
    for (int run = 0; run < 4000; run++) {
        struct ratio exact[FLOWS];
        draw_world(capacity);
        build(NULL);
        start_all(NULL);
        oracle_rates(exact);
        for (uint32_t f = 0; f < world.flows; f++) {
            struct ratio apart = ratio_minus(exact[f], (struct ratio){(big)rate_of(f), 1});
            big bound = (big)4 * world.flows * apart.d;
            /* Each floor takes less than 1 byte/s, and can pass it on to the flows of another
             * resource. */
            assert_true(apart.n < bound && -apart.n < bound);
        }
        demolish();
    }
}

/* The sum of rates through r, and the number of flows. */
static uint64_t sum_through(uint32_t r, uint32_t *count)
{
    uint64_t sum = 0;
    *count = 0;
    for (uint32_t f = 0; f < world.flows; f++)
        if (flow_crosses(f, r)) {
            sum += rate_of(f);
            ++*count;
        }
    return sum;
}

/* r is a bottleneck of f: full but for what flooring left, and no flow through it has a share that
 * exceeds f's by more than the byte that f lost. */
static bool is_bottleneck(uint32_t f, uint32_t r)
{
    uint32_t count;
    uint64_t sum = sum_through(r, &count);
    if (sum + count <= world.capacity[r])
        return false;
    for (uint32_t g = 0; g < world.flows; g++)
        if (flow_crosses(g, r) && (big)rate_of(g) * world.class_of[world.kind[f]].weight >=
                                      (big)(rate_of(f) + 1) * world.class_of[world.kind[g]].weight)
            return false;
    return true;
}

static void no_resource_is_overdrawn_and_every_flow_has_its_cap_or_a_bottleneck(void **state)
{
    (void)state;
    pcg_stream(&chance, 1, "certificate");
    for (int run = 0; run < 4000; run++) {
        draw_world(run % 2 ? UINT64_MAX / 64
                           : 100); /* rates of few bytes, where floors matter most */
        build(NULL);
        start_all(NULL);
        for (uint32_t r = 0; r < world.resources; r++) {
            uint32_t count;
            assert_true(sum_through(r, &count) <= world.capacity[r]);
            assert_int_equal(flow_meter_flows(net, r)->level, count);
            assert_true(flow_meter_load(net, r)->level == sum_through(r, &count));
        }
        for (uint32_t f = 0; f < world.flows; f++) {
            bool held = rate_of(f) == world.class_of[world.kind[f]].cap_Bps;
            assert_true(rate_of(f) <= world.class_of[world.kind[f]].cap_Bps);
            for (uint32_t r = 0; r < world.resources && !held; r++)
                held = flow_crosses(f, r) && is_bottleneck(f, r);
            assert_true(held);
        }
        demolish();
    }
}

/* ---- ends ---- */

static void start_scheduled(struct evq *queue, void *self)
{
    (void)queue;
    uint32_t f = (uint32_t)(uintptr_t)self;
    start(world.kind[f], world.bytes[f], &world.end_ns[f]);
}

/* One nanosecond may follow only what the books of the last one say. */
static void check_books(void)
{
    uint64_t now = evq_now_ns(q);
    if (evq_next_ns(q) == now)
        return;
    for (uint32_t r = 0; r < world.resources; r++) {
        wide booked = 0;
        for (uint32_t k = 0; k < world.classes; k++) {
            struct flow_books b = flow_books(net, place[k]);
            for (uint32_t i = 0; i < world.class_of[k].resource_count; i++)
                if (world.class_of[k].resources[i] == r)
                    booked += b.delivered + b.excess + b.under_way;
        }
        assert_true(meter_area(flow_meter_load(net, r), now) == booked);
        const struct meter *m = flow_meter_flows(net, r);
        assert_int_equal(meter_busy_ns(m, now) + meter_idle_ns(m, now), now);
    }
}

static void draw_starts(void)
{
    for (uint32_t f = 0; f < world.flows; f++) {
        world.start_ns[f] = pcg_below(&chance, 3) ? pcg_below(&chance, 400) : 100;
        world.bytes[f] = pcg_below(&chance, 400);
    }
}

static void set_random_capacity(struct evq *queue, void *self)
{
    (void)queue;
    uint64_t code = (uint64_t)(uintptr_t)self;
    uint32_t r = (uint32_t)(code % RESOURCES);
    if (r < world.resources)
        flow_set_capacity(net, r, code);
}

enum { CHANGES = 20 };
struct change {
    uint64_t when_ns, code;
};

static void run_world(const uint32_t *order, const uint32_t *class_order,
                      const struct change *change)
{
    build(class_order);
    assert_int_equal(evq_reserve(q, CHANGES), ST_OK);
    for (uint32_t i = 0; change && i < CHANGES; i++)
        assert_int_equal(
            evq_at(q, change[i].when_ns, set_random_capacity, (void *)(uintptr_t)change[i].code),
            ST_OK);
    for (uint32_t i = 0; i < world.flows; i++) {
        uintptr_t f = order ? order[i] : i;
        assert_int_equal(evq_at(q, world.start_ns[f], start_scheduled, (void *)f), ST_OK);
    }
    while (evq_step(q))
        check_books();
}

static void bytes_are_conserved_to_the_nanobyte(void)
{
    uint64_t through[RESOURCES] = {0};
    for (uint32_t f = 0; f < world.flows; f++)
        for (uint32_t r = 0; r < world.resources; r++)
            if (flow_crosses(f, r) && world.end_ns[f] != UINT64_MAX)
                through[r] += world.bytes[f];
    for (uint32_t r = 0; r < world.resources; r++)
        assert_true(flow_meter_flows(net, r)->passed_units == through[r]);
}

/* The same rates as maxmin.h promises, by rounds over single flows. */
static void naive_rates(const bool *on, const uint64_t *capacity, uint64_t *rate)
{
    bool fixed[FLOWS];
    for (uint32_t f = 0; f < world.flows; f++) {
        fixed[f] = !on[f];
        rate[f] = 0;
    }
    for (;;) {
        big best_left = 0, best_weight = 0;
        uint32_t best = 0;
        for (uint32_t r = 0; r < world.resources; r++) {
            big left = (big)capacity[r], weight = 0;
            for (uint32_t f = 0; f < world.flows; f++)
                if (flow_crosses(f, r)) {
                    left -= (big)rate[f];
                    weight += fixed[f] ? 0 : world.class_of[world.kind[f]].weight;
                }
            if (weight && (!best_weight || left * best_weight < best_left * weight))
                best = r, best_left = left, best_weight = weight;
        }
        if (!best_weight)
            return;
        bool capped = false;
        for (uint32_t f = 0; f < world.flows; f++) {
            const struct flow_class *c = &world.class_of[world.kind[f]];
            if (fixed[f] || c->cap_Bps == FLOW_NO_CAP ||
                (big)c->cap_Bps * best_weight > best_left * c->weight)
                continue;
            rate[f] = c->cap_Bps;
            capped = fixed[f] = true;
        }
        for (uint32_t f = 0; f < world.flows && !capped; f++)
            if (!fixed[f] && flow_crosses(f, best)) {
                rate[f] =
                    (uint64_t)(best_left * world.class_of[world.kind[f]].weight / best_weight);
                fixed[f] = true;
            }
    }
}

/* Every nanosecond: end what has its bytes, start what is due, share anew, give one nanosecond's
 * worth. */
static void naive_run(const struct change *change, uint64_t until_ns, uint64_t *end_ns)
{
    uint64_t capacity[RESOURCES], rate[FLOWS] = {0};
    unsigned __int128 got[FLOWS] = {0};
    bool on[FLOWS] = {false};
    memcpy(capacity, world.capacity, sizeof capacity);
    for (uint32_t f = 0; f < world.flows; f++)
        end_ns[f] = UINT64_MAX;
    for (uint64_t now = 0; now < until_ns; now++) {
        bool changed = now == 0;
        for (uint32_t i = 0; i < CHANGES; i++)
            if (change[i].when_ns == now) {
                capacity[change[i].code % RESOURCES] = change[i].code;
                changed = true;
            }
        for (uint32_t f = 0; f < world.flows; f++) {
            if (world.start_ns[f] == now)
                on[f] = changed = true;
            if (on[f] && got[f] >= (unsigned __int128)world.bytes[f] * NS_PER_S) {
                end_ns[f] = now;
                on[f] = false;
                changed = true;
            }
        }
        if (changed)
            naive_rates(on, capacity, rate);
        for (uint32_t f = 0; f < world.flows; f++)
            got[f] += rate[f];
    }
}

static void draw_changes(struct change *change)
{
    for (uint32_t i = 0; i < CHANGES; i++)
        change[i] = (struct change){100 * i + pcg_below(&chance, 100), pcg_u32(&chance) / 2};
}

static void ends_agree_with_a_clock_that_ticks_every_nanosecond(void **state)
{
    (void)state;
    pcg_stream(&chance, 1, "ticks");
    uint32_t finished = 0;
    for (int run = 0; run < 400; run++) {
        struct change change[CHANGES];
        uint64_t naive_end[FLOWS];
        draw_world(2 * NS_PER_S);
        draw_starts();
        draw_changes(change);
        run_world(NULL, NULL, change);
        bytes_are_conserved_to_the_nanobyte();
        naive_run(change, 6000, naive_end);
        for (uint32_t f = 0; f < world.flows; f++) {
            finished += world.end_ns[f] < 6000;
            assert_true(world.end_ns[f] == naive_end[f] || world.end_ns[f] >= 6000);
        }
        demolish();
    }
    assert_true(finished > 3000);
}

static void the_order_of_starts_and_classes_changes_nothing(void **state)
{
    (void)state;
    pcg_stream(&chance, 1, "order");
    for (int run = 0; run < 2000; run++) {
        uint32_t order[FLOWS], class_order[CLASSES];
        uint64_t end_ns[FLOWS];
        draw_world(20 * NS_PER_S);
        draw_starts();
        run_world(NULL, NULL, NULL);
        demolish();
        memcpy(end_ns, world.end_ns, sizeof end_ns);
        for (uint32_t f = 0; f < world.flows; f++)
            order[f] = f;
        for (uint32_t k = 0; k < world.classes; k++)
            class_order[k] = k;
        shuffle(order, world.flows);
        shuffle(class_order, world.classes);
        run_world(order, class_order, NULL);
        demolish();
        assert_memory_equal(end_ns, world.end_ns, sizeof end_ns);
    }
}

static void flows_split_among_classes_of_one_description_fare_the_same(void **state)
{
    (void)state;
    pcg_stream(&chance, 1, "split");
    for (int run = 0; run < 500; run++) {
        uint64_t end_ns[FLOWS];
        draw_world(20 * NS_PER_S);
        draw_starts();
        world.classes = world.classes < 4 ? world.classes : 4;
        for (uint32_t f = 0; f < world.flows; f++)
            world.kind[f] %= world.classes;
        run_world(NULL, NULL, NULL);
        demolish();
        memcpy(end_ns, world.end_ns, sizeof end_ns);
        for (uint32_t k = 0; k < world.classes; k++)
            world.class_of[world.classes + k] = world.class_of[k];
        for (uint32_t f = 0; f < world.flows; f++)
            world.kind[f] += pcg_below(&chance, 2) * world.classes;
        world.classes *= 2;
        run_world(NULL, NULL, NULL);
        demolish();
        assert_memory_equal(end_ns, world.end_ns, sizeof end_ns);
    }
}

static void doubling_the_only_resource_never_slows_a_flow(void **state)
{
    (void)state;
    pcg_stream(&chance, 1, "double");
    for (int run = 0; run < 1000; run++) {
        uint64_t end_ns[FLOWS];
        draw_world(NS_PER_S);
        draw_starts();
        world.resources = 1;
        world.capacity[0] = 1 + pcg_below(&chance, run % 2 ? 1000000000 : 100);
        for (uint32_t k = 0; k < world.classes; k++) {
            world.member[k][0] = 0;
            world.class_of[k].resource_count = 1;
        }
        run_world(NULL, NULL, NULL);
        demolish();
        memcpy(end_ns, world.end_ns, sizeof end_ns);
        world.capacity[0] *= 2;
        run_world(NULL, NULL, NULL);
        demolish();
        for (uint32_t f = 0; f < world.flows; f++)
            assert_true(world.end_ns[f] <= end_ns[f]);
    }
}

/* ---- examples ---- */

/* One resource; classes: plain, capped at 2 GB/s, of weight 3. */
static void build_example(uint64_t capacity_Bps)
{
    memset(&world, 0, sizeof world);
    world.resources = 1;
    world.capacity[0] = capacity_Bps;
    world.classes = 3;
    for (uint32_t k = 0; k < 3; k++)
        world.class_of[k] = (struct flow_class){world.member[k], 1, FLOW_NO_CAP, 1};
    world.class_of[1].cap_Bps = 2 * NS_PER_S;
    world.class_of[2].weight = 3;
    build(NULL);
}

static void a_flow_alone_takes_its_bytes_at_the_least_rate_rounded_up(void **state)
{
    (void)state;
    uint64_t end[2];
    build_example(8 * NS_PER_S);
    start(0, 801, &end[0]);
    drain();
    assert_int_equal(end[0], 101);
    demolish();
    build_example(8 * NS_PER_S);
    start(1, 801, &end[0]);
    start(1, 0, &end[1]);
    drain();
    assert_int_equal(end[0], 401);
    assert_int_equal(end[1], 0);
    demolish();
}

static void a_burst_of_equal_flows_lands_together(void **state)
{
    (void)state;
    uint64_t end[10];
    build_example(10 * NS_PER_S);
    for (size_t i = 0; i < 10; i++)
        start(0, 1000, &end[i]);
    drain();
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(end[i], 1000);
    demolish();
}

static void weights_divide_and_caps_leave_the_rest_to_others(void **state)
{
    (void)state;
    uint64_t end[3];
    build_example(14 * NS_PER_S);
    start(0, 3000, &end[0]); /* 3 GB/s */
    start(1, 3000, &end[1]); /* 2 GB/s by its cap */
    start(2, 3000, &end[2]); /* 9 GB/s */
    assert_true(evq_step(q));
    assert_true(flow_rate_Bps(net, 0) == 3 * NS_PER_S);
    assert_true(flow_rate_Bps(net, 1) == 2 * NS_PER_S);
    assert_true(flow_rate_Bps(net, 2) == 9 * NS_PER_S);
    drain();
    assert_int_equal(end[2], 334);                          /* 333.3 */
    assert_int_equal(end[0], 334 + (3000 - 1002) / 12 + 1); /* then at 12 GB/s */
    assert_int_equal(end[1], 1500);
    demolish();
}

static void change_weights_and_caps(struct evq *queue, void *self)
{
    (void)queue, (void)self;
    flow_set_cap(net, 1, FLOW_NO_CAP);
    flow_set_weight(net, 2, 1);
}

static void throttling_holds_for_flows_under_way(void **state)
{
    (void)state;
    uint64_t end[3];
    build_example(10 * NS_PER_S);
    start(0, 1000, &end[0]);
    const struct change change[] = {{50, 6 * NS_PER_S}, {60, 0}, {1060, 9 * NS_PER_S}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(evq_at(q, change[i].when_ns, set_random_capacity,
                                (void *)(uintptr_t)(change[i].code / RESOURCES * RESOURCES)),
                         ST_OK);
    drain();
    assert_int_equal(end[0], 1060 + 49); /* 500 B, 60 B, none, 440 B */
    demolish();
    build_example(12 * NS_PER_S);
    for (uint32_t k = 0; k < 3; k++)
        start(k, 4000, &end[k]);
    assert_int_equal(evq_at(q, 100, change_weights_and_caps, NULL), ST_OK);
    drain(); /* 2.5, 2 and 7.5 GB/s, then 4 each */
    assert_int_equal(end[2], 100 + 3250 / 4 + 1);
    assert_true(end[0] < end[1]);
    demolish();
}

static void a_standstill_is_not_an_end(void **state)
{
    (void)state;
    uint64_t end[2];
    build_example(0);
    start(0, 1, &end[0]);
    start(1, 0, &end[1]);
    drain();
    assert_true(end[0] == UINT64_MAX);
    assert_int_equal(end[1], 0);
    assert_int_equal(flow_under_way(net, 0), 1);
    demolish();
}

static void one_instant_is_solved_once(void **state)
{
    (void)state;
    uint64_t end[20];
    build_example(10 * NS_PER_S);
    for (size_t i = 0; i < 20; i++)
        start(i % 3, 1000 + i, &end[i]);
    assert_int_equal(evq_pending(q), 1);
    assert_true(evq_step(q));
    assert_int_equal(evq_fired(q), 1);
    assert_int_equal(evq_pending(q), 1);
    demolish();
}

static uint64_t end_order[8];
static size_t end_count;

static void note_end(struct evq *queue, void *self)
{
    (void)queue;
    end_order[end_count++] = (uint64_t)(uintptr_t)self;
}

static void start_noted(uint32_t k, uint64_t bytes, uintptr_t number)
{
    const struct flow f = {.bytes = bytes, .done = note_end, .self = (void *)number};
    assert_int_equal(flow_start(net, k, &f), ST_OK);
}

static void start_two(struct evq *queue, void *self)
{
    (void)queue, (void)self;
    start_noted(2, 10, 4);
    start_noted(0, 20, 0);
}

static void start_three(struct evq *queue, void *self)
{
    (void)queue, (void)self;
    start_noted(1, 10, 3);
    start_noted(0, 20, 2);
    start_noted(0, 10, 1); /* less to carry, but in the same nanosecond */
}

static void ends_at_one_instant_go_by_class_then_bytes_then_start(void **state)
{
    (void)state;
    build_example(1000 * NS_PER_S);
    end_count = 0;
    flow_set_cap(net, 1, FLOW_NO_CAP);
    assert_int_equal(evq_at(q, 5, start_two, NULL), ST_OK);
    assert_int_equal(evq_at(q, 5, start_three, NULL), ST_OK);
    drain();
    const uint64_t expected[] = {1, 0, 2, 3, 4};
    assert_int_equal(end_count, 5);
    assert_memory_equal(end_order, expected, sizeof expected);
    /* Two starters, one event for all ends, and three instants (0, 5 and 6) solved once each. */
    assert_int_equal(evq_now_ns(q), 6);
    assert_int_equal(evq_fired(q), 2 + 3 + 1);
    for (uint32_t k = 0; k < 3; k++)
        assert_int_equal(flow_rate_Bps(net, k), 0);
    demolish();
}

static void of_two_equally_tight_resources_the_first_fills_first(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.resources = 2;
    world.capacity[0] = world.capacity[1] = 11;
    world.classes = 3;
    world.member[0][1] = world.member[2][0] = 1;
    for (uint32_t k = 0; k < 3; k++)
        world.class_of[k] = (struct flow_class){world.member[k], k == 0 ? 2 : 1, FLOW_NO_CAP, 1};
    build(NULL);
    uint64_t end[5];
    const uint32_t kind[] = {0, 1, 1, 2, 2};
    for (size_t i = 0; i < 5; i++)
        start(kind[i], 1, &end[i]);
    assert_true(evq_step(q));
    /* floor(11 / 3) through the first, then floor((11 - 3) / 2) through the second. */
    assert_int_equal(flow_rate_Bps(net, 0), 3);
    assert_int_equal(flow_rate_Bps(net, 1), 3);
    assert_int_equal(flow_rate_Bps(net, 2), 4);
    demolish();
}

static void restart(struct evq *queue, void *self)
{
    uint64_t *left = self;
    if (--*left > 0) {
        const struct flow f = {.bytes = 100 + *left % 50, .done = restart, .self = left};
        assert_int_equal(flow_start(net, (uint32_t)(*left % 3), &f), ST_OK);
    }
    (void)queue;
}

static void start_restarting(uint64_t *left, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct flow f = {.bytes = 100 + i, .done = restart, .self = &left[i]};
        left[i] = 1000;
        assert_int_equal(flow_start(net, (uint32_t)(i % 3), &f), ST_OK);
    }
}

static uint64_t fingerprint_of_restarts(void)
{
    uint64_t left[8];
    build_example(7 * NS_PER_S + 1);
    start_restarting(left, 8);
    drain();
    uint64_t fingerprint = evq_fingerprint(q);
    demolish();
    return fingerprint;
}

static void a_run_repeats_to_the_last_bit_of_its_fingerprint(void **state)
{
    (void)state;
    assert_true(fingerprint_of_restarts() == fingerprint_of_restarts());
    assert_true(fingerprint_of_restarts() == UINT64_C(0x1db83e58ed560b09));
}

static void components_do_not_touch_each_other(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.resources = 4;
    world.classes = 3;
    const uint32_t member[3][2] = {{3, 1}, {0, 0}, {2, 1}};
    for (uint32_t k = 0; k < 3; k++) {
        memcpy(world.member[k], member[k], sizeof member[k]);
        world.class_of[k] = (struct flow_class){world.member[k], k == 1 ? 1 : 2, FLOW_NO_CAP, 1};
    }
    for (uint32_t r = 0; r < 4; r++)
        world.capacity[r] = (r + 1) * NS_PER_S;
    build(NULL);
    uint64_t end[3];
    for (uint32_t k = 0; k < 3; k++)
        start(k, 1200, &end[k]);
    assert_true(evq_step(q));
    assert_int_equal(evq_pending(q), 2); /* an end for each component */
    drain();
    assert_int_equal(end[1], 1200);
    assert_int_equal(end[0], 1200);
    assert_int_equal(end[2], 1200);
    demolish();
}

static void a_wrong_description_is_refused_with_its_reason(void **state)
{
    (void)state;
    const uint32_t unknown[] = {0, 3}, twice[] = {0, 0}, good[] = {0};
    const struct {
        struct flow_class c;
        const char *reason;
    } wrong[] = {{{unknown, 2, 1, 1}, "resource 3"},
                 {{twice, 2, 1, 1}, "twice"},
                 {{good, 0, 1, 1}, "needs a resource"},
                 {{good, 1, 1, 0}, "weight"}};
    build_example(1);
    uint32_t index;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(flow_class_add(net, &wrong[i].c, &index, &dg), ST_RANGE);
        assert_non_null(strstr(dg.text, wrong[i].reason));
    }
    uint64_t end;
    for (uint32_t i = 0; i < FLOWS; i++)
        start(0, 1, &end);
    assert_int_equal(flow_start(net, 0, &(struct flow){.bytes = 1}), ST_RANGE);
    struct flow_net *none;
    assert_int_equal(flow_net_new(&none, q, 0, &dg), ST_RANGE);
    assert_int_equal(flow_net_new(&none, q, FLOW_COUNT_MAX + 1, &dg), ST_RANGE);
    demolish();
}

static void running_allocates_nothing(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    uint64_t left[8];
    build_example(7 * NS_PER_S + 1);
    size_t before = allocations_count();
    start_restarting(left, 8);
    drain();
    assert_int_equal(allocations_count(), before);
    demolish();
}

static void set_up_survives_every_failed_allocation(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct flow_net *none;
    uint32_t index;
    build_example(NS_PER_S);
    for (size_t n = 1; n <= 5; n++) {
        allocations_fail_at(n);
        assert_int_equal(flow_net_new(&none, q, 10, &dg), ST_NO_MEMORY);
    }
    for (size_t n = 1; n <= 7; n++) {
        allocations_fail_at(n);
        assert_int_equal(flow_resource_add(net, 5, &index, &dg), ST_NO_MEMORY);
    }
    for (size_t n = 1; n <= 4; n++) {
        allocations_fail_at(n);
        assert_int_equal(flow_class_add(net, &world.class_of[0], &index, &dg), ST_NO_MEMORY);
    }
    allocations_fail_at(0);
    uint64_t end;
    start(0, 77, &end);
    drain();
    assert_int_equal(end, 77);
    demolish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_agree_with_rational_arithmetic),
        cmocka_unit_test(no_resource_is_overdrawn_and_every_flow_has_its_cap_or_a_bottleneck),
        cmocka_unit_test(ends_agree_with_a_clock_that_ticks_every_nanosecond),
        cmocka_unit_test(the_order_of_starts_and_classes_changes_nothing),
        cmocka_unit_test(flows_split_among_classes_of_one_description_fare_the_same),
        cmocka_unit_test(doubling_the_only_resource_never_slows_a_flow),
        cmocka_unit_test(a_flow_alone_takes_its_bytes_at_the_least_rate_rounded_up),
        cmocka_unit_test(a_burst_of_equal_flows_lands_together),
        cmocka_unit_test(weights_divide_and_caps_leave_the_rest_to_others),
        cmocka_unit_test(throttling_holds_for_flows_under_way),
        cmocka_unit_test(a_standstill_is_not_an_end),
        cmocka_unit_test(one_instant_is_solved_once),
        cmocka_unit_test(ends_at_one_instant_go_by_class_then_bytes_then_start),
        cmocka_unit_test(of_two_equally_tight_resources_the_first_fills_first),
        cmocka_unit_test(a_run_repeats_to_the_last_bit_of_its_fingerprint),
        cmocka_unit_test(components_do_not_touch_each_other),
        cmocka_unit_test(a_wrong_description_is_refused_with_its_reason),
        cmocka_unit_test(running_allocates_nothing),
        cmocka_unit_test(set_up_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
